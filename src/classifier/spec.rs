//! How a classifier is trained: one table of a spec, saved with its results.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::device::MatmulPrecision;
use crate::error::{Error, Result};

/// What a classifier is told about an image's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Labels {
    /// The label drawn with the image, as a real dataset has it.
    #[default]
    Drawn,
    /// The whole exact posterior p(y|x) (BLC §4.2, soft labels).
    Posterior,
    /// The class of largest posterior (BLC §4.2, its one-hot baseline).
    Argmax,
    /// The drawn label with ε of its weight spread evenly over all classes (Szegedy et al. 2016,
    /// label smoothing).
    Smoothed,
}

impl Labels {
    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::Posterior => "posterior",
            Self::Argmax => "argmax",
            Self::Smoothed => "smoothed",
        }
    }

    /// Whether they are made of exact posteriors.
    pub fn ask_the_world(self) -> bool {
        matches!(self, Self::Posterior | Self::Argmax)
    }

    /// The label of this kind of labels in figures, tables and forms.
    pub fn label(self) -> &'static str {
        match self {
            Self::Drawn => "drawn labels",
            Self::Posterior => "exact posteriors",
            Self::Argmax => "most probable classes",
            Self::Smoothed => "smoothed labels",
        }
    }
}

/// What moves the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// Adam with decoupled weight decay (Loshchilov & Hutter 2019), PyTorch's constants.
    #[default]
    AdamW,
    /// Stochastic gradient descent with momentum.
    Sgd,
}

/// How images are scaled before they enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// As they are in the world.
    AsIs,
    /// Every channel with mean 0 and standard deviation 1 over the training images.
    #[default]
    Standard,
    /// ImageNet's means and standard deviations, of values between 0 and 1, as BLC does and
    /// torchvision's weights expect.
    Imagenet,
}

/// ImageNet's means and standard deviations of red, green and blue between 0 and 1, as
/// torchvision's weights expect them.
pub(super) const IMAGENET: [[f64; 3]; 2] = [[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]];

/// Training of a classifier. Defaults are BLC's settings (App. G).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct TrainingSpec {
    /// Passes over the training images; 0 where `steps` says how long.
    #[serde(default = "unset", skip_serializing_if = "is_none")]
    pub epochs: usize,
    /// Optimisation steps, however many images there are, in place of `epochs`. With a number of
    /// epochs, more images are more steps, too, and what comes of them cannot be told from what
    /// comes of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Images in one step, at most: an epoch is cut into steps of nearly equal size.
    pub batch: usize,
    /// What moves the parameters.
    pub optimizer: Optimizer,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Momentum of SGD.
    pub momentum: f64,
    /// Weight decay: decoupled in AdamW, part of the gradient in SGD.
    pub weight_decay: f64,
    /// Share of all steps over which the learning rate rises linearly.
    pub warm_up: f64,
    /// Share of the peak at which the cosine decay ends.
    pub final_rate: f64,
    /// The global gradient norm is clipped to this; 0 switches clipping off.
    pub max_grad_norm: f64,
    /// Images are moved by up to so many pixels in each direction, anew in every epoch. A moved
    /// image has another posterior: off by default.
    pub shift: usize,
    /// Images are mirrored left to right by chance. Off by default, for the same reason.
    pub mirror: bool,
    /// How images are scaled before they enter.
    pub input: Normalisation,
    /// Side to which images are first scaled, bilinearly, for networks that need large ones; as
    /// they are, where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<usize>,
    /// Format of the products of convolutions and linear maps.
    pub products: MatmulPrecision,
    /// ε of smoothed labels. Not written where it is the usual 0.1, so that cells of older runs
    /// keep their names.
    #[serde(skip_serializing_if = "is_usual")]
    pub label_smoothing: f64,
    /// Pieces a batch is cut into that run side by side: the cores of a CPU, 1 on a GPU. Part of
    /// the spec because batch normalisation sees one piece at a time and sums in another order
    /// round differently.
    pub shards: usize,
}

/// Epochs of BLC, where a spec says neither epochs nor steps.
const EPOCHS: usize = 40;

/// Stands for epochs that a file does not give, until it is known whether it gives steps.
fn unset() -> usize {
    usize::MAX
}

fn is_none(epochs: &usize) -> bool {
    *epochs == 0
}

