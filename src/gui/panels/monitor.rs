//! The panel *Monitor*: the courses of all runs of this window in one plot, grouped and filtered by their specs.

mod law;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use eframe::egui::{self, ComboBox, RichText, Slider, TextEdit, Ui};

use crate::figure::Figure;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::plot::{About, Board};
use crate::gui::session::Session;
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{empty_state, heading_with, hint};
use crate::run::monitor::{
    Alarm, Choice, Drawn, Over, Quantity, Steps, Track, alarms, differing, picture, points_each,
};

/// The panel's name in saved layouts.
pub const ID: &str = "monitor";
/// Room for a name in a field, points.
const FIELD: f32 = 190.0;

/// Alarms that are told; of more, how many.
const WARNINGS: usize = 6;
/// Seconds between two pictures of runs that go on.
const EVERY: f64 = 0.3;

/// What is drawn, and the runs that are not.
#[derive(Default)]
pub struct MonitorPanel {
    choice: Choice,
    left_out: Vec<PathBuf>,
    board: Board,
    law: law::LawPlot,
    kept: Option<Kept>,
}

/// Lines and their figure, and what they were made of.
struct Kept {
    runs: Vec<KeptRun>,
    choice: Choice,
    /// Points that each run may have.
    most: usize,
    fields: Vec<String>,
    /// What is odd about the runs.
    warnings: Vec<String>,
    figure: Arc<Figure>,
    /// When it was made, seconds.
    made: f64,
}

/// A run, and its line under the choice.
struct KeptRun {
    folder: PathBuf,
    revision: u64,
    /// None where nothing is known of its course.
    track: Option<Track>,
    alarms: Vec<String>,
    drawn: Drawn,
}

impl KeptRun {
    fn new(run: &RunView, choice: &Choice, most: usize) -> Self {
        let track = track(run);
        let alarms = track.as_ref().map(alarms).unwrap_or_default().iter().map(Alarm::sentence).collect();
        let (folder, revision, drawn) = (run.folder.clone(), run.revision, Drawn::default());
        Self { folder, revision, track, alarms, drawn }.drawn_again(choice, most)
    }

    fn drawn_again(self, choice: &Choice, most: usize) -> Self {
        let drawn = self.track.as_ref().map(|track| Drawn::of(track, choice, most)).unwrap_or_default();
        Self { drawn, ..self }
    }
}

impl Panel for MonitorPanel {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        egui::ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            if cx.session.runs.iter().next().is_none() {
                empty_state(
                    ui,
                    "No run yet",
                    "Start an experiment, or open the folder of a run, also of one that another program logs\nor another machine works \
                     on: its course appears here beside those of all others.",
                );
                return drop(ui.vertical_centered(|ui| open(ui, cx)));
            }
            self.refresh(ui.ctx(), cx.session);
            heading_with(ui, "Courses of all runs", |ui| open(ui, cx));
            self.controls(ui);
            let Some(kept) = &self.kept else { return };
            if kept.figure.series.is_empty() {
                hint(ui, "No run in sight says this yet: choose another figure, another axis, or more runs below.");
            } else {
                let about = About { name: Some("Courses of all runs"), height: 340.0, ..About::default() };
                self.board.show_shared(ui, cx, &kept.figure, &about);
                hint(ui, kept.figure.caption.clone());
            }
            for text in kept.warnings.iter().take(WARNINGS) {
                ui.add(egui::Label::new(RichText::new(text).color(Theme::of(ui).warning())).wrap());
            }
            if let Some(more) = kept.warnings.len().checked_sub(WARNINGS).filter(|more| *more > 0) {
                hint(ui, format!("and {more} more such runs"));
            }
            let session = cx.session;
            let shown = session.runs.iter().filter(|run| !self.left_out.contains(&run.folder));
            self.law.show(ui, cx, shown, &self.choice.filter);
            self.list(ui, cx.session);
            ui.add_space(12.0);
        });
    }
}

