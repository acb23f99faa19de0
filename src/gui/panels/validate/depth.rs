//! What pictures of the world keep of its posteriors, over their bits.

use eframe::egui::{Button, Ui};

use super::super::experiments::findings::{all, grid};
use super::super::fields::number;
use crate::export::MeasureDepth;
use crate::gui::command::{Command, knobs, quote};
use crate::gui::context::Cx;
use crate::gui::failures;
use crate::gui::plot::Boards;
use crate::gui::widgets::{heading, hint, on_its_way};
use crate::units::Seed;

/// The number of samples, and the figure as it was painted last.
pub struct DepthSection {
    samples: usize,
    boards: Boards,
}

impl Default for DepthSection {
    fn default() -> Self {
        Self { samples: 300, boards: Boards::default() }
    }
}

impl DepthSection {
    /// Paints the button and what came of it.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        heading(ui, "Pictures of this world", None);
        hint(
            ui,
            "A posterior is exact for the float image. A picture has whole levels: samples are rounded to 4 to 16 bits a value and \
             scored again. Where 8 bits change the posterior, what tells the classes apart cannot be seen in a picture.",
        );
        let (session, view) = (cx.session, cx.session.tasks.get::<MeasureDepth>());
        let job = view.as_ref().and_then(|view| session.jobs.active().find(|job| job.id == view.job));
        self.buttons(ui, cx, job.is_some());
        let Some(view) = view else { return };
        match (job, view.trouble()) {
            (Some(job), _) => on_its_way(ui, &session.jobs, job, "Pause and cancel below, in the list of jobs."),
            (None, Some(why)) => failures::show(ui, view.job, why),
            _ => {}
        }
        if let Some(report) = &view.last_report {
            report.tables.iter().for_each(|table| grid(ui, table));
            all(ui, cx, &report.figures, &mut self.boards);
        }
    }

    fn buttons(&mut self, ui: &mut Ui, cx: &mut Cx, running: bool) {
        let open = cx.session.oracle.is_some();
        ui.horizontal_wrapped(|ui| {
            number(ui, "Samples compared", &mut self.samples, " samples", 10.0, "Each is scored at 13 depths.");
            let ready = open && cx.prefs.tau > 0.0 && !running && self.samples > 1;
            let button = ui.add_enabled(ready, Button::new("Measure bit depth"));
            let why = if running { "It is being measured." } else { "Open an oracle and choose a τ above 0 first." };
            if button.on_disabled_hover_text(why).clicked() {
                let (samples, settings) = (self.samples, cx.prefs.settings());
                cx.commands.push(Command::task(MeasureDepth { samples, settings, seed: Seed(0) }));
            }
            let copy = ui.add_enabled(open, Button::new("Copy depth as command"));
            let copy =
                copy.on_hover_text("The same on the command line").on_disabled_hover_text("Open an oracle first.");
            if copy.clicked() {
                let (oracle, knobs) = (quote(&cx.session.oracle_name), knobs(cx.prefs));
                let text = format!("bayescope oracle depth {oracle} --samples {}{knobs}", self.samples);
                cx.commands.push(Command::CopyText(text));
            }
        });
    }
}
