//! The skeleton of a panel whose form starts a task: the form, how the task goes, its report.

use eframe::egui::{ScrollArea, Ui};

use crate::gui::context::{Cx, Panel};
use crate::gui::session::tasks::TaskView;
use crate::gui::widgets::{empty_state, standing};
use crate::task::Task;

/// A panel for one type of task. What such panels share is painted by [`Panel::ui`].
pub trait TaskPanel {
    /// What the form starts.
    type Task: Task;
    /// Title and text of the place of the report before the first task.
    const EMPTY: [&'static str; 2];

    fn form(&mut self, ui: &mut Ui, cx: &mut Cx);

    /// What is said while a task is under way, and after it was stopped.
    fn words(&self, view: &TaskView<'_, Self::Task>) -> [String; 2];

    fn report(
        &mut self,
        ui: &mut Ui,
        cx: &mut Cx,
        view: &TaskView<'_, Self::Task>,
        report: &<Self::Task as Task>::Report,
    );
}

impl<P: TaskPanel> Panel for P {
    fn ui(&mut self, ui: &mut Ui, cx: &mut Cx) {
        ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
            self.form(ui, cx);
            let session = cx.session;
            match session.tasks.get::<P::Task>() {
                Some(view) => {
                    let [under_way, stopped] = self.words(&view);
                    standing(ui, session, &view, &under_way, &stopped);
                    if let Some(report) = &view.report {
                        self.report(ui, cx, &view, report);
                    }
                }
                None => empty_state(ui, P::EMPTY[0], P::EMPTY[1]),
            }
            ui.add_space(12.0);
        });
    }
}
