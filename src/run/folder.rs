//! A run folder: created from a spec, opened, read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::metrics::{self, Line};
use super::status::Status;
use crate::data::write_atomically;
use crate::error::{Error, Result};
use crate::experiment::{Cell, CellResult, ExperimentSpec, Files, Summary};

const SPEC: &str = "run.toml";
const PLAN: &str = "plan.jsonl";
const RESULT: &str = "result.json";

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Hash of the cell's content; its folder's name.
    pub id: String,
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
}

/// A run on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFolder {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub spec: ExperimentSpec,
    /// Its cells, those of few images first.
    pub plan: Vec<Planned>,
}

impl RunFolder {
    /// Plans a run of `spec` on an oracle of given weights in `path`, or finds the plan of the same spec there.
    ///
    /// # Errors
    /// When the folder holds another run, or cannot be written.
    pub fn create(path: &Path, spec: &ExperimentSpec, weights_sha256: &str) -> Result<Self> {
        spec.validate()?;
        let files = Files::of(spec, weights_sha256)?;
        let planned = |cell: Cell| Ok(Planned { id: cell.id(spec, &files)?, cell });
        let plan = spec.cells().into_iter().map(planned).collect::<Result<Vec<_>>>()?;
        Self::write_spec(path, spec)?;
        let lines = plan.iter().map(|planned| serde_json::to_string(planned).map(|line| line + "\n"));
        let lines: String = lines.collect::<Result<_, _>>().map_err(|e| Error::file(path.join(PLAN), e.to_string()))?;
        keep(&path.join(PLAN), lines)?;
        Ok(Self { path: path.to_owned(), spec: spec.clone(), plan })
    }

