//! Experiments on a world: functions from a serde spec to events. The unit of work is a cell, one classifier trained and measured;
//! what a cell gives depends on its content alone, not on the order or the machine's mishaps.

mod bench;
mod cell;
mod checkpoint;
mod dataset;
mod images;
mod pool;
mod presets;
mod spec;
mod summary;
mod train;
mod watched;
mod worst;

pub use bench::{TrainBench, bench_training};
pub use cell::{Cell, CellResult, Files};
pub use dataset::{Data, DataRecord, Mapped, Part, PartRecord};
pub use images::{Batch, Images, Source, View, WorldImages};
pub use pool::{Pool, read_pool};
pub use presets::{PRESETS, Preset};
pub use spec::{DataSpec, ExperimentSpec, GridSpec, TestSpec, WorldSpec};
pub use summary::{Law, Summary};
pub use train::{CellEvent, Job, run_cell};
pub use watched::{HalfWidths, Watched};
pub use worst::{WORST, WORST_FILE, Worst, WorstImage};
