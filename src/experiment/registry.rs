//! The experiments of the program, a line each.
//!
//! A line names the kind, its module, its part of a spec, what a cell of it finds, and what its
//! cells say together, each where there is one. Files name the kind in kebab case.

use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};

use super::kind::{About, Experiment};
use super::output::{Analysis, CellOutput, Findings};
use super::presets::Preset;
use crate::figure::{Figure, Table};

/// The specs of grids that come with the program.
pub static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| KINDS.iter().flat_map(|kind| kind.presets).copied().collect());

impl Default for Experiment {
    /// The plain grid.
    fn default() -> Self {
        Self::new(super::scaling::ScalingSpec {})
    }
}

/// In the place of a type that a kind does not have.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct Nothing;

impl Findings for Nothing {
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    fn tables(&self) -> Vec<Table> {
        Vec::new()
    }
}

/// The list of kinds, and how each of the three types of any kind is written and read.
macro_rules! kinds {
    ($($kind:ident: $module:ident $spec:ident, [$($output:ident)?], [$($analysis:ident)?];)*) => {
        /// What the experiments are called, in the order in which they are offered.
        pub const KINDS: &[&About] = &[$(&super::$module::ABOUT),*];
        tagged! { Experiment, Specs, (serde(tag = "kind", rename_all = "kebab-case")), $($kind: [super::$module::$spec],)* }
        tagged! { CellOutput, Outputs, (serde(rename_all = "kebab-case")), $($kind: [$(super::$module::$output)?],)* }
        tagged! { Analysis, Analyses, (serde(tag = "kind", rename_all = "kebab-case")), $($kind: [$(super::$module::$analysis)?],)* }
    };
}

/// Writes and reads a value of any kind as an enum with a variant for each kind.
macro_rules! tagged {
    ($any:ident, $tagged:ident, ($attribute:meta), $($kind:ident: [$($own:path)?],)*) => {
        #[derive(serde::Serialize, serde::Deserialize)]
        #[$attribute]
        enum $tagged {
            $($kind(Box<own!($($own)?)>),)*
        }

        impl Serialize for $any {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                $(if let Some(own) = self.get::<own!($($own)?)>() {
                    return $tagged::$kind(Box::new(own.clone())).serialize(to);
                })*
                Err(S::Error::custom("a kind of experiment that is not registered"))
            }
        }

        impl<'de> Deserialize<'de> for $any {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(match $tagged::deserialize(from)? {
                    $($tagged::$kind(own) => Self::new(*own),)*
                })
            }
        }
    };
}

/// The type of a kind, or [`Nothing`].
macro_rules! own {
    () => {
        Nothing
    };
    ($own:path) => {
        $own
    };
}

kinds! {
    Scaling: scaling ScalingSpec, [], [];
    SelfValidation: self_validation SelfValidationSpec, [], [Nearness];
    Temperature: temperature TemperatureSpec, [], [Sweep];
    SoftLabels: soft_labels SoftLabelsSpec, [Course], [Gains];
    Shift: shift ShiftSpec, [Shifted], [ShiftEffects];
    ActiveLearning: active ActiveSpec, [Bought], [StrategyComparison];
    Graders: graders GradersSpec, [Grading], [Grades];
    Axes: axes AxesSpec, [Compute], [TrainingAxes];
    Transfer: transfer TransferSpec, [OnReal], [FourCells];
    Calibration: calibration CalibrationSpec, [Calibrated], [CalibrationGrades];
    Stopping: stopping StoppingSpec, [Stopped], [StoppingRegrets];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::library;

    #[test]
    fn what_comes_with_the_program_can_be_run() {
        for kind in KINDS {
            assert_eq!(kind.presets[0].name, format!("{}-quick", kind.name), "the window loads this one first");
            for preset in kind.presets {
                let spec = preset.spec().unwrap();
                assert_eq!((spec.name.as_str(), spec.experiment.about().label), (preset.name, kind.label));
                assert!(spec.description.is_some());
                assert!(library::find(&spec.world.oracle).is_some(), "{}: {}", preset.name, spec.world.oracle);
            }
        }
    }
}
