//! The learning rate over the steps of a training.

use serde::Serialize;

use super::spec::TrainSpec;

/// A warm-up that is longer than the training: the rate rises to the last step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LongWarmUp {
    /// Images over which the rate would rise to its peak.
    pub warm_up_images: usize,
    /// Images that all epochs pass.
    pub images: usize,
    /// Share of the peak that the last step has.
    pub reached: f64,
}

impl std::fmt::Display for LongWarmUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { warm_up_images, images, reached } = self;
        write!(
            f,
            "training.warm_up_images = {warm_up_images}, but all epochs pass {images} images: the learning rate only rises, to {:.0} % of \
             training.learning_rate",
            100.0 * reached
        )
    }
}

impl TrainSpec {
    /// Learning rate of a step: linear warm-up, then a cosine down to `final_rate` of the peak.
    pub fn learning_rate(&self, step: usize, steps_per_epoch: usize) -> f64 {
        let t = &self.training;
        let warm_up = self.warm_up();
        let total = (t.epochs * steps_per_epoch) as f64;
        let step = step as f64 + 1.0;
        let rise = (step / warm_up).min(1.0);
        let share = ((step - warm_up) / (total - warm_up).max(1.0)).clamp(0.0, 1.0);
        let fall = 0.5 * (1.0 + (std::f64::consts::PI * share).cos());
        t.learning_rate * rise * (t.final_rate + (1.0 - t.final_rate) * fall)
    }

    /// What is to be said of the warm-up where all epochs of so many images end before it.
    pub fn long_warm_up(&self, images: usize) -> Option<LongWarmUp> {
        let t = &self.training;
        let reached = (t.epochs * images.div_ceil(t.batch)) as f64 / self.warm_up();
        (reached < 1.0).then_some(LongWarmUp { warm_up_images: t.warm_up_images, images: t.epochs * images, reached })
    }

    /// Steps of the warm-up.
    fn warm_up(&self) -> f64 {
        let t = &self.training;
        (t.warm_up_images as f64 / t.batch as f64).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_rises_falls_and_ends_where_told() {
        let spec: TrainSpec =
            toml::from_str("name = 'x'\n[data]\npath = 'd'\n[training]\nepochs = 10\nbatch = 100").unwrap();
        let rates: Vec<f64> = (0..1000).map(|s| spec.learning_rate(s, 100)).collect();
        assert!(rates[..99].is_sorted());
        assert!(rates[100..].is_sorted_by(|a, b| a >= b));
        assert!((rates[99] - 1e-3).abs() < 1e-9 && (rates[999] - 2e-5).abs() < 1e-7);
        // 10 epochs of 10 steps are as long as the warm-up; of 9, the last step has what is said.
        assert_eq!(spec.long_warm_up(1000), None);
        let long = spec.long_warm_up(900).unwrap();
        assert!((spec.learning_rate(89, 9) / 1e-3 - long.reached).abs() < 1e-12);
        let told = long.to_string();
        assert!(
            told.contains("warm_up_images = 10000") && told.contains("9000 images") && told.contains("90 %"),
            "{told}"
        );
    }
}
