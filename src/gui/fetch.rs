//! The window *Fetch a corpus*: corpora by name, their terms, and the download.

use std::path::{Path, PathBuf};

use eframe::egui::{self, Button, Label, ProgressBar, RichText, ScrollArea, Ui, Vec2, vec2};

use super::background::{Field, Takes};
use super::command::{Command, quote};
use super::context::Cx;
use super::failures;
use super::kept_path;
use super::panels::fields;
use super::session::exchange::FetchView;
use super::theme::Theme;
use super::widgets::{dialog, fact, facts, hint, said};
use crate::amounts::megabytes;
use crate::data::fetch::{Corpus, catalogue, is_fetched};
use crate::units::counted;
use crate::worker::fetch::FetchRequest;
use crate::worker::protocol::Outcome;

/// Where it goes.
const FOLDER: Field = Field::new("corpora folder", Takes::Folder);

/// Widths of the list and of what stands beside it, and their height, points.
const LIST: f32 = 210.0;
const ABOUT: f32 = 480.0;
const HEIGHT: f32 = 430.0;
/// What the window itself takes beside and above them, about.
const AROUND: Vec2 = vec2(64.0, 72.0);

/// The window, closed at first.
pub struct FetchDialog {
    open: bool,
    chosen: usize,
    out: String,
    /// Whether a folder holds the corpus, as it was when it was looked at last.
    looked: Option<(PathBuf, bool)>,
    /// Whether something was on its way in the last frame.
    was_running: bool,
}

impl Default for FetchDialog {
    fn default() -> Self {
        let data = directories::ProjectDirs::from("", "", "bayescope").map(|dirs| dirs.data_dir().to_owned());
        let out = data.unwrap_or_default().join("corpora").display().to_string();
        Self { open: false, chosen: 0, out, looked: None, was_running: false }
    }
}

impl FetchDialog {
    /// Opens it, on a corpus where one is named.
    pub fn show_corpus(&mut self, name: Option<&str>) {
        self.open = true;
        self.looked = None;
        let named = catalogue().iter().position(|corpus| name.is_some_and(|name| corpus.answers_to(name)));
        self.chosen = named.unwrap_or(self.chosen);
    }

