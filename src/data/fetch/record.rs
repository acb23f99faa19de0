//! `fetched.json`: the files of a fetched corpus. It is written last: with it, all is complete.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Corpus, FetchEvent, Fetched};
use crate::data::hash::measure;
use crate::data::source::read_bytes;
use crate::data::write_json;
use crate::error::{Error, Result};
use crate::events::Events;

pub(super) const NAME: &str = "fetched.json";

/// A fetched corpus.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    name: String,
    about: String,
    terms: String,
    /// What it was made of: SHA-256 by name of the download.
    sources: Vec<Entry>,
    files: Vec<Entry>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub file: String,
    pub bytes: u64,
    pub sha256: String,
}

impl Record {
    pub fn new(corpus: &Corpus, files: Vec<Entry>) -> Self {
        let source = |s: &super::Source| Entry { file: s.file.into(), bytes: s.bytes, sha256: s.sha256.into() };
        Self {
            name: corpus.name.into(),
            about: corpus.about.into(),
            terms: corpus.terms.into(),
            sources: corpus.files.iter().map(source).collect(),
            files,
        }
    }

    /// Returns the record of a complete, undamaged folder, else `None`.
    pub fn of_whole(folder: &Path, corpus: &Corpus, events: &mut dyn Events<FetchEvent>) -> Result<Option<Self>> {
        let path = folder.join(NAME);
        let Ok(text) = read_bytes(&path) else {
            let foreign = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
            return match foreign {
                true => Err(Error::file(folder, format!("holds files, but no {NAME}: choose another folder"))),
                false => Ok(None),
            };
        };
        let Ok(record) = serde_json::from_slice::<Self>(&text) else { return Ok(None) };
        let same = |(entry, source): (&Entry, &super::Source)| entry.sha256 == source.sha256;
        if record.sources.len() != corpus.files.len() || !record.sources.iter().zip(corpus.files).all(same) {
            return Ok(None);
        }
        for entry in &record.files {
            let path = folder.join(&entry.file);
            if !path.is_file() {
                return Ok(None);
            }
            let (file, total) = (&entry.file, entry.bytes);
            let found =
                measure(&path, &mut |done| events.report(FetchEvent::Verifying { file: file.clone(), done, total }))?;
            if found != (entry.bytes, entry.sha256.clone()) {
                return Ok(None);
            }
            events.report(FetchEvent::Kept { file: file.clone() })?;
        }
        Ok(Some(record))
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(NAME), self)
    }

    pub fn fetched(self, corpus: &Corpus, folder: PathBuf, downloaded: u64, archives: Vec<PathBuf>) -> Fetched {
        Fetched {
            name: corpus.name.into(),
            folder,
            bytes: self.files.iter().map(|entry| entry.bytes).sum(),
            files: self.files.into_iter().map(|entry| entry.file).collect(),
            downloaded,
            archives,
            terms: self.terms,
        }
    }
}
