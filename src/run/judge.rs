//! Task: classifiers of other programs are judged, and those of runs.

use std::path::PathBuf;

use super::checkpoints;
use crate::data::{Split, listed};
use crate::error::Result;
use crate::figure::Illustrated;
use crate::judge::{Candidate, JudgeEvent, Report, assess, figures, tables};
use crate::provenance::Made;
use crate::task::{Done, Task, TaskContext};
use crate::units::{Seed, counted};

/// Asks what classifiers of other programs are worth.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeModels {
    /// Folder of an exported dataset, or an archive of it.
    pub dataset: PathBuf,
    /// Which images.
    pub split: Split,
    /// The models. A folder stands for the checkpoints in it.
    pub candidates: Vec<Candidate>,
    /// Of what is drawn at random.
    pub seed: Seed,
}

impl Task for JudgeModels {
    type Event = ();
    type Live = ();
    type Report = Illustrated<Report>;

    fn title(&self) -> String {
        format!("Judge {}", counted(self.candidates.len(), "model"))
    }

    fn lets_oracles_open(&self) -> bool {
        true
    }

    /// Predictions are only read; a network is asked for its own.
    fn is_short(&self) -> bool {
        self.candidates.iter().all(|candidate| matches!(candidate, Candidate::Predictions { .. }))
    }

    fn run(&self, cx: &mut TaskContext<'_, ()>) -> Result<Done<Self::Report>> {
        let candidates = self.candidates.iter().map(unfolded).collect::<Result<Vec<_>>>()?.concat();
        let device = &cx.chosen.device;
        let mut told = |JudgeEvent { stage, progress }: JudgeEvent| cx.stage(progress, &stage.label());
        let found = assess(&self.dataset, self.split, &candidates, self.seed, device, &mut told)?;
        let alarms: usize = found.models.iter().map(|model| model.alarms().len()).sum();
        let alarms = match alarms {
            0 => String::new(),
            n => format!("; {}", counted(n, "alarm")),
        };
        let sentence = format!("{} judged on {}{alarms}", counted(found.models.len(), "model"), self.dataset.display());
        let (figures, tables) = (figures(&found), tables(&found));
        let made = figures.first().map(|figure| Made::of_lines(subject(&found), None, &figure.provenance));
        Ok(Done::new(Illustrated { found, figures, tables }, sentence).made(made))
    }
}

/// What was judged, on which images.
fn subject(Report { models, origin, .. }: &Report) -> String {
    let names: Vec<String> = models.iter().map(|model| model.name.clone()).collect();
    format!("judgement of {} on {}, {}", listed(&names), origin.path, origin.split)
}

/// The checkpoints in a folder, in its place.
fn unfolded(candidate: &Candidate) -> Result<Vec<Candidate>> {
    let Candidate::Checkpoint { path, options } = candidate else { return Ok(vec![candidate.clone()]) };
    let of = |path| Candidate::Checkpoint { path, options: options.clone() };
    Ok(checkpoints(path)?.into_iter().map(of).collect())
}
