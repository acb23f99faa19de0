//! The run folder of a ranking of corpora.
//!
//! ```text
//! RUN/run.toml                    the spec, written first
//! RUN/corpora/ID/                 a training folder of `bayescope oracle train`
//! RUN/corpora/ID/status.json      state, step, ETA, heartbeat
//! RUN/corpora/ID/result.json      written last: the corpus is finished
//! RUN/summary.json, summary.csv   written whenever a corpus finishes
//! ```

use std::path::{Path, PathBuf};

use super::super::cells::Run;
use super::super::files::{SPEC, write_spec};
use super::super::status::State;
use super::event::HardnessEvent;
use crate::data::{read_text, read_toml, sweep_temp_files};
use crate::error::{Error, Result};
use crate::experiment::HardnessSpec;
use crate::experiment::hardness::{Corpus, CorpusResult, Ranking, Trouble, Variant};
use crate::oracle::train::TrainSpec;

/// A corpus to be trained.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCorpus {
    /// Hash of what it is told; its folder's name.
    pub id: String,
    /// The corpus, and which of its flows where there are several.
    pub name: String,
    /// The corpus.
    pub corpus: String,
    /// Which of its flows.
    pub variant: Variant,
    /// How its Glow is trained.
    pub train: TrainSpec,
}

/// A ranking on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct HardnessFolder {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub spec: HardnessSpec,
    /// Its corpora, in the order of the spec.
    pub plan: Vec<PlannedCorpus>,
}

impl HardnessFolder {
    /// The corpora of a spec, in a folder that need not be there.
    ///
    /// # Errors
    /// When the spec cannot be planned.
    pub fn plan(path: &Path, spec: &HardnessSpec) -> Result<Self> {
        spec.validate()?;
        let planned = |(corpus, variant): (&Corpus, Variant)| {
            let (id, train) = spec.flow(corpus, variant)?;
            let name = corpus.name.clone() + &variant.label();
            Ok(PlannedCorpus { id, name, corpus: corpus.name.clone(), variant, train })
        };
        let variants = spec.repeat.variants();
        let flows = spec.corpora.iter().flat_map(|corpus| variants.iter().map(move |&variant| (corpus, variant)));
        let plan = flows.map(planned).collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), spec: spec.clone(), plan })
    }

    /// Plans a ranking in `path`, or finds it there. Paths of corpora must be absolute, see
    /// [`HardnessSpec::relative_to`].
    ///
    /// # Errors
    /// When the folder holds another run, or cannot be written.
    pub fn create(path: &Path, spec: &HardnessSpec) -> Result<Self> {
        let folder = Self::plan(path, spec)?;
        Self::write_spec(path, spec)?;
        Ok(folder)
    }

    /// Opens a folder that [`Self::create`] made.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.join(SPEC);
        Self::plan(path, &read_toml(&file)?).map_err(|e| Error::file(&file, e.to_string()))
    }

    /// Writes the spec of a ranking into its folder.
    ///
    /// # Errors
    /// When the folder holds another run or something else, or cannot be written.
    pub fn write_spec(path: &Path, spec: &HardnessSpec) -> Result<PathBuf> {
        write_spec(path, spec)
    }

    /// Whether a folder looks like a ranking of corpora.
    pub fn is(path: &Path) -> bool {
        read_text(path.join(SPEC)).is_ok_and(|text| HardnessSpec::is(&text))
    }

    /// What the finished corpora say; one whose result cannot be read stands among the troubles.
    ///
    /// # Errors
    /// Names a status that cannot be read.
    pub fn summary(&self) -> Result<Ranking> {
        let (results, damaged) = self.results();
        let damaged = damaged.into_iter().map(|(planned, why)| Trouble { corpus: planned.name.clone(), why });
        let mut troubles: Vec<Trouble> = damaged.collect();
        for PlannedCorpus { id, name, .. } in self.plan.iter().filter(|planned| !self.finished(&planned.id)) {
            if let Some(status) = self.status(id)?.filter(|status| status.state == State::Failed) {
                let why = status.message.unwrap_or_else(|| "for no known reason".into());
                troubles.push(Trouble { corpus: name.clone(), why });
            }
        }
        Ok(Ranking::of(&self.spec, results, troubles))
    }

    /// The troubles of a ranking of this folder: those of corpora that failed, which the next sitting
    /// tries again, and those of results that cannot be read, which it leaves as they are.
    pub fn failed_and_damaged<'a>(&self, troubles: &'a [Trouble]) -> (Vec<&'a Trouble>, Vec<&'a Trouble>) {
        let finished = |name: &str| self.plan.iter().any(|planned| planned.name == name && self.finished(&planned.id));
        troubles.iter().partition(|trouble| !finished(&trouble.corpus))
    }
}

impl Run for HardnessFolder {
    type Planned = PlannedCorpus;
    type Output = CorpusResult;
    type Summary = Ranking;
    type Event = HardnessEvent;

    fn plan(&self) -> &[PlannedCorpus] {
        &self.plan
    }

    fn id(planned: &PlannedCorpus) -> &str {
        &planned.id
    }

    fn cell(&self, id: &str) -> PathBuf {
        self.path.join("corpora").join(id)
    }

    fn sweep(&self) {
        let corpora = self.plan.iter().map(|planned| self.cell(&planned.id));
        std::iter::once(self.path.clone()).chain(corpora).for_each(|folder| {
            sweep_temp_files(&folder);
        });
    }

    fn folder(&self) -> &Path {
        &self.path
    }

    fn found(&self) -> Result<(Ranking, String)> {
        let ranking = self.summary()?;
        let csv = ranking.csv();
        Ok((ranking, csv))
    }

    fn planned(corpora: usize, finished: usize) -> HardnessEvent {
        HardnessEvent::Planned { corpora, finished }
    }

    fn elsewhere(planned: &PlannedCorpus, by: String, waiting: bool) -> HardnessEvent {
        HardnessEvent::Elsewhere { corpus: planned.name.clone(), by, waiting }
    }

    fn finished_elsewhere(planned: &PlannedCorpus) -> HardnessEvent {
        HardnessEvent::FinishedElsewhere { corpus: planned.name.clone() }
    }

    fn ended(planned: &PlannedCorpus, end: Result<CorpusResult, String>) -> HardnessEvent {
        match end {
            Ok(result) => HardnessEvent::Finished(Box::new(result)),
            Err(why) => HardnessEvent::Failed { corpus: planned.name.clone(), why },
        }
    }

    fn summarised(found: &Ranking, _last: bool) -> Option<HardnessEvent> {
        Some(HardnessEvent::Ranking(Box::new(found.clone())))
    }
}
