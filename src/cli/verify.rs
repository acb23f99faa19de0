//! `bayescope verify`.

use std::ops::ControlFlow;

use super::args::VerifyArgs;
use super::output::Output;
use super::place::is_free;
use super::progress::Bar;
use crate::device::{DeviceChoice, fault_injection};
use crate::error::{Error, Result};
use crate::verify::{VerifyEvent, VerifySpec, verify};

/// Carries out the cases, prints a table, and fails where one of them did.
pub fn run(args: &VerifyArgs) -> Result<()> {
    if args.small_device {
        let DeviceChoice::Wgpu(_) = args.device.device else {
            return Err(Error::input(format!(
                "--small-device lowers the limits of a graphics adapter, and {} is none: give --device wgpu or wgpu:N",
                args.device.device
            )));
        };
        fault_injection::small_devices(true);
    }
    args.report.as_deref().map_or(Ok(()), is_free)?;
    let bar = Bar::new("verifying");
    let mut sink = |event: VerifyEvent| {
        match event {
            VerifyEvent::Begun(case, progress) => bar.set(progress, case.to_owned()),
            // At once: if a driver takes the program down, it is known how far it came.
            VerifyEvent::Row(row) if !row.verdict.is_fine() => bar.line(&row.sentence()),
            VerifyEvent::Row(_) => {}
        }
        ControlFlow::Continue(())
    };
    let report = verify(&VerifySpec { device: args.device.device, cases: args.cases.clone() }, &mut sink)?;
    drop(bar);
    if let Some(path) = &args.report {
        report.write(path)?;
    }
    Output { json: args.json }.print(&report, |report| {
        if let Some(used) = &report.used {
            println!("{}: {} ({})", used.used.choice, used.used.label(), used.reason);
        }
        println!("{}", report.table().text());
        report.notes.iter().for_each(|note| println!("{note}"));
        match &args.report {
            Some(path) => println!("the report is in {}", path.display()),
            None if report.passed => println!("{} ({:.0} s)", report.sentence, report.seconds),
            None => println!("--report {} writes the file for a bug report", report.file_name()),
        }
        Ok(())
    })?;
    if report.passed { Ok(()) } else { Err(Error::Numeric(report.sentence)) }
}