impl Serialize for TrainingSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for TrainingSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let read = Self::deserialize(deserializer)?;
        let unset = read.epochs == unset();
        match read.steps {
            Some(_) if !unset => Err(serde::de::Error::custom(ONE_OF_THEM)),
            Some(_) => Ok(Self { epochs: 0, ..read }),
            None if unset => Ok(Self { epochs: EPOCHS, ..read }),
            None => Ok(read),
        }
    }
}

/// Who gives both cannot be served.
const ONE_OF_THEM: &str = "training.steps stands in place of training.epochs: give one of them";

/// The ε of Szegedy et al. (2016).
const LABEL_SMOOTHING: f64 = 0.1;

fn is_usual(smoothing: &f64) -> bool {
    *smoothing == LABEL_SMOOTHING
}

impl Default for TrainingSpec {
    fn default() -> Self {
        Self {
            epochs: EPOCHS,
            steps: None,
            batch: 32,
            optimizer: Optimizer::AdamW,
            learning_rate: 1e-4,
            momentum: 0.9,
            weight_decay: 0.01,
            warm_up: 0.0,
            final_rate: 0.0,
            max_grad_norm: 0.0,
            shift: 0,
            mirror: false,
            input: Normalisation::Standard,
            resize: None,
            products: MatmulPrecision::F32,
            label_smoothing: LABEL_SMOOTHING,
            shards: 1,
        }
    }
}

