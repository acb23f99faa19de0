//! What the user has set: saved between sessions, and undoable.

mod history;
mod on_paper;
mod saved;
pub mod settings_file;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::device::{DeviceChoice, MatmulPrecision};
use crate::flow::sampling::{Guidance, Guided, SamplerOptions};
use crate::gui::kept_path;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::library;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::{ClassId, Seed, Smoothing, Tau};

pub use history::History;
pub use on_paper::{FONTS, OnPaper, WIDTHS};
pub use saved::{SavedPrefs, save};

/// Largest base temperature that can be typed.
pub const MAX_TAU: f64 = 10.0;
/// Smallest base temperature of the curve E(τ).
pub const LEAST_CURVE_TAU: f64 = 0.01;
/// Most samples a gallery holds.
pub const MAX_SAMPLES: usize = 10_000;
/// Thumbnail sides, points.
pub const THUMBNAILS: std::ops::RangeInclusive<f32> = 24.0..=160.0;

/// Sizes of everything in the window, per cent.
pub const SCALES: std::ops::RangeInclusive<u16> = 50..=300;
/// Steps between them.
pub const SCALE_STEP: u16 = 10;

/// Other machines' devices that are remembered.
const MACHINES: usize = 5;
/// Oracles from files that are remembered.
const ORACLES: usize = 5;
/// Oracles whose τ is remembered.
const WORLDS: usize = 64;

/// What the gallery is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Sort {
    /// Running number.
    #[default]
    Index,
    /// H(p(y|x)).
    Entropy,
    /// log p(x).
    LogPx,
    /// Lead of the best class over the second.
    Margin,
    /// Label.
    Class,
}

impl Sort {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Index, Self::Entropy, Self::LogPx, Self::Margin, Self::Class];

    /// As the user reads it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Entropy => "entropy (nats)",
            Self::LogPx => "log p(x) (nats)",
            Self::Margin => "margin",
            Self::Class => "class",
        }
    }
}

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ThemePreference {
    /// As the desktop has it.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// How pictures are made where they need not be samples of the world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuidancePrefs {
    /// Strength of classifier-free guidance; 0 is off.
    pub guidance: f64,
    /// What it moves.
    pub what: Guided,
    /// Whether it grows along a block.
    pub annealed: bool,
    /// Softmax temperature of the attention in the pass without a class.
    pub attention_temperature: f64,
    /// One step of Tweedie's denoising.
    pub denoise: bool,
}

impl Default for GuidancePrefs {
    fn default() -> Self {
        Self { guidance: 0.0, what: Guided::Ab, annealed: false, attention_temperature: 1.0, denoise: false }
    }
}

impl GuidancePrefs {
    /// The look, if it is one.
    pub fn look(self) -> Option<SamplerOptions> {
        let Self { guidance, what, annealed, attention_temperature, denoise } = self;
        let guidance = (guidance > 0.0).then_some(Guidance { scale: guidance, what, annealed, attention_temperature });
        (guidance.is_some() || denoise).then_some(SamplerOptions { guidance, denoise })
    }
}

/// Everything the user has set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefs {
    /// Base temperature τ.
    pub tau: f64,
    /// The oracle that τ is of; empty before one was open.
    pub world: String,
    /// τ of the other oracles, as it was left.
    pub taus: BTreeMap<String, f64>,
    /// Posterior smoothing T.
    pub smoothing: f64,
    /// Class prior π of the open oracle; sums to 1.
    pub prior: Vec<f64>,
    /// What labels are drawn by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_noise: Option<LabelNoise>,
    /// Seed of the samples.
    pub seed: u64,
    /// Number of samples.
    pub n: usize,
    /// Order of the gallery.
    pub sort: Sort,
    /// Largest first.
    pub descending: bool,
    /// Only images with this label.
    pub class_filter: Option<ClassId>,
    /// Side of a thumbnail, points.
    pub thumbnail: f32,
    /// Light or dark.
    #[serde(rename = "look")]
    pub theme: ThemePreference,
    /// Posterior bars on a logarithmic scale.
    pub log_bars: bool,
    /// The oracle to open: a bundled name or a path.
    pub oracle: String,
    /// What to compute on.
    pub device: DeviceChoice,
    /// Compute on a graphics device apart from the window's: pictures travel over the host.
    pub device_apart: bool,
    /// Format of the matrix products that draw samples; never saved.
    #[serde(skip)]
    pub products: MatmulPrecision,
    /// Other machines' devices that were used, the last one first.
    pub machines: Vec<DeviceChoice>,
    /// Oracles from files that were open, the last one first.
    pub oracles: Vec<String>,
    /// Range of τ of the curve E(τ).
    pub tau_range: [f64; 2],
    /// Its axis of τ is logarithmic.
    pub log_tau: bool,
    /// Its axis of Bayes errors is logarithmic.
    pub log_error: bool,
    /// Options of pictures that leave the world; never saved.
    #[serde(skip)]
    pub guidance: GuidancePrefs,
    /// The evidence map lies on the picture instead of beside it.
    pub evidence_overlay: bool,
    /// How strongly it covers the picture, 0 to 1.
    pub evidence_strength: f32,
    /// Folders of the runs of experiments that are shown.
    pub runs: Vec<PathBuf>,
    /// How figures are saved and copied.
    pub on_paper: OnPaper,
    /// Whether the world card is shown.
    pub world_card: bool,
    /// Whether the inspector is shown.
    pub inspector: bool,
    /// The tour was taken or declined: it is not offered again.
    pub toured: bool,
    /// Size of everything in the window, per cent.
    pub scale: u16,
}