impl MonitorPanel {
    /// Makes the figure again where the choice has changed, and now and then where a run has.
    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        let now = ctx.input(|input| input.time);
        let shown: Vec<&RunView> = session.runs.iter().filter(|run| !self.left_out.contains(&run.folder)).collect();
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.choice == self.choice) {
            let same = |of: fn(&RunView, &KeptRun) -> bool| {
                kept.runs.len() == shown.len() && shown.iter().zip(&kept.runs).all(|(run, kept)| of(run, kept))
            };
            if same(|run, kept| run.folder == kept.folder && run.revision == kept.revision) {
                return;
            }
            let left = kept.made + EVERY - now;
            if same(|run, kept| run.folder == kept.folder) && left > 0.0 {
                return ctx.request_repaint_after_secs(left as f32);
            }
        }
        let (choice, most) = (self.choice.clone(), points_each(shown.len()));
        let before = self.kept.take();
        let lines_stay = before.as_ref().is_some_and(|kept| kept.most == most && kept.choice.draws_as(&choice));
        let known = before.into_iter().flat_map(|kept| kept.runs);
        let mut known: BTreeMap<PathBuf, KeptRun> = known.map(|run| (run.folder.clone(), run)).collect();
        let again = |run: &RunView| match known.remove(&run.folder).filter(|kept| kept.revision == run.revision) {
            Some(kept) if lines_stay => kept,
            Some(kept) => kept.drawn_again(&choice, most),
            None => KeptRun::new(run, &choice, most),
        };
        let runs: Vec<KeptRun> = shown.into_iter().map(again).collect();
        let lines: Vec<(&Track, &Drawn)> =
            runs.iter().filter_map(|run| Some((run.track.as_ref()?, &run.drawn))).collect();
        let tracks: Vec<&Track> = lines.iter().map(|(track, _)| *track).collect();
        let (fields, figure) = (differing(&tracks), Arc::new(picture(&lines, &choice)));
        let said = |run: &KeptRun| -> Vec<String> {
            let track = run.track.as_ref().filter(|track| track.matches(&choice.filter));
            track.map_or_else(Vec::new, |track| {
                run.alarms.iter().map(|text| format!("{}: {text}", track.name)).collect()
            })
        };
        let warnings = runs.iter().flat_map(said).collect();
        self.kept = Some(Kept { runs, choice, most, fields, warnings, figure, made: now });
    }

    fn controls(&mut self, ui: &mut Ui) {
        let fields = self.kept.as_ref().map_or(&[][..], |kept| &kept.fields);
        let choice = &mut self.choice;
        ui.horizontal_wrapped(|ui| {
            let list = ComboBox::from_id_salt("quantity").selected_text(choice.quantity.name()).width(FIELD);
            let shown = list.show_ui(ui, |ui| {
                for quantity in Quantity::ALL {
                    ui.selectable_value(&mut choice.quantity, quantity, quantity.name());
                }
            });
            named(
                shown.response,
                "Figure of the courses",
                "What is drawn, beside its floor: A under losses, the Bayes error under errors",
            );
            ui.label("over");
            let list = ComboBox::from_id_salt("over").selected_text(choice.over.name()).width(FIELD);
            let shown = list.show_ui(ui, |ui| {
                for over in Over::ALL {
                    ui.selectable_value(&mut choice.over, over, over.name());
                }
            });
            named(shown.response, "Axis of the courses", "Images and time are known of runs whose program says them");
            ui.checkbox(&mut choice.log[0], "log x").on_hover_text("Equal ratios of the axis are equal distances");
            ui.checkbox(&mut choice.log[1], "log y").on_hover_text("Equal ratios of the figure are equal distances");
        });
        ui.horizontal_wrapped(|ui| {
            let label = ui.label("Smoothing");
            let smoothing = ui.add(Slider::new(&mut choice.smoothing, 0.0..=0.99).max_decimals(2).update_while_editing(false));
            let about = "Weight of what came before in a running mean; what was logged stays in sight, pale";
            smoothing.labelled_by(label.id).on_hover_text(about);
            let chosen = choice.group.clone().unwrap_or_else(|| "every run by itself".into());
            let shown = ComboBox::from_id_salt("group").selected_text(chosen).width(FIELD).show_ui(ui, |ui| {
                ui.selectable_value(&mut choice.group, None, "every run by itself");
                for field in fields {
                    ui.selectable_value(&mut choice.group, Some(field.clone()), field.as_str());
                }
            });
            named(shown.response, "Group and colour by", "Runs with the same value of this field become one line: their mean with its 95 % interval over the runs, seeds for instance");
            // One after the other, also where the line ends between them.
            ui.horizontal(|ui| {
                let label = ui.label("Filter");
                let filter = TextEdit::singleline(&mut choice.filter).desired_width(FIELD).hint_text("world.tau = 1");
                ui.add(filter).labelled_by(label.id).on_hover_text("Only runs in whose name or fields (name = value) this stands");
            });
        });
    }

    /// The runs, to be left out or taken in.
    fn list(&mut self, ui: &mut Ui, session: &Session) {
        ui.add_space(6.0);
        for run in session.runs.iter() {
            let mut shown = !self.left_out.contains(&run.folder);
            let place = run.folder.display().to_string();
            let check = ui.checkbox(&mut shown, run.name()).on_hover_text(&place);
            if check.changed() {
                match shown {
                    true => self.left_out.retain(|folder| *folder != run.folder),
                    false => self.left_out.push(run.folder.clone()),
                }
            }
        }
    }
}

fn open(ui: &mut Ui, cx: &mut Cx) {
    let button = ui.button("Open a run to watch…").on_hover_text("A run folder, also one that others are working on");
    if button.clicked() {
        cx.commands.push(Command::Open);
    }
}

fn named(response: egui::Response, name: &str, about: &str) {
    drop(response.on_hover_text(about).accessible_name(name));
}

/// The course of a run: all steps of an external one, of a grid the cell that is shown or trained.
fn track(run: &RunView) -> Option<Track> {
    if let Some(found) = run.external() {
        let (steps, finished) = (Steps::Logged(found.course.clone()), found.course.finished);
        let mut track = Track { name: run.name(), fields: BTreeMap::new(), steps, finished };
        track.describe(&found.spec);
        return Some(track);
    }
    let (found, course) = (run.found()?, run.course(None)?);
    let (name, steps) = (format!("{}: {}", run.name(), course.label), Steps::Watched(course.watched));
    let mut track = Track { name, fields: BTreeMap::new(), steps, finished: run.job.is_none() };
    track.describe(&*found.spec);
    track.describe(&course.cell);
    Some(track)
}
