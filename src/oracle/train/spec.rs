//! The spec of a training run: one TOML file, saved with its results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{ImageShape, in_folder, read_toml};
use crate::device::MatmulPrecision;
use crate::error::{Error, Result, check_name, check_words};
use crate::flow::glow::GlowConfig;
use crate::flow::preprocess::Preprocessing;
use crate::flow::tarflow::TarFlowConfig;
use crate::flow::weights::Storage;
use crate::units::Seed;

/// A training run of an oracle. Defaults are EBO's settings where EBO states them, sized for a CPU;
/// a `tarflow` table makes it a TarFlow instead of a Glow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSpec {
    /// Name of the oracle.
    pub name: String,
    /// Format of the finished oracle's weights: `f32` as trained, or `f16` at half the size, whose
    /// drift is then measured.
    #[serde(default)]
    pub storage: Storage,
    /// Where the images come from.
    pub data: DataSpec,
    /// The Glow, where there is no `tarflow`.
    #[serde(default)]
    pub model: ModelSpec,
    /// The TarFlow (BLC App. B).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tarflow: Option<TarFlowSpec>,
    /// The optimisation.
    #[serde(default)]
    pub training: OptimSpec,
}

/// The images of a training run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// Folder of any supported format, with a training and, if there is one, a test part.
    pub path: PathBuf,
    /// What the images are, in words, for the oracle's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What whoever uses the oracle is to be told of these images: whose they are, under what
    /// licence, what they are not good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Side the images are padded to with zeros, as EBO does; a multiple of 2^levels.
    #[serde(default = "default_side")]
    pub pad_to: usize,
    /// Image files with a side beyond this are scaled down to it while they are read (bilinearly
    /// with antialiasing, the middle kept): AFHQ's photographs of 512 pixels become a world of 64.
    /// As they are where absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "resize")]
    pub resize: Option<usize>,
    /// Images set apart from the training part to choose the best epoch by. Never test images.
    #[serde(default = "default_held_out")]
    pub held_out: usize,
    /// Every image is moved by up to so many pixels in each direction, anew in every epoch, zeros
    /// coming in: the world then holds slightly moved images too, which costs at most log((2·shift
    /// + 1)²) nats and helps a small corpus.
    #[serde(default)]
    pub shift: usize,
    /// Every image is mirrored left to right or not, by chance, anew in every epoch.
    #[serde(default)]
    pub mirror: bool,
    /// Every image is turned by a number of quarter turns, by chance, anew in every epoch: for
    /// images without an upright.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turn: bool,
    /// Only these classes, numbered in this order; all where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Use only so many images of the training part: the first, or evenly from all where they come
    /// class by class.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Seed by which images to train on are drawn with replacement from those that are left after holding
    /// out, of each class as many as there are: one of many worlds that the corpus could have given. As they are
    /// where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Seed>,
    /// Of the order from which a corpus that comes class by class has its held-out images: several worlds of one corpus
    /// hold out the same. The seed of the training where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Seed>,
}

impl DataSpec {
    /// All images of a folder as they are, with the usual settings.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            description: None,
            notice: None,
            pad_to: default_side(),
            resize: None,
            held_out: default_held_out(),
            shift: 0,
            mirror: false,
            turn: false,
            classes: Vec::new(),
            limit: None,
            bootstrap: None,
            split: None,
        }
    }
}

/// A side in pixels. Who writes `true` is told what is wanted.
fn resize<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Option<usize>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "resize is the largest side in pixels, such as 64")]
    enum Side {
        Pixels(usize),
    }
    Side::deserialize(from).map(|Side::Pixels(side)| Some(side))
}

fn default_side() -> usize {
    32
}

fn default_held_out() -> usize {
    500
}

/// Size of the Glow. EBO §4.1: levels 3, steps 16, hidden 512.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSpec {
    /// Channels of the hidden layers of the coupling networks.
    pub hidden: usize,
    /// Levels L.
    pub levels: usize,
    /// Steps K of each level.
    pub steps: usize,
    /// How pixels become real numbers. EBO: uniform, behind a logit map. Gaussian noise, without
    /// one, makes a world whose 8-bit pictures keep their posteriors.
    #[serde(skip_serializing_if = "Preprocessing::is_usual")]
    pub pixels: Preprocessing,
}

impl Default for ModelSpec {
    fn default() -> Self {
        Self { hidden: 64, levels: 3, steps: 8, pixels: Preprocessing::Uniform }
    }
}

