//! The Bayes error of a world that must be sampled: its readout, its target and its survey. What narrows can
//! be stopped, and what was found by then stays; τ is set only when the user says so.

use eframe::egui::{self, RichText, Ui};

use super::bayes_error_view::{half_width, share, widths_badge};
use super::command::Command;
use super::context::Cx;
use super::failures;
use super::format;
use super::prefs::MAX_TAU;
use super::session::Session;
use super::session::tasks::TaskView;
use super::theme::{Badge, Theme};
use super::widgets::{complain, hint};
use crate::bayes::Figure;
use crate::task::Task;
use crate::worker::sampling::{FindTau, SurveyWorld};

const ABOUT: &str = "E = 1 - E_x[max_y p(y|x)] at the present τ, T and π, between two points of the curve of the panel Bayes error, \
                     with its 95 % band. The points come from draws of the world with their exact posteriors. The band holds their error \
                     and an estimate of what a line between them misses.";

/// The readout: from the curve once there is one.
pub fn value(ui: &mut Ui, cx: &Cx) {
    match readout(cx) {
        Some(figure) => {
            let shown = share(&figure);
            ui.label(RichText::new(&shown).strong()).on_hover_text(ABOUT);
            widths_badge(ui, Badge::Estimated, (&shown, half_width(&figure)), ABOUT);
        }
        None if cx.session.bayes.survey.is_some() => hint(ui, "not sampled at this τ, T and π"),
        None => hint(ui, "not sampled yet: press 'Sample' in the panel Bayes error"),
    }
}

/// The Bayes error at the present knobs, from the survey.
pub fn readout(cx: &Cx) -> Option<Figure> {
    cx.session.bayes.surveyed(cx.prefs.tau, &cx.prefs.settings().label_law())
}

/// What stands in place of figures that are not there: whether they are on their way, or wait for the user.
pub fn pending(cx: &Cx) -> &'static str {
    let sampling = cx.session.tasks.get::<SurveyWorld>().is_some_and(|view| view.under_way());
    match cx.session.bayes.must_be_sampled() {
        Some(true) if !sampling => "Not sampled yet: press 'Sample' above.",
        _ => "Computing…",
    }
}

/// How the search for τ goes, or what it has found. `name` is that of its field.
pub fn target(ui: &mut Ui, cx: &mut Cx, name: &str) {
    let session = cx.session;
    let Some(view) = session.tasks.get::<FindTau>() else { return };
    if let Some(why) = view.trouble() {
        failures::show(ui, view.job, why);
        return;
    }
    let searched = match &view.report {
        Some(found) => Some(found.found.tau),
        None => view.live.and_then(|standing| standing.figure),
    };
    // Before the search has come to anything the curve answers, if there is one.
    let figure = searched.or_else(|| session.bayes.surveyed_tau(view.task.target, &view.task.law));
    let error = format::digits(100.0 * view.task.target);
    match figure {
        Some(tau) => {
            let text = format!("E = {error} % at τ = {}{}", with_interval(&tau), narrowing(&view));
            let about = match searched {
                Some(_) => "Where E(τ) meets the target, with the 95 % interval that the draws leave for τ.",
                None => "Where the curve of the panel Bayes error meets the target: every τ whose 95 % band holds it.",
            };
            let text = RichText::new(text).color(Theme::of(ui).weak()).small();
            ui.add(egui::Label::new(text).wrap()).on_hover_text(about);
        }
        None if view.under_way() => hint(ui, format!("Looking for τ with E = {error} %…")),
        None => hint(ui, "The search for τ was stopped before it found anything."),
    }
    ui.horizontal_wrapped(|ui| {
        if let Some(tau) = figure.map(|figure| figure.value) {
            let button = ui.add_enabled(tau <= MAX_TAU, egui::Button::new(format!("Use τ = {}", format::sig4(tau))));
            let button = button.on_hover_text("Set the world's τ. It can be undone.");
            let refused = format!("The window goes up to τ = {MAX_TAU}.");
            let button = button.on_disabled_hover_text(refused);
            button.widget_info(|| named(format!("Use the τ of {name}")));
            if button.clicked() {
                cx.prefs.tau = tau;
            }
        }
        stop(ui, session, cx.commands, &view, &format!("Stop the search of {name}"));
    });
    if view.task.law != cx.prefs.settings().label_law() {
        complain(ui, "π, T or the label noise has moved since: press Enter in the field again.");
    }
}

/// Starts and stops the survey, and says how far it is.
pub fn survey(ui: &mut Ui, cx: &mut Cx) {
    let session = cx.session;
    let view = session.tasks.get::<SurveyWorld>();
    ui.horizontal_wrapped(|ui| {
        let about = "Draws images of the world at several τ: first the curve, class hardness and pairs from few draws, then from more \
                     and more, until E at the present τ is known to 1 %. Draws are kept and used again.";
        let under_way = view.as_ref().is_some_and(TaskView::under_way);
        if !under_way && ui.button("Sample").on_hover_text(about).clicked() {
            cx.commands.push(Command::Survey);
        }
        if let Some(view) = &view {
            stop(ui, session, cx.commands, view, "Stop sampling");
            if let Some(why) = view.trouble() {
                failures::show(ui, view.job, why);
            }
        }
        let found = session.bayes.survey.as_ref();
        let more = view.as_ref().map_or("", narrowing);
        match found.map(|found| found.samples()) {
            Some(samples) => hint(ui, format!("{} draws at each τ{more}", format::count(samples))),
            None if under_way => hint(ui, "drawing the first images…"),
            None => hint(ui, "The map of this world depends on the class: its Bayes error comes from draws."),
        }
    });
    if session.bayes.survey.as_ref().is_some_and(|found| found.law != cx.prefs.settings().label_law()) {
        complain(
            ui,
            "π, T or the label noise has moved since: these figures are of those before. Press 'Sample' again.",
        );
    }
}

/// Stops a task that is under way.
fn stop<T: Task>(ui: &mut Ui, session: &Session, commands: &mut Vec<Command>, view: &TaskView<'_, T>, name: &str) {
    let Some(job) = session.jobs.get(view.job).filter(|job| !job.ended()) else { return };
    let button = ui.add_enabled(!job.stopping, egui::Button::new("Stop"));
    let button = button.on_hover_text("Stops it; what has been found so far is kept.");
    button.widget_info(|| named(name.to_owned()));
    if button.clicked() {
        commands.push(Command::Cancel(view.job));
    }
    if let Some(waiting) = session.jobs.waiting(job) {
        hint(ui, waiting);
    }
}

fn named(name: String) -> egui::WidgetInfo {
    egui::WidgetInfo::labeled(egui::Role::Button, true, name)
}

fn narrowing<T: Task>(view: &TaskView<'_, T>) -> &'static str {
    match (view.under_way(), view.report.is_some()) {
        (true, _) => "; narrowing…",
        (false, true) => "",
        (false, false) => "; stopped",
    }
}

fn with_interval(tau: &Figure) -> String {
    let (low, high) = tau.interval;
    format!("{} (95 %: {} to {})", format::sig4(tau.value), format::sig4(low), format::sig4(high))
}
