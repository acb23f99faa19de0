//! Tasks: a dataset is made; what pictures keep is measured.

use std::path::PathBuf;

use super::{DepthCurve, ExportEvent, ExportSpec, Manifest, depth_curve, export};
use crate::error::{Error, Result};
use crate::figure::Illustrated;
use crate::oracle::world::Settings;
use crate::task::{Done, Task, TaskContext};
use crate::units::Seed;

/// Exports a dataset of the open oracle into a folder, or continues an export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportDataset {
    /// What.
    pub spec: ExportSpec,
    /// Where.
    pub folder: PathBuf,
}

impl Task for ExportDataset {
    type Event = ();
    type Live = ();
    type Report = Manifest;

    fn title(&self) -> String {
        format!("Export to {}", self.folder.display())
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Manifest>> {
        let Self { spec, folder } = self;
        let open = cx.oracle()?;
        if open.name != spec.oracle {
            return Err(Error::input(format!("{} is open, the dataset is to be one of {}", open.name, spec.oracle)));
        }
        let mut forward = |ExportEvent { stage, progress }: ExportEvent| cx.stage(progress, &stage.label());
        let manifest = export(open.world, open.info, spec, folder, &mut forward)?;
        let images: usize = manifest.splits.values().map(|split| split.images).sum();
        let made = manifest.made(folder);
        let sentence = format!("{images} images are in {}", folder.display());
        Ok(Done::new(manifest, sentence).made([made]))
    }
}

/// Measures what pictures of the open oracle's world keep of its posteriors, over their bits.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureDepth {
    /// Samples compared.
    pub samples: usize,
    /// The world's knobs.
    pub settings: Settings,
    /// Of the samples.
    pub seed: Seed,
}

impl Task for MeasureDepth {
    type Event = ();
    type Live = ();
    type Report = Illustrated<DepthCurve>;

    fn title(&self) -> String {
        format!("Compare pictures of {} samples", self.samples)
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Self::Report>> {
        let open = cx.oracle()?;
        let found = depth_curve(open.world, &self.settings, self.samples, self.seed, cx)?;
        let eight = found.depths.iter().find(|depth| depth.bits == 8);
        let sentence = eight.map_or_else(String::new, |depth| depth.cost.sentence(found.bayes_error.value));
        let (figures, tables) = (vec![found.figure(open.info)], vec![found.table()]);
        Ok(Done::new(Illustrated { found, figures, tables }, sentence))
    }
}
