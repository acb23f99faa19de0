//! A run folder: created from a spec, opened, read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cells::Run;
use super::execute::RunEvent;
use super::external::{ExternalFolder, ExternalSpec};
use super::files::{ANOTHER_PLAN, DATA, EXAMPLE, FEATURES, FILES, PLAN, SPEC, delete_parts, is_id, write_spec};
use super::metrics::{self, Line};
use super::pools;
use super::status::Status;
use crate::classifier::Architecture;
use crate::data::{claim_text, claim_ticket, parse_toml, read_json, read_text, sweep_temp_files, with_way_out};
use crate::error::{Error, Result};
use crate::experiment::{
    Cell, CellResult, DamagedCell, Data, DataRecord, ExperimentSpec, FeatureFile, Files, HardnessSpec, PartRecord,
    Summary, Tested, Truth,
};
use crate::oracle::rounding::Rounding;

/// The way out where the Bayes error of a world, or a count of its images, cannot be read.
const COMPUTED_AGAIN: &str = "remove it: it is computed again when a cell needs it";
/// Folders and files that a run consists of, besides its spec.
const PARTS: (&[&str], &[&str]) = (&["cells", "pool", "worlds"], FILES);

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Hash of the cell's content; its folder's name.
    pub id: String,
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// Name of its condition, where the experiment has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
}

impl Planned {
    /// The cells of a spec, their IDs made by `id`.
    ///
    /// # Errors
    /// As `id`.
    pub fn all(spec: &ExperimentSpec, id: impl Fn(&Cell) -> Result<String>) -> Result<Vec<Self>> {
        let names = spec.experiment.conditions();
        let planned = |cell: Cell| Ok(Self { id: id(&cell)?, cell, under: names.get(cell.condition).cloned() });
        spec.cells().into_iter().map(planned).collect()
    }

    /// The label of the cell, behind the name of its condition, if it has one.
    pub fn label(&self) -> String {
        let under = self.under.as_ref().map_or(String::new(), |under| format!("{under}: "));
        under + &self.cell.label()
    }
}

/// Where a cell stands, as anybody may look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellLook {
    /// Which.
    #[serde(flatten)]
    pub planned: Planned,
    /// Whether its result is there.
    pub finished: bool,
    /// Whether it says that it runs but has been silent too long.
    pub stale: bool,
    /// What it said last.
    pub status: Option<Status>,
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
    /// Its dataset, where the images are not all the world's.
    pub data: Option<DataRecord>,
    /// The files of features that its cells see.
    pub features: Vec<FeatureFile>,
    /// SHA-256 of the files of weights that its cells start from, of a run that was planned here: whoever computes cells
    /// plans the run again. A folder that was opened does not know them.
    pub pretrained: BTreeMap<Architecture, String>,
}

impl RunFolder {
    /// A plan that lies nowhere, to be shown or timed.
    pub fn unwritten(spec: ExperimentSpec, plan: Vec<Planned>, data: Option<DataRecord>) -> Self {
        let (path, features, pretrained) = Default::default();
        Self { path, spec, plan, data, features, pretrained }
    }

    /// Plans a run of `spec` on a world (`OracleInfo::world_id`) and a dataset in
    /// `path`, or finds the plan there.
    ///
    /// # Errors
    /// When the folder holds another run or one on other data, or cannot be written.
    pub fn create(path: &Path, spec: &ExperimentSpec, world_id: &str, data: Option<&Data>) -> Result<Self> {
        spec.validate()?;
        let data = data.map(Data::record);
        let features = FeatureFile::all(&spec.experiment.files(), &pools::train_names(spec), spec.largest())?;
        let files = Files::of(spec, world_id, data.as_ref(), &features)?;
        let plan = Planned::all(spec, |cell| cell.id(spec, &files))?;
        Self::write_spec(path, spec)?;
        if let Some(data) = &data {
            keep_data(&path.join(DATA), data)?;
        }
        if !features.is_empty() {
            keep_features(&path.join(FEATURES), &features)?;
        }
        let lines = plan.iter().map(|planned| serde_json::to_string(planned).map(|line| line + "\n"));
        let lines: String = lines.collect::<Result<_, _>>().map_err(|e| Error::file(path.join(PLAN), e.to_string()))?;
        claim_text(&path.join(PLAN), &lines, ANOTHER_PLAN)?;
        let pretrained = files.pretrained;
        Ok(Self { path: path.to_owned(), spec: spec.clone(), plan, data, features, pretrained })
    }

