//! The open oracle beside real images, while the window is served.

use std::ops::ControlFlow;
use std::path::Path;

use super::sink::{Sink, opened_of};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::export::depth_curve;
use crate::oracle::world::Settings;
use crate::units::Seed;
use crate::validate::{ValidateEvent, ValidateSpec, compare_precision, validate, write_report};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Validates, or goes on with it, and writes the report.
pub fn carry_out(
    channels: &Channels,
    desk: &Desk,
    id: JobId,
    control: &Control,
    spec: &ValidateSpec,
    folder: &Path,
) -> Result<String> {
    let opened = opened_of(desk)?;
    if opened.name != spec.oracle {
        return Err(Error::input(format!("{} is open, {} is to be validated", opened.name, spec.oracle)));
    }
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    let device = &desk.chosen.device;
    let (validation, pairs) = validate(&opened.world, &opened.info, spec, device, Some(folder), &mut sink)?;
    let written = write_report(folder, &validation, pairs.as_ref());
    channels.send(Event::Validated(id, Box::new((validation, pairs))));
    written?;
    Ok(format!("{} is validated; the report is in {}", spec.oracle, folder.display()))
}

/// Compares the open world on its device with itself in 64 bits.
pub fn precision(
    (channels, desk, id, control): (&Channels, &Desk, JobId, &Control),
    images: usize,
    settings: &Settings,
) -> Result<String> {
    let opened = opened_of(desk)?;
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    let about = (&opened.name[..], &opened.info, &desk.chosen.report.used.name[..]);
    let found = compare_precision(&opened.world, about, (images, settings, Seed(0)), &mut sink)?;
    let sentence = format!(
        "posteriors within {:.1e}, {:.1} % of {images} decisions changed",
        found.posterior.largest,
        100.0 * found.decisions_changed.value
    );
    channels.send(Event::Compared(Box::new(found)));
    Ok(sentence)
}

/// Measures what pictures of the open world keep of its posteriors.
pub fn depth(
    (channels, desk, id, control): (&Channels, &Desk, JobId, &Control),
    samples: usize,
    settings: &Settings,
) -> Result<String> {
    let opened = opened_of(desk)?;
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    let found = depth_curve(&opened.world, settings, samples, Seed(0), &mut sink)?;
    let eight = found.depths.iter().find(|depth| depth.bits == 8);
    let sentence = eight.map_or_else(String::new, |depth| depth.cost.sentence(found.bayes_error.value));
    channels.send(Event::Depth(Box::new((found.table(), found.figure(&opened.info)))));
    Ok(sentence)
}

impl Events<ValidateEvent> for Sink<'_> {
    fn emit(&mut self, ValidateEvent { stage, progress }: ValidateEvent) -> ControlFlow<()> {
        self.progress(progress, format!("{}: {} of {}", stage.label(), progress.done, progress.total));
        self.check()
    }
}
