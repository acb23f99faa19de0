//! The window Help: every key, and every word with its formula.

use eframe::egui::{self, Label, RichText, ScrollArea, TextEdit, Ui};

use super::command::{GESTURES, Page, Reach, bindings};
use super::glossary::{self, Term};
use super::theme::Theme;
use super::widgets::{dialog, heading, hint};

/// Width of the names of keys, points.
const KEYS: f32 = 190.0;

/// The window; closed by default.
#[derive(Default)]
pub struct Help {
    page: Option<Page>,
    /// What the glossary is searched for.
    wanted: String,
}

impl Help {
    /// Shows a page, or closes the window where it is that page.
    pub fn toggle(&mut self, page: Page) {
        self.page = (self.page != Some(page)).then_some(page);
    }

    /// Closes the window. Returns whether it was open.
    pub fn close(&mut self) -> bool {
        self.page.take().is_some()
    }

    pub fn show(&mut self, ctx: &egui::Context) {
        let Some(page) = self.page else { return };
        let (mut open, mut next) = (true, page);
        dialog(ctx, "Help", &mut open).default_size([600.0, 500.0]).show(ctx, |ui| {
            ui.horizontal(|ui| {
                ui.selectable_value(&mut next, Page::Shortcuts, "Keyboard shortcuts");
                ui.selectable_value(&mut next, Page::Glossary, "Glossary");
            });
            ui.separator();
            match page {
                Page::Shortcuts => shortcuts(ui),
                Page::Glossary => self.glossary(ui),
            }
        });
        self.page = open.then_some(next);
    }

    fn glossary(&mut self, ui: &mut Ui) {
        ui.horizontal(|ui| {
            let label = ui.label("Find");
            let field = TextEdit::singleline(&mut self.wanted).hint_text("a word or a symbol").desired_width(180.0);
            ui.add(field).labelled_by(label.id);
            hint(ui, "Pointing at a word in the window shows the same.");
        });
        let matching: Vec<&Term> = glossary::terms().filter(|term| term.mentions(&self.wanted)).collect();
        if matching.is_empty() {
            hint(ui, format!("No entry mentions “{}”.", self.wanted.trim()));
        }
        ScrollArea::vertical().auto_shrink([false, false]).id_salt("glossary").show(ui, |ui| {
            matching.into_iter().for_each(|term| entry(ui, term));
            ui.add_space(8.0);
        });
    }
}

fn entry(ui: &mut Ui, term: &Term) {
    ui.add_space(8.0);
    ui.horizontal_wrapped(|ui| {
        ui.label(RichText::new(&term.name).strong());
        ui.label(RichText::new(&term.unit).small().color(Theme::of(ui).weak()));
    });
    ui.add(Label::new(&term.meaning).wrap());
    if !term.formula.is_empty() {
        ui.add(Label::new(RichText::new(&term.formula).monospace()).wrap());
    }
}

fn shortcuts(ui: &mut Ui) {
    ScrollArea::vertical().auto_shrink([false, false]).id_salt("shortcuts").show(ui, |ui| {
        for (reach, title) in
            [(Reach::Everywhere, "Everywhere"), (Reach::Gallery, "While no field or button has the focus")]
        {
            heading(ui, title, None);
            let lines = bindings().into_iter().filter(|binding| binding.reach == reach);
            let lines = lines.map(|binding| (ui.ctx().format_shortcut(&binding.keys), binding.about));
            keys(ui, lines.collect());
        }
        heading(ui, "In controls, and with the mouse", None);
        keys(ui, GESTURES.map(|(keys, about)| (keys.to_owned(), about)).into());
        ui.add_space(8.0);
    });
}

/// A line for each key. What does not fit wraps: a grid would make the window wider after it was placed.
fn keys(ui: &mut Ui, lines: Vec<(String, &str)>) {
    for (keys, about) in lines {
        ui.horizontal_top(|ui| {
            ui.vertical(|ui| {
                ui.set_width(KEYS);
                ui.add(Label::new(RichText::new(keys).monospace()).wrap());
            });
            ui.add(Label::new(about).wrap());
        });
    }
}