impl Default for Prefs {
    fn default() -> Self {
        Self {
            tau: 1.0,
            world: String::new(),
            taus: BTreeMap::new(),
            smoothing: 1.0,
            prior: Vec::new(),
            label_noise: None,
            seed: 0,
            n: 400,
            sort: Sort::Index,
            descending: false,
            class_filter: None,
            thumbnail: 56.0,
            theme: ThemePreference::System,
            log_bars: false,
            oracle: library::DEFAULT.into(),
            device: DeviceChoice::Auto,
            device_apart: false,
            products: MatmulPrecision::F32,
            machines: Vec::new(),
            oracles: Vec::new(),
            tau_range: [0.2, 4.0],
            log_tau: true,
            log_error: false,
            guidance: GuidancePrefs::default(),
            evidence_overlay: true,
            evidence_strength: 0.75,
            runs: Vec::new(),
            on_paper: OnPaper::default(),
            world_card: true,
            inspector: true,
            toured: false,
            scale: 100,
        }
    }
}

impl Prefs {
    /// Brings numbers of an older or damaged file into range, and the prior to the classes.
    pub fn fit(&mut self, classes: usize) {
        self.tau = if self.tau.is_finite() { self.tau.clamp(0.0, MAX_TAU) } else { 1.0 };
        if !(self.smoothing.is_finite() && self.smoothing > 0.0) {
            self.smoothing = 1.0;
        }
        self.n = self.n.clamp(1, MAX_SAMPLES);
        self.thumbnail = self.thumbnail.clamp(*THUMBNAILS.start(), *THUMBNAILS.end());
        if self.prior.len() != classes || Prior::new(&self.prior).is_err() {
            self.prior = vec![1.0 / classes as f64; classes];
        }
        self.label_noise.take_if(|noise| noise.check(classes).is_err());
        let [low, high] = self.tau_range;
        if !(low >= LEAST_CURVE_TAU && high > low && high <= MAX_TAU) {
            self.tau_range = Self::default().tau_range;
        }
        self.class_filter = self.class_filter.filter(|&class| class < classes);
        let strength = self.evidence_strength;
        self.evidence_strength = if strength.is_finite() { strength.clamp(0.0, 1.0) } else { 1.0 };
        self.on_paper.fit();
        self.scale = self.scale.clamp(*SCALES.start(), *SCALES.end());
        let temperature = &mut self.guidance.attention_temperature;
        *temperature = if temperature.is_finite() && *temperature > 0.0 { *temperature } else { 1.0 };
    }

    /// This oracle is open: τ is what it was when the oracle was open last, and 1 the first time.
    pub fn enter(&mut self, oracle: &str) {
        if self.world == oracle {
            return;
        }
        let before = std::mem::replace(&mut self.world, oracle.to_owned());
        // Preferences of earlier versions do not say whose τ they have.
        if before.is_empty() {
            return;
        }
        self.taus.insert(before, self.tau);
        while self.taus.len() > WORLDS {
            self.taus.pop_first();
        }
        self.tau = self.taus.remove(oracle).unwrap_or(1.0);
    }

