//! The spec of a form, read on a thread of its own: a network drive may be gone, and the window would stand still.

use std::path::Path;

use eframe::egui::{Context, Ui};

use crate::error::{Error, Result};
use crate::gui::background::BackgroundTask;
use crate::gui::kept_path;
use crate::gui::widgets::hint;

/// A spec on its way from where somebody typed that it lies.
pub struct SpecReader<T>(Option<(String, BackgroundTask<Result<T>>)>);

impl<T> Default for SpecReader<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Send + 'static> SpecReader<T> {
    /// Reads what lies at a typed path, in place of what is on its way.
    pub fn start(&mut self, ctx: &Context, typed: &str, read: impl FnOnce(&Path) -> Result<T> + Send + 'static) {
        let typed = typed.trim().to_owned();
        let path = kept_path::typed(&typed);
        self.0 = Some((typed, BackgroundTask::start(ctx, "read a spec", move || read(&path))));
    }

    /// Whether one is on its way.
    pub fn waiting(&self) -> bool {
        self.0.is_some()
    }

    /// The typed path and what was read there, once.
    pub fn poll(&mut self) -> Option<(String, Result<T>)> {
        let (_, task) = self.0.as_mut()?;
        let read = task.poll();
        if read.is_none() && task.waiting() {
            return None;
        }
        let (typed, _) = self.0.take()?;
        let fell = || {
            Err(Error::input(format!("The program failed inside while it read {typed}: try again, and see the log.")))
        };
        let read = read.unwrap_or_else(fell);
        Some((typed, read))
    }

    /// [`Self::poll`] that says what is on its way.
    pub fn show(&mut self, ui: &mut Ui) -> Option<(String, Result<T>)> {
        let read = self.poll();
        if let Some((typed, _)) = &self.0 {
            hint(ui, format!("Reading {typed}…"));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Waits for what is on its way.
    fn read(reader: &mut SpecReader<u32>) -> (String, Result<u32>) {
        loop {
            if let Some(read) = reader.poll() {
                return read;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn nobody_waits_for_a_disk_and_a_thread_that_falls_is_told() {
        let (ctx, mut reader) = (Context::default(), SpecReader::default());
        let disk = Arc::new(Mutex::new(7));
        let (slow, hangs) = (disk.clone(), disk.lock().unwrap());
        reader.start(&ctx, " a/spec.toml ", move |_| Ok(*slow.lock().unwrap()));
        assert!(reader.poll().is_none() && reader.waiting());
        drop(hangs);
        let (typed, found) = read(&mut reader);
        assert_eq!((&*typed, found.unwrap(), reader.waiting()), ("a/spec.toml", 7, false));
        reader.start(&ctx, "b", |path| panic!("it fell on {}", path.display()));
        let (typed, found) = read(&mut reader);
        assert_eq!((&*typed, found.unwrap_err().to_string().contains("while it read b")), ("b", true));
    }
}
