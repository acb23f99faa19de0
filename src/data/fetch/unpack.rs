//! Unpacks downloads into a folder that the readers open. Everything is written beside the
//! downloads first and renamed when it is complete.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;

use super::record::{Entry, Record};
use super::{Corpus, FetchEvent, Layout, emnist, svhn};
use crate::data::source::open_regular;
use crate::data::{names, write_atomically, write_whole};
use crate::error::{Error, Result};
use crate::events::Events;

/// Bytes copied between two checks for cancellation.
const CHUNK: u64 = 1 << 20;

/// Unpacks a corpus into `folder`.
pub(super) fn unpack(
    corpus: &Corpus,
    downloads: &Path,
    folder: &Path,
    events: &mut dyn Events<FetchEvent>,
) -> Result<Record> {
    let staging = downloads.join(format!("{}.unpacked", corpus.name));
    if staging.exists() {
        // A process that was killed left it.
        fs::remove_dir_all(&staging).map_err(|e| Error::io(&staging, e))?;
    }
    fs::create_dir(&staging).map_err(|e| Error::io(&staging, e))?;
    let done = fill(corpus, downloads, &staging, events).and_then(|record| {
        place(&staging, folder)?;
        Ok(record)
    });
    if done.is_err() {
        // What cannot be taken away now is so the next time.
        let _ = fs::remove_dir_all(&staging);
    }
    done
}

fn fill(corpus: &Corpus, downloads: &Path, staging: &Path, events: &mut dyn Events<FetchEvent>) -> Result<Record> {
    let sources: Vec<_> = corpus.files.iter().map(|source| downloads.join(source.file)).collect();
    match (corpus.layout, &sources[..]) {
        (Layout::Idx, sources) => {
            for source in sources {
                let staged = staging.join(source.file_name().unwrap_or_default());
                // A link to a file that was put there by hand would be relative to another folder.
                let file = fs::canonicalize(source).map_err(|e| Error::io(source, e))?;
                fs::hard_link(&file, &staged)
                    .or_else(|_| fs::copy(&file, &staged).map(drop))
                    .map_err(|e| Error::io(&staged, e))?;
            }
        }
        (Layout::Emnist { split, first_label }, [zip, ..]) => emnist::unpack(zip, split, first_label, staging, events)?,
        (Layout::Tar { members }, [archive, ..]) => untar(archive, members, staging, events)?,
        (Layout::Svhn { files }, _) => {
            for (from, to) in files {
                svhn::convert(&downloads.join(from), &staging.join(to), events)?;
            }
        }
        (_, []) => return Err(Error::input(format!("{}: a corpus without files", corpus.name))),
    }
    if !corpus.classes.is_empty() {
        let lines = corpus.classes.join("\n") + "\n";
        write_atomically(&staging.join(names::FILE), |out| out.write_all(lines.as_bytes()))?;
    }
    let record = Record::new(corpus, entries(staging, events)?);
    record.write(staging)?;
    Ok(record)
}

/// Lengths and checksums of the files in a folder, by name.
fn entries(staging: &Path, events: &mut dyn Events<FetchEvent>) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    for path in crate::data::source::entries(staging)? {
        let file = crate::data::source::file_name(&path);
        let total = fs::metadata(&path).map_err(|e| Error::io(&path, e))?.len();
        let (bytes, sha256) = crate::data::hash::measure(&path, &mut |done| {
            events.report(FetchEvent::Verifying { file: file.clone(), done, total })
        })?;
        found.push(Entry { file, bytes, sha256 });
    }
    Ok(found)
}

/// Renames the complete folder; the files of an existing folder are replaced one by one.
fn place(staging: &Path, folder: &Path) -> Result<()> {
    // Only an empty one goes.
    let _ = fs::remove_dir(folder);
    if !folder.exists() {
        return fs::rename(staging, folder).map_err(|e| Error::io(folder, e));
    }
    for path in crate::data::source::entries(staging)? {
        let to = folder.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &to).map_err(|e| Error::io(&to, e))?;
    }
    fs::remove_dir(staging).map_err(|e| Error::io(staging, e))
}

/// Extracts files by name from a gzipped tar archive. No path of the archive is written to.
fn untar(archive: &Path, members: &[&str], staging: &Path, events: &mut dyn Events<FetchEvent>) -> Result<()> {
    let damaged = |e: io::Error| Error::file(archive, format!("is no whole archive (.tar.gz): {e}"));
    let file = open_regular(archive).map_err(|e| Error::io(archive, e))?;
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    let mut missing: Vec<&str> = members.to_vec();
    for entry in tar.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(at) = missing.iter().position(|member| *member == name && entry.header().entry_type().is_file())
        else {
            continue;
        };
        missing.swap_remove(at);
        let (total, to) = (entry.size(), staging.join(name));
        write_whole(&to, |out| {
            copy(&mut entry, out, (archive, &to), |done| {
                events.report(FetchEvent::Unpacking { file: name.to_owned(), done, total })
            })
        })?;
    }
    match missing[..] {
        [] => Ok(()),
        _ => Err(Error::file(archive, format!("holds no {}", missing.join(", ")))),
    }
}

/// Copies to the end; `paths` are source and target, for messages.
fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    paths: (&Path, &Path),
    mut watch: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let (mut buffer, mut done) = (Vec::new(), 0);
    loop {
        buffer.clear();
        let read = from.take(CHUNK).read_to_end(&mut buffer);
        let read = read.map_err(|e| Error::file(paths.0, format!("is damaged: {e}")))?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(&buffer).map_err(|e| Error::io(paths.1, e))?;
        done += read as u64;
        watch(done)?;
    }
}
