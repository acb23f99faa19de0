//! The things that would hold up a frame and are not the engine's: the desktop's file dialogs, which wait for a person,
//! listing the graphics adapters, which waits for drivers, and writing a small file, which waits for a disk. Each runs on a thread that lives as long as the
//! answer takes; the only threads and channels of the window.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use eframe::egui;
use rfd::{AsyncFileDialog, FileHandle};

use crate::data::write_atomically;
use crate::device::{self, Candidate};
use crate::run::Format;

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Files to open.
    OpenFiles,
    /// A folder to open.
    OpenFolder,
    /// A file to save samples to.
    Save,
    /// A file to save the curve E(τ) to.
    SaveCurve,
    /// A file to save the points of a plot to, and what it would be called.
    SavePoints(&'static str),
    /// Where to save a figure, as what.
    SaveFigure(Format),
    /// Where to save all figures of a run.
    FiguresFolder,
    /// A file to save a walk to.
    SaveWalk,
    /// A field of a form.
    Field(Field),
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
    /// A folder.
    Folder,
    /// A spec.
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

/// An answer on its way from a thread.
pub struct Errand<T>(Option<Receiver<T>>);

impl<T> Default for Errand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> Errand<T> {
    /// Sends a thread off.
    pub fn start(ctx: &egui::Context, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let ctx = ctx.clone();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            // The window may be gone by now: nobody to tell.
            let _ = sender.send(work());
            ctx.request_repaint();
        });
        Self(thread.is_ok().then_some(receiver))
    }

    /// The answer, once.
    pub fn poll(&mut self) -> Option<T> {
        let answer = self.0.as_ref()?.try_recv().ok()?;
        self.0 = None;
        Some(answer)
    }

    /// Whether an answer is still to come.
    pub fn waiting(&self) -> bool {
        self.0.is_some()
    }
}

/// Paths chosen in a dialog; empty when it was closed.
pub type Chosen = (Purpose, Vec<PathBuf>);

/// Asks for one file.
fn pick_file(ctx: &egui::Context, dialog: AsyncFileDialog, purpose: Purpose) -> Errand<Chosen> {
    let answer = dialog.pick_file();
    Errand::start(ctx, "file dialog", move || (purpose, one(block_on(answer))))
}

/// Asks for a folder.
fn pick_folder(ctx: &egui::Context, dialog: AsyncFileDialog, purpose: Purpose) -> Errand<Chosen> {
    let answer = dialog.set_title("Choose a folder").pick_folder();
    Errand::start(ctx, "file dialog", move || (purpose, one(block_on(answer))))
}

/// Asks where a file is to go.
fn save_file(ctx: &egui::Context, dialog: AsyncFileDialog, purpose: Purpose) -> Errand<Chosen> {
    let answer = dialog.save_file();
    Errand::start(ctx, "file dialog", move || (purpose, one(block_on(answer))))
}

/// The path of an answer, where there is one.
fn one(handle: Option<FileHandle>) -> Vec<PathBuf> {
    handle.map(|handle| handle.path().to_owned()).into_iter().collect()
}

/// Opens the desktop's dialog. The request is made here, where macOS wants it; only the waiting is done elsewhere.
pub fn browse(ctx: &egui::Context, purpose: Purpose) -> Errand<Chosen> {
    let dialog = AsyncFileDialog::new();
    match purpose {
        Purpose::OpenFiles => {
            let answer = dialog.set_title("Open images or an oracle").pick_files();
            Errand::start(ctx, "file dialog", move || {
                let handles = block_on(answer).unwrap_or_default();
                (purpose, handles.iter().map(|handle| handle.path().to_owned()).collect())
            })
        }
        Purpose::OpenFolder | Purpose::FiguresFolder => pick_folder(ctx, dialog, purpose),
        Purpose::Field(field) => match field.takes {
            Takes::Folder => pick_folder(ctx, dialog, purpose),
            Takes::Model => {
                let kinds = ["npz", "npy", "csv", "parquet", "onnx", "safetensors", "pth", "pt", "tar"];
                let dialog = dialog.set_title("Choose predictions or a network").add_filter("Models", &kinds);
                pick_file(ctx, dialog, purpose)
            }
            Takes::Arrays => {
                let kinds = ["pth", "pt", "safetensors", "npz"];
                let dialog = dialog.set_title("Choose weights or statistics").add_filter("Arrays", &kinds);
                pick_file(ctx, dialog, purpose)
            }
            Takes::Spec => pick_file(ctx, dialog.set_title("Choose a spec").add_filter("TOML", &["toml"]), purpose),
        },
        Purpose::SaveCurve | Purpose::SavePoints(_) => {
            let (title, name) = match purpose {
                Purpose::SavePoints(name) => ("Save the points of the plot", name),
                _ => ("Save the curve", "bayes-error.csv"),
            };
            let dialog = dialog.set_title(title).set_file_name(name);
            save_file(ctx, dialog.add_filter("Comma-separated values", &["csv"]), purpose)
        }
        Purpose::SaveFigure(format) => {
            let extension = format.extension();
            let dialog = dialog.set_title("Save the figure").set_file_name(format!("figure.{extension}"));
            save_file(ctx, dialog.add_filter(extension.to_uppercase(), &[extension]), purpose)
        }
        Purpose::SaveWalk | Purpose::Save => {
            let samples = purpose == Purpose::Save;
            let (what, name) = if samples { ("samples", "samples.npz") } else { ("the walk", "walk.npz") };
            let dialog = dialog.set_title(format!("Save {what}")).set_file_name(name);
            save_file(ctx, dialog.add_filter("Arrays or pictures", &["npz", "png"]), purpose)
        }
    }
}

/// Lists every way to compute on this machine.
pub fn list_devices(ctx: &egui::Context) -> Errand<Vec<Candidate>> {
    Errand::start(ctx, "list devices", device::candidates)
}

/// Writes a small file; the answer is a sentence, or what went wrong.
pub fn save_text(ctx: &egui::Context, path: PathBuf, text: String) -> Errand<Result<String, String>> {
    save_with(ctx, path, move |path| write_atomically(path, |file| file.write_all(text.as_bytes())))
}

/// Makes and writes what `write` puts at a path; the answer is a sentence, or what went wrong.
pub fn save_with(
    ctx: &egui::Context,
    path: PathBuf,
    write: impl FnOnce(&Path) -> crate::error::Result<()> + Send + 'static,
) -> Errand<Result<String, String>> {
    Errand::start(ctx, "save", move || {
        let written = write(&path);
        written.map(|()| format!("Saved to {}", path.display())).map_err(|error| error.to_string())
    })
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