/// Size and noise of the TarFlow, in the words of BLC Table 5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TarFlowSpec {
    /// Side of a patch in pixels.
    pub patch: usize,
    /// Width C of the Transformers, a multiple of 64.
    pub channels: usize,
    /// Autoregressive blocks.
    pub blocks: usize,
    /// Layers of each block.
    pub layers: usize,
    /// Whether blocks only shift.
    pub volume_preserving: bool,
    /// Whether one map serves all classes, which are then the means of the base distribution: Bayes
    /// errors need no samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared_map: bool,
    /// How pixels become real numbers.
    pub pixels: Preprocessing,
    /// Share of images whose label is dropped.
    pub label_dropout: f64,
    /// Format of the matrix products.
    pub products: MatmulPrecision,
}

impl Default for TarFlowSpec {
    fn default() -> Self {
        Self {
            patch: 4,
            channels: 128,
            blocks: 4,
            layers: 2,
            volume_preserving: false,
            shared_map: false,
            pixels: Preprocessing::Gaussian { std: 0.05 },
            label_dropout: 0.1,
            products: MatmulPrecision::F32,
        }
    }
}

/// Where the classification loss takes its logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classification {
    /// EBO's: a linear layer on z, thrown away after training.
    LinearHead,
    /// The flow's own exact posterior, which is what the world is used for.
    Posterior,
}

/// The optimisation: AdamW on (NLL + λ·CE)/D.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimSpec {
    /// Passes over the training images.
    pub epochs: usize,
    /// Images in one step.
    pub batch: usize,
    /// Pieces a batch is cut into that run side by side: the cores of a CPU, 1 on a GPU. Part of
    /// the spec because sums in another order round differently.
    pub shards: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Images over which the learning rate rises linearly.
    pub warm_up_images: usize,
    /// Share of the peak at which the cosine decay ends.
    pub final_rate: f64,
    /// Pieces a batch is cut into that are computed one after the other, their gradients added: for
    /// batches that do not fit the device's memory.
    pub accumulate: usize,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Adam's decay of the squared gradients.
    pub beta2: f64,
    /// Shared maps only: λ, weight of the classification loss in nats beside the NLL in nats per
    /// image (EBO tries 0.01 to 10).
    pub lambda: f64,
    /// Glow only: what λ weighs.
    pub classification: Classification,
    /// The global gradient norm is clipped to this; 0 switches clipping off.
    pub max_grad_norm: f64,
    /// Decay per step of the exponential moving average of the weights that is evaluated and kept.
    pub ema_decay: f64,
    /// Glow only: standard deviation of the initial class means.
    pub mean_std: f32,
    /// Seed of everything random.
    pub seed: Seed,
}

impl Default for OptimSpec {
    fn default() -> Self {
        Self {
            epochs: 30,
            batch: 64,
            shards: 2,
            accumulate: 1,
            weight_decay: 0.0,
            beta2: 0.999,
            learning_rate: 1e-3,
            warm_up_images: 10_000,
            final_rate: 0.02,
            lambda: 10.0,
            classification: Classification::Posterior,
            max_grad_norm: 10.0,
            ema_decay: 0.998,
            mean_std: 0.1,
            seed: Seed(0),
        }
    }
}

impl TrainSpec {
    /// Reads a spec file. A relative data path is taken from the folder of the file, and
    /// absolute from then on: the run may go on from any working folder.
    ///
    /// # Errors
    /// Names the file, the line and the field.
    pub fn read(path: &Path) -> Result<Self> {
        let mut spec: Self = read_toml(path)?;
        spec.data.path = in_folder(path.parent().unwrap_or(Path::new("")), &spec.data.path)?;
        spec.validate().map_err(|e| Error::file(path, e.to_string()))?;
        Ok(spec)
    }

