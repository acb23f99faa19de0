//! The start page: a card for each bundled world, three things to try, recent oracles and runs, finished runs.

use std::collections::BTreeMap;
use std::path::Path;

use eframe::egui::{
    Align, Button, CentralPanel, Frame, Image, Label, Layout, Response, RichText, Role, ScrollArea, Sense, Stroke,
    TextureHandle, Ui, UiBuilder, WidgetInfo, vec2,
};

use super::bayes_error_view;
use super::command::{Command, RunCommand};
use super::context::Cx;
use super::format;
use super::kept_path;
use super::paint::{Canvas, NEAREST, picture};
use super::panels;
use super::theme::{SECTION_GAP, Theme};
use super::widgets::{badge, heading, hint};
use crate::oracle::folder::OracleInfo;
use crate::oracle::library;
use crate::run::EXAMPLES;
use crate::worker::protocol::Glimpse;

/// Width of what a card holds, its margin and its border, points.
const CARD: f32 = 330.0;
const MARGIN: f32 = 12.0;
const BORDER: f32 = 1.5;
/// Height over width of a picture that is still to come: two rows of six.
const ROWS_OVER_COLUMNS: f32 = 1.0 / 3.0;
/// Classes named on a card.
const NAMED: usize = 12;
/// Runs listed, the newest first.
const RUNS: usize = 5;
/// The Bayes error of the second thing to try, a fraction.
const TARGET: f64 = 0.05;
/// The preset of the third.
const PRESET: &str = "scaling-quick";

/// The page, closed at first.
#[derive(Default)]
pub struct StartPage {
    open: bool,
    /// The tour is offered to those who go on to the samples.
    then_tour: bool,
    worlds: Vec<(&'static str, OracleInfo)>,
    pictures: BTreeMap<&'static str, TextureHandle>,
}

impl StartPage {
    /// Opens it. Returns which worlds are to be looked at, the first time.
    pub fn open(&mut self, then_tour: bool) -> Vec<&'static str> {
        (self.open, self.then_tour) = (true, then_tour);
        if !self.worlds.is_empty() {
            return Vec::new();
        }
        let described = |name: &'static str| Some((name, library::find(name)?.info().ok()?));
        self.worlds = library::names().into_iter().filter_map(described).collect();
        self.worlds.iter().map(|(name, _)| *name).collect()
    }

    /// Closes it. Returns whether it was open.
    pub fn close(&mut self) -> bool {
        std::mem::take(&mut self.open)
    }

    /// Returns whether it is in the place of the panels.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns, once, whether the tour comes next.
    pub fn take_tour(&mut self) -> bool {
        std::mem::take(&mut self.then_tour)
    }

    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx) {
        let ground = Frame::new().fill(Canvas::ground(ui)).inner_margin(MARGIN);
        CentralPanel::default().frame(ground).show(ui, |ui| {
            ScrollArea::vertical().id_salt("start page").auto_shrink([false, false]).show(ui, |ui| {
                head(ui, cx);
                self.worlds(ui, cx);
                things_to_try(ui, cx);
                recent_oracles(ui, cx);
                recent_runs(ui, cx);
                examples(ui, cx);
                ui.add_space(SECTION_GAP);
            });
        });
    }

    fn worlds(&mut self, ui: &mut Ui, cx: &mut Cx) {
        heading(ui, "Worlds", None);
        let gap = ui.spacing().item_spacing.x;
        let around = 2.0 * (MARGIN + BORDER);
        let columns = (((ui.available_width() + gap) / (CARD + around + gap)) as usize).max(1);
        let width = CARD.min(ui.available_width() - around);
        let Self { worlds, pictures, .. } = self;
        for row in worlds.chunks(columns) {
            ui.horizontal_top(|ui| {
                for (name, info) in row {
                    if card(ui, cx, pictures, (name, info), width).clicked() {
                        choose(cx, name);
                    }
                }
            });
        }
    }
}

