//! Samples, pictures and walks on their way to files, with what is behind them beside each.

use std::path::Path;

use super::sink::{Sink, opened_of};
use crate::data::room_for;
use crate::error::Result;
use crate::flow::sampling::SamplerOptions;
use crate::oracle::export::{asked, least_bytes, save_samples};
use crate::oracle::look::save_pictures_with;
use crate::oracle::provenance::{Machine, keep};
use crate::oracle::world::{SampleSpec, Settings};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Writes samples.
pub fn samples(
    (channels, desk, id, control): (&Channels, &Desk, JobId, &Control),
    (spec, indices, settings): (&SampleSpec, &[usize], &Settings),
    path: &Path,
) -> Result<String> {
    let opened = opened_of(desk)?;
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    room_for(path, least_bytes(&opened.world, asked(spec, indices), path))?;
    let saved = save_samples(&opened.world, spec, indices, settings, path, &mut sink)?;
    let provenance = opened.info.of_samples(spec, indices, settings, &saved, path);
    let machine = Machine::with(&desk.chosen.report.used);
    channels.send(Event::Made(Box::new(keep(path, "samples", provenance, &machine, &mut sink)?)));
    let carried = match saved.rounded {
        0 => String::new(),
        n => format!("; the 32-bit x of {n} does not carry their posterior to 0.001"),
    };
    Ok(format!("{} samples are in {}{carried}", saved.images, path.display()))
}

/// Writes pictures with a look.
pub fn pictures(
    (channels, desk, id, control): (&Channels, &Desk, JobId, &Control),
    (spec, indices, settings): (&SampleSpec, &[usize], &Settings),
    look: &SamplerOptions,
    path: &Path,
) -> Result<String> {
    let opened = opened_of(desk)?;
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    room_for(path, least_bytes(&opened.world, asked(spec, indices), path))?;
    let n = save_pictures_with(&opened.world, spec, indices, settings, look, path, &mut sink)?;
    let provenance = opened.info.of_pictures(spec, indices, settings, look);
    let machine = Machine::with(&desk.chosen.report.used);
    channels.send(Event::Made(Box::new(keep(path, "pictures with a look", provenance, &machine, &mut sink)?)));
    Ok(format!("{n} pictures (illustrative: they have left the world) are in {}", path.display()))
}
