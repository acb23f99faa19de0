//! Compares an oracle with the real images it was trained on (BLC §2.3, App. A;
//! docs/validation.md): do its images look like them, cover all of them, or only repeat them?
//! Posteriors are exact for its own world anyway; this says whether that world resembles nature.
//!
//! Every figure of generated images stands beside the same figure of held-out real images, which is
//! what a perfect generator would get. [`validate`] draws, embeds and measures; slow results are
//! kept in the folder, so a stopped validation can continue.
//!
//! | file | what |
//! |---|---|
//! | `spec` | spec and events |
//! | `mod` | order of the work, and its result |
//! | `real` | the corpus: training images, held-out images, whether these are the oracle's own |
//! | `reshaped` | what images lose where they become ones of the world's shape |
//! | `generated` | images drawn from the world; round trips and stability on real ones |
//! | `spot` | a feature net trained on the spot |
//! | `embedded` | features of all three sets |
//! | `copies` | the nearest training images, in every form in which training showed them |
//! | `two_sample` | can a network tell samples from real images? |
//! | `pieces` | results kept in the folder, piece by piece |
//! | `verdict` | the figures |
//! | `figures`, `tables`, `report` | pictures, tables, the folder |
//! | `reality` | the world's decisions on real images: a bound of nature's Bayes error |
//! | `precision` | a world on a device compared with 64 bits |
//! | `task` | tasks of the window and the command line |

mod copies;
mod embedded;
mod figures;
mod generated;
mod pieces;
mod precision;
mod real;
mod reality;
mod report;
mod reshaped;
mod spec;
mod spot;
mod tables;
mod task;
#[cfg(test)]
mod tests;
mod two_sample;
mod verdict;

use std::path::Path;

use burn::tensor::Device;
use serde::Serialize;

use crate::error::Result;
use crate::events::Events;
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::World;

pub use copies::{Close, Pair, Pairs};
pub use figures::figures;
pub use generated::{DELTA_LEVELS, Perturbed, RoundTrip};
pub use precision::{Comparison, Difference, IMAGES, compare_precision};
pub use real::Corpus;
pub use reality::{Finding, Kind, Published, RealBin, Reality, RealitySpec, SOMEBODY, reality};
pub use report::write_report;
pub use spec::{FEWEST, FeatureChoice, FeatureRecord, Stage, TwoSampleSpec, ValidateEvent, ValidateSpec};
pub use spot::OnTheSpot;
pub use tables::{READING, tables};
pub use task::{ComparePrecision, MeasureReality, ValidateOracle};
pub use two_sample::TwoSample;
pub use verdict::{ClassTexture, Fidelity};

use real::{Real, name_of_values};
use spec::Work;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    /// What was asked for.
    pub spec: ValidateSpec,
    /// SHA-256 of the oracle's weights.
    pub weights_sha256: String,
    /// Names of the classes.
    pub class_names: Vec<String>,
    /// The real images.
    pub corpus: Corpus,
    /// Log-likelihood and accuracy on held-out images; none where these have no labels.
    #[serde(flatten)]
    pub likelihood: Option<Evaluation>,
    /// Image → noise → image on held-out images.
    pub round_trip: RoundTrip,
    /// Posteriors under a tiny perturbation; none where 64 bits would take hours.
    pub stability: Option<Perturbed>,
    /// Whether a network tells samples from real images; none where no image was drawn, or too few
    /// are there to learn from.
    pub two_sample: Option<TwoSample>,
    /// What features say; none where no image was drawn.
    pub fidelity: Option<Fidelity>,
}

/// Validates an opened oracle on `device`. With a `folder`, drawn images, feature net and features
/// are kept there, and a stopped validation continues. [`write_report`] writes the report.
///
/// # Errors
/// When the spec is invalid, the corpus does not fit the oracle, the folder holds another
/// validation or is locked by another process, the device or the disk fails, or the caller stops.
pub fn validate(
    world: &World,
    info: &OracleInfo,
    spec: &ValidateSpec,
    device: &Device,
    folder: Option<&Path>,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<(Validation, Option<Pairs>)> {
    spec.validate()?;
    let store = pieces::begin(folder, spec, &info.world_id())?;
    let _lock = store.lock()?;
    let work = Work { spec, world, info, device, store };
    let real = Real::open(&work)?;
    let likelihood = work.likelihood(&real, events)?;
    let (round_trip, stability) = generated::exactness(&work, &real, &mut work.stage(Stage::Exactness, events))?;
    let (two_sample, fidelity, pairs) = match spec.images {
        0 => (None, None, None),
        _ => {
            let made = generated::draw(&work, &mut work.stage(Stage::Drawing, events))?;
            // Samples of a noisy world are compared with real images that have its noise, too.
            let noisy = real.noisy(&work);
            let alike = noisy.as_ref().unwrap_or(&real);
            let two_sample = two_sample::test(&work, alike, &made, &mut work.stage(Stage::TwoSample, events))?;
            let embedded = embedded::embed(&work, alike, &made, events)?;
            let (near, pairs) = copies::nearest(&work, (&real, alike), &made, &embedded, events)?;
            let fidelity = verdict::measure(&work, alike, &made, &embedded, near, events)?;
            (two_sample, Some(fidelity), Some(pairs))
        }
    };
    let validation = Validation {
        spec: spec.clone(),
        weights_sha256: info.weights_sha256.clone(),
        class_names: world.class_names().to_vec(),
        corpus: real.corpus,
        likelihood,
        round_trip,
        stability,
        two_sample,
        fidelity,
    };
    Ok((validation, pairs))
}

impl Work<'_> {
    fn likelihood(&self, real: &Real, events: &mut dyn Events<ValidateEvent>) -> Result<Option<Evaluation>> {
        if real.held_out.labels.is_none() {
            return Ok(None);
        }
        let (flow, held_out, how) = (self.world.flow(), &real.held_out, real.held_out_how);
        self.store.value(&format!("likelihood-{}.json", name_of_values(held_out, how)), || {
            evaluate(flow, held_out, how, &mut self.stage(Stage::Likelihood, events)).map(Some)
        })
    }
}
