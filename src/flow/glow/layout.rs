//! Which arrays a Glow consists of, and whether given ones are these.

use super::GlowConfig;
use crate::flow::parameters::check_arrays;
use crate::flow::weights::{HostTensor, Weights};

/// `flows`, `flows.next`, `flows.next.next`, …
pub fn level_name(level: usize) -> String {
    format!("flows{}", ".next".repeat(level))
}

/// Flags of initialisation, which other programs store beside the arrays and this one does not
/// need.
fn is_flag(name: &str) -> bool {
    name.ends_with(".is_initialized") || name.ends_with(".num_batches_tracked")
}

impl GlowConfig {
    /// Name and shape of every array of such a Glow.
    fn arrays(&self) -> Vec<(String, Vec<usize>)> {
        let [c, h, w] = [self.shape.channels, self.shape.height, self.shape.width];
        let mut all = vec![
            ("means".to_owned(), vec![self.classes, c, h, w]),
            ("cov_diag".to_owned(), vec![c, h, w]),
            ("bounds".to_owned(), vec![1]),
            ("linproj.weight".to_owned(), vec![self.classes, self.shape.dims()]),
            ("linproj.bias".to_owned(), vec![self.classes]),
        ];
        for l in 0..self.levels {
            for k in 0..self.steps {
                let step = format!("{}.steps.{k}", level_name(l));
                let arrays = step_arrays(self.level_shape(l).channels, self.hidden);
                all.extend(arrays.into_iter().map(|(name, shape)| (format!("{step}.{name}"), shape)));
            }
        }
        all
    }

    /// Numbers that training moves; `head` is whether EBO's auxiliary classifier is trained, too.
    pub fn trained_numbers(&self, head: bool) -> usize {
        let constant = |name: &str| name == "bounds" || name.contains(".running_");
        let trained = |name: &str| !constant(name) && (head || !name.starts_with("linproj."));
        let arrays = self.arrays().into_iter().filter(|(name, _)| trained(name));
        arrays.map(|(_, shape)| shape.iter().product::<usize>()).sum()
    }

    /// Whether `weights` are those of such a Glow: every array with its shape, nothing else but the
    /// flags of initialisation, and values with which a density exists.
    ///
    /// # Errors
    /// A sentence that names the array.
    pub fn check(&self, weights: &Weights) -> Result<(), String> {
        check_arrays(weights, &self.arrays(), is_flag)?;
        weights.0.iter().try_for_each(|(name, array)| check_values(name, array))
    }
}

/// Names, below the step's own, and shapes of the arrays of one step of flow.
fn step_arrays(channels: usize, hidden: usize) -> Vec<(String, Vec<usize>)> {
    let half = channels / 2;
    let fixed: [(&str, &[usize]); 8] = [
        ("norm.bias", &[1, channels, 1, 1]),
        ("norm.logs", &[1, channels, 1, 1]),
        ("conv.weight", &[channels, channels]),
        ("coup.scale", &[half, 1, 1]),
        ("coup.nn.in_conv.weight", &[hidden, half, 3, 3]),
        ("coup.nn.mid_conv.weight", &[hidden, hidden, 1, 1]),
        ("coup.nn.out_conv.weight", &[channels, hidden, 3, 3]),
        ("coup.nn.out_conv.bias", &[channels]),
    ];
    let mut all: Vec<_> = fixed.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect();
    for (norm, width) in [("in_norm", half), ("mid_norm", hidden), ("out_norm", hidden)] {
        let parts = ["weight", "bias", "running_mean", "running_var"];
        all.extend(parts.map(|part| (format!("coup.nn.{norm}.{part}"), vec![width])));
    }
    all
}

/// No variance is 0 or, where it is one of activations, negative; bounds inside (0, 1].
fn check_values(name: &str, array: &HostTensor) -> Result<(), String> {
    let (rule, allowed): (&str, fn(f32) -> bool) = match name {
        "cov_diag" => ("numbers that are not 0", |v| v != 0.0),
        "bounds" => ("a number in (0, 1]", |v| v > 0.0 && v <= 1.0),
        name if name.ends_with(".running_var") => ("numbers ≥ 0", |v| v >= 0.0),
        _ => return Ok(()),
    };
    match array.values.iter().find(|v| !allowed(**v)) {
        Some(value) => Err(format!("array '{name}' holds {value} where {rule} are needed")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::units::Seed;

    const CONFIG: GlowConfig = GlowConfig {
        shape: ImageShape { channels: 3, height: 8, width: 4 },
        classes: 2,
        hidden: 5,
        levels: 2,
        steps: 2,
    };

    #[test]
    fn a_random_start_has_exactly_the_arrays_of_its_architecture() {
        CONFIG.check(&CONFIG.initial_weights(Seed(1), 0.1)).unwrap();
    }

    #[test]
    fn trained_numbers_are_those_counted_by_hand() {
        // Steps of 12 and 24 channels: ActNorm and 1×1; bounds of s; three normalisations; three convolutions.
        let step = |c: usize| 2 * c + c * c + c / 2 + 2 * (c / 2 + 10) + 9 * (c / 2) * 5 + 25 + 9 * c * 5 + c;
        let of_the_base = 2 * 96 + 96;
        assert_eq!(CONFIG.trained_numbers(false), of_the_base + 2 * step(12) + 2 * step(24));
        assert_eq!(CONFIG.trained_numbers(true) - CONFIG.trained_numbers(false), 2 * 96 + 2);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let fresh = || CONFIG.initial_weights(Seed(1), 0.1);
        let refusal = |change: &dyn Fn(&mut Weights)| {
            let mut weights = fresh();
            change(&mut weights);
            CONFIG.check(&weights).unwrap_err()
        };
        let set = |name: &'static str, value: f32| move |w: &mut Weights| w.0.get_mut(name).unwrap().values[0] = value;
        let variance = "flows.next.steps.1.coup.nn.mid_norm.running_var";
        assert!(
            refusal(&|w| drop(w.0.remove("flows.steps.1.norm.logs"))).contains("'flows.steps.1.norm.logs' is missing")
        );
        assert!(refusal(&|w| drop(w.0.insert("extra".into(), HostTensor::full([1], 0.0)))).contains("'extra'"));
        assert!(refusal(&|w| drop(w.0.insert("cov_diag".into(), HostTensor::full([96], 1.0)))).contains("[3, 8, 4]"));
        assert!(refusal(&set("cov_diag", 0.0)).contains("'cov_diag' holds 0"));
        assert!(refusal(&set("bounds", 1.5)).contains("'bounds' holds 1.5"));
        assert!(refusal(&set("means", f32::NAN)).contains("'means' holds NaN"));
        assert!(refusal(&set(variance, -1.0)).contains(variance));
    }
}
