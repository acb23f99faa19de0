//! Axes of τ and of Bayes errors in per cent. A logarithmic plot gets log₁₀ values, and marks and
//! labels from here.

use egui_plot::{GridInput, GridMark};

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As they are.
    Linear,
    /// By their log₁₀.
    Log,
}

impl Scale {
    /// Logarithmic or not.
    pub fn new(log: bool) -> Self {
        if log { Self::Log } else { Self::Linear }
    }

    /// Where `value` is.
    pub fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
        }
    }

    /// What is there.
    pub fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear => place,
            Self::Log => 10f64.powf(place),
        }
    }

    /// Grid lines.
    pub fn marks(self, input: &GridInput) -> Vec<GridMark> {
        match self {
            Self::Linear => linear(input),
            Self::Log => logarithmic(input.bounds),
        }
    }

    /// The label of a grid line; empty for those between.
    pub fn label(self, mark: &GridMark) -> String {
        match self {
            Self::Linear => short(mark.value),
            Self::Log if mark.step_size < MINOR + 1e-9 => String::new(),
            Self::Log => short(10f64.powf(mark.value)),
        }
    }
}

/// Grid lines of an axis that counts: at whole numbers from 0 on, however little of it is in sight.
pub fn counted(input: &GridInput) -> Vec<GridMark> {
    let whole = |mark: &GridMark| mark.value > -0.5 && (mark.value - mark.value.round()).abs() < 1e-6;
    linear(input).into_iter().filter(whole).collect()
}

/// Step size of logarithmic marks that get no label.
const MINOR: f64 = 0.01;

fn linear(input: &GridInput) -> Vec<GridMark> {
    let (low, high) = input.bounds;
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return Vec::new();
    }
    let rough = span / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| GridMark { value: i as f64 * step, step_size: step }).collect()
}

fn logarithmic((low, high): (f64, f64)) -> Vec<GridMark> {
    let span = high - low;
    if !(span > 0.0 && span < 1e4) {
        return Vec::new();
    }
    let every = ((span / 8.0).ceil() as i64).max(1);
    let mut marks = Vec::new();
    for decade in low.floor() as i64..=high.ceil() as i64 {
        for digit in 1..10i32 {
            let value = decade as f64 + f64::from(digit).log10();
            let labelled = match digit {
                1 => decade % every == 0,
                2 | 5 => span < 3.5,
                _ => span < 0.8,
            };
            let drawn = labelled || span < 6.0 || digit == 1;
            if drawn && value >= low && value <= high {
                let step_size = match (labelled, digit) {
                    (false, _) => MINOR,
                    (true, 1) => every as f64,
                    (true, _) => 0.3,
                };
                marks.push(GridMark { value, step_size });
            }
        }
    }
    marks
}

/// A round number, short.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e5).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithmic_marks_are_round_numbers() {
        let input = GridInput { bounds: (0.2f64.log10(), 4f64.log10()), base_step_size: 0.01 };
        let labels = Scale::Log.marks(&input).into_iter().map(|mark| Scale::Log.label(&mark));
        let labels: Vec<String> = labels.filter(|label| !label.is_empty()).collect();
        assert_eq!(labels, ["0.2", "0.5", "1", "2"]);
        let wide = GridInput { bounds: (-25.0, 2.0), base_step_size: 0.1 };
        assert!(Scale::Log.marks(&wide).iter().filter(|mark| !Scale::Log.label(mark).is_empty()).count() <= 9);
    }

    #[test]
    fn linear_marks_are_evenly_apart() {
        let input = GridInput { bounds: (0.0, 94.0), base_step_size: 1.0 };
        let values: Vec<f64> = Scale::Linear.marks(&input).iter().map(|mark| mark.value).collect();
        assert_eq!(values, [0.0, 20.0, 40.0, 60.0, 80.0]);
    }

    #[test]
    fn what_is_counted_is_marked_at_whole_numbers() {
        let values = |bounds| -> Vec<f64> {
            counted(&GridInput { bounds, base_step_size: 1.0 }).iter().map(|mark| mark.value).collect()
        };
        assert_eq!(values((-0.3, 0.3)), [0.0]);
        assert_eq!(values((-1.2, 2.4)), [0.0, 1.0, 2.0]);
        assert_eq!(values((0.0, 470.0)), [0.0, 100.0, 200.0, 300.0, 400.0]);
    }
}
