//! Downloads one file: tries mirrors in turn, resumes a part, and checks it before it is named.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::catalogue::Source;
use super::part::{Mark, Part, added};
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
                let turn = Attempt {
                    download: self,
                    mirror: &mirror,
                    part: &mut part,
                    inherited: false,
                    came: &mut came,
                    events: &mut *events,
                };
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

    /// Returns whether the file is there and right; another one of that name, which may have been put there
    /// by hand, is renamed, in place of one that was renamed before.
    fn is_there(&self, target: &Path, events: &mut dyn Events<FetchEvent>) -> Result<bool> {
        if !target.is_file() {
            return Ok(false);
        }
        let (bytes, sha256) = measure(target, &mut |done| events.report(self.verifying(done)))?;
        let (source, file) = (self.source, self.source.file.to_owned());
        if bytes == source.bytes && sha256 == source.sha256 {
            events.report(FetchEvent::Kept { file })?;
            return Ok(true);
        }
        let aside = added(target, ".wrong");
        std::fs::rename(target, &aside).map_err(|e| Error::io(target, e))?;
        let cause = format!(
            "is another file (SHA-256 {sha256}, {bytes} bytes, instead of {}, {} bytes): it is kept as {}",
            source.sha256,
            source.bytes,
            aside.display()
        );
        events.report(FetchEvent::SetAside { file, cause })?;
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

    /// Takes what an answer announces, or refuses it; the part, of `from` bytes, is not touched.
    fn accept(&self, head: Head, from: u64) -> Result<(), Stop> {
        match head.status {
            200 | 206 => {}
            // Its file is shorter than what others gave: another one.
            416 => {
                return Err(fatal(format!("says that it has less of the file than the {from} bytes that are there")));
            }
            // Too slow, too busy, out of order: may pass.
            status @ (408 | 425 | 429 | 500..) => return Err(retryable(format!("answered with status {status}"))),
            status => return Err(fatal(format!("answered with status {status}"))),
        }
        if let Some(whole) = head.whole.filter(|&whole| whole != self.source.bytes) {
            let bytes = self.source.bytes;
            return Err(fatal(format!("has a file of {whole} bytes under that name instead of {bytes}")));
        }
        match head.status {
            206 if head.start != Some(from) => Err(fatal("answered with another part of the file than was asked for")),
            _ => Ok(()),
        }
    }
}

/// A download from one mirror into the part.
struct Attempt<'a> {
    download: &'a Download<'a>,
    mirror: &'a Mirror,
    part: &'a mut Part,
    /// Whether the part has bytes of another time, which may be of another file.
    inherited: bool,
    /// Bytes that came over the network.
    came: &'a mut u64,
    events: &'a mut dyn Events<FetchEvent>,
}

/// Where the bytes of one answer go.
struct Answer {
    /// The part as it was before.
    before: Mark,
    /// An answer that begins anew although there is a part goes beside it: the login page of a hotel is no
    /// reason to lose what came before.
    anew: Option<Part>,
    /// Whether the server said that the file is as long as it should be.
    fits: bool,
}

impl Attempt<'_> {
    /// Everything from one mirror, asked again as often as it cuts the file off in the middle.
    fn take(mut self) -> Result<(), Stop> {
        let source = self.download.source;
        if self.part.bytes > source.bytes {
            self.part.restart()?;
        }
        self.inherited = self.part.bytes > 0;
        for _ in 0..MAX_CUTS {
            let before = self.part.bytes;
            if before < source.bytes {
                match self.stream() {
                    Ok(()) => {}
                    Err(Stop::Remote { fatal: false, .. }) if self.part.bytes > before => continue,
                    Err(stop) => return Err(stop),
                }
            }
            let sha256 = self.part.sha256();
            if sha256 == source.sha256 {
                return Ok(());
            }
            self.part.restart()?;
            if !std::mem::take(&mut self.inherited) {
                return Err(self.another_file(&sha256));
            }
        }
        Err(retryable("cuts the file off again and again"))
    }

    fn another_file(&self, sha256: &str) -> Stop {
        fatal(format!("gives another file (SHA-256 {sha256} instead of {})", self.download.source.sha256))
    }

    /// One request, and what comes of it. `Ok`: the part is as long as the file.
    fn stream(&mut self) -> Result<(), Stop> {
        let mut answer = Answer { before: self.part.mark(), anew: None, fits: false };
        let ended = self.receive(&mut answer);
        if let Some(anew) = answer.anew {
            // What stays is swept when the part is opened again; how the answer ended is what counts.
            let _ = anew.delete();
        }
        ended
    }

    fn receive(&mut self, answer: &mut Answer) -> Result<(), Stop> {
        let (download, source, from) = (self.download, self.download.source, self.part.bytes);
        self.events.report(FetchEvent::Asking { file: source.file.to_owned(), mirror: self.mirror.clone(), from })?;
        let pieces = download.network.request(&self.mirror.0, from).map_err(|e| Error::io(download.folder, e))?;
        loop {
            match download.wait(&pieces, || self.tell(answer))? {
                Piece::Head(head) => {
                    download.accept(head, from)?;
                    answer.fits = head.whole.is_some();
                    if head.status == 200 && from > 0 {
                        answer.anew = Some(self.part.beside()?);
                    }
                }
                Piece::Bytes(bytes) => {
                    self.write(&bytes, answer)?;
                    self.tell(answer)?;
                    if self.part.bytes == source.bytes {
                        return Ok(());
                    }
                }
                Piece::End => {
                    let bytes = answer.anew.as_ref().map_or(self.part.bytes, |anew| anew.bytes);
                    // Of unknown length and shorter than the file: nothing says that it is the file's beginning.
                    if !answer.fits {
                        self.part.back_to(answer.before.clone())?;
                    }
                    return Err(retryable(format!("ended after {bytes} of {} bytes", source.bytes)));
                }
                Piece::Failed(cause) => return Err(retryable(cause)),
            }
        }
    }

    /// Puts bytes where they belong. What came anew takes the part's place when it is longer, or, where the
    /// server did not say that it is as long as the file, when it is the file.
    fn write(&mut self, bytes: &[u8], answer: &mut Answer) -> Result<(), Stop> {
        let source = self.download.source;
        let into = answer.anew.as_mut().unwrap_or(&mut *self.part);
        if into.bytes + bytes.len() as u64 > source.bytes {
            if answer.anew.is_none() {
                self.part.back_to(answer.before.clone())?;
            }
            return Err(fatal(format!("gives more than the file's {} bytes", source.bytes)));
        }
        into.write(bytes)?;
        *self.came += bytes.len() as u64;
        let Some(anew) = &answer.anew else { return Ok(()) };
        if !answer.fits && anew.bytes == source.bytes && anew.sha256() != source.sha256 {
            return Err(self.another_file(&anew.sha256()));
        }
        let fits = answer.fits;
        let longer = |anew: &mut Part| anew.bytes == source.bytes || fits && anew.bytes > self.part.bytes;
        if let Some(anew) = answer.anew.take_if(longer) {
            self.part.replace(anew)?;
            answer.before = self.part.mark();
            self.inherited = false;
        }
        Ok(())
    }

    /// Tells how far the file, or what comes anew, is.
    fn tell(&mut self, answer: &Answer) -> Result<()> {
        let source = self.download.source;
        self.events.report(FetchEvent::Received {
            file: source.file.to_owned(),
            mirror: self.mirror.clone(),
            done: answer.anew.as_ref().map_or(self.part.bytes, |anew| anew.bytes),
            total: source.bytes,
        })
    }
}