    /// Opens a folder that [`Self::create`] made.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        let read = |name: &str| {
            let file = path.join(name);
            read_text(&file).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => Error::file(path, format!("is no run folder: it has no {name}")),
                _ => Error::io(&file, e),
            })
        };
        let text = read(SPEC)?;
        if HardnessSpec::is(&text) {
            let why = "ranks corpora and has no grid of classifiers; `bayescope resume` goes on with it, by --task and --of in parts";
            return Err(Error::file(path, why));
        }
        if ExternalSpec::is(&text) {
            let why =
                "is an external run and has no grid of classifiers; `bayescope summary` and `bayescope watch` read it";
            return Err(Error::file(path, why));
        }
        let spec: ExperimentSpec = parse_toml(&path.join(SPEC), &text)?;
        spec.check_names().map_err(|cause| Error::file(path.join(SPEC), cause))?;
        let plan = read(PLAN)?
            .lines()
            .map(|line| {
                serde_json::from_slice(line.as_bytes()).map_err(|e| Error::file(path.join(PLAN), e.to_string()))
            })
            .collect::<Result<Vec<Planned>>>()?;
        if let Some(planned) = plan.iter().find(|planned| !is_id(&planned.id)) {
            let why = format!("{:?} is no cell's name: those are 16 hexadecimal digits", planned.id);
            return Err(Error::file(path.join(PLAN), why));
        }
        let features = read_json(&path.join(FEATURES))?.unwrap_or_default();
        let (data, pretrained) = (read_json(&path.join(DATA))?, BTreeMap::new());
        Ok(Self { path: path.to_owned(), spec, plan, data, features, pretrained })
    }

    /// Writes the spec of a run into its folder, before there is a plan.
    ///
    /// # Errors
    /// When the folder holds another run or something else, or cannot be written.
    pub fn write_spec(path: &Path, spec: &ExperimentSpec) -> Result<PathBuf> {
        spec.validate()?;
        write_spec(path, spec)
    }

    /// Whether a folder looks like a run.
    pub fn is_run(path: &Path) -> bool {
        path.join(SPEC).is_file() && path.join(PLAN).is_file()
    }

    /// Deletes a run: what runs write, and every folder if nothing else is in it.
    ///
    /// # Errors
    /// Names what is no run or cannot be deleted.
    pub fn delete(path: &Path) -> Result<()> {
        if !path.join(SPEC).is_file() {
            return Err(Error::file(path, format!("is no run folder: it has no {SPEC}")));
        }
        delete_parts(path, if ExternalFolder::is(path) { ExternalFolder::PARTS } else { PARTS })
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

    /// File of the Bayes error under a condition.
    pub(super) fn truth_path(&self, condition: usize) -> PathBuf {
        self.path.join("worlds").join(format!("tau-{}.json", self.spec.tau(condition).get()))
    }

    /// The Bayes error under a condition, where it was computed.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read.
    pub fn truth(&self, condition: usize) -> Result<Option<Truth>> {
        read_json(&self.truth_path(condition)).map_err(|error| with_way_out(error, COMPUTED_AGAIN))
    }

    /// File of how many images of a pool do not carry their posterior.
    pub(super) fn pool_rounding(&self, name: &str) -> PathBuf {
        self.path.join("pool").join(format!("{name}.rounding.json"))
    }

    /// Where each cell stands.
    ///
    /// # Errors
    /// Names a status that is there and cannot be read.
    pub fn look(&self) -> Result<Vec<CellLook>> {
        let look = |planned: &Planned| {
            let (finished, status) = (self.finished(&planned.id), self.status(&planned.id)?);
            let stale = !finished && status.as_ref().is_some_and(Status::stale);
            Ok(CellLook { planned: planned.clone(), finished, stale, status })
        };
        self.plan.iter().map(look).collect()
    }

    /// A cell's metrics so far.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read.
    pub fn metrics(&self, id: &str) -> Result<Vec<Line>> {
        metrics::read(&self.cell(id))
    }

    /// The last line of a cell's metrics; the file is read from its end.
    ///
    /// # Errors
    /// Names a file that is there and cannot be read.
    pub fn last_metrics(&self, id: &str) -> Result<Option<Line>> {
        metrics::last(&self.cell(id))
    }

    /// What the finished cells say; those whose result cannot be read are named in it.
    ///
    /// # Errors
    /// Names another file of the run that cannot be read.
    pub fn summary(&self) -> Result<Summary> {
        // Of an example that is all there is.
        if let Some(summary) = read_json(&self.path.join(EXAMPLE))? {
            return Ok(summary);
        }
        let (results, damaged) = self.results();
        let mut rounding = BTreeMap::new();
        for name in pools::names(self) {
            let counted: Option<Rounding> =
                read_json(&self.pool_rounding(&name)).map_err(|error| with_way_out(error, COMPUTED_AGAIN))?;
            rounding.extend(counted.filter(|counted| counted.rounded > 0).map(|counted| (name, counted)));
        }
        let conditions = self.spec.experiment.condition_numbers();
        let truths = conditions.map(|condition| self.truth(condition)).collect::<Result<Vec<_>>>()?;
        let found = Summary::of(&self.spec, &self.tested(&results)?, results, &truths)?;
        let named =
            |(planned, why): (&Planned, String)| DamagedCell { id: planned.id.clone(), cell: planned.label(), why };
        let damaged = damaged.into_iter().map(named).collect();
        Ok(Summary { damaged, ..found.with_images(self.data.clone(), rounding) })
    }

    /// What finished cells scored on each test image, by ID, where laws need it and it was kept.
    fn tested(&self, results: &[CellResult]) -> Result<BTreeMap<String, Tested>> {
        let needed = results.iter().filter(|_| self.spec.experiment.has_laws());
        let of = |result: &CellResult| {
            let tested = Tested::read(&self.cell(&result.id), &result.measured)?;
            Ok(tested.map(|tested| (result.id.clone(), tested)))
        };
        needed.filter_map(|result| of(result).transpose()).collect()
    }
}

