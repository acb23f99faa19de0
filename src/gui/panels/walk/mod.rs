//! Walks to the boundary between two classes.

mod form;
mod plot;
mod point;
mod strip;

use eframe::egui::{self, Ui};

use crate::data::ImageShape;
use crate::device::ImageSource;
use crate::gui::command::{Command, knobs, quote};
use crate::gui::context::{Cx, Panel};
use crate::gui::exactness;
use crate::gui::failures;
use crate::gui::format;
use crate::gui::inspected::called;
use crate::gui::moved;
use crate::gui::paint::Sheet;
use crate::gui::plot::Board;
use crate::gui::prefs::Prefs;
use crate::gui::session::Session;
use crate::gui::session::tasks::TaskView;
use crate::gui::theme::Badge;
use crate::gui::widgets::{complain, empty_state, heading, no_world};
use crate::oracle::walk::Way;
use crate::worker::protocol::{JobId, Outcome, Subject};
use crate::worker::walk::{Arrival, Destination, Mark, WalkHistory, WalkToBoundary};
use form::Form;

type View<'a> = TaskView<'a, WalkToBoundary>;

pub const ID: &str = "walk";

/// The form, what is looked at, and the textures of the points.
#[derive(Default)]
pub struct WalkPanel {
    form: Form,
    /// The place the user chose; `None` for the 50/50 point, or the newest.
    chosen: Option<Mark>,
    pictures: Pictures,
    board: Board,
    /// What the start of the newest walk was called when it began: other images may be open since.
    start: Option<(JobId, String)>,
}

impl Panel for WalkPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        if cx.session.oracle.is_none() {
            return no_world(ui, cx.session);
        }
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            self.form.show(ui, cx);
            ui.separator();
            let session = cx.session;
            let walk = session.tasks.get::<WalkToBoundary>();
            if let Some(view) = walk.filter(|view| self.start.as_ref().is_none_or(|(job, _)| *job != view.job)) {
                self.start = Some((view.job, called(session, &view.task.from)));
            }
            match session.tasks.get::<WalkToBoundary>() {
                Some(view) if !view.live.points.is_empty() => self.results(ui, cx, &view),
                Some(view) => waiting(ui, &view),
                None => empty_state(
                    ui,
                    "No walk yet",
                    "Select an image in the gallery, choose a class or another sample above,\nand press 'Walk to the \
                     boundary'.",
                ),
            }
        });
    }
}

impl WalkPanel {
    fn results(&mut self, ui: &mut Ui, cx: &mut Cx, view: &View<'_>) {
        let walk = view.live;
        let arrived = self.pictures.middle.is_some();
        if self.pictures.follow(ui, view.job, walk) {
            self.chosen = None;
        }
        let arrives = !arrived && self.pictures.middle.is_some();
        let newest = Mark::Point(walk.points.len() - 1);
        let default = if walk.arrival.is_some() { Mark::Middle } else { newest };
        let mark = self.chosen.filter(|mark| walk.at(*mark).is_some()).unwrap_or(default);
        let from = self.start.as_ref().map_or("", |(_, name)| name);
        let told = ui.add(egui::Label::new(story(cx.session, view, from)).wrap());
        if view.trouble().is_some() {
            failures::seen(&told, view.job);
        }
        ways_out(ui, cx, view);
        let settings = &view.task.settings;
        if let Some(moved) = moved::since(settings, &cx.prefs.settings()) {
            complain(ui, &format!("Walked {moved} Walk again."));
        }
        let why = exactness::of_walk(cx.session, settings.label_noise.as_ref());
        heading(ui, "p(y|x) along the path", Some((Badge::Exact, &why)));
        let from_plot = plot::show(ui, cx, (walk, mark, settings, from), &mut self.board);
        let from_strip = strip::show(ui, cx.session, walk, &self.pictures, (mark, arrives, view.under_way()));
        if let Some(chosen) = from_strip.or(from_plot) {
            self.chosen = Some(chosen);
        }
        if point::show(ui, cx, walk, &self.pictures, mark) {
            self.chosen = None;
        }
        ui.add_space(12.0);
    }
}

fn waiting(ui: &mut Ui, view: &View<'_>) {
    match view.outcome {
        Some(Outcome::Failed(why)) => {
            empty_state(ui, "The walk failed", why);
            failures::tell(ui.ctx(), view.job);
        }
        Some(Outcome::Cancelled) => empty_state(ui, "The walk was stopped", "Press 'Walk to the boundary' again."),
        _ => empty_state(ui, "Walking…", "The first points appear here."),
    }
}

/// Save, send, copy.
fn ways_out(ui: &mut Ui, cx: &mut Cx, view: &View<'_>) {
    let (text, kept) = (command(cx.session, cx.prefs, view.task), view.report.is_some());
    ui.horizontal_wrapped(|ui| {
        let mut button = |ui: &mut Ui, ready: bool, text: &str, about: &str, command: Command| {
            let button = ui.add_enabled(ready, egui::Button::new(text)).on_hover_text(about);
            if button.on_disabled_hover_text("Once it is over.").clicked() {
                cx.commands.push(command);
            }
        };
        let about =
            "World-space images and posteriors as .npz, or a contact sheet as .png; the 50/50 point comes last.";
        button(ui, kept, "Save walk…", about, Command::SaveWalk);
        let about = "The images of the path take the place of those from outside: click one there to inspect it.";
        button(ui, kept, "Send to gallery", about, Command::SendWalk);
        if let Some(text) = text {
            button(ui, true, "Copy walk command", "The same on the command line", Command::CopyText(text));
        }
    });
}