    /// The world's knobs. Call [`Self::fit`] when the oracle changes.
    pub fn settings(&self) -> Settings {
        Settings {
            tau: Tau::new(self.tau).unwrap_or(Tau::ONE),
            smoothing: Smoothing::new(self.smoothing).unwrap_or(Smoothing::ONE),
            prior: Prior::new(&self.prior).unwrap_or_else(|_| Prior::uniform(self.prior.len().max(1))),
            label_noise: self.label_noise.clone(),
        }
    }

    /// Which samples the gallery holds.
    pub fn spec(&self) -> SampleSpec {
        SampleSpec { products: self.products, ..SampleSpec::new(self.n, Seed(self.seed)) }
    }

    /// Sets π of one class; the others keep their proportions.
    pub fn set_prior(&mut self, class: ClassId, value: f64) {
        let value = value.clamp(0.0, 1.0);
        let rest = 1.0 - self.prior[class];
        let others = self.prior.len() - 1;
        for (other, p) in self.prior.iter_mut().enumerate() {
            if other == class {
                *p = if others == 0 { 1.0 } else { value };
            } else if rest > 1e-9 {
                *p *= (1.0 - value) / rest;
            } else {
                *p = (1.0 - value) / others as f64;
            }
        }
    }

    /// Another machine's device is in use: it is offered again.
    pub fn remember_machine(&mut self, choice: DeviceChoice) {
        if matches!(choice, DeviceChoice::Remote(_)) {
            self.machines.retain(|known| *known != choice);
            self.machines.insert(0, choice);
            self.machines.truncate(MACHINES);
        }
    }

    /// An oracle is open: one from a file is offered again.
    pub fn remember_oracle(&mut self, oracle: &str) {
        if oracle.is_empty() || library::find(oracle).is_some() {
            return;
        }
        let path = kept_path::oracle(oracle);
        self.oracles.retain(|known| *known != path);
        self.oracles.insert(0, path);
        self.oracles.truncate(ORACLES);
    }

    /// π is 1/K for every class.
    pub fn prior_is_uniform(&self) -> bool {
        self.prior.iter().all(|p| (p * self.prior.len() as f64 - 1.0).abs() < 1e-9)
    }

    /// τ, T and π as the flow was trained; labels are the classes.
    pub fn reset_knobs(&mut self) {
        self.tau = 1.0;
        self.smoothing = 1.0;
        self.prior = vec![1.0 / self.prior.len().max(1) as f64; self.prior.len()];
        self.label_noise = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prior_moves_with_its_others_in_proportion() {
        let mut prefs = Prefs { prior: vec![0.5, 0.25, 0.25], ..Prefs::default() };
        prefs.set_prior(0, 0.0);
        assert_eq!(prefs.prior, [0.0, 0.5, 0.5]);
        prefs.set_prior(0, 1.0);
        prefs.set_prior(0, 0.4);
        assert!((prefs.prior[1] - 0.3).abs() < 1e-12 && (prefs.prior.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn oracles_from_files_are_remembered_once_and_the_last_comes_first() {
        let mut prefs = Prefs::default();
        for oracle in ["/a", "mnist", "", "/b", "/c", "/a"] {
            prefs.remember_oracle(oracle);
        }
        assert_eq!(prefs.oracles, ["/a", "/c", "/b"]);
        (0..9).for_each(|i| prefs.remember_oracle(&format!("/{i}")));
        assert_eq!((prefs.oracles.len(), prefs.oracles[0].as_str()), (ORACLES, "/8"));
    }

    #[test]
    fn every_world_has_its_own_tau_and_begins_at_1() {
        let mut prefs = Prefs { tau: 1.4, ..Prefs::default() };
        prefs.enter("mnist");
        assert_eq!(prefs.tau, 1.4, "what was saved before is kept");
        prefs.enter("animals");
        assert_eq!(prefs.tau, 1.0);
        prefs.tau = 0.5;
        prefs.enter("mnist");
        assert_eq!(prefs.tau, 1.4);
        prefs.enter("animals");
        prefs.enter("animals");
        assert_eq!(prefs.tau, 0.5);
    }

    #[test]
    fn damaged_preferences_come_back_into_range() {
        let mut prefs = Prefs { tau: f64::NAN, smoothing: -1.0, n: 0, class_filter: Some(12), ..Prefs::default() };
        prefs.fit(10);
        assert_eq!((prefs.tau, prefs.smoothing, prefs.n, prefs.class_filter), (1.0, 1.0, 1, None));
        assert!(prefs.prior_is_uniform());
    }
}