    /// Opens a folder that [`Self::create`] made.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        let read = |name: &str| {
            let file = path.join(name);
            std::fs::read_to_string(&file).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => Error::file(path, format!("is no run folder: it has no {name}")),
                _ => Error::io(&file, e),
            })
        };
        let spec: ExperimentSpec =
            toml::from_str(&read(SPEC)?).map_err(|e| Error::file(path.join(SPEC), e.to_string()))?;
        let plan = read(PLAN)?
            .lines()
            .map(|line| serde_json::from_str(line).map_err(|e| Error::file(path.join(PLAN), e.to_string())))
            .collect::<Result<Vec<Planned>>>()?;
        Ok(Self { path: path.to_owned(), spec, plan })
    }

    /// Writes the spec of a run into its folder, before there is a plan.
    ///
    /// # Errors
    /// When the folder holds another run, or cannot be written.
    pub fn write_spec(path: &Path, spec: &ExperimentSpec) -> Result<PathBuf> {
        spec.validate()?;
        std::fs::create_dir_all(path).map_err(|e| Error::io(path, e))?;
        let file = path.join(SPEC);
        let text = toml::to_string_pretty(spec).map_err(|e| Error::file(&file, e.to_string()))?;
        keep(&file, text)?;
        Ok(file)
    }

    /// Whether a folder looks like a run.
    pub fn is_run(path: &Path) -> bool {
        path.join(SPEC).is_file() && path.join(PLAN).is_file()
    }

    /// Deletes a run: what runs write, and the folder if nothing else is in it.
    ///
    /// # Errors
    /// Names what is no run or cannot be deleted.
    pub fn delete(path: &Path) -> Result<()> {
        if !path.join(SPEC).is_file() {
            return Err(Error::file(path, format!("is no run folder: it has no {SPEC}")));
        }
        let gone = |path: &Path, done: std::io::Result<()>| match done {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, e)),
            _ => Ok(()),
        };
        for name in ["cells", "pool"] {
            let inner = path.join(name);
            gone(&inner, std::fs::remove_dir_all(&inner))?;
        }
        for name in ["summary.json", "summary.csv", PLAN, SPEC] {
            let file = path.join(name);
            gone(&file, std::fs::remove_file(&file))?;
        }
        // What else somebody keeps there stays.
        match std::fs::remove_dir(path) {
            Err(e) if e.kind() != std::io::ErrorKind::DirectoryNotEmpty => Err(Error::io(path, e)),
            _ => Ok(()),
        }
    }

    /// Folder of a cell.
    pub fn cell(&self, id: &str) -> PathBuf {
        self.path.join("cells").join(id)
    }

    /// File of the images drawn under a name, in a folder that exists.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn pool(&self, name: &str) -> Result<PathBuf> {
        let pool = self.path.join("pool");
        std::fs::create_dir_all(&pool).map_err(|e| Error::io(&pool, e))?;
        Ok(pool.join(format!("{name}.npz")))
    }

    /// What a cell gave, once it is finished.
    ///
    /// # Errors
    /// Names a result that is there and cannot be read.
    pub fn result(&self, id: &str) -> Result<Option<CellResult>> {
        read_json(&self.result_path(id))
    }

    /// Where a cell's result is once it is finished.
    pub fn result_path(&self, id: &str) -> PathBuf {
        self.cell(id).join(RESULT)
    }

    /// Whether a cell is finished.
    pub fn finished(&self, id: &str) -> bool {
        self.result_path(id).exists()
    }

    /// Finishes a cell.
    ///
    /// # Errors
    /// Names the file.
    pub fn finish(&self, result: &CellResult) -> Result<()> {
        write_json(&self.result_path(&result.id), result)
    }

    /// Where a cell stands; `None` where it was never begun.
    ///
    /// # Errors
    /// Names a status that is there and cannot be read.
    pub fn status(&self, id: &str) -> Result<Option<Status>> {
        Status::read(&self.cell(id))
    }

    /// A cell's metrics so far.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read.
    pub fn metrics(&self, id: &str) -> Result<Vec<Line>> {
        metrics::read(&self.cell(id))
    }

    /// What the finished cells say.
    ///
    /// # Errors
    /// Names a result that cannot be read.
    pub fn summary(&self) -> Result<Summary> {
        let results = self.plan.iter().map(|planned| self.result(&planned.id)).collect::<Result<Vec<_>>>()?;
        Summary::of(&self.spec, results.into_iter().flatten().collect())
    }

    /// Writes the summary of what is finished as JSON and CSV.
    ///
    /// # Errors
    /// Names the file.
    pub fn write_summary(&self) -> Result<Summary> {
        loop {
            let summary = self.summary()?;
            write_json(&self.path.join("summary.json"), &summary)?;
            let csv = summary.csv();
            write_atomically(&self.path.join("summary.csv"), |file| file.write_all(csv.as_bytes()))?;
            // Another process may have finished a cell and written its summary in between, which this older one has just
            // replaced. Whoever writes last looks last, so that the last summary misses nothing.
            if self.plan.iter().filter(|planned| self.finished(&planned.id)).count() == summary.finished {
                return Ok(summary);
            }
        }
    }
}

/// Writes a file that, where it is there already, must be the same.
fn keep(path: &Path, text: String) -> Result<()> {
    match std::fs::read_to_string(path) {
        Ok(old) if old == text => Ok(()),
        Ok(_) => {
            Err(Error::file(path, "this folder holds a run of another spec or another oracle; choose another folder"))
        }
        Err(_) => write_atomically(path, |file| file.write_all(text.as_bytes())),
    }
}

/// Tries to read a file that other machines replace.
const READS: usize = 3;

/// Reads a file. One that was replaced from another machine between opening and reading is opened again.
fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let stale = |e: &std::io::Error| e.kind() == std::io::ErrorKind::StaleNetworkFileHandle;
    let mut read = std::fs::read(path);
    for _ in 1..READS {
        if !read.as_ref().is_err_and(stale) {
            break;
        }
        read = std::fs::read(path);
    }
    read
}

/// Reads a JSON file, if it is there.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match read_whole(path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|e| Error::file(path, format!("cannot be read: {e}")))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path, e)),
    }
}

/// Writes a JSON file atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::file(path, e.to_string()))?;
    text.push(b'\n');
    write_atomically(path, |file| file.write_all(&text))
}
