//! Distribution shift (BLC §4.3, App. G): training images whose classes, pixels or base samples are
//! shifted by a known amount, and the cost on test images that are not.
//!
//! A cell draws the number of images of each class from a multinomial law (BLC eq. 6) and takes
//! them from a pool of the world's images. It shifts them, keeps a part for validation and trains
//! on the rest. Cells of one seed share all chance: pool, counts, choice, noise (up to its σ),
//! direction of a base shift, start. Two settings of one seed so differ by the shift alone. Cells
//! of different seeds share nothing but the test images.
//!
//! | file | what |
//! |---|---|
//! | `spec`, `form` | what an experiment is told, and what its shifts amount to in nats; its form |
//! | `base` | shifts of the base samples |
//! | `images` | counts, choice, noise, split |
//! | `cell` | one cell: made, trained, measured |
//! | `unavoidable` | what the Bayes classifier of the shifted world loses |
//! | `effects`, `shift_kind` | all cells together, by kind of shift |
//! | `fit`, `figures`, `tables` | means over seeds and a line through runs; what is shown of them |
//! | `paper` | the numbers of BLC tables 7 and 8 |

mod base;
mod cell;
mod effects;
mod figures;
mod fit;
mod form;
mod images;
mod paper;
mod shift_kind;
mod spec;
mod tables;
mod unavoidable;

use super::bayes_reference::Truth;
use super::cell::{Cell, CellResult};
use super::form::Field;
use super::kind::{About, CellPlace, Experiment, Kind};
use super::output::Analysis;
use super::presets::preset;
use super::spec::ExperimentSpec;
use super::train::{CellEvent, CellJob};
use crate::classifier::Labels;
use crate::error::{Error, Result};
use crate::events::Events;
use crate::oracle::posterior::Prior;
use crate::units::Smoothing;

pub use base::{BaseMap, BaseShift};
pub use effects::ShiftEffects;
pub use spec::{ShiftSetting, ShiftSpec, Shifted};

pub(super) const ABOUT: About = About {
    name: "shift",
    label: "Distribution shift",
    question: "Which shift of the training images costs how much, at equal KL?",
    presets: &[preset!("shift-quick"), preset!("shift")],
};

/// Images of a cell, at most: those of a shift are made and held in memory, all of them.
const MOST: usize = 10_000_000;