    /// Whether a run of this spec can start.
    ///
    /// # Errors
    /// Says which number is wrong.
    pub fn validate(&self) -> Result<()> {
        check_name(&self.name).map_err(Error::input)?;
        self.data
            .description
            .iter()
            .chain(&self.data.notice)
            .try_for_each(|words| check_words(words))
            .map_err(Error::input)?;
        let t = &self.training;
        let checks = [
            (t.epochs > 0, "training.epochs must be at least 1"),
            (t.batch > 0, "training.batch must be at least 1"),
            (t.shards > 0, "training.shards must be at least 1"),
            (t.accumulate > 0, "training.accumulate must be at least 1"),
            (t.weight_decay >= 0.0 && t.weight_decay.is_finite(), "training.weight_decay must be a number ≥ 0"),
            (t.mean_std >= 0.0 && t.mean_std.is_finite(), "training.mean_std must be a number ≥ 0"),
            ((0.0..1.0).contains(&t.beta2), "training.beta2 must lie in [0, 1)"),
            (
                self.tarflow.is_none_or(|f| (0.0..=1.0).contains(&f.label_dropout)),
                "tarflow.label_dropout must lie between 0 and 1",
            ),
            (t.learning_rate > 0.0 && t.learning_rate.is_finite(), "training.learning_rate must be a number > 0"),
            ((0.0..=1.0).contains(&t.final_rate), "training.final_rate must lie between 0 and 1"),
            ((0.0..1.0).contains(&t.ema_decay), "training.ema_decay must lie in [0, 1)"),
            (t.lambda >= 0.0 && t.lambda.is_finite(), "training.lambda must be a number ≥ 0"),
            (t.max_grad_norm >= 0.0 && t.max_grad_norm.is_finite(), "training.max_grad_norm must be a number ≥ 0"),
            (self.data.resize != Some(0), "data.resize must be at least 1"),
            (self.data.held_out > 0, "data.held_out must be at least 1: the best epoch is chosen on it"),
            (
                self.data.shift == 0 || self.data.shift < self.data.pad_to,
                "data.shift must be less than data.pad_to: images are moved out of themselves",
            ),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(*complaint)),
            None => self.validate_pixels().and_then(|()| self.validate_size()),
        }
    }

    /// How pixels become real numbers: the word of the flow that is trained.
    pub fn pixels(&self) -> Preprocessing {
        self.tarflow.map_or(self.model.pixels, |flow| flow.pixels)
    }

    /// Whether the noise of the pixels makes images that have a density.
    fn validate_pixels(&self) -> Result<()> {
        let table = if self.tarflow.is_some() { "tarflow" } else { "model" };
        self.pixels().validate_for_training().map_err(|error| Error::input(format!("{table}.{error}")))
    }

    /// Whether such a flow can be built for images of the side they are padded to.
    fn validate_size(&self) -> Result<()> {
        let side = self.data.pad_to;
        let (shape, classes) = (ImageShape { channels: 3, height: side, width: side }, 2);
        match self.tarflow {
            None => {
                let ModelSpec { hidden, levels, steps, .. } = self.model;
                GlowConfig { shape, classes, hidden, levels, steps }.validate()
            }
            Some(TarFlowSpec { patch, channels, blocks, layers, volume_preserving, shared_map, .. }) => {
                TarFlowConfig { shape, classes, patch, channels, blocks, layers, volume_preserving, shared_map }
                    .validate()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_and_spreads_that_are_none_are_refused_by_name() {
        let spec =
            |text: &str| -> TrainSpec { toml::from_str(&format!("name = 'x'\ndata.path = 'd'\n{text}")).unwrap() };
        let refusal = |text: &str| spec(text).validate().unwrap_err().to_string();
        for family in ["model", "tarflow"] {
            let noise = |std: &str| format!("{family}.pixels = {{ noise = 'gaussian', std = {std} }}");
            for std in ["nan", "inf", "1e30", "-0.1", "0.0"] {
                let why = refusal(&noise(std));
                assert!(why.starts_with(&format!("{family}.pixels.std")), "{why}");
            }
            spec(&noise("0.05")).validate().unwrap();
        }
        for field in ["weight_decay", "mean_std", "max_grad_norm"] {
            for value in ["nan", "inf", "-1.0"] {
                let why = refusal(&format!("training.{field} = {value}"));
                assert!(why.contains(&format!("training.{field}")), "{why}");
            }
        }
    }

    #[test]
    fn images_stay_in_their_frame() {
        let spec = |shift| -> TrainSpec {
            toml::from_str(&format!("name = 'x'\n[data]\npath = 'd'\npad_to = 32\nshift = {shift}")).unwrap()
        };
        spec(31).validate().unwrap();
        assert!(spec(32).validate().unwrap_err().to_string().contains("data.shift"));
    }

    #[test]
    fn a_misspelt_field_is_named() {
        let error = toml::from_str::<TrainSpec>("name = 'x'\n[data]\npath = 'd'\npadto = 3").unwrap_err();
        assert!(error.to_string().contains("padto"));
        let read = |resize| toml::from_str::<DataSpec>(&format!("path = 'd'\nresize = {resize}"));
        assert_eq!(read("64").unwrap().resize, Some(64));
        let none = "name = 'x'\n[data]\npath = 'd'\nresize = 0";
        assert!(toml::from_str::<TrainSpec>(none).unwrap().validate().unwrap_err().to_string().contains("data.resize"));
        assert!(read("true").unwrap_err().to_string().contains("side in pixels"));
    }
}
