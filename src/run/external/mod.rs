//! External runs: trainings by other programs, in any language, which log their predictions on test
//! images with exact posteriors. The form is written down for their authors in
//! `docs/external-runs.md`.
//!
//! ```text
//! RUN/run.toml                    world, test images, kind of predictions; written last
//! RUN/test/x.npy                  the test images, float32 [N, C, H, W]
//! RUN/test/y.npy                  their drawn labels, int64 [N]
//! RUN/test/posterior.npy          their exact posteriors, float64 [N, K]
//! RUN/predictions/STEP.pred       a record: a line of JSON, then an array [N, K] in the NPY format
//! RUN/finished                    nothing more comes
//! ```
//!
//! A record appears whole by being renamed: no reader sees a torn one of a living writer, a killed
//! writer leaves a file of another name, and a step that is logged again replaces itself. What is
//! no record all the same is refused alone, by its step.
//!
//! | file | what |
//! |---|---|
//! | `spec` | `run.toml`, and what is known of the test images |
//! | `start` | the task that makes the folder |
//! | `record` | records: listed, and read one by one, within bounds |
//! | `refused` | records that are no predictions |
//! | `step` | the figures of a step, whole and as they are kept |
//! | `images` | whether the test images are still those that the folder was made with |
//! | `course` | those of every step, each computed once |
//! | `law` | how KL falls with the number of training images, over several runs |
//! | `worst` | the test images of which a step knows least |
//! | `figures`, `summary` | figures and table; the run as a whole |

mod course;
mod figures;
mod images;
mod law;
mod record;
mod refused;
mod spec;
mod start;
mod step;
mod summary;
mod worst;

pub use course::{Course, STEPS};
pub use figures::{csv, figures};
pub use law::{LawPoint, LawRun, RunLaw, law_at, law_of};
pub use record::{EXTENSION, Header, Misnamed};
pub use refused::Refused;
pub use spec::{Contract, ExternalFolder, ExternalSpec, FORMAT, PREDICTIONS, TestRecord, TestTruth, WorldRecord};
pub use start::StartExternal;
pub use step::StepFigures;
pub use summary::ExternalSummary;
pub use worst::{StepImage, StepPictures, StepWorst};
