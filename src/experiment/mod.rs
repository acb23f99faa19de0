//! Experiments on a world: functions from a serde spec to events. The unit of work is a cell, one classifier trained and measured;
//! what a cell gives depends on its content alone, not on the order or the machine's mishaps.
//!
//! | file | what |
//! |---|---|
//! | `spec`, `presets`, `kinds` | what an experiment is told; the specs that come with the program; what each kind adds to a grid |
//! | `cell`, `train`, `trained`, `checkpoint` | one cell: what it is, from start to result, its answers, its state in a file |
//! | `told`, `watched`, `worst`, `tested` | trainings of one cell as one course; figures while it trains; the images it knows least of; its figures on each |
//! | `images`, `pool`, `dataset`, `truth` | samples with exact posteriors, in memory or on disk; images of a dataset; the world's Bayes error |
//! | `scaling`, `self_validation`, `temperature`, `soft_labels`, `shift`, `active`, `graders`, `hardness` | the experiments, one a file or folder |
//! | `beside`, `repeats` | what they share: classifiers beside the Bayes error; means over seeds |
//! | `finding`, `summary` | what the cells say together |
//! | `papers` | figures of the papers that cannot all be true |
//! | `bench` | how fast classifiers train |
//! | `hand_made` | results with known numbers, for tests |

mod active;
mod bench;
mod beside;
mod cell;
mod checkpoint;
mod dataset;
mod finding;
mod graders;
#[cfg(test)]
mod hand_made;
pub mod hardness;
mod images;
mod kinds;
pub mod papers;
mod pool;
mod presets;
mod repeats;
mod scaling;
mod self_validation;
mod shift;
mod soft_labels;
mod spec;
mod summary;
mod temperature;
mod tested;
mod told;
mod train;
mod trained;
mod truth;
mod watched;
mod worst;

pub use active::{ActiveSpec, Bargains, Bought, Purchase, Round, Strategy};
pub use bench::{TrainBench, TrainTask, bench_training};
pub use beside::{Beside, Gap};
pub use cell::{Cell, CellResult, Files};
pub use dataset::{Data, DataRecord, Manifest, Mapped, Part, PartRecord};
pub use finding::Finding;
pub use graders::{Estimated, FeatureFile, Features, GradersSpec, Grading};
pub use hardness::{HardnessSpec, PRESETS as HARDNESS_PRESETS};
pub use images::{Batch, Images, Source, View, WorldImages};
pub use kinds::{Experiment, Found, Place, carry_out};
pub use pool::{Pool, read_pool, test_pool, train_pool};
pub use presets::{PRESETS, Preset};
pub use repeats::{SeedGain, SeedMean};
pub use self_validation::Nearness;
pub use shift::{BaseMap, BaseShift, ShiftSetting, ShiftSpec, Shifted};
pub use soft_labels::{Course, Curve, CurvePoint, Gain, Gains, Told};
pub use spec::{DataSpec, ExperimentSpec, GridSpec, TestSpec, WorldSpec};
pub use summary::{Law, Summary};
pub use temperature::{Sweep, Swept, TemperatureSpec};
pub use tested::{TESTED_FILE, Tested};
pub use train::{CellEvent, Job, LAST, run_cell, train_cell};
pub use trained::Trained;
pub use truth::{Facts, Truth};
pub use watched::{HalfWidths, Watched};
pub use worst::{WORST, WORST_FILE, Worst, WorstImage};