impl Kind for ShiftSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn conditions(&self) -> Vec<String> {
        self.settings.iter().map(|setting| setting.name.clone()).collect()
    }

    fn content(&self, spec: &ExperimentSpec, cell: &Cell) -> Option<serde_json::Value> {
        let Self { pool, validation, likelihood, settings } = self;
        let setting = settings.get(cell.condition);
        // A shift counts by its effect, not its name; the images of the likelihood only where there
        // is noise.
        let shift = setting.map(|s| serde_json::json!([s.prior, s.noise, s.base]));
        let likelihood = setting.filter(|s| s.noise > 0.0).map(|_| likelihood);
        let mut content =
            serde_json::json!({ "pool": pool, "validation": validation, "likelihood": likelihood, "shift": shift });
        // Where the pool runs out of a class, how its images are shared out is a part of the numbers. That may happen under
        // a prior of the setting's own, and under a law of labels that the spec does not say. Elsewhere cells keep their names.
        let told = spec.world.label_noise.is_none() && setting.is_some_and(|s| s.prior.is_empty());
        let prior = Prior::new(&spec.world.prior).ok().filter(|_| told);
        if prior.is_none_or(|prior| self.may_run_out(&prior, cell.train_size)) {
            content["parts"] = "shared out before they are drawn".into();
        }
        Some(content)
    }

    fn trained_on(&self, cell: &Cell) -> Vec<usize> {
        vec![self.kept(cell.train_size)]
    }

    fn pool(&self, _largest: usize) -> usize {
        self.pool
    }

    /// Every cell looks at the labels of the whole pool before it takes some of its images.
    fn reads_beside_training(&self) -> bool {
        true
    }

    fn validate(&self, spec: &ExperimentSpec) -> Result<()> {
        let Some(baseline) = self.settings.first() else {
            return Err(Error::input("experiment.settings is empty: the first one is the baseline"));
        };
        self.settings.iter().try_for_each(ShiftSetting::validate)?;
        if baseline.noise > 0.0 || baseline.base.is_some() {
            return Err(baseline.wrong("the first setting is the baseline: it has neither noise nor a base shift"));
        }
        self.check_settings()?;
        let sizes = &spec.grid.train_sizes;
        let told = |labels: &Labels| !labels.ask_the_world();
        let checks = [
            (self.pool > 0, "experiment.pool must be at least 1"),
            (self.likelihood >= 2, "experiment.likelihood must be at least 2: one image has no interval"),
            ((0.0..1.0).contains(&self.validation), "experiment.validation is a share of the images, between 0 and 1"),
            (
                sizes.iter().all(|&n| (1..n).contains(&self.kept(n))),
                "experiment.validation leaves no image of grid.train_sizes to train on, or none to validate on",
            ),
            (
                sizes.iter().all(|&n| n <= MOST),
                "grid.train_sizes of a shift must be at most 10,000,000: a cell holds its images in memory",
            ),
            (
                spec.grid.labels.iter().all(told),
                "shifted images have drawn labels: their posteriors are not the world's",
            ),
            (
                spec.world.smoothing == Smoothing::ONE,
                "world.smoothing must be 1: with another one the exact KL of a shift has no closed form",
            ),
            (
                spec.world.label_noise.is_none() || self.settings.iter().all(|setting| setting.base.is_none()),
                "a base shift and world.label_noise: with noisy labels the exact KL of a base shift has no closed form",
            ),
        ];
        match checks.iter().find(|(fine, _)| !fine) {
            Some((_, complaint)) => Err(Error::input(*complaint)),
            None => Ok(()),
        }
    }

    fn run(&self, place: &CellPlace<'_>, job: &CellJob<'_>, events: &mut dyn Events<CellEvent>) -> Result<CellResult> {
        cell::run(self, place, job, events)
    }

    fn analyse(&self, spec: &ExperimentSpec, cells: &[CellResult], _truths: &[Option<Truth>]) -> Option<Analysis> {
        Some(Analysis::new(ShiftEffects::of(spec, self, cells)))
    }

    fn fields(&self) -> Vec<Field> {
        form::fields(self)
    }

    fn with_fields(&self, fields: &[Field]) -> Result<Option<Experiment>, String> {
        form::read(self, fields).map(|own| Some(Experiment::new(own)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::hand_made::preset;
    use crate::oracle::label_noise::LabelNoise;

    fn own(spec: &ExperimentSpec) -> ShiftSpec {
        spec.experiment.get::<ShiftSpec>().unwrap().clone()
    }

    /// The prior of the shipped spec's world: three classes of its eight are equally frequent.
    fn world(spec: &ExperimentSpec) -> Prior {
        spec.world.settings(8).unwrap().prior
    }

    #[test]
    fn the_shipped_spec_has_the_settings_of_table_7_and_its_target_kl() {
        let spec = preset("shift");
        let (own, world) = (own(&spec), world(&spec));
        for (setting, row) in own.settings.iter().zip(&paper::ROWS) {
            let present: Vec<f64> = setting.prior.iter().copied().filter(|&weight| weight > 0.0).collect();
            assert_eq!((setting.name.as_str(), &present[..]), (row.name, &row.prior[..]));
            assert_eq!(setting.noise, row.noise);
            // Eq. 8 with π̂ = π gives 0.0181 and 0.2968 where table 7 prints 0.017 and 0.296.
            let target = setting.prior_kl(&world).unwrap();
            assert!((target - row.target_kl).abs() < 1.1e-3, "{}: {target} for {}", row.name, row.target_kl);
        }
        let exact = |at: usize| own.settings[at].prior_kl(&world).unwrap();
        let digits = |kl: f64| (kl * 1000.0).round() / 1000.0;
        assert_eq!([1, 2, 3, 4].map(exact).map(digits), [0.018, 0.069, 0.161, 0.297]);
        assert!((exact(0) - 1e-4).abs() < 1e-6);
    }

    #[test]
    fn cells_whose_pool_may_run_out_of_a_class_say_how_images_are_shared_out() {
        let shipped = preset("shift");
        // Whether the cells of a setting have the mark, at a pool of so many images.
        let marked = |spec: &ExperimentSpec, condition: usize, pool: usize| {
            let (own, cell) = (ShiftSpec { pool, ..own(spec) }, Cell { condition, ..spec.cells()[0] });
            own.content(spec, &cell).unwrap().get("parts").is_some()
        };
        for name in ["shift-quick", "shift"] {
            let spec = preset(name);
            let (own, n) = (own(&spec), spec.cells()[0].train_size);
            for (condition, setting) in own.settings.iter().enumerate() {
                // At the shipped pool only those of another prior are marked, as in older versions.
                assert_eq!(marked(&spec, condition, own.pool), !setting.prior.is_empty(), "{name}: {}", setting.name);
                assert!(marked(&spec, condition, n), "{name}: {}", setting.name);
            }
        }
        let plain = own(&shipped).settings.iter().position(|setting| setting.prior.is_empty()).unwrap();
        let in_world = |prior: &[f64]| {
            let mut spec = shipped.clone();
            spec.world.prior = prior.to_vec();
            spec
        };
        // Of 5,000 images and 12,000 of a pool, five and twelve are expected of a rare class; how many classes share them is
        // not known where the world's prior is not told.
        assert!(!marked(&in_world(&[0.5, 0.5, 0.0]), plain, 12_000));
        assert!(marked(&in_world(&[0.5, 0.499, 0.001]), plain, 12_000));
        assert!(marked(&in_world(&[]), plain, 12_000));
        let mut noisy = in_world(&[0.5, 0.5]);
        noisy.world.label_noise = Some(LabelNoise::symmetric(0.2).unwrap());
        assert!(marked(&noisy, plain, 12_000), "the law of noisy labels is another one");
    }

    #[test]
    fn base_shifts_of_the_shipped_spec_are_as_large_as_its_prior_shifts() {
        let spec = preset("shift");
        let (own, world) = (own(&spec), world(&spec));
        let joint = |setting: &ShiftSetting| setting.joint_kl(&world).unwrap();
        let levels: Vec<f64> = own.settings[1..5].iter().filter_map(joint).collect();
        let bases: Vec<f64> = own.settings.iter().filter(|s| s.base.is_some()).filter_map(joint).collect();
        assert_eq!(bases.len(), 12);
        for (i, base) in bases.iter().enumerate() {
            assert!((base / levels[i % 4] - 1.0).abs() < 2e-3, "{base} {levels:?}");
        }
        assert_eq!(joint(&own.settings[5]), None, "nobody knows the KL of noised images");
    }

    #[test]
    fn what_cannot_be_a_shift_is_named() {
        let spec = preset("shift");
        let refused = |change: &dyn Fn(&mut ShiftSpec, &mut ExperimentSpec)| {
            let (mut own, mut spec) = (own(&spec), spec.clone());
            change(&mut own, &mut spec);
            own.validate(&spec).unwrap_err().to_string()
        };
        let name = |at: usize| own(&spec).settings[at].name.clone();
        let says = |text: String, words: &[&str]| assert!(words.iter().all(|word| text.contains(word)), "{text}");
        says(refused(&|own, _| own.settings.clear()), &["baseline"]);
        says(refused(&|own, _| own.settings[2].prior = vec![0.5, 0.5]), &[&name(2), "2 entries", &name(0)]);
        says(refused(&|own, _| own.settings[1].prior[0] = -1.0), &[&name(1), "≥ 0"]);
        says(refused(&|own, _| own.settings[5].noise = f64::NAN), &[&name(5), "noise"]);
        says(refused(&|own, _| own.settings[5].base = Some(BaseShift::Mean { kl: 0.1 })), &[&name(5), "two settings"]);
        says(refused(&|own, _| own.settings[1].base = Some(BaseShift::Wider { kl: 0.0 })), &[&name(1), "nats"]);
        says(refused(&|own, _| own.settings.swap(0, 5)), &[&name(5), "baseline"]);
        says(refused(&|own, _| own.settings[1].prior = own.settings[2].prior.clone()), &[&name(1), &name(2), "same"]);
        says(refused(&|own, _| own.validation = 0.0), &["validate"]);
        says(refused(&|own, _| own.pool = 0), &["pool"]);
        says(refused(&|_, spec| spec.grid.train_sizes = vec![1_000_000_000_000]), &["grid.train_sizes", "10,000,000"]);
        says(refused(&|_, spec| spec.grid.labels = vec![Labels::Posterior]), &["drawn labels"]);
        says(refused(&|_, spec| spec.world.smoothing = Smoothing::new(2.0).unwrap()), &["smoothing"]);
        let setting = &own(&spec).settings[1];
        says(setting.prior(&Prior::uniform(10)).unwrap_err().to_string(), &[&name(1), "8 entries", "10 classes"]);
        let without = Prior::new(&[0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0]).unwrap();
        says(setting.prior_kl(&without).unwrap_err().to_string(), &[&name(1), "probability 0"]);
    }
}