    /// Closes it; a download goes on.
    pub fn close(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    pub fn show(&mut self, ctx: &egui::Context, cx: &mut Cx) {
        let mut open = self.open;
        let room = ctx.content_rect().size() - vec2(LIST, 0.0) - AROUND;
        let (about, height) = (ABOUT.min(room.x), HEIGHT.min(room.y));
        dialog(ctx, "Fetch a corpus", &mut open).resizable(false).show(ctx, |ui| {
            ui.horizontal_top(|ui| {
                let column = egui::Layout::top_down(egui::Align::Min);
                ui.allocate_ui_with_layout(vec2(LIST, height), column, |ui| self.list(ui));
                ui.separator();
                ui.allocate_ui_with_layout(vec2(about, height), column, |ui| {
                    let scroll = ScrollArea::vertical().id_salt("corpus").auto_shrink([false, false]);
                    scroll.show(ui, |ui| self.corpus(ui, cx));
                });
            });
        });
        self.open &= open;
    }

    fn list(&mut self, ui: &mut Ui) {
        ScrollArea::vertical().id_salt("corpora").auto_shrink([false, false]).show(ui, |ui| {
            ui.set_width(LIST - 12.0);
            for (i, corpus) in catalogue().iter().enumerate() {
                let size = RichText::new(megabytes(corpus.bytes())).color(Theme::of(ui).weak());
                let row = Button::selectable(self.chosen == i, corpus.name).right_text(size);
                if ui.add(row.min_size(vec2(ui.available_width(), 0.0))).clicked() {
                    (self.chosen, self.looked) = (i, None);
                }
            }
        });
    }

    fn corpus(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let Some(corpus) = catalogue().get(self.chosen) else { return };
        ui.heading(corpus.name);
        ui.add(Label::new(corpus.about).wrap());
        ui.add_space(4.0);
        facts(ui, "corpus to fetch", |ui| {
            let files = counted(corpus.files.len(), "file");
            let about = "Checked against SHA-256 sums that come with the program";
            fact(ui, "Download", format!("{} in {files}", megabytes(corpus.bytes())), about);
            fact(ui, "From", hosts(corpus), "Asked one after another, until one gives the file");
        });
        ui.add_space(4.0);
        ui.label(RichText::new("Terms").strong());
        ui.add(Label::new(corpus.terms).wrap().selectable(true));
        ui.add_space(8.0);
        fields::path_row(ui, cx, "Folder for corpora", &mut self.out, FOLDER);
        let out = kept_path::typed(&self.out);
        let folder = out.join(corpus.name);
        hint(ui, format!("It becomes {}. Nothing is downloaded before you press Fetch.", folder.display()));
        let view = cx.session.exchange.fetch.as_ref();
        let running = view.filter(|view| view.outcome.is_none());
        let there = self.there(&out, corpus, running.is_some());
        self.buttons(ui, cx, corpus, &out, there);
        if there && running.is_none_or(|view| view.request.corpus != corpus) {
            present(ui, cx, &folder);
        }
        if let Some(view) = view {
            course(ui, cx, view, corpus);
        }
    }

    /// Returns whether the folder holds the corpus; read once, and again after a download.
    fn there(&mut self, out: &Path, corpus: &Corpus, running: bool) -> bool {
        if std::mem::replace(&mut self.was_running, running) && !running {
            self.looked = None;
        }
        let folder = out.join(corpus.name);
        match &self.looked {
            Some((looked, there)) if *looked == folder => *there,
            _ => {
                let there = is_fetched(&folder);
                self.looked = Some((folder, there));
                there
            }
        }
    }

    fn buttons(&mut self, ui: &mut Ui, cx: &mut Cx, corpus: &'static Corpus, out: &Path, there: bool) {
        let running = cx.session.exchange.fetch.as_ref().filter(|view| view.outcome.is_none());
        let why = match (running, self.out.trim().is_empty()) {
            (Some(view), _) => format!("{} is on its way: cancel it first, or wait.", view.request.corpus.name),
            (_, true) => "Give the folder for corpora.".into(),
            _ => String::new(),
        };
        ui.horizontal_wrapped(|ui| {
            let verb = if there { "Check again" } else { "Fetch" };
            let about = match there {
                true => "Its files are read and their sums compared; what is missing or damaged is fetched",
                false => "Cancelled or cut off, it goes on where it stopped when it is fetched again",
            };
            let fetch = ui.add_enabled(why.is_empty(), Button::new(verb)).on_hover_text(about);
            if fetch.on_disabled_hover_text(&why).clicked() {
                cx.commands.push(Command::Fetch(FetchRequest { corpus, out: out.to_owned() }));
            }
            if ui.button("Copy fetch as command").on_hover_text("The same on the command line").clicked() {
                let out = quote(&out.display().to_string());
                cx.commands.push(Command::CopyText(format!("bayescope fetch {} --out {out}", corpus.name)));
            }
            if ui.button("Close").clicked() {
                self.open = false;
            }
        });
        if !why.is_empty() && running.is_none_or(|view| view.request.corpus != corpus) {
            ui.colored_label(Theme::of(ui).warning(), why);
        }
    }
}

/// A corpus that is there, and what can be done with it.
fn present(ui: &mut Ui, cx: &mut Cx, folder: &Path) {
    let place = folder.display().to_string();
    said(ui, format!("It is in {place}"), Theme::of(ui).good());
    ui.horizontal_wrapped(|ui| {
        let about = "Puts the folder into the form of the panel Oracle training";
        if ui.button("Use in training").on_hover_text(about).clicked() {
            cx.commands.push(Command::TrainOn(folder.to_owned()));
        }
        if ui.button("Copy its path").clicked() {
            cx.commands.push(Command::CopyText(place));
        }
    });
}

/// How the last one goes, or what became of it.
fn course(ui: &mut Ui, cx: &mut Cx, view: &FetchView, shown: &Corpus) {
    if let Some(job) = cx.session.jobs.get(view.job).filter(|_| view.outcome.is_none()) {
        ui.add_space(4.0);
        let name = view.request.corpus.name;
        let share = job.fraction().map_or("waiting".into(), |share| format!("{:.0} %", 100.0 * share));
        let bar = ProgressBar::new(job.fraction().unwrap_or(0.0)).text(format!("{name}: {share}"));
        ui.add(bar);
        hint(ui, job.note.clone());
        if ui.button("Cancel").accessible_name(format!("Cancel fetching {name}")).clicked() {
            cx.commands.push(Command::Cancel(view.job));
        }
    }
    if view.request.corpus != shown {
        return;
    }
    match &view.outcome {
        Some(Outcome::Failed(why)) => failures::show(ui, view.job, why),
        Some(Outcome::Cancelled) => {
            hint(ui, "Cancelled. What came is kept: fetched again, it goes on from there.");
        }
        Some(Outcome::Done(_)) => {
            let archives = view.fetched.iter().flat_map(|fetched| &fetched.archives);
            for archive in archives {
                let note = format!("{} is kept for other parts of it and can be deleted.", archive.display());
                hint(ui, note);
            }
        }
        None => {
            for (mirror, cause) in &view.refused {
                hint(ui, format!("{mirror}: {cause}"));
            }
        }
    }
}

/// Names of the servers.
fn hosts(corpus: &Corpus) -> String {
    let host = |address: &&str| {
        let bare = address.split_once("://").map_or(*address, |(_, rest)| rest);
        bare.split('/').next().unwrap_or(bare).to_owned()
    };
    let mut hosts: Vec<String> = corpus.mirrors.iter().map(host).collect();
    hosts.dedup();
    hosts.join(", ")
}
