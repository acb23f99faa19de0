//! Datasets of the open world, made piece by piece while the window is served.

use std::ops::ControlFlow;
use std::path::Path;

use super::sink::{Sink, opened_of};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::export::{ExportEvent, ExportSpec, export};
use crate::worker::channels::Channels;
use crate::worker::desk::Desk;
use crate::worker::protocol::{Event, JobId};
use crate::worker::shared::Control;

/// Makes the dataset, or what is left of it.
pub fn carry_out(
    channels: &Channels,
    desk: &mut Desk,
    id: JobId,
    control: &Control,
    spec: &ExportSpec,
    folder: &Path,
) -> Result<String> {
    let opened = opened_of(desk)?;
    if opened.name != spec.oracle {
        return Err(Error::input(format!("{} is open, the dataset is to be one of {}", opened.name, spec.oracle)));
    }
    let mut sink = Sink::new(channels, &desk.interactive, Some(&opened.world), id, control);
    let manifest = export(&opened.world, &opened.info.weights_sha256, spec, folder, &mut sink)?;
    let images: usize = manifest.splits.values().map(|split| split.images).sum();
    channels.send(Event::Made(Box::new(manifest.made(folder))));
    channels.send(Event::Exported(id, Box::new(manifest)));
    Ok(format!("{images} images are in {}", folder.display()))
}

impl Events<ExportEvent> for Sink<'_> {
    fn emit(&mut self, ExportEvent { stage, progress }: ExportEvent) -> ControlFlow<()> {
        self.progress(progress, format!("{}: {} of {}", stage.label(), progress.done, progress.total));
        self.check()
    }
}