/// Returns the walk as a command line, if it begins at a sample and the knobs have not moved.
fn command(session: &Session, prefs: &Prefs, request: &WalkToBoundary) -> Option<String> {
    let Subject::Sample { spec, index } = &request.from else { return None };
    if request.settings != prefs.settings() {
        return None;
    }
    let to = match request.to {
        Destination::Sample(index) => format!("sample:{index}"),
        Destination::External(_) => return None,
        Destination::Class(class) => quote(&format!("class:{}", session.class_name(class))),
    };
    let (oracle, steps, seed) = (quote(&session.oracle_name), request.steps, spec.seed.0);
    let ends = format!("--from sample:{index} --to {to} --steps {steps} --seed {seed}");
    Some(format!("bayescope walk {oracle} {ends}{} --out walk.npz", knobs(prefs)))
}

/// Where the walk goes, how, and what it found, in words.
fn story(session: &Session, view: &View<'_>, from: &str) -> String {
    let walk = view.live;
    let to = match view.task.to {
        Destination::Sample(index) => format!("sample {index}"),
        Destination::External(image) => format!("image {} from outside", image.index),
        Destination::Class(class) => format!("class {}", session.class_name(class)),
    };
    let mut text = format!("From {from} towards {to}");
    match (&walk.arrival, view.outcome) {
        (Some(arrival), _) => {
            text += &format!(", {}.", way(arrival.way));
            text += &found(session, arrival);
        }
        (None, Some(Outcome::Cancelled)) => text += ": stopped before its end; the points found so far are shown.",
        (None, Some(Outcome::Failed(why))) => text += &format!(": failed. {why}"),
        (None, _) if walk.points.len() == 1 => text += ": 1 point so far.",
        (None, _) => text += &format!(": {} points so far.", walk.points.len()),
    }
    text
}

fn way(way: Way) -> &'static str {
    match way {
        Way::Latent => "along a straight line in the latent space all classes share",
        Way::ClassLatent => "along a straight line in the latent space of the class both were drawn from",
        Way::Pixels => "along a straight line in pixels: what lies between need not look like an image of this world",
        Way::Gradient => "up the gradient of log p(target|x) with respect to the pixels",
    }
}

/// What happened to the boundary, without gloss.
fn found(session: &Session, arrival: &Arrival) -> String {
    let [a, b] = [arrival.start, arrival.target].map(|class| session.class_name(class));
    let mut text = match &arrival.why_not {
        None => format!(" {a} and {b} are equally probable at {}", format::sig4(arrival.middle.position)),
        Some(why) => format!(" 50/50 was not reached: {why}"),
    };
    if arrival.why_not.is_none() {
        text += &format!(" (their probabilities differ by {} of their sum)", format::sig4(arrival.imbalance));
    }
    text += ".";
    if let Some((class, p)) = arrival.third {
        let p = format::sig4(p);
        text += &format!(" A third class is larger there: {} has p = {p}.", session.class_name(class));
    }
    if let Some(rounding) = arrival.rounding {
        text += &format!(" Rounding x to 32 bits moved no p(y|x) by more than {}.", format::sig4(rounding));
    }
    text
}

/// The textures of one walk.
#[derive(Default)]
pub struct Pictures {
    job: Option<JobId>,
    points: Vec<Sheet>,
    middle: Option<Sheet>,
}

impl Pictures {
    /// Uploads new pictures. Returns whether this is another walk than before.
    fn follow(&mut self, ui: &Ui, job: JobId, walk: &WalkHistory) -> bool {
        let other = self.job != Some(job);
        if other {
            *self = Self { job: Some(job), ..Self::default() };
        }
        let Some(shape) = walk.shape else { return other };
        let load = |shape: ImageShape, source: &ImageSource| Sheet::of(ui.ctx(), "walk", shape, source);
        let known = self.points.len().min(walk.points.len());
        self.points.extend(walk.points[known..].iter().map(|dot| load(shape, &dot.tile.pixels)));
        if let (None, Some(arrival)) = (&self.middle, &walk.arrival) {
            self.middle = Some(load(shape, &arrival.middle.tile.pixels));
        }
        other
    }

    /// The picture at a place.
    fn at(&self, mark: Mark) -> Option<&Sheet> {
        match mark {
            Mark::Middle => self.middle.as_ref(),
            Mark::Point(i) => self.points.get(i),
        }
    }
}

/// What a place is called.
fn title(walk: &WalkHistory, mark: Mark) -> String {
    match mark {
        Mark::Middle if walk.arrival.as_ref().is_some_and(|arrival| arrival.why_not.is_none()) => "50/50 point".into(),
        Mark::Middle => "Closest to 50/50".into(),
        Mark::Point(i) => format!("Point {i}"),
    }
}

/// The unit of positions.
fn unit(walk: &WalkHistory) -> &'static str {
    match walk.arrival.as_ref().map(|arrival| arrival.way) {
        None => "",
        Some(Way::Gradient) => "rms of x",
        Some(_) => "share of the way",
    }
}

/// A position and its unit.
fn position(walk: &WalkHistory, at: f64) -> String {
    format!("{} {}", format::sig4(at), unit(walk)).trim_end().into()
}
