//! `bayescope fetch`.

use std::ops::ControlFlow;

use super::args::FetchArgs;
use super::output::{Output, print_text};
use super::progress::Bar;
use crate::amounts::megabytes;
use crate::data::fetch::{Corpus, FetchEvent, Fetched, catalogue, fetch};
use crate::error::Result;
use crate::events::{Events, Progress};
use crate::units::counted;

impl Events<FetchEvent> for Bar {
    fn emit(&mut self, event: FetchEvent) -> ControlFlow<()> {
        let show = |done: u64, total: u64, note: String| {
            self.set(Progress { done: done as usize, total: total as usize }, note);
        };
        match event {
            FetchEvent::Asking { file, mirror, from: 0 } => self.line(&format!("{file}: asking {mirror}")),
            FetchEvent::Asking { file, mirror, from } => {
                self.line(&format!("{file}: asking {mirror} for what is missing after {from} bytes"));
            }
            FetchEvent::Received { file, done, total, .. } => show(done, total, format!("{file}, bytes")),
            FetchEvent::Verifying { file, done, total } => show(done, total, format!("checking {file}, bytes")),
            FetchEvent::MirrorFailed { file, mirror, cause } => self.line(&format!("{file}: {mirror}: {cause}")),
            FetchEvent::Kept { file } => self.line(&format!("{file} is there already")),
            FetchEvent::SetAside { file, cause } => self.line(&format!("{file} {cause}")),
            FetchEvent::Unpacking { file, done, total } => show(done, total, format!("writing {file}")),
        }
        ControlFlow::Continue(())
    }
}

/// Downloads a dataset, or lists those there are.
pub fn run(args: &FetchArgs) -> Result<()> {
    let Some(name) = &args.name else { return list(args.output) };
    let fetched = fetch(name, &args.out, &mut Bar::new(name))?;
    args.output.print(&fetched, tell)
}

fn tell(fetched: &Fetched) -> Result<()> {
    let mut text = format!(
        "{}: {} in {}, {} of it downloaded now\n{}\n",
        fetched.folder.display(),
        megabytes(fetched.bytes),
        counted(fetched.files.len(), "file"),
        megabytes(fetched.downloaded),
        fetched.terms
    );
    for archive in &fetched.archives {
        text += &format!("{} is kept for other parts of it and can be deleted\n", archive.display());
    }
    print_text(&text)
}

fn list(output: Output) -> Result<()> {
    let entry = |corpus: &Corpus| serde_json::json!({ "name": corpus.name, "bytes": corpus.bytes(), "about": corpus.about, "terms": corpus.terms });
    output.print(&catalogue().iter().map(entry).collect::<Vec<_>>(), |_| {
        let line =
            |corpus: &Corpus| format!("{:<18} {:>9}  {}\n", corpus.name, megabytes(corpus.bytes()), corpus.about);
        print_text(&catalogue().iter().map(line).collect::<String>())
    })
}