/// Opens a world, if it is not the open one, and shows its samples.
fn choose(cx: &mut Cx, oracle: &str) {
    if [&cx.session.oracle_name, &cx.prefs.oracle].iter().any(|one| *one != oracle) || cx.session.stuck.is_some() {
        cx.commands.push(Command::OpenOracle(oracle.to_owned()));
    }
    cx.commands.push(Command::ShowPanel(panels::gallery::ID));
}

fn head(ui: &mut Ui, cx: &mut Cx) {
    ui.horizontal(|ui| {
        ui.label(RichText::new("Start").heading());
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let close = ui.button("Close the start page").on_hover_text("Escape. The menu File has it again.");
            if close.clicked() {
                cx.commands.push(Command::ShowPanel(panels::gallery::ID));
            }
        });
    });
    let about = "In each world the truth is known: a flow draws its images and gives the exact posterior of every one. \
                 A click opens it.";
    ui.add(Label::new(about).wrap());
}

/// A world as one button.
fn card(
    ui: &mut Ui,
    cx: &Cx,
    pictures: &mut BTreeMap<&'static str, TextureHandle>,
    (name, info): (&'static str, &OracleInfo),
    width: f32,
) -> Response {
    let builder = UiBuilder::new().id_salt(("world", name)).layout(Layout::top_down(Align::Min)).sense(Sense::click());
    let scope = ui.scope_builder(builder, |ui| {
        let response = ui.response();
        let marked = response.hovered() || response.has_focus();
        let colour = if marked { Theme::of(ui).accent() } else { Theme::of(ui).grid() };
        let frame = Frame::new().fill(ui.visuals().window_fill).stroke(Stroke::new(BORDER, colour)).corner_radius(6.0);
        frame.inner_margin(MARGIN).show(ui, |ui| {
            ui.set_width(width);
            let glimpse = cx.session.glimpses.get(name);
            strip(ui, pictures, name, glimpse.and_then(|glimpse| glimpse.as_deref().ok()), width);
            ui.add_space(4.0);
            quiet(ui, RichText::new(name).strong().size(16.0));
            quiet(ui, RichText::new(classes(info)));
            match glimpse {
                None => quiet(ui, RichText::new("Drawing samples…").color(Theme::of(ui).weak())),
                Some(Ok(glimpse)) => error(ui, glimpse),
                Some(Err(why)) => quiet(ui, RichText::new(why.as_str()).color(Theme::of(ui).error())),
            }
            if let Some(notice) = info.notice() {
                quiet(ui, RichText::new(notice).small().color(Theme::of(ui).weak()));
            }
        });
    });
    let about = format!("Open the world {name}: {}", classes(info));
    scope.response.widget_info(|| WidgetInfo::labeled(Role::Button, true, about.as_str()));
    scope.response
}

/// Text that leaves clicks to the card.
fn quiet(ui: &mut Ui, text: RichText) {
    ui.add(Label::new(text).wrap().selectable(false));
}

/// Samples of a world, or the place for them.
fn strip(
    ui: &mut Ui,
    pictures: &mut BTreeMap<&'static str, TextureHandle>,
    name: &'static str,
    glimpse: Option<&Glimpse>,
    width: f32,
) {
    let Some(glimpse) = glimpse else {
        let (rect, _) = ui.allocate_exact_size(vec2(width, width * ROWS_OVER_COLUMNS), Sense::hover());
        ui.painter().rect_filled(rect, 2.0, Theme::of(ui).placeholder());
        return;
    };
    let shape = glimpse.shape;
    let load = || ui.ctx().load_texture(format!("world {name}"), picture(shape, &glimpse.picture), NEAREST);
    let texture = pictures.entry(name).or_insert_with(load).id();
    let size = vec2(width, width * shape.height as f32 / shape.width as f32);
    ui.add(Image::new((texture, size)).alt_text(format!("Samples of {name} at τ = 1")));
}

fn classes(info: &OracleInfo) -> String {
    let names = &info.class_names;
    let more = if names.len() > NAMED { ", …" } else { "" };
    format!("{} classes: {}{more}", format::count(names.len()), names[..names.len().min(NAMED)].join(", "))
}

fn error(ui: &mut Ui, glimpse: &Glimpse) {
    let Some(estimate) = &glimpse.bayes_error else {
        return quiet(ui, RichText::new("Bayes error at τ = 1: from samples, in the panel Bayes error"));
    };
    ui.horizontal_wrapped(|ui| {
        quiet(ui, RichText::new(format!("Bayes error at τ = 1: {}", bayes_error_view::percent(estimate))));
        badge(ui, estimate.badge, &bayes_error_view::provenance(estimate));
    });
}

fn things_to_try(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "Three things to try", None);
    let open = cx.session.oracle.is_some();
    let named = if open { cx.session.called(&cx.session.oracle_name) } else { "the world".to_owned() };
    let gallery = || Command::ShowPanel(panels::gallery::ID);
    let percent = 100.0 * TARGET;
    let rows = [
        (
            "Look at the samples".to_owned(),
            format!("The gallery of {named}. Click an image: its exact posterior stands on the right."),
            true,
            vec![gallery()],
        ),
        (
            format!("Set a Bayes error of {percent} %"),
            format!(
                "Finds the base temperature τ at which the best classifier of {named} errs in {percent} % of cases."
            ),
            open,
            vec![gallery(), Command::Target(TARGET)],
        ),
        (
            "Train networks against the truth".to_owned(),
            "Fills in a small experiment: how far networks stay above the Bayes error as they get more images."
                .to_owned(),
            true,
            vec![Command::Run(RunCommand::New(PRESET))],
        ),
    ];
    for (text, about, enabled, commands) in rows {
        ui.horizontal_wrapped(|ui| {
            let button = ui.add_enabled(enabled, Button::new(text)).on_disabled_hover_text("Once the world is open.");
            if button.clicked() {
                cx.commands.extend(commands);
            }
            hint(ui, about);
        });
    }
}

