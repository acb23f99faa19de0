//! Corpora by name: downloaded, verified and unpacked for [`super::open_dataset`].
//!
//! `OUT/NAME/` holds the corpus and `fetched.json`, which is written last and lists its files with
//! checksums. `OUT/downloads/` holds unfinished downloads, and EMNIST's archive, from which six
//! corpora are cut. Only [`fetch`] and [`fetch_corpus`] use the network.

mod catalogue;
mod download;
mod emnist;
mod event;
mod mat;
mod part;
mod record;
mod svhn;

mod unpack;
mod wire;

use std::path::{Path, PathBuf};

pub use catalogue::{Corpus, Layout, Source, catalogue};
use download::Download;
pub use event::{FetchEvent, Fetched, Mirror};
use record::Record;
use wire::Network;
pub use wire::Patience;

use super::lock_file;
use crate::error::{Error, Result, did_you_mean};
use crate::events::Events;

/// Folder of downloads, and the file in it by which two processes keep out of each other's way.
const DOWNLOADS: &str = "downloads";
const LOCK: &str = ".lock";

/// Finds a corpus by name or alias.
///
/// # Errors
/// When there is none; the message lists the names.
pub fn corpus(name: &str) -> Result<&'static Corpus> {
    catalogue().iter().find(|corpus| corpus.answers_to(name)).ok_or_else(|| {
        let names: Vec<&str> = catalogue().iter().map(|corpus| corpus.name).collect();
        let meant = did_you_mean(name, &names);
        Error::input(format!(
            "there is no corpus called {name:?} to fetch{meant}; there are: {}. AFHQ and ImageNet-64 are under terms that must be \
             accepted first: open the folder or the batches that you have",
            names.join(", ")
        ))
    })
}

/// Returns whether a corpus was fetched into a folder. Does not check its files: [`fetch`] does.
pub fn is_fetched(folder: &Path) -> bool {
    folder.join(record::NAME).is_file()
}

/// Fetches a corpus of the catalogue by name into `out/NAME`.
///
/// Valid files are not fetched again. An interrupted file is kept and continued.
///
/// # Errors
/// An unknown name; [`Error::Cancelled`]; the answers of all mirrors; a full or read-only disk; a
/// folder of that name with other content; another process that fetches into `out`.
pub fn fetch(name: &str, out: &Path, events: &mut dyn Events<FetchEvent>) -> Result<Fetched> {
    fetch_corpus(corpus(name)?, out, Patience::default(), events)
}

/// [`fetch`] of any corpus with any patience, for mirrors of one's own.
///
/// # Errors
/// As [`fetch`].
pub fn fetch_corpus(
    corpus: &Corpus,
    out: &Path,
    patience: Patience,
    events: &mut dyn Events<FetchEvent>,
) -> Result<Fetched> {
    let downloads = out.join(DOWNLOADS);
    std::fs::create_dir_all(&downloads).map_err(|e| Error::io(&downloads, e))?;
    let _lock =
        lock_file(&downloads.join(LOCK), "another process is fetching into this folder: wait until it is done")?;
    let folder = out.join(corpus.name);
    if let Some(record) = Record::of_whole(&folder, corpus, events)? {
        return Ok(record.fetched(corpus, folder, 0, Vec::new()));
    }
    let network = Network::new(patience)?;
    let downloads = downloads.join(corpus.downloads);
    std::fs::create_dir_all(&downloads).map_err(|e| Error::io(&downloads, e))?;
    let (mut sources, mut downloaded) = (Vec::new(), 0);
    for source in corpus.files {
        let download = Download { source, mirrors: corpus.mirrors, folder: &downloads, network: &network };
        let (path, came) = download.run(events)?;
        sources.push(path);
        downloaded += came;
    }
    let record = unpack::unpack(corpus, &downloads, &folder, events)?;
    let archives = if matches!(corpus.layout, Layout::Emnist { .. }) { sources } else { clear(&downloads, &sources) };
    Ok(record.fetched(corpus, folder, downloaded, archives))
}

/// Removes the downloads of a complete corpus. Returns the files that could not be removed.
fn clear(downloads: &Path, sources: &[PathBuf]) -> Vec<PathBuf> {
    let stay = |path: &&PathBuf| path.exists() && std::fs::remove_file(path).is_err();
    let left = sources.iter().filter(stay).cloned().collect();
    // Stays where a file is left in it.
    let _ = std::fs::remove_dir(downloads);
    left
}
