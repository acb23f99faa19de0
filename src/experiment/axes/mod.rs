//! Training as an axis: the same grid under several named trainings (epochs, steps, batch, learning
//! rate, weight decay, random start), its exact KL over N, parameters and compute, and what longer
//! training closes of the gap (BLC §2.3, which says so without a number).
//!
//! | file | what |
//! |---|---|
//! | `spec` | the named trainings, and what a cell finds: its compute |
//! | `form` | the trainings as rows of a form |
//! | `found` | KL under every training, the frontier over compute, the longest training beside the shortest |
//! | `figures` | its figures and tables |

mod figures;
mod form;
mod found;
mod spec;
#[cfg(test)]
mod tests;

use super::bayes_reference::Truth;
use super::cell::CellResult;
use super::form::Field;
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::{Analysis, CellOutput};
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob, train_cell};
use crate::classifier::TrainingSpec;
use crate::error::{Error, Result};
use crate::events::Events;

pub use found::{AxisPoint, Longer, TrainingAxes};
pub use spec::{AxesSpec, Compute, NamedTraining};

pub(super) const ABOUT: About = About {
    name: "axes",
    label: "Training axes",
    question: "What do longer, faster and other trainings leave of the KL to the truth, and at what compute?",
    presets: &[preset!("axes-quick"), preset!("axes")],
};

impl Kind for AxesSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn conditions(&self) -> Vec<String> {
        self.trainings.iter().map(|one| one.name.clone()).collect()
    }

    fn training(&self, condition: usize, training: TrainingSpec) -> Result<TrainingSpec> {
        let Some(named) = self.trainings.get(condition) else { return Ok(training) };
        training.changed(&named.change).map_err(|e| Error::input(format!("the training {}: {e}", named.name)))
    }

    fn starts_from_scratch(&self, condition: usize) -> bool {
        self.trainings.get(condition).is_some_and(|named| named.from_scratch)
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        if self.trainings.is_empty() {
            return Err(Error::input("experiment.trainings is empty"));
        }
        if let Some(named) = self.trainings.iter().find(|named| named.from_scratch)
            && spec.pretrained.is_empty()
        {
            let name = &named.name;
            return Err(Error::input(format!("{name}: without [pretrained] every training starts from scratch")));
        }
        // Cells that are trained alike have one name and one folder.
        for &architecture in &spec.grid.architectures {
            let pretrained = spec.pretrained.contains_key(&architecture);
            let of = |i: usize| -> Result<_> {
                Ok((spec.training_of(architecture, i)?, pretrained && self.trainings[i].from_scratch))
            };
            let all = (0..self.trainings.len()).map(of).collect::<Result<Vec<_>>>()?;
            if let Some(i) = (1..all.len()).find(|&i| all[..i].contains(&all[i])) {
                let (name, label) = (&self.trainings[i].name, architecture.label());
                return Err(Error::input(format!("{name}: {label} is trained so under another name, too")));
            }
        }
        Ok(())
    }

    /// Trains and measures a cell, and notes what that computes.
    fn run(&self, _place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        let (result, trained) = train_cell(job, events)?;
        let images_seen = job.training.images_seen(job.cell.train_size);
        let compute = Compute { macs_per_image: trained.macs_per_image(), images_seen };
        Ok(CellResult { output: Some(CellOutput::new(compute)), ..result })
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(TrainingAxes::of(spec, self, cells)))
    }

    fn fields(&self) -> Vec<Field> {
        vec![form::field(self)]
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        Ok(Some(Experiment::new(form::read(fields)?)))
    }
}
