//! An oracle beside the real images it was trained on (BLC §2.3, App. A; docs/validation.md): do its images look like them,
//! does it know all of them, or only repeats them? None of this says anything about its posteriors, which are exact for the world the
//! oracle is; it says whether that world resembles nature.
//!
//! Every figure of generated images stands beside the same figure of held-out real images, which is what a perfect generator would
//! get. [`validate`] draws, embeds and measures; what took long is kept in the folder, so that a stopped validation goes on.
//!
//! | file | what |
//! |---|---|
//! | `mod` | what is asked for, and the order of the work |
//! | `real` | the corpus: training images, held-out images, whether these are the oracle's own |
//! | `made` | images drawn from the world; round trips and stability on real ones |
//! | `spot` | a feature net trained on the spot |
//! | `embedded` | features of all three sets |
//! | `kept` | what is computed already, piece by piece in the folder |
//! | `verdict` | the figures |
//! | `drawn`, `tables`, `report` | pictures, tables, the folder |
//! | `precision` | a world on a device beside itself in 64 bits |
//! | `task` | what the window and the command line run |

mod drawn;
mod embedded;
mod kept;
mod made;
mod precision;
mod real;
mod report;
mod spot;
mod tables;
mod task;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::oracle::evaluate::{Evaluation, evaluate};
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

pub use drawn::figures;
pub use made::{DELTA_LEVELS, Perturbed, RoundTrip};
pub use precision::{Comparison, Difference, IMAGES, compare_precision};
pub use real::Corpus;
pub use report::write_report;
pub use spot::OnTheSpot;
pub use tables::tables;
pub use task::{ComparePrecision, ValidateOracle};
pub use verdict::{ClassTexture, Fidelity, Pair, Pairs};

use kept::Kept;
use real::{Real, name_of};

/// Fewest images of any set that figures are made of.
pub const FEWEST: usize = 50;

/// What a validation is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateSpec {
    /// Name of a bundled oracle, an oracle folder or a checkpoint.
    pub oracle: String,
    /// The real images: any folder or file that [`crate::data::open_dataset`] reads.
    pub data: PathBuf,
    /// Images drawn; 0 compares nothing and measures the likelihood of held-out images alone.
    pub images: usize,
    /// Real training images at most, spread over all of them; all where absent.
    pub limit: Option<usize>,
    /// The world's knobs.
    pub settings: Settings,
    /// What turns images into features.
    pub features: FeatureChoice,
    /// Statistics of the real images that FID compares with, in place of the training images' own.
    pub real_statistics: Option<PathBuf>,
    /// Distance below which a generated image counts as a copy; the first percentile of held-out images where absent.
    pub threshold: Option<f64>,
    /// Seed of images, noise and resampling.
    pub seed: Seed,
}

/// Where features come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureChoice {
    /// A classifier trained on the real training images now. Its distances and FID compare with no published ones.
    OnTheSpot(OnTheSpot),
    /// Weights that the user has: Inception-v3 of pytorch-fid or torchvision, torchvision's ResNet.
    Weights(PathBuf),
}

/// The network that made the features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureRecord {
    /// In words.
    pub name: String,
    /// SHA-256 of its weights, where they came from a file.
    pub sha256: Option<String>,
    /// Features d of an image.
    pub dims: usize,
    /// Its own classes, over which the inception score is computed.
    pub classes: usize,
}

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
    /// What features say; none where no image was drawn.
    pub fidelity: Option<Fidelity>,
}

/// What a validation is doing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ValidateEvent {
    /// What.
    pub stage: Stage,
    /// How far with it.
    pub progress: Progress,
}

/// A part of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Held-out images under the world.
    Likelihood,
    /// Round trips and perturbed posteriors.
    Exactness,
    /// Images are drawn.
    Drawing,
    /// The feature net is read or trained.
    FeatureNet,
    /// Images become features.
    Embedding,
    /// Distances, FID and kin; counted in figures.
    Measuring,
}

impl Stage {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Likelihood => "likelihood of held-out images",
            Self::Exactness => "round trips and stability",
            Self::Drawing => "drawing images",
            Self::FeatureNet => "feature net",
            Self::Embedding => "features",
            Self::Measuring => "measuring",
        }
    }
}

/// A validation under way.
struct Work<'a> {
    spec: &'a ValidateSpec,
    world: &'a World,
    info: &'a OracleInfo,
    device: &'a Device,
    kept: Kept,
}

impl ValidateSpec {
    /// Whether it can be carried out.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn validate(&self) -> Result<()> {
        if (1..FEWEST).contains(&self.images) {
            return Err(Error::input(format!(
                "{} images are too few to compare: draw {FEWEST} at least, some thousands for FID",
                self.images
            )));
        }
        if self.threshold.is_some_and(|t| !(t.is_finite() && t >= 0.0)) {
            return Err(Error::input("the distance of a copy is a number of 0 or more"));
        }
        if self.settings.tau.get() == 0.0 {
            return Err(Error::input("at τ = 0 every image of a class is the same: choose a τ above 0"));
        }
        match &self.features {
            FeatureChoice::OnTheSpot(spot) => spot.validate(),
            FeatureChoice::Weights(_) => Ok(()),
        }
    }
}

/// Validates an opened oracle on `device`. With a `folder`, drawn images, the trained feature net and features are kept there as they come,
/// and a validation that was stopped goes on with them; the report is [`write_report`]'s.
///
/// # Errors
/// When the spec cannot be carried out, the corpus does not fit the oracle, the folder holds another validation, the device or the disk
/// fails, or the caller stops.
pub fn validate(
    world: &World,
    info: &OracleInfo,
    spec: &ValidateSpec,
    device: &Device,
    folder: Option<&Path>,
    events: &mut dyn Events<ValidateEvent>,
) -> Result<(Validation, Option<Pairs>)> {
    spec.validate()?;
    let kept = Kept::begin(folder, spec, &info.weights_sha256)?;
    let work = Work { spec, world, info, device, kept };
    let real = Real::open(&work)?;
    let likelihood = work.likelihood(&real, events)?;
    let (round_trip, stability) = made::exactness(&work, &real, &mut work.stage(Stage::Exactness, events))?;
    let (fidelity, pairs) = match spec.images {
        0 => (None, None),
        _ => {
            let made = made::draw(&work, &mut work.stage(Stage::Drawing, events))?;
            let embedded = embedded::embed(&work, &real, &made, events)?;
            let (fidelity, pairs) = verdict::measure(&work, &real, &made, &embedded, events)?;
            (Some(fidelity), Some(pairs))
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
        fidelity,
    };
    Ok((validation, pairs))
}

impl Work<'_> {
    /// A sink of progress within a stage.
    fn stage<'e>(&self, stage: Stage, events: &'e mut dyn Events<ValidateEvent>) -> impl Events<Progress> + use<'e> {
        move |progress| events.emit(ValidateEvent { stage, progress })
    }

    fn likelihood(&self, real: &Real, events: &mut dyn Events<ValidateEvent>) -> Result<Option<Evaluation>> {
        if real.held_out.labels.is_none() {
            return Ok(None);
        }
        let (flow, held_out, seed) = (self.world.flow(), &real.held_out, self.spec.seed);
        self.kept.value(&format!("likelihood-{}.json", name_of(held_out)), || {
            evaluate(flow, held_out, seed, &mut self.stage(Stage::Likelihood, events)).map(Some)
        })
    }
}
