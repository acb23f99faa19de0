//! Downloads one file: tries mirrors in turn, resumes a part, and checks it before it is named.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::catalogue::Source;
use super::part::Part;
use super::wire::{Head, Network, Piece};
use super::{FetchEvent, Mirror};
use crate::data::hash::measure;
use crate::error::{Error, Result};
use crate::events::Events;

/// How often the caller is asked whether to go on while nothing comes.
const TICK: Duration = Duration::from_millis(100);
/// How often all mirrors are tried that failed for a reason that may pass.
const ROUNDS: usize = 2;
/// How often a mirror may cut a file off and be asked for the rest.
const MAX_CUTS: usize = 100;

/// Why an attempt ended.
enum Stop {
    /// Cancelled, or the disk failed.
    Local(Error),
    /// The mirror's fault.
    Remote {
        cause: String,
        /// Whether a retry is of no use.
        fatal: bool,
    },
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Local(error)
    }
}

fn retryable(cause: impl Into<String>) -> Stop {
    Stop::Remote { cause: cause.into(), fatal: false }
}

fn fatal(cause: impl Into<String>) -> Stop {
    Stop::Remote { cause: cause.into(), fatal: true }
}

/// A file to be downloaded.
pub(super) struct Download<'a> {
    pub source: &'a Source,
    pub mirrors: &'a [&'a str],
    /// Where it goes: an existing folder.
    pub folder: &'a Path,
    pub network: &'a Network,
}

impl Download<'_> {
    /// Downloads the file unless it is there with the right checksum. Returns its path and the
    /// bytes that came over the network.
    pub fn run(&self, events: &mut dyn Events<FetchEvent>) -> Result<(PathBuf, u64)> {
        let target = self.folder.join(self.source.file);
        if self.is_there(&target, events)? {
            return Ok((target, 0));
        }
        let mut part = Part::open(&target, &mut |done| events.report(self.verifying(done)))?;
        let mut came = 0;
        let mut failed: Vec<(Mirror, String)> = Vec::new();
        let mut given_up = vec![false; self.mirrors.len()];
        for _ in 0..ROUNDS {
            for (base, given_up) in self.mirrors.iter().zip(&mut given_up) {
                if *given_up {
                    continue;
                }
                let mirror = Mirror(format!("{base}{}", self.source.file));
                let turn =
                    Attempt { download: self, mirror: &mirror, part: &mut part, came: &mut came, events: &mut *events };
                match turn.take() {
                    Ok(()) => {
                        part.finish(&target)?;
                        return Ok((target, came));
                    }
                    Err(Stop::Local(error)) => return Err(error),
                    Err(Stop::Remote { cause, fatal }) => {
                        *given_up = fatal;
                        let (file, to) = (self.source.file.to_owned(), mirror.clone());
                        events.report(FetchEvent::MirrorFailed { file, mirror: to, cause: cause.clone() })?;
                        failed.push((mirror, cause));
                    }
                }
            }
        }
        Err(self.nobody_has_it(&target, &part, &failed))
    }

    /// Returns whether the file is there and right; a wrong one is taken away.
    fn is_there(&self, target: &Path, events: &mut dyn Events<FetchEvent>) -> Result<bool> {
        if !target.is_file() {
            return Ok(false);
        }
        let (bytes, sha256) = measure(target, &mut |done| events.report(self.verifying(done)))?;
        if bytes == self.source.bytes && sha256 == self.source.sha256 {
            events.report(FetchEvent::Kept { file: self.source.file.to_owned() })?;
            return Ok(true);
        }
        std::fs::remove_file(target).map_err(|e| Error::io(target, e))?;
        Ok(false)
    }

    fn verifying(&self, done: u64) -> FetchEvent {
        FetchEvent::Verifying { file: self.source.file.to_owned(), done, total: self.source.bytes }
    }

    fn nobody_has_it(&self, target: &Path, part: &Part, failed: &[(Mirror, String)]) -> Error {
        // Of a mirror that was asked twice only the last answer is reported.
        let mut said: Vec<String> = Vec::new();
        for (i, (mirror, cause)) in failed.iter().enumerate() {
            if !failed[i + 1..].iter().any(|(later, _)| later == mirror) {
                said.push(format!("{mirror}: {cause}"));
            }
        }
        let kept = match part.bytes {
            0 => String::new(),
            bytes => format!("; the first {bytes} bytes are kept, so that the next time goes on from there"),
        };
        Error::file(
            target,
            format!(
                "no mirror gave the file ({}){kept}. Is there a connection, and a proxy to be named in HTTPS_PROXY? The file \
                 may also be put there by hand",
                said.join("; ")
            ),
        )
    }

    /// Waits for the next piece, and calls `tick` while there is none.
    fn wait(&self, pieces: &Receiver<Piece>, mut tick: impl FnMut() -> Result<()>) -> Result<Piece, Stop> {
        let patience = self.network.patience;
        let since = Instant::now();
        loop {
            match pieces.recv_timeout(TICK) {
                Ok(piece) => return Ok(piece),
                Err(RecvTimeoutError::Disconnected) => return Err(retryable("the connection broke off")),
                // Resolving and connecting have their own time before the first bytes.
                Err(RecvTimeoutError::Timeout) if since.elapsed() > 2 * patience.connect + patience.idle => {
                    return Err(retryable(format!("nothing came for {} s", since.elapsed().as_secs())));
                }
                Err(RecvTimeoutError::Timeout) => tick()?,
            }
        }
    }

    /// Returns whether what an answer announces continues the part, or begins it anew.
    fn accept(&self, head: Head, part: &mut Part) -> Result<(), Stop> {
        match head.status {
            200 | 206 => {}
            416 => {
                part.restart()?;
                return Err(retryable("says that it has less of the file than there is already"));
            }
            // Too slow, too busy, out of order: may pass.
            status @ (408 | 425 | 429 | 500..) => return Err(retryable(format!("answered with status {status}"))),
            status => return Err(fatal(format!("answered with status {status}"))),
        }
        // First, so that the login page of a hotel does not cost what came before.
        if let Some(whole) = head.whole.filter(|&whole| whole != self.source.bytes) {
            let bytes = self.source.bytes;
            return Err(fatal(format!("has a file of {whole} bytes under that name instead of {bytes}")));
        }
        match head.status {
            206 if head.start != Some(part.bytes) => {
                Err(fatal("answered with another part of the file than was asked for"))
            }
            200 if part.bytes > 0 => Ok(part.restart()?),
            _ => Ok(()),
        }
    }
}

