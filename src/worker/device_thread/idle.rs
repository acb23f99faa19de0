//! Work for an oracle just opened, while no request waits.

use std::ops::ControlFlow;
use std::time::Instant;

use super::super::interactive::FIRST_PIECE;
use super::super::protocol::Event;
use super::super::remote_device::is_lost;
use super::DeviceThread;
use crate::device::{DeviceChoice, explain};
use crate::error::{Error, Result};
use crate::events::{Progress, silent};
use crate::oracle::folder;
use crate::oracle::world::Settings;
use crate::oracle::{precision, strategies};
use crate::worker::channels::Channels;

/// Samples of a class-map world on which its precision is measured.
const MEASURED: usize = 2;
/// A measurement in 64 bits that costs more is left out: it would block requests.
const MEASURABLE_FLOP: f64 = 5e10;

/// Only the loss of the device is returned as an error; other failures are logged.
impl DeviceThread {
    /// Measures the precision of the open oracle, once.
    pub(super) fn tell_precision(&mut self, channels: &Channels) -> Result<()> {
        let Some(opened) = self.opened.as_mut().filter(|opened| !opened.measured) else { return Ok(()) };
        opened.measured = true;
        let measured = if opened.world.flow().passes_by_class() {
            // Samples are dear where every class is a pass of its own: two of those on show must
            // do, and only where 64 bits do not take minutes.
            let x = self.interactive.some_images(MEASURED);
            let flop = opened.info.architecture.flop_per_image() * (MEASURED * opened.info.class_names.len()) as f64;
            if x.is_empty() || flop > MEASURABLE_FLOP {
                return Ok(());
            }
            let settings = Settings::default_for(opened.info.class_names.len());
            let scores = opened.world.flow().score(&x);
            let read = folder::read_again(&opened.name, &opened.info);
            scores.and_then(|s| precision::compare(&opened.info, read?, &x, &s, &settings, &mut silent()))
        } else {
            folder::read_again(&opened.name, &opened.info)
                .and_then(|weights| precision::measure(&opened.info, weights, &opened.world))
        };
        match measured {
            Ok(report) => channels.send(Event::Precision(report)),
            Err(loss @ Error::DeviceLost { .. }) => return Err(loss),
            Err(error) => tracing::warn!("the precision of {} could not be measured: {error}", opened.name),
        }
        Ok(())
    }

    /// Measures how the blocks of a world's flow are best inverted on this device, once for a model
    /// and a device. Stops as soon as a request waits.
    pub(super) fn tune_sampling(&mut self, channels: &Channels) -> Result<()> {
        let Some(opened) = self.opened.as_mut().filter(|opened| !opened.tuned) else { return Ok(()) };
        let mut undisturbed = |_: Progress| match channels.wanted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let (flow, device) = (opened.world.flow(), self.chosen.report.used.label());
        let images = FIRST_PIECE;
        match strategies::adopt(flow, &opened.info.weights_sha256, &device, images, &mut undisturbed) {
            Err(Error::Cancelled) => return Ok(()),
            Err(loss @ Error::DeviceLost { .. }) => return Err(loss),
            Ok(measured) => {
                if let Some(measured) = measured {
                    channels.send(Event::Note(format!("Sampling {}: {}", opened.info.name, measured.describe())));
                }
            }
            Err(error) => tracing::warn!("the ways of sampling {} could not be measured: {error}", opened.name),
        }
        opened.tuned = true;
        Ok(())
    }

    /// Compiles the kernels of a world just opened, on devices other than the CPU. As a separate
    /// step the window can say what it waits for.
    pub(super) fn prepare(&mut self, channels: &Channels) -> Result<()> {
        let used = &self.chosen.report.used;
        let Some(opened) = self.opened.as_mut().filter(|opened| !opened.prepared) else { return Ok(()) };
        opened.prepared = true;
        if used.choice == DeviceChoice::Cpu {
            return Ok(());
        }
        channels
            .send(Event::Preparing(Some(format!("Preparing the kernels of {} on {}", opened.info.name, used.name))));
        let began = Instant::now();
        let prepared = opened.world.prepare();
        channels.send(Event::Preparing(None));
        match prepared {
            Ok(()) => {
                let took = began.elapsed().as_secs_f64();
                let text = format!("The kernels of {} are ready on {} after {took:.1} s", opened.info.name, used.name);
                channels.send(Event::Note(text));
            }
            Err(loss @ Error::DeviceLost { .. }) => return Err(loss),
            Err(error) => {
                let error = explain(error, Some(used.choice));
                if is_lost(used.choice) {
                    return Err(error);
                }
                channels.send(Event::Failed(error.to_string()));
            }
        }
        Ok(())
    }
}