impl TrainingSpec {
    /// Whether training can start.
    ///
    /// # Errors
    /// Says which number is wrong.
    pub fn validate(&self) -> Result<()> {
        let share = |v: f64| (0.0..=1.0).contains(&v);
        let checks = [
            (self.epochs > 0 || self.steps.is_some(), "training.epochs must be at least 1"),
            (self.steps != Some(0), "training.steps must be at least 1"),
            (self.epochs == 0 || self.steps.is_none(), ONE_OF_THEM),
            (self.batch > 0, "training.batch must be at least 1"),
            (self.shards > 0, "training.shards must be at least 1"),
            (self.learning_rate > 0.0 && self.learning_rate.is_finite(), "training.learning_rate must be a number > 0"),
            ((0.0..1.0).contains(&self.momentum), "training.momentum must lie in [0, 1)"),
            (self.weight_decay >= 0.0 && self.weight_decay.is_finite(), "training.weight_decay must be a number ≥ 0"),
            (share(self.warm_up), "training.warm_up is a share of all steps, between 0 and 1"),
            (share(self.final_rate), "training.final_rate must lie between 0 and 1"),
            (self.max_grad_norm >= 0.0, "training.max_grad_norm must be ≥ 0"),
            ((0.0..1.0).contains(&self.label_smoothing), "training.label_smoothing must lie in [0, 1)"),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(*complaint)),
            None => Ok(()),
        }
    }

    /// With other values for some of its keys, where `steps` takes the place of `epochs` and they
    /// that of `steps`.
    ///
    /// # Errors
    /// Names the key or the number that is wrong.
    pub fn changed(&self, changes: &toml::Table) -> Result<Self> {
        let mut table = toml::Table::try_from(self).map_err(|e| Error::input(e.to_string()))?;
        for (given, replaced) in [("steps", "epochs"), ("epochs", "steps")] {
            if changes.contains_key(given) {
                table.remove(replaced);
            }
        }
        table.extend(changes.clone());
        let changed: Self = table.try_into().map_err(|e: toml::de::Error| Error::input(e.to_string()))?;
        changed.validate()?;
        Ok(changed)
    }

    /// Steps of one epoch over `images`.
    pub fn epoch_steps(&self, images: usize) -> usize {
        images.div_ceil(self.batch.max(1))
    }

    /// Steps of a whole training on `images`.
    pub fn total_steps(&self, images: usize) -> usize {
        self.steps.unwrap_or_else(|| self.epochs.saturating_mul(self.epoch_steps(images)))
    }

    /// Epochs over `images` that a training begins; the last may be cut short by `steps`.
    pub fn passes(&self, images: usize) -> usize {
        self.total_steps(images).div_ceil(self.epoch_steps(images).max(1))
    }

    /// Images seen in a whole training on `images`, each as often as it is seen: an epoch that
    /// `steps` cut short ends at the image that its last step ends at.
    pub fn images_seen(&self, images: usize) -> usize {
        self.images_after(images, self.total_steps(images))
    }

    /// Images of `images` seen in so many steps, each as often as it is seen.
    pub fn images_after(&self, images: usize, steps: usize) -> usize {
        let each = self.epoch_steps(images).max(1);
        (steps / each).saturating_mul(images).saturating_add(steps % each * images / each)
    }

    /// How long it trains, in words.
    pub fn length(&self) -> String {
        match self.steps {
            Some(steps) => format!("{steps} steps at every N"),
            None => format!("{} epochs at every N, so that steps grow with N", self.epochs),
        }
    }

    /// Learning rate of step `step` of `total`, from 0: linear warm-up, then a cosine down to
    /// `final_rate` of the peak.
    pub fn rate(&self, step: usize, total: usize) -> f64 {
        let warm_up = (self.warm_up * total as f64).floor();
        let step = step as f64;
        if step < warm_up {
            return self.learning_rate * (step + 1.0) / (warm_up + 1.0);
        }
        let share = (step - warm_up) / (total as f64 - warm_up).max(1.0);
        let fall = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
        self.learning_rate * (self.final_rate + (1.0 - self.final_rate) * fall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_and_falls_as_told() {
        let spec = TrainingSpec { warm_up: 0.1, final_rate: 0.25, learning_rate: 2.0, ..Default::default() };
        let rates: Vec<f64> = (0..=1000).map(|step| spec.rate(step, 1000)).collect();
        assert!(rates[..=100].is_sorted() && rates[100..].is_sorted_by(|a, b| a >= b));
        assert!((rates[100] - 2.0).abs() < 1e-12 && (rates[1000] - 0.5).abs() < 1e-12);
        // Half way down the cosine is half way between peak and end.
        assert!((rates[550] - 1.25).abs() < 1e-12);
    }

    #[test]
    fn epochs_or_steps_say_how_long() {
        let read = |text: &str| toml::from_str::<TrainingSpec>(text);
        let fixed = read("steps = 500\nbatch = 10").unwrap();
        assert_eq!((fixed.epochs, fixed.steps), (0, Some(500)));
        fixed.validate().unwrap();
        // 500 steps whatever N: 50 passes over 95 images, half a pass over 10,000.
        assert_eq!([95, 10_000].map(|n| (fixed.total_steps(n), fixed.passes(n))), [(500, 50), (500, 1)]);
        // 10 steps an epoch over 95 images; 3 more end at image 28.
        let cut = read("steps = 23\nbatch = 10").unwrap();
        assert_eq!([cut.images_seen(95), read("epochs = 4").unwrap().images_seen(95)], [2 * 95 + 28, 4 * 95]);
        let usual = read("").unwrap();
        assert_eq!((usual, usual.total_steps(64)), (TrainingSpec::default(), 80));
        // What has no steps is written as ever: its cells keep their names.
        let written = serde_json::to_string(&usual).unwrap();
        assert!(written.starts_with(r#"{"epochs":40,"batch":32,"#) && !written.contains("steps"), "{written}");
        let again: TrainingSpec = serde_json::from_str(&serde_json::to_string(&fixed).unwrap()).unwrap();
        assert_eq!(again, fixed);
        let both = read("steps = 500\nepochs = 3").unwrap_err().to_string();
        assert!(both.contains("give one of them"), "{both}");
        for (text, named) in [("steps = 0", "training.steps"), ("epochs = 0", "training.epochs")] {
            assert!(read(text).unwrap().validate().unwrap_err().to_string().contains(named));
        }
        assert!(TrainingSpec { steps: Some(3), ..usual }.validate().is_err());
        // An override takes the place of the other kind.
        let change = |text: &str| toml::from_str::<toml::Table>(text).unwrap();
        assert_eq!(usual.changed(&change("steps = 7")).unwrap().steps, Some(7));
        assert_eq!(fixed.changed(&change("epochs = 2")).unwrap(), TrainingSpec { epochs: 2, steps: None, ..fixed });
    }

    #[test]
    fn what_cannot_be_is_named() {
        let broken = TrainingSpec { momentum: 1.0, ..Default::default() };
        assert!(broken.validate().unwrap_err().to_string().contains("training.momentum"));
        assert!(toml::from_str::<TrainingSpec>("epoch = 3").unwrap_err().to_string().contains("epoch"));
    }
}