fn examples(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "Finished runs to look at", None);
    for example in EXAMPLES {
        ui.horizontal_wrapped(|ui| {
            if ui.button(example.name).clicked() {
                cx.commands.push(Command::Run(RunCommand::OpenExample(example.name)));
            }
            hint(ui, example.about);
        });
    }
}

fn recent_oracles(ui: &mut Ui, cx: &mut Cx) {
    if cx.prefs.oracles.is_empty() {
        return;
    }
    heading(ui, "Recent oracles", None);
    for oracle in cx.prefs.oracles.clone() {
        if place(ui, "oracle", Path::new(&oracle)) {
            choose(cx, &oracle);
        }
    }
}

fn recent_runs(ui: &mut Ui, cx: &mut Cx) {
    if cx.prefs.runs.is_empty() {
        return;
    }
    heading(ui, "Recent runs", None);
    for run in cx.prefs.runs.iter().rev().take(RUNS) {
        if place(ui, "run", run) {
            cx.commands.push(Command::Run(RunCommand::Open(run.clone())));
        }
    }
}

/// A file or folder that can be opened. Returns whether it is to be.
fn place(ui: &mut Ui, what: &str, path: &Path) -> bool {
    let (shown, name) = (path.display().to_string(), kept_path::short(&path.display().to_string()));
    ui.horizontal_wrapped(|ui| {
        let button = ui.button(&name);
        // The names alone of two runs may be the same.
        button.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Open {what} {shown}")));
        hint(ui, &shown);
        button.clicked()
    })
    .inner
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::PRESETS;

    #[test]
    fn the_third_thing_to_try_is_a_preset_and_worlds_are_looked_at_once() {
        assert!(PRESETS.iter().any(|preset| preset.name == PRESET));
        let mut page = StartPage::default();
        assert_eq!(page.open(true), library::names());
        assert!(page.close() && !page.close() && page.take_tour() && !page.take_tour());
        assert!(page.open(false).is_empty() && page.is_open() && !page.take_tour());
    }
}
