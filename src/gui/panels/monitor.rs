//! The panel *Monitor*: the courses of all runs of this window, of every cell of a grid, in one plot, grouped and filtered by
//! their specs.

mod kept;
mod law;

use std::collections::BTreeSet;
use std::path::PathBuf;

use eframe::egui::{self, ComboBox, RichText, TextEdit, Ui};

use crate::gui::background::BackgroundTask;
use crate::gui::command::Command;
use crate::gui::context::{Cx, Panel};
use crate::gui::course_controls::{self, FIELD, call};
use crate::gui::plot::{About, Board};
use crate::gui::session::Session;
use crate::gui::session::runs::RunView;
use crate::gui::theme::Theme;
use crate::gui::widgets::{empty_state, heading_with, hint};
use crate::run::monitor::{Choice, Over, Quantity};
use crate::worker::runs::COURSES;
use kept::{Kept, Order};

/// The panel's name in saved layouts.
pub const ID: &str = "monitor";
/// Alarms that are told; of more, how many.
const WARNINGS: usize = 6;
/// Seconds between two pictures of runs that go on.
const EVERY: f64 = 0.3;
/// Steps that are gone through within a frame.
const AT_ONCE: usize = 5000;

/// What is drawn, and the runs that are not.
#[derive(Default)]
pub struct MonitorPanel {
    choice: Choice,
    left_out: BTreeSet<PathBuf>,
    board: Board,
    law: law::LawPlot,
    kept: Option<Kept>,
    /// The next, where many steps have to be gone through.
    work: BackgroundTask<Kept>,
    /// When the newest was made, seconds.
    made: f64,
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
            self.law.show(ui, cx, &kept.given);
            self.list(ui, cx.session);
            ui.add_space(12.0);
        });
    }
}

impl MonitorPanel {
    /// Makes the figure again where the choice has changed, and now and then where a run has; of many steps on a thread of
    /// its own.
    fn refresh(&mut self, ctx: &egui::Context, session: &Session) {
        let now = ctx.input(|input| input.time);
        if let Some(kept) = self.work.poll() {
            (self.kept, self.made) = (Some(kept), now);
        }
        if self.work.waiting() {
            return;
        }
        let shown: Vec<&RunView> = session.runs.iter().filter(|run| !self.left_out.contains(&run.folder)).collect();
        if let Some(kept) = self.kept.as_ref().filter(|kept| kept.choice == self.choice) {
            if kept.is_newest(&shown) {
                return;
            }
            let left = self.made + EVERY - now;
            if kept.is_of(&shown) && left > 0.0 {
                return ctx.request_repaint_after_secs(left as f32);
            }
        }
        let order = Order::new(&shown, &self.choice, self.kept.as_ref());
        if order.steps > AT_ONCE {
            self.work = BackgroundTask::start(ctx, "courses", move || order.make());
        } else {
            (self.kept, self.made) = (Some(order.make()), now);
        }
    }

    fn controls(&mut self, ui: &mut Ui) {
        let fields = self.kept.as_ref().map_or(&[][..], |kept| &kept.fields);
        let choice = &mut self.choice;
        ui.horizontal_wrapped(|ui| {
            course_controls::quantity(ui, "Figure of the courses", &mut choice.quantity, &Quantity::ALL);
            let axis = ("Axis of the courses", "Images and time are known of runs whose program says them");
            course_controls::axes(ui, axis, &mut choice.over, &Over::ALL, &mut choice.log);
        });
        ui.horizontal_wrapped(|ui| {
            course_controls::smoothing(ui, &mut choice.smoothing);
            let chosen = choice.group.clone().unwrap_or_else(|| "every course by itself".into());
            let shown = ComboBox::from_id_salt("group").selected_text(chosen).width(FIELD).show_ui(ui, |ui| {
                ui.selectable_value(&mut choice.group, None, "every course by itself");
                for field in fields {
                    ui.selectable_value(&mut choice.group, Some(field.clone()), field.as_str());
                }
            });
            call(shown.response, "Group and colour by", "Runs, and cells of a run, with the same value of this field become one line: their mean with its 95 % interval over them");
            // One after the other, also where the line ends between them.
            ui.horizontal(|ui| {
                let label = ui.label("Filter");
                let filter = TextEdit::singleline(&mut choice.filter).desired_width(FIELD).hint_text("world.tau = 1");
                ui.add(filter).labelled_by(label.id).on_hover_text("Only runs whose name or fields (name = value) contain this text");
            });
        });
    }

    /// The runs, to be left out or taken in.
    fn list(&mut self, ui: &mut Ui, session: &Session) {
        ui.add_space(6.0);
        for run in session.runs.iter() {
            let mut shown = !self.left_out.contains(&run.folder);
            let place = run.folder.display().to_string();
            let check = ui.horizontal_wrapped(|ui| {
                let check = ui.checkbox(&mut shown, run.name()).on_hover_text(&place);
                let courses = self.kept.as_ref().and_then(|kept| kept.courses(&run.folder));
                if let Some(told) = courses.and_then(|courses| told(run, courses)) {
                    hint(ui, told);
                }
                check
            });
            let check = check.inner;
            if check.changed() {
                match shown {
                    true => self.left_out.remove(&run.folder),
                    false => self.left_out.insert(run.folder.clone()),
                };
            }
        }
    }
}

/// Of how many cells of a run the courses are here, or why there is none; nothing of a run that is one course.
fn told(run: &RunView, courses: usize) -> Option<String> {
    let found = match &run.look {
        None => return Some("not read yet".into()),
        Some(Err(why)) => return Some(why.clone()),
        Some(Ok(found)) => found.grid()?,
    };
    let all = found.cells.len();
    Some(match (courses, found.cells_begun()) {
        (0, 0) => "no cell has begun".into(),
        (0, _) if found.is_over() => {
            "no courses: its cells are finished, and how they went is not in the folder".into()
        }
        (0, _) => "no cell has said how its test images go".into(),
        (_, begun) if begun > COURSES => {
            format!(
                "courses of {courses} of {all} cells: no more than {COURSES} are read, those that run and the first others"
            )
        }
        (_, _) => format!("courses of {courses} of {all} cells"),
    })
}

fn open(ui: &mut Ui, cx: &mut Cx) {
    let button = ui.button("Open a run to watch…").on_hover_text("A run folder, also one that others are working on");
    if button.clicked() {
        cx.commands.push(Command::Open);
    }
}
