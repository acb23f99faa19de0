//! Tasks: an oracle compared with real images, its decisions with their labels, and itself with 64
//! bits.

use std::path::PathBuf;

use super::{
    Comparison, Pairs, Reality, RealitySpec, ValidateEvent, ValidateSpec, Validation, compare_precision, figures,
    reality, tables, validate, write_report,
};
use crate::error::{Error, Result};
use crate::figure::Illustrated;
use crate::oracle::world::Settings;
use crate::provenance::Made;
use crate::task::{Done, Task, TaskContext};
use crate::units::Seed;

/// Compares the open oracle with real images, or continues that.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidateOracle {
    /// What.
    pub spec: ValidateSpec,
    /// Folder of the report and the kept pieces, if any.
    pub folder: Option<PathBuf>,
}

impl Task for ValidateOracle {
    type Event = ();
    type Live = ();
    type Report = Illustrated<(Validation, Option<Pairs>)>;

    fn title(&self) -> String {
        format!("Validate {}", self.spec.oracle)
    }

    fn names_its_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Self::Report>> {
        let (spec, folder, open) = (&self.spec, self.folder.as_deref(), cx.oracle()?);
        same(open.name, &spec.oracle)?;
        let device = &cx.chosen.device;
        let mut forward = |ValidateEvent { stage, progress }: ValidateEvent| cx.stage(progress, stage.label());
        let (found, pairs) = validate(open.world, open.info, spec, device, folder, &mut forward)?;
        let written = folder.map_or(Ok(()), |folder| write_report(folder, &found, pairs.as_ref()).map(drop));
        let (figures, tables) = (figures(&found), tables(&found));
        let made = figures.first().map(|figure| Made::of_lines("validation", folder, &figure.provenance));
        let place = folder.map_or_else(String::new, |folder| format!("; the report is in {}", folder.display()));
        let sentence = format!("{} is validated{place}", spec.oracle);
        Ok(Done::new(Illustrated { found: (found, pairs), figures, tables }, sentence).made(made).but(written))
    }
}

/// Checks that the open oracle is the one that is meant.
fn same(open: &str, meant: &str) -> Result<()> {
    if open == meant { Ok(()) } else { Err(Error::input(format!("{open} is open, {meant} is to be validated"))) }
}

/// Compares the open oracle's decisions with the labels of real images.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasureReality {
    /// What.
    pub spec: RealitySpec,
}

impl Task for MeasureReality {
    type Event = ();
    type Live = ();
    type Report = Illustrated<Reality>;

    fn title(&self) -> String {
        format!("Decisions of {} on real images", self.spec.oracle)
    }

    fn names_its_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Self::Report>> {
        let open = cx.oracle()?;
        same(open.name, &self.spec.oracle)?;
        let mut forward = |ValidateEvent { stage, progress }: ValidateEvent| cx.stage(progress, stage.label());
        let found = reality(open.world, open.info, &self.spec, &mut forward)?;
        let [errs, e] = [found.decision_error, found.of_the_world()].map(|figure| 100.0 * figure.value);
        let sentence = format!("{} errs on {errs:.2} % of the real images; E of its world is {e:.2} %", open.name);
        let (figures, tables) = (vec![found.figure()], found.tables());
        Ok(Done::new(Illustrated { found, figures, tables }, sentence))
    }
}

/// Compares the open oracle's world on the device in use with itself in 64 bits on the CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparePrecision {
    /// Samples compared.
    pub images: usize,
    /// The world's knobs.
    pub settings: Settings,
    /// Seed of the samples.
    pub seed: Seed,
}

impl Task for ComparePrecision {
    type Event = ();
    type Live = ();
    type Report = Illustrated<Comparison>;

    fn title(&self) -> String {
        format!("Compare {} images with 64 bits", self.images)
    }

    fn is_of_open_oracle(&self) -> bool {
        true
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Self::Report>> {
        let open = cx.oracle()?;
        let device = cx.chosen.report.used.label();
        let about = (open.name, open.info, &device[..]);
        let found = compare_precision(open.world, about, (self.images, &self.settings, self.seed), cx)?;
        let sentence = format!(
            "posteriors within {:.1e}, {:.1} % of {} decisions changed",
            found.posterior.largest,
            100.0 * found.decisions_changed.value,
            self.images
        );
        let (figures, tables) = (vec![found.figure()], vec![found.table()]);
        Ok(Done::new(Illustrated { found, figures, tables }, sentence))
    }
}
