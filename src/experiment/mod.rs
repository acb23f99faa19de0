//! Experiments on a world: functions from a serde spec to events. The unit of work is a cell, one
//! classifier trained and measured. Its result depends on its content alone, not on order or
//! machine.
//!
//! The grid knows an experiment by `trait Kind` alone: kinds import the grid, the grid imports
//! none.
//!
//! | file | what |
//! |---|---|
//! | `kind`, `output`, `form`, `registry` | what an experiment adds to a grid; what it finds; its own fields in forms; the list of experiments |
//! | `scaling`, `self_validation`, `temperature`, `soft_labels`, `shift`, `active`, `graders`, `axes`, `transfer`, `calibration`, `stopping` | the experiments, one a file or folder |
//! | `spec`, `presets` | the spec of a grid; the specs that come with the program |
//! | `cell`, `identity`, `train`, `trained`, `checkpoint` | one cell: what it is, its name, its training, its answers, its state in a file |
//! | `progress`, `watched`, `validated`, `worst`, `tested` | trainings of one cell reported as one, and measurements piece by piece; figures while it trains, and what held-out labels say; its worst images; its figures on each |
//! | `images`, `held_out`, `pool`, `dataset`, `feature_file`, `bayes_reference` | samples with exact posteriors, in memory or on disk; those whose labels calibrate or stop; images of a dataset; features from files; the Bayes error of the world |
//! | `summary`, `laws`, `law_grades` | what the cells say together; power laws over N; laws of every curve, and ways of fitting them graded |
//! | `bayes_gap`, `repeats`, `taus` | what experiments share: errors beside the Bayes error; means over seeds; temperatures as conditions |
//! | `target` | a Bayes error asked for in place of τ |
//! | `hardness` | the ranking of corpora |
//! | `papers` | figures of the papers that contradict each other |
//! | `bench` | how fast classifiers train |
//! | `blocks` | means over blocks of test images: what a difference has of their error |
//! | `hand_made` | results with known numbers, for tests |

mod active;
mod axes;
mod bayes_gap;
mod bayes_reference;
mod bench;
mod blocks;
mod calibration;
mod cell;
mod checkpoint;
mod dataset;
mod feature_file;
pub mod form;
mod graders;
#[cfg(test)]
mod hand_made;
pub mod hardness;
mod held_out;
mod identity;
mod images;
mod kind;
mod law_grades;
mod laws;
mod output;
pub mod papers;
mod pool;
mod presets;
mod progress;
mod registry;
mod repeats;
mod scaling;
mod self_validation;
mod shift;
mod soft_labels;
mod spec;
mod stopping;
mod summary;
mod target;
mod taus;
mod temperature;
mod tested;
mod train;
mod trained;
mod transfer;
mod validated;
mod watched;
mod worst;

pub use active::{ActiveSpec, Bought, Purchase, Round, Strategy, StrategyComparison, Tried};
pub use axes::{AxesSpec, AxisPoint, Compute, Longer, NamedTraining, TrainingAxes};
pub use bayes_gap::{BayesGap, Gap};
pub use bayes_reference::{Drawing, Facts, Truth, WORLD_SEED};
pub use bench::{TrainBench, TrainTask, bench_training};
pub use blocks::{Blocks, TestBlocks};
pub use calibration::{
    Calibrated, CalibrationGrades, CalibrationSpec, EstimatedEce, GradedCalibrator, GradedEce, Recalibrated,
};
pub use cell::{Cell, CellResult};
pub use dataset::{Data, DataRecord, Manifest, Mapped, Part, PartRecord};
pub use feature_file::FeatureFile;
pub use graders::{Estimated, Features, GradersSpec, Grades, Grading};
pub use hardness::{HardnessSpec, PRESETS as HARDNESS_PRESETS};
pub use identity::Files;
pub use images::{Batch, Images, Source, View, WorldImages};
pub use kind::{About, CellPlace, Experiment, Kind};
pub use law_grades::{LawGrades, Quantity, QuantityLaw, WayGrade};
pub use laws::{
    CURVE, OVER_FORMS, exponent_table, hold_out_series, hold_out_table, how_intervals_come, law_course, law_series,
};
pub use output::{Analysis, CellOutput, Findings, Value};
pub use pool::{Pool, read_pool, test_pool, train_pool};
pub use presets::Preset;
pub use registry::{KINDS, PRESETS};
pub use repeats::{SeedGain, SeedMean};
pub use scaling::ScalingSpec;
pub use self_validation::{Nearness, SelfValidationSpec};
pub use shift::{BaseMap, BaseShift, ShiftEffects, ShiftSetting, ShiftSpec, Shifted};
pub use soft_labels::{Course, Curve, CurvePoint, Gain, Gains, LabelFigures, SoftLabelsSpec};
pub use spec::{DataSpec, ExperimentSpec, GridSpec, TestSpec, WorldSpec};
pub use stopping::{Chosen, KlCourse, Regret, Stopped, StoppingRegrets, StoppingRule, StoppingSpec};
pub use summary::{DamagedCell, Law, Summary};
pub use target::{FoundTau, find as find_tau};
pub use temperature::{Sweep, Swept, TemperatureSpec};
pub use tested::{TESTED_FILE, Tested};
pub use train::{CellEvent, CellJob, LAST, run_cell, train_cell};
pub use trained::Trained;
pub use transfer::{FourCell, FourCells, OnReal, Origin, OriginGain, TransferSpec};
pub use validated::{Seen, Validated};
pub use watched::{Watched, WatchedIntervals};
pub use worst::{WORST, WORST_FILE, Worst, WorstImage};