impl Run for RunFolder {
    type Planned = Planned;
    type Output = CellResult;
    type Summary = Summary;
    type Event = RunEvent;

    fn plan(&self) -> &[Planned] {
        &self.plan
    }

    fn id(planned: &Planned) -> &str {
        &planned.id
    }

    fn cell(&self, id: &str) -> PathBuf {
        self.path.join("cells").join(id)
    }

    fn sweep(&self) {
        let inner = |name: &str| {
            let entries = std::fs::read_dir(self.path.join(name)).into_iter().flatten();
            entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir())
        };
        let folders = [self.path.clone(), self.path.join("pool"), self.path.join("worlds")]
            .into_iter()
            .chain(inner("pool"))
            .chain(inner("cells"));
        let swept: usize = folders.map(|folder| sweep_temp_files(&folder)).sum();
        if swept > 0 {
            tracing::info!("{}: {swept} files that killed processes left unfinished are removed", self.path.display());
        }
    }

    fn folder(&self) -> &Path {
        &self.path
    }

    fn found(&self) -> Result<(Summary, String)> {
        let summary = self.summary()?;
        let csv = summary.csv();
        Ok((summary, csv))
    }

    fn planned(cells: usize, finished: usize) -> RunEvent {
        RunEvent::Planned { cells, finished }
    }

    fn elsewhere(planned: &Planned, by: String, waiting: bool) -> RunEvent {
        RunEvent::Elsewhere { planned: planned.clone(), by, waiting }
    }

    fn finished_elsewhere(planned: &Planned) -> RunEvent {
        RunEvent::FinishedElsewhere { planned: planned.clone() }
    }

    fn ended(planned: &Planned, end: Result<CellResult, String>) -> RunEvent {
        match end {
            Ok(result) => RunEvent::Finished(Box::new(result)),
            Err(why) => RunEvent::Failed { planned: planned.clone(), why },
        }
    }

    fn summarised(summary: &Summary, last: bool) -> Option<RunEvent> {
        last.then(|| RunEvent::Summary(Box::new(summary.clone())))
    }
}

/// [`claim_ticket`] for a dataset's description, with a word about data that have changed.
fn keep_data(path: &Path, data: &DataRecord) -> Result<()> {
    claim_ticket(path, data, |old| {
        let (old, data) = (old.without_notes(), data.without_notes());
        let [was, is] = match old.train == data.train {
            true => [&old, &data].map(|record| record.test.as_ref()),
            false => [&old, &data].map(|record| Some(&record.train)),
        };
        let what = is.map_or("the test images", |part| part.path.as_str());
        // The same pixels, of which other things are said by now.
        let otherwise =
            |(was, is): &(&PartRecord, &PartRecord)| was.sha256 == is.sha256 && was.dequantisation != is.dequantisation;
        let taken = was.zip(is).filter(otherwise).and_then(|(was, _)| was.dequantisation);
        let noise_alone =
            |(was, is): (&PartRecord, &PartRecord)| *was == PartRecord { noise_from: was.noise_from, ..is.clone() };
        let why = match taken {
            _ if was.zip(is).is_some_and(noise_alone) => format!(
                "{what}: this run was planned by an older version, which gave each of them the noise of the training image of its \
                 number; choose another folder"
            ),
            Some(how) => format!(
                "{what}: this run was planned with 8-bit images {}; with data.dequantise = \"{how}\" at the end of [data] in {SPEC} \
                 it goes on with them, else choose another folder",
                how.describe()
            ),
            None => format!(
                "{what} is not what this run was planned with; put the old images back, or choose another folder"
            ),
        };
        (old != data).then(|| Error::file(path, why))
    })
}

/// [`claim_ticket`] for the hashes of files of features, with a word about one that has changed.
fn keep_features(path: &Path, files: &Vec<FeatureFile>) -> Result<()> {
    claim_ticket(path, files, |old| {
        let why = "is not what this run was planned with; put the old file back, or choose another folder";
        files.iter().find(|file| !old.contains(file)).map(|file| Error::file(&file.path, why))
    })
}
