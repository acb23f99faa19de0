//! Run folders: an experiment on disk, to be stopped, killed, moved, shared out, resumed and
//! watched.
//!
//! ```text
//! RUN/run.toml                    the spec, written first
//! RUN/plan.jsonl                  one cell a line
//! RUN/data.json                   the dataset, where the images are not all the world's
//! RUN/features.json               hashes of the files of features, where there are some
//! RUN/pool/*.npz                  images with their posteriors, made once, large ones in *.parts
//! RUN/pool/*.rounding.json        how many do not carry their posterior, because x is rounded
//! RUN/worlds/*.json               the Bayes error of each of its worlds, where it is asked for
//! RUN/cells/ID/metrics.jsonl      one line every few steps and after watched epochs, append-only
//! RUN/cells/ID/metrics-rest.json  losses up to the last checkpoint of a long training which no line has yet
//! RUN/cells/ID/status.json        state, step, ETA, heartbeat
//! RUN/cells/ID/last.safetensors   the state to go on from
//! RUN/cells/ID/worst.json         the test images with the largest KL
//! RUN/cells/ID/images.npz         its figures on every test image: `image`, `kl`, `nll` (nats)
//! RUN/cells/ID/round-R/           what a round of active learning needs, and what came of it
//! RUN/cells/ID/cell.lock          held by the process that computes the cell; nobody's, where one was stopped
//! RUN/cells/ID/result.json        written last: the cell is finished
//! RUN/summary.json, summary.csv   written whenever a cell finishes
//! RUN/notes.toml                  what people call it and say of it
//! RUN/example.json                the summary of a run that came with the program, whose images and networks are not there
//! ```
//!
//! A cell's ID is the hash of its content. Finished cells are skipped, whoever finished them.
//!
//! Several processes, on several machines too, may work in one folder. A cell that another one
//! computes is left to it, and waited for at the end: `cell_lock`. Nothing but time depends on that
//! lock, which network file systems do not all have. Files are complete or absent; what two write at
//! once is the same; of images drawn twice the first stay; a summary is written again until it has
//! every finished cell.
//!
//! | file | what |
//! |---|---|
//! | `folder`, `files` | a grid on disk; its files |
//! | `any_run`, `hardness`, `external` | which kind of run a folder holds; a ranking of corpora on disk; a training by another program |
//! | `notes` | names, notes and tags that people give runs |
//! | `cells`, `cell_lock` | what all kinds share: cells with states and results, run one after another; who computes one |
//! | `execute`, `estimate` | running the cells of a grid; how long that will take |
//! | `target` | the τ of a spec that asks for a Bayes error |
//! | `pools`, `stage`, `picked` | images of a run; copies on a disk of the machine's own; some of them read |
//! | `monitor` | the courses of several runs beside each other, and what is odd about them |
//! | `status`, `metrics`, `trained` | where a cell stands, its course, its classifier |
//! | `worst`, `bought` | images of a cell: those it knows least of, those it bought |
//! | `figures` | figures and tables with their provenance |
//! | `pace` | how much time is left of a grid under way |
//! | `task`, `train`, `judge` | tasks: experiments and their time; an oracle trained; classifiers judged, those of runs among them |
//! | `examples` | finished runs that come with the program |
//! | `slurm` | job arrays |

mod any_run;
mod bought;
mod cell_lock;
mod cells;
mod estimate;
mod examples;
mod execute;
pub mod external;
mod figures;
mod files;
mod folder;
pub mod hardness;
mod judge;
mod metrics;
pub mod monitor;
mod notes;
mod pace;
mod picked;
mod pools;
pub mod slurm;
mod stage;
mod status;
mod target;
mod task;
mod train;
mod trained;
mod worst;

pub use any_run::AnyRun;
pub use bought::{BOUGHT, BoughtImage, BoughtImages};
pub use cells::{Run, Share};
pub use estimate::{Estimate, estimate};
pub use examples::{EXAMPLES, Example};
pub use execute::{OnDevice, RunContext, RunEvent, execute, execute_on};
pub use figures::{Format, write_figures};
pub use files::SPEC;
pub use folder::{CellLook, Planned, RunFolder};
pub use judge::JudgeModels;
pub use metrics::{Line, read as read_metrics};
pub use notes::RunNotes;
pub use picked::CellPictures;
pub use status::{State, Status};
pub use target::with_tau;
pub use task::{EstimateTime, RunExperiment, RunSettings};
pub use train::{EpochPoint, FixedSamples, TrainHistory, TrainOracle};
pub use trained::checkpoints;
pub use worst::WorstImages;
