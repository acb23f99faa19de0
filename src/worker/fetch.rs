//! Downloads of corpora. They wait for servers and may take an hour, so a thread of their own
//! fetches one after the other.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::protocol::{Event, JobId};
use super::shared::Shared;
use super::side_jobs::{self, SideJob};
use crate::amounts::megabytes;
use crate::data::fetch::{Corpus, FetchEvent, Mirror, Patience, fetch_corpus};
use crate::error::Result;
use crate::events::{Events, Progress};

/// Progress is sent at most this often.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// Asks for a corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// Which.
    pub corpus: &'static Corpus,
    /// The folder that gets a folder of its name.
    pub out: PathBuf,
}

impl FetchRequest {
    /// A short name for the list of jobs.
    pub fn title(&self) -> String {
        format!("Fetch {}", self.corpus.name)
    }
}

/// Starts the thread.
pub(super) fn start(shared: &Arc<Shared>, queue: Receiver<(JobId, FetchRequest)>, events: &Sender<Event>) {
    side_jobs::start(["fetching", "fetching", "fetch corpora"], shared, queue, events, fetch);
}

/// Fetches a corpus, or what is missing of it.
fn fetch(job: &SideJob<'_>, request: &FetchRequest) -> Result<Option<String>> {
    let mut sink = Sink { job, corpus: request.corpus, told: None };
    let fetched = fetch_corpus(request.corpus, &request.out, Patience::default(), &mut sink)?;
    let (name, folder, came) = (&fetched.name, fetched.folder.display(), megabytes(fetched.downloaded));
    let sentence = format!("{name} is in {folder}; {came} came over the network");
    job.send(Event::Fetched(job.id, Box::new(fetched)));
    Ok(Some(sentence))
}

/// The line to the window: progress out; cancel and pause in.
struct Sink<'a> {
    job: &'a SideJob<'a>,
    corpus: &'static Corpus,
    told: Option<Instant>,
}

impl Sink<'_> {
    /// Sends progress if it is due.
    fn tell(&mut self, done: u64, total: u64, note: String) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) || done == total {
            self.told = Some(Instant::now());
            let progress = Progress { done: done as usize, total: total as usize };
            self.job.send(Event::JobProgress { id: self.job.id, progress, note });
        }
    }

    /// Bytes of the corpus before a file of it, and in all.
    fn before(&self, file: &str) -> (u64, u64) {
        let earlier = self.corpus.files.iter().take_while(|source| source.file != file);
        (earlier.map(|source| source.bytes).sum(), self.corpus.bytes())
    }
}

/// The server of an address.
fn host(mirror: &Mirror) -> &str {
    let address = mirror.0.split_once("://").map_or(mirror.0.as_str(), |(_, rest)| rest);
    address.split('/').next().unwrap_or(address)
}

impl Events<FetchEvent> for Sink<'_> {
    fn emit(&mut self, event: FetchEvent) -> ControlFlow<()> {
        match event {
            FetchEvent::Asking { file, mirror, from } => {
                let (before, total) = self.before(&file);
                self.tell(before + from, total, format!("asking {} for {file}", host(&mirror)));
            }
            FetchEvent::Received { file, mirror, done, .. } => {
                let (before, total) = self.before(&file);
                let at = before + done;
                let megabytes = [at, total].map(|bytes| bytes as f64 / 1e6);
                let [have, of] = megabytes;
                self.tell(at, total, format!("{have:.1} of {of:.1} MB, {file} from {}", host(&mirror)));
            }
            FetchEvent::Verifying { file, done, total } => self.tell(done, total, format!("checking {file} (bytes)")),
            FetchEvent::Unpacking { file, done, total } => self.tell(done, total, format!("writing {file}")),
            FetchEvent::MirrorFailed { mirror, cause, .. } => {
                self.job.send(Event::MirrorFailed { id: self.job.id, mirror: mirror.0, cause });
            }
            FetchEvent::SetAside { file, cause } => self.job.send(Event::Note(format!("{file} {cause}"))),
            FetchEvent::Kept { .. } => {}
        }
        self.job.check()
    }
}
