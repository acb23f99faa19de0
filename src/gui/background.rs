//! Work that would block a frame: file dialogs, listing adapters, writing small files. Each runs on
//! a thread of its own; the window has no other threads and channels.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use eframe::egui;
use rfd::{AsyncFileDialog, FileHandle};

use crate::device::{self, Candidate};
use crate::provenance::Made;

/// What is said of work whose thread ended without an answer.
const FELL: &str = "The program failed inside while it wrote or read a file: try again, and see the log.";

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Images, oracles or runs to open.
    Open,
    OpenFolder,
    /// Where so many samples are saved.
    Save {
        images: usize,
        /// Pictures with a look, which are not samples.
        look: bool,
    },
    SaveCurve,
    /// Where the points of a plot are saved, in a file that would be called so.
    SavePoints(&'static str),
    SaveFigure,
    /// The folder of all figures and tables of a run.
    SaveFigures,
    /// The folder of the report on judged classifiers.
    SaveReport,
    SaveWalk,
    SaveSketch,
    Field(Field),
}

/// Who asked whether what lies at a path may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Nobody,
    /// The desktop's dialog.
    Desktop,
    /// This window.
    Here,
}

/// A path field of a form. Its panel names it, and knows by this name what came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name, among all panels.
    pub name: &'static str,
    /// Its place in a list of such fields.
    pub place: usize,
    /// What it takes.
    pub takes: Takes,
}

/// What a path field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Folder,
    Spec,
    /// Predictions or a network.
    Model,
    /// Weights or statistics.
    Arrays,
}

impl Field {
    /// The only field of this name.
    pub const fn new(name: &'static str, takes: Takes) -> Self {
        Self { name, place: 0, takes }
    }

    /// The same at a place in a list.
    #[must_use]
    pub const fn at(self, place: usize) -> Self {
        Self { place, ..self }
    }
}

/// A user waits so long without a word.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// An answer on its way from a thread.
#[derive(Debug)]
pub struct BackgroundTask<T> {
    answer: Option<Receiver<T>>,
    /// What it does and since when, where that is told.
    does: Option<(String, Instant)>,
}

impl<T> Default for BackgroundTask<T> {
    fn default() -> Self {
        Self { answer: None, does: None }
    }
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Sends a thread off.
    pub fn start(ctx: &egui::Context, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let repaint = Repaint(ctx.clone());
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            // Dropped from the last to the first, after a panic too: the window looks when the channel says how it ended.
            let (_repaint, sender) = (repaint, sender);
            // The window may be gone by now.
            let _ = sender.send(work());
        });
        Self { answer: thread.is_ok().then_some(receiver), does: None }
    }

    /// Says what it does from now on, for a user who waits for it.
    #[must_use]
    pub fn doing(self, does: impl Into<String>) -> Self {
        Self { does: Some((does.into(), Instant::now())), ..self }
    }

    /// What it does, where a user has waited for it too long to be told nothing.
    pub fn late(&self, now: Instant) -> Option<&str> {
        let (does, since) = self.does.as_ref()?;
        (self.waiting() && now.saturating_duration_since(*since) >= PATIENCE).then_some(does.as_str())
    }

    /// The answer, once. Of a thread that fell there is none, and none is waited for.
    pub fn poll(&mut self) -> Option<T> {
        let answer = self.answer.as_ref()?.try_recv();
        if !matches!(answer, Err(TryRecvError::Empty)) {
            self.answer = None;
        }
        answer.ok()
    }

    /// Returns whether an answer is still to come.
    pub fn waiting(&self) -> bool {
        self.answer.is_some()
    }
}

/// The answers of those that have ended; the others go on. One whose thread fell, or that got none, has failed.
pub fn poll_all<T: Send + 'static>(tasks: &mut Vec<BackgroundTask<Result<T, String>>>) -> Vec<Result<T, String>> {
    let mut ended = Vec::new();
    tasks.retain_mut(|task| {
        let answer = task.poll();
        let waits = answer.is_none() && task.waiting();
        if !waits {
            ended.push(answer.unwrap_or_else(|| Err(FELL.into())));
        }
        waits
    });
    ended
}

/// Paints the window anew when it is dropped.
struct Repaint(egui::Context);

impl Drop for Repaint {
    fn drop(&mut self) {
        self.0.request_repaint();
    }
}

/// Paths chosen in a dialog; empty when it was closed.
pub type Chosen = (Purpose, Vec<PathBuf>);

/// Waits on a thread for the answer of a dialog.
fn wait<F>(ctx: &egui::Context, purpose: Purpose, answer: F) -> BackgroundTask<Chosen>
where
    F: Future<Output = Option<FileHandle>> + Send + 'static,
{
    let one = |handle: Option<FileHandle>| handle.map(|handle| handle.path().to_owned()).into_iter().collect();
    BackgroundTask::start(ctx, "file dialog", move || (purpose, one(block_on(answer))))
}

