//! The engine of Bayescope for Python: a thin door to the library, which `python/bayescope` shapes for people.
//!
//! | file | what |
//! |---|---|
//! | `engine` | the thread that owns an open world; waiting without the GIL, with signals |
//! | `errors` | errors as exceptions |
//! | `world`, `draw`, `stream` | a world at its knobs; samples as arrays; batches drawn ahead |
//! | `estimates`, `scores` | Bayes errors, τ and class hardness; what a world says of given images |
//! | `walk`, `validate` | walks between images and classes; a world beside real images |
//! | `run` | records of an external run |
//! | `lib` | the module; judging predictions, and the program's own main |

mod draw;
mod engine;
mod errors;
mod estimates;
mod run;
mod scores;
mod stream;
mod validate;
mod walk;
mod world;

use std::ffi::OsString;
use std::path::PathBuf;

use bayescope::cli::Start;
use bayescope::data::{Split, check_free};
use bayescope::device::{DeviceChoice, choose};
use bayescope::error::{Error, Result};
use bayescope::judge::{Candidate, Kind, ReadOptions, assess, write_report};
use bayescope::units::Seed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use errors::raised;

/// A report as the JSON that commands print.
fn json(report: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(report).map_err(|e| Error::Numeric(format!("the report cannot be written as JSON: {e}")))
}

/// The program `bayescope` with these arguments, its name first, and how it is started: Python, and what Python is told.
/// Returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>, start: Option<(PathBuf, Vec<String>)>) -> u8 {
    let start = start.map(|(program, leading)| Start { program, leading });
    py.detach(|| bayescope::cli::main_of(args, start))
}

/// What `bayescope evaluate --json` prints of one model, or a list of several.
#[pyfunction]
#[pyo3(signature = (predictions, dataset, split, kind, names, seed, report, force))]
#[allow(clippy::too_many_arguments)]
fn evaluate(
    py: Python<'_>,
    predictions: Vec<PathBuf>,
    dataset: PathBuf,
    split: &str,
    kind: Option<&str>,
    names: Vec<Option<String>>,
    seed: u64,
    report: Option<PathBuf>,
    force: bool,
) -> PyResult<String> {
    let split = match split {
        "train" => Split::Train,
        "test" => Split::Test,
        other => return Err(PyValueError::new_err(format!("split {other:?} is neither \"train\" nor \"test\""))),
    };
    let kind = kind.map(str::parse::<Kind>).transpose().map_err(raised)?;
    let named = predictions.into_iter().zip(names);
    let candidates: Vec<Candidate> =
        named.map(|(path, name)| Candidate::Predictions { path, options: ReadOptions { kind, name } }).collect();
    engine::aside(py, move |stop| {
        report.as_deref().map_or(Ok(()), |folder| check_free(folder, force, "force=True"))?;
        let device = choose(DeviceChoice::Cpu)?.device;
        let found = assess(&dataset, split, &candidates, Seed(seed), &device, &mut stop.sink())?;
        if let Some(folder) = &report {
            write_report(folder, &found)?;
        }
        json(&found.evaluated())
    })
}

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bayescope::device::memory::keep_freed();
    bayescope::error::leave_caught_panics_untold();
    bayescope::cli::settle_instructions(false).map_err(raised)?;
    bayescope::verify::recall();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<world::World>()?;
    module.add_class::<estimates::EstimateLimits>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<run::Run>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate, module)?)
}
