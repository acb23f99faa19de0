//! Corpora on their way from the network. A download waits for servers, needs no device and may take an hour: a light thread of its own
//! fetches one corpus after another, and neither samples nor training wait for it.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after};

use super::protocol::{Event, JobId, Outcome};
use super::shared::{Control, Shared};
use crate::data::fetch::{Corpus, FetchEvent, Fetched, Mirror, Patience, fetch_corpus};
use crate::error::{Error, Result, panic_message};
use crate::events::{Events, Progress};

/// Progress is told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(50);
/// How often a paused download looks whether it goes on.
const LOOK_EVERY: Duration = Duration::from_millis(200);

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
    let (shared, told) = (shared.clone(), events.clone());
    let work = move || {
        while let Ok((id, request)) = queue.recv() {
            answer(&shared, &told, id, &request);
        }
    };
    if let Err(error) = std::thread::Builder::new().name("fetching".into()).spawn(work) {
        let _ = events.try_send(Event::Failed(format!("the system gave no thread to fetch corpora on: {error}")));
    }
}

/// Fetches a corpus, or what is missing of it, and ends the job.
fn answer(shared: &Shared, events: &Sender<Event>, id: JobId, request: &FetchRequest) {
    let control = shared.control(id);
    if !control.take() {
        return shared.forget(id);
    }
    let mut sink = Sink { shared, events, control, id, corpus: request.corpus, told: None };
    let outcome = if sink.check().is_break() {
        Outcome::Cancelled
    } else {
        sink.send(Event::JobStarted { id });
        let fetched = catch_unwind(AssertUnwindSafe(|| carry_out(request, &mut sink)));
        let fetched = fetched.unwrap_or_else(|panic| {
            Err(Error::Numeric(format!("fetching failed inside: {}", panic_message(panic.as_ref()))))
        });
        match fetched {
            Ok(fetched) => {
                let done = format!(
                    "{} is in {}; {:.1} MB came over the network",
                    fetched.name,
                    fetched.folder.display(),
                    fetched.downloaded as f64 / 1e6
                );
                sink.send(Event::Fetched(id, Box::new(fetched)));
                Outcome::Done(done)
            }
            Err(Error::Cancelled) => Outcome::Cancelled,
            Err(error) => Outcome::Failed(error.to_string()),
        }
    };
    shared.forget(id);
    sink.send(Event::JobEnded { id, outcome });
}

fn carry_out(request: &FetchRequest, sink: &mut Sink<'_>) -> Result<Fetched> {
    fetch_corpus(request.corpus, &request.out, Patience::default(), sink)
}

/// The line to the window: progress out; cancel and pause in.
struct Sink<'a> {
    shared: &'a Shared,
    events: &'a Sender<Event>,
    control: Arc<Control>,
    id: JobId,
    corpus: &'static Corpus,
    told: Option<Instant>,
}

impl Sink<'_> {
    fn send(&self, event: Event) {
        // Nobody listens any more where this fails.
        let _ = self.events.send(event);
        (self.shared.wake)();
    }

    /// Tells progress if it is time to.
    fn tell(&mut self, done: u64, total: u64, note: String) {
        if self.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) || done == total {
            self.told = Some(Instant::now());
            let progress = Progress { done: done as usize, total: total as usize };
            self.send(Event::JobProgress { id: self.id, progress, note });
        }
    }

    /// Bytes of the corpus before a file of it, and in all.
    fn before(&self, file: &str) -> (u64, u64) {
        let earlier = self.corpus.files.iter().take_while(|source| source.file != file);
        (earlier.map(|source| source.bytes).sum(), self.corpus.bytes())
    }

    /// Holds while paused, and says whether to go on.
    fn check(&self) -> ControlFlow<()> {
        loop {
            if self.control.cancelled.load(Ordering::Relaxed) || self.shared.stopping.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if !self.control.paused.load(Ordering::Relaxed) {
                return ControlFlow::Continue(());
            }
            let _ = after(LOOK_EVERY).recv();
        }
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
                self.send(Event::MirrorFailed { id: self.id, mirror: mirror.0, cause });
            }
            FetchEvent::Kept { .. } => {}
        }
        self.check()
    }
}