/// Opens the desktop's dialog. macOS wants the request on this thread; a thread waits for the
/// answer.
pub fn browse(ctx: &egui::Context, purpose: Purpose) -> BackgroundTask<Chosen> {
    let dialog = AsyncFileDialog::new();
    match purpose {
        Purpose::Open => {
            let answer = dialog.set_title("Open images or an oracle").pick_files();
            BackgroundTask::start(ctx, "file dialog", move || {
                let handles = block_on(answer).unwrap_or_default();
                (purpose, handles.iter().map(|handle| handle.path().to_owned()).collect())
            })
        }
        Purpose::OpenFolder
        | Purpose::SaveFigures
        | Purpose::SaveReport
        | Purpose::Field(Field { takes: Takes::Folder, .. }) => {
            wait(ctx, purpose, dialog.set_title("Choose a folder").pick_folder())
        }
        Purpose::Field(field) => {
            let (title, filter, kinds): (_, _, &[&str]) = match field.takes {
                Takes::Model => (
                    "Choose predictions or a network",
                    "Models",
                    &["npz", "npy", "csv", "parquet", "onnx", "safetensors", "pth", "pt", "tar"],
                ),
                Takes::Arrays => ("Choose weights or statistics", "Arrays", &["pth", "pt", "safetensors", "npz"]),
                Takes::Spec | Takes::Folder => ("Choose a spec", "TOML", &["toml"]),
            };
            wait(ctx, purpose, dialog.set_title(title).add_filter(filter, kinds).pick_file())
        }
        Purpose::SaveCurve | Purpose::SavePoints(_) => {
            let (title, name) = match purpose {
                Purpose::SavePoints(name) => ("Save the points of the plot", name),
                _ => ("Save the curve", "bayes-error.csv"),
            };
            let dialog = dialog.set_title(title).set_file_name(name);
            wait(ctx, purpose, dialog.add_filter("Comma-separated values", &["csv"]).save_file())
        }
        Purpose::SaveSketch => {
            let dialog = dialog.set_title("Save the drawing").set_file_name("drawing.png");
            wait(ctx, purpose, dialog.add_filter("Pictures", &["png"]).save_file())
        }
        Purpose::SaveFigure => {
            let dialog = dialog.set_title("Save the figure").set_file_name("figure.svg");
            let kinds = ["svg", "pdf", "png", "csv"];
            wait(ctx, purpose, dialog.add_filter("Drawings, pages, pictures or points", &kinds).save_file())
        }
        Purpose::SaveWalk | Purpose::Save { .. } => {
            let walk = purpose == Purpose::SaveWalk;
            let (what, name) = if walk { ("the walk", "walk.npz") } else { ("samples", "samples.npz") };
            let dialog = dialog.set_title(format!("Save {what}")).set_file_name(name);
            wait(ctx, purpose, dialog.add_filter("Arrays or pictures", &["npz", "png"]).save_file())
        }
    }
}

/// Lists every way to compute on this machine.
pub fn list_devices(ctx: &egui::Context) -> BackgroundTask<Vec<Candidate>> {
    BackgroundTask::start(ctx, "list devices", device::candidates)
}

/// The sentence of a saved file and its line of the ledger, or what went wrong.
pub type Saved = Result<(String, Made), String>;

/// Has `write` put something at a path.
pub fn save(
    ctx: &egui::Context,
    path: PathBuf,
    made: Made,
    write: impl FnOnce(&Path) -> crate::error::Result<()> + Send + 'static,
) -> BackgroundTask<Saved> {
    let does = format!("Writing {}", path.display());
    let work = move || {
        let written = write(&path);
        written.map(|()| (format!("Saved to {}", path.display()), made)).map_err(|error| error.to_string())
    };
    BackgroundTask::start(ctx, "save", work).doing(does)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits for the answers of all, with nothing but the channels to wait for.
    fn all(mut tasks: Vec<BackgroundTask<Result<u32, String>>>) -> Vec<Result<u32, String>> {
        let mut ended = Vec::new();
        while !tasks.is_empty() {
            ended.extend(poll_all(&mut tasks));
            std::thread::yield_now();
        }
        ended
    }

    #[test]
    fn every_answer_is_heard_and_a_thread_that_falls_is_an_error() {
        let ctx = egui::Context::default();
        let start = |work: fn() -> Result<u32, String>| BackgroundTask::start(&ctx, "test", work);
        let mut ended =
            all(vec![start(|| Ok(1)), start(|| Err("the disk is full".into())), start(|| panic!("it fell"))]);
        ended.sort();
        assert_eq!(ended, [Ok(1), Err(FELL.to_owned()), Err("the disk is full".into())]);
        let mut fallen: BackgroundTask<u32> = BackgroundTask::start(&ctx, "test", || panic!("it fell"));
        while fallen.waiting() {
            assert_eq!(fallen.poll(), None);
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_waits_long_is_told_for_what() {
        let (let_go, gate) = channel::<()>();
        let ctx = egui::Context::default();
        let work = move || gate.recv().is_ok();
        let mut task = BackgroundTask::start(&ctx, "test", work).doing("Looking at /mnt/far");
        let soon = Instant::now();
        let late = soon + PATIENCE;
        assert_eq!([soon, late].map(|now| task.late(now)), [None, Some("Looking at /mnt/far")]);
        let_go.send(()).unwrap();
        while task.waiting() {
            task.poll();
            std::thread::yield_now();
        }
        assert_eq!(task.late(late), None, "it has answered");
    }
}
