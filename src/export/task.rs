//! Tasks: a dataset is made; what pictures keep is measured.

use std::path::PathBuf;

use super::{DepthCurve, ExportEvent, ExportSpec, KeptDraws, Manifest, Stage, depth_curve, export};
use crate::bayes::sampling::Cache;
use crate::data::Split;
use crate::error::{Error, Result};
use crate::events::Progress;
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
    /// Whether draws for the figures of the world may come from the user's cache, and are kept there.
    /// Only for passes in 32 bits, and not with `--reproducible`.
    pub remembers: bool,
}

impl Task for ExportDataset {
    type Event = ();
    type Live = ();
    type Report = Manifest;

    fn title(&self) -> String {
        format!("Export to {}", self.folder.display())
    }

    fn names_its_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Manifest>> {
        let Self { spec, folder, remembers } = self;
        let (cache, device) =
            (if *remembers { Cache::of_user() } else { Cache::none() }, cx.chosen.report.used.label());
        let open = cx.oracle()?;
        if open.name != spec.oracle {
            return Err(Error::input(format!("{} is open, the dataset is to be one of {}", open.name, spec.oracle)));
        }
        let mut forward = |ExportEvent { stage, progress: part }: ExportEvent| {
            let note = format!("{}: {} of {}", stage.label(), part.done, part.total);
            cx.progress(whole(spec, stage, part), note);
            cx.check()
        };
        let manifest =
            export(open.world, open.info, spec, folder, &KeptDraws { cache: &cache, device: &device }, &mut forward)?;
        let images: usize = manifest.splits.values().map(|split| split.images).sum();
        let made = manifest.made(folder);
        let sentence = format!("{images} images are in {}", folder.display());
        Ok(Done::new(manifest, sentence).made([made]))
    }
}

/// Progress of all parts together, in images drawn and pictures scored. The files of these are
/// written fast: that is the last image.
fn whole(spec: &ExportSpec, stage: Stage, part: Progress) -> Progress {
    let (splits, depths) = (spec.splits().collect::<Vec<_>>(), spec.depths());
    let images: usize = splits.iter().map(|split| spec.images(*split)).sum();
    let before = |split: Split| -> usize {
        splits.iter().take_while(|other| **other != split).map(|other| spec.images(*other)).sum()
    };
    let total = images * (1 + depths.len());
    let done = match stage {
        Stage::Drawing(split) => before(split) + part.done,
        Stage::Rounding(split, bits) => {
            let place = depths.iter().take_while(|other| **other != bits).count();
            images + depths.len() * before(split) + place * spec.images(split) + part.done
        }
        Stage::Figures | Stage::Writing(..) | Stage::Hashing => total,
    };
    Progress { done: done.min(total.saturating_sub(1)), total }
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
        let of = found.bayes_error.interval;
        let eight = found.depths.iter().find(|depth| depth.bits == 8);
        let sentence = eight.map_or_else(String::new, |depth| depth.cost.sentence((of.low, of.high)));
        let (figures, tables) = (vec![found.figure(open.info)], vec![found.table()]);
        Ok(Done::new(Illustrated { found, figures, tables }, sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::*;
    use crate::flow::Precision;

    #[test]
    fn one_bar_rises_through_all_parts() {
        let formats = vec![Format::Npz, Format::Png, Format::Png16];
        let (settings, seed) = (Settings::default_for(10), Seed(0));
        let (oracle, precision) = ("mnist".into(), Precision::F32);
        let spec = ExportSpec { oracle, train: 100, test: 20, settings, precision, seed, formats };
        let mut stages: Vec<(Stage, usize)> =
            spec.splits().map(|split| (Stage::Drawing(split), spec.images(split))).collect();
        for split in spec.splits() {
            stages.extend(spec.depths().into_iter().map(|bits| (Stage::Rounding(split, bits), spec.images(split))));
        }
        let mut last = 0;
        for (stage, total) in stages {
            for done in 0..=total {
                let Progress { done: now, total: all } = whole(&spec, stage, Progress { done, total });
                assert!(
                    all == 360 && now < all && (now == last || now == last + 1),
                    "{stage:?}: {last}, {now} of {all}"
                );
                last = now;
            }
        }
        assert_eq!(last, 359);
        assert_eq!(whole(&spec, Stage::Hashing, Progress { done: 1, total: 9 }).done, 359);
    }
}
