//! Spec and events of a validation, and its working state.

use std::path::PathBuf;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use super::spot::OnTheSpot;
use crate::classifier::Architecture;
use crate::data::Store;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::Precision;
use crate::oracle::folder::OracleInfo;
use crate::oracle::world::{Settings, World};
use crate::units::Seed;

/// Fewest images of any set that figures are made of.
pub const FEWEST: usize = 50;

/// The spec of a validation.
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
    /// Arithmetic of the passes.
    #[serde(default, skip_serializing_if = "Precision::is_usual")]
    pub precision: Precision,
    /// What turns images into features.
    pub features: FeatureChoice,
    /// How samples are told from real images by a network.
    #[serde(default)]
    pub two_sample: TwoSampleSpec,
    /// Statistics of the real images that FID compares with, in place of the training images' own.
    pub real_statistics: Option<PathBuf>,
    /// Distance of a copy; the first percentile of held-out images where absent.
    pub threshold: Option<f64>,
    /// Seed of images, noise and resampling.
    pub seed: Seed,
}

/// How a network learns to tell samples from real images, and real images from each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TwoSampleSpec {
    /// The network.
    pub architecture: Architecture,
    /// Passes over its training images.
    pub epochs: usize,
    /// Images of each side at most, half of them to train on, half to test on; 0: no such test.
    pub images: usize,
}

impl Default for TwoSampleSpec {
    fn default() -> Self {
        Self { architecture: Architecture::Convnet, epochs: 10, images: 2000 }
    }
}

/// Where features come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureChoice {
    /// A classifier trained on the real training images now. Its distances and FID cannot be
    /// compared with published ones.
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
    /// Networks learn to tell images apart.
    TwoSample,
    /// The feature net is read or trained.
    FeatureNet,
    /// Images become features.
    Embedding,
    /// The nearest training images, in all forms in which training showed them; counted in images in a form.
    Nearest,
    /// FID and others; counted in figures.
    Measuring,
    /// Decisions on real images.
    Decisions,
    /// The Bayes error of the world.
    BayesError,
}

impl Stage {
    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Likelihood => "likelihood of held-out images",
            Self::Exactness => "round trips and stability",
            Self::Drawing => "drawing images",
            Self::TwoSample => "two-sample test",
            Self::FeatureNet => "feature net",
            Self::Embedding => "features",
            Self::Nearest => "nearest training images, in every form",
            Self::Measuring => "measuring",
            Self::Decisions => "decisions on real images",
            Self::BayesError => "Bayes error of the world",
        }
    }
}

/// A validation under way.
pub(super) struct Work<'a> {
    pub spec: &'a ValidateSpec,
    pub world: &'a World,
    pub info: &'a OracleInfo,
    pub device: &'a Device,
    pub store: Store,
}

impl ValidateSpec {
    /// Checks the spec.
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
        if self.two_sample.images > 0 && self.two_sample.epochs == 0 {
            return Err(Error::input("the network of the two-sample test is trained for an epoch at least"));
        }
        match &self.features {
            FeatureChoice::OnTheSpot(spot) => spot.validate(),
            FeatureChoice::Weights(_) => Ok(()),
        }
    }
}

impl Work<'_> {
    /// A sink of progress within a stage.
    pub fn stage<'e>(
        &self,
        stage: Stage,
        events: &'e mut dyn Events<ValidateEvent>,
    ) -> impl Events<Progress> + use<'e> {
        move |progress| events.emit(ValidateEvent { stage, progress })
    }
}