/// A download from one mirror into the part.
struct Attempt<'a> {
    download: &'a Download<'a>,
    mirror: &'a Mirror,
    part: &'a mut Part,
    /// Bytes that came over the network.
    came: &'a mut u64,
    events: &'a mut dyn Events<FetchEvent>,
}

impl Attempt<'_> {
    /// Everything from one mirror, asked again as often as it cuts the file off in the middle.
    fn take(mut self) -> Result<(), Stop> {
        let source = self.download.source;
        if self.part.bytes > source.bytes {
            self.part.restart()?;
        }
        // Bytes of another time may be of another file.
        let mut inherited = self.part.bytes > 0;
        for _ in 0..MAX_CUTS {
            let before = self.part.bytes;
            if self.part.bytes < source.bytes {
                let streamed = self.stream();
                if self.part.bytes < before {
                    inherited = false;
                }
                match streamed {
                    Ok(()) => {}
                    Err(Stop::Remote { fatal: false, .. }) if self.part.bytes > before => continue,
                    Err(Stop::Remote { fatal: false, .. }) if self.part.bytes < before && self.part.bytes == 0 => {
                        continue;
                    }
                    Err(stop) => return Err(stop),
                }
            }
            let sha256 = self.part.sha256();
            if sha256 == source.sha256 {
                return Ok(());
            }
            self.part.restart()?;
            if !std::mem::take(&mut inherited) {
                return Err(fatal(format!("gives another file (SHA-256 {sha256} instead of {})", source.sha256)));
            }
        }
        Err(retryable("cuts the file off again and again"))
    }

    /// One request, and what comes of it. `Ok`: the part is as long as the file.
    fn stream(&mut self) -> Result<(), Stop> {
        let Self { download, mirror, part, came, events } = self;
        let source = download.source;
        let from = part.bytes;
        let (file, to) = (source.file.to_owned(), (*mirror).clone());
        events.report(FetchEvent::Asking { file, mirror: to, from })?;
        let pieces = download.network.request(&mirror.0, from).map_err(|e| Error::io(download.folder, e))?;
        loop {
            let received = |done: u64| FetchEvent::Received {
                file: source.file.to_owned(),
                mirror: (*mirror).clone(),
                done,
                total: source.bytes,
            };
            match download.wait(&pieces, || events.report(received(part.bytes)))? {
                Piece::Head(head) => download.accept(head, part)?,
                Piece::Bytes(bytes) => {
                    if part.bytes + bytes.len() as u64 > source.bytes {
                        part.restart()?;
                        return Err(fatal(format!("gives more than the file's {} bytes", source.bytes)));
                    }
                    part.write(&bytes)?;
                    **came += bytes.len() as u64;
                    events.report(received(part.bytes))?;
                    if part.bytes == source.bytes {
                        return Ok(());
                    }
                }
                Piece::End => {
                    return Err(retryable(format!("ended after {} of {} bytes", part.bytes, source.bytes)));
                }
                Piece::Failed(cause) => return Err(retryable(cause)),
            }
        }
    }
}
