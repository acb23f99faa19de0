//! The list of shifts.

use eframe::egui::{self, ComboBox, DragValue, TextEdit, Ui};

use crate::experiment::{BaseShift, ShiftSetting, ShiftSpec};
use crate::gui::glossary;
use crate::gui::panels::fields::number;
use crate::gui::widgets::hint;

/// Class priors, as they are being edited.
#[derive(Default)]
pub struct ShiftFields {
    priors: Vec<String>,
    /// The shift that was removed last, where it stood, and its prior as text.
    removed: Option<(usize, ShiftSetting, String)>,
}

/// Kinds of base shifts, in words.
const BASES: [&str; 5] = ["none", "mean moved", "mean towards", "wider", "narrower"];

impl ShiftFields {
    /// Those of a spec.
    pub fn of(spec: &ShiftSpec) -> Self {
        Self { priors: spec.settings.iter().map(|setting| super::list(&setting.prior)).collect(), removed: None }
    }

    /// The fields.
    pub fn show(&mut self, ui: &mut Ui, spec: &mut ShiftSpec) {
        ui.horizontal_wrapped(|ui| {
            number(
                ui,
                "Pool",
                &mut spec.pool,
                " images",
                10.0,
                "Images of the world from which training images are chosen.",
            );
            let meaning = "Share of the training images that is kept for validation.";
            let label = ui.label("Validation").on_hover_text(meaning);
            let mut percent = 100.0 * spec.validation;
            let field = DragValue::new(&mut percent).range(0.0..=90.0).suffix(" %").max_decimals(1);
            if ui.add(field.update_while_editing(false)).labelled_by(label.id).on_hover_text(meaning).changed() {
                spec.validation = percent / 100.0;
            }
        });
        self.priors.resize(spec.settings.len(), String::new());
        let mut gone = None;
        egui::ScrollArea::both().id_salt("shifts").max_height(190.0).auto_shrink([false, true]).show(ui, |ui| {
            egui::Grid::new("shift settings").num_columns(5).striped(true).spacing([10.0, 3.0]).show(ui, |ui| {
                for title in ["shift", "class prior π", "noise σ", "", "base shift"] {
                    glossary::label(ui, egui::RichText::new(title).small());
                }
                ui.end_row();
                for (i, (setting, prior)) in spec.settings.iter_mut().zip(&mut self.priors).enumerate() {
                    if row(ui, i, setting, prior) {
                        gone = Some(i);
                    }
                    ui.end_row();
                }
            });
        });
        if let Some(i) = gone {
            self.removed = Some((i, spec.settings.remove(i), self.priors.remove(i)));
        }
        ui.horizontal(|ui| {
            if ui.button("Add a shift").clicked() {
                let name = format!("shift {}", spec.settings.len() + 1);
                spec.settings.push(ShiftSetting { name, prior: Vec::new(), noise: 0.0, base: None });
            }
            let name = self.removed.as_ref().map(|(_, setting, _)| format!("Put {} back", setting.name));
            if name.is_some_and(|name| ui.button(name).clicked())
                && let Some((i, setting, prior)) = self.removed.take()
            {
                spec.settings.insert(i.min(spec.settings.len()), setting);
                self.priors.insert(i.min(self.priors.len()), prior);
            }
            hint(ui, "The first one is the baseline, to which drops are counted. An empty prior is the world's own.");
        });
    }

    /// The shifts of the fields, or what is wrong with them.
    pub fn ready(&self, spec: &ShiftSpec) -> Result<ShiftSpec, String> {
        let mut spec = spec.clone();
        for (setting, prior) in spec.settings.iter_mut().zip(&self.priors) {
            let words = prior.split([',', ';', ' ', '/']).map(str::trim).filter(|word| !word.is_empty());
            let weight = |word: &str| word.parse().map_err(|_| format!("{}: '{word}' is no number.", setting.name));
            setting.prior = words.map(weight).collect::<Result<_, _>>()?;
        }
        Ok(spec)
    }
}

/// One shift; whether it is to go.
fn row(ui: &mut Ui, i: usize, setting: &mut ShiftSetting, prior: &mut String) -> bool {
    let name = |what: &str| format!("{what} of shift {}", i + 1);
    // A field in a grid is as narrow as its column was, unless it asks for its own width.
    let height = ui.spacing().interact_size.y;
    let field = TextEdit::singleline(&mut setting.name);
    ui.add_sized([180.0, height], field).accessible_name(name("Name")).on_hover_text(&setting.name);
    let field = ui.add_sized([150.0, height], TextEdit::singleline(prior)).accessible_name(name("Class prior"));
    field.on_hover_text(glossary::beside(prior, "class prior"));
    let noise = DragValue::new(&mut setting.noise).range(0.0..=2.0).speed(0.005).max_decimals(3);
    let noise = ui.add(noise.update_while_editing(false)).accessible_name(name("Noise"));
    noise.on_hover_text("Standard deviation of Gaussian noise added to pixels, which are 0 to 1 in a Glow's world and -1 to 1 otherwise");
    // Before the base shift, whose width changes: it stays in view.
    let gone = ui.button("Remove").accessible_name(name("Remove the setting")).clicked();
    ui.horizontal(|ui| base(ui, &mut setting.base, &name));
    gone
}

fn base(ui: &mut Ui, base: &mut Option<BaseShift>, name: &dyn Fn(&str) -> String) {
    let at = base.map_or(0, |base| match base {
        BaseShift::Mean { .. } => 1,
        BaseShift::Towards { .. } => 2,
        BaseShift::Wider { .. } => 3,
        BaseShift::Narrower { .. } => 4,
    });
    let mut kl = base.map_or(0.1, BaseShift::kl);
    let [mut from, mut to] = match base {
        Some(BaseShift::Towards { from, to, .. }) => [*from, *to],
        _ => [0, 1],
    };
    let mut chosen = at;
    let combo = ComboBox::from_id_salt(name("Base")).width(110.0).selected_text(BASES[at]);
    let shown = combo.show_ui(ui, |ui| {
        BASES.iter().enumerate().for_each(|(i, word)| drop(ui.selectable_value(&mut chosen, i, *word)));
    });
    glossary::explain(shown.response, "base shift").accessible_name(name("Base"));
    if chosen > 0 {
        let field = DragValue::new(&mut kl).range(1e-4..=100.0).speed(0.005).max_decimals(4).suffix(" nats");
        let field = ui.add(field.update_while_editing(false)).accessible_name(name("KL"));
        field.on_hover_text(glossary::beside("How far the base is shifted.", "KL divergence"));
    }
    if chosen == 2 {
        for (what, class) in [("From class", &mut from), ("To class", &mut to)] {
            let field = ui.add(DragValue::new(class).range(0..=9999)).accessible_name(name(what));
            field.on_hover_text("The means move along the line from one class to another: their numbers, from 0");
        }
    }
    *base = match chosen {
        0 => None,
        1 => Some(BaseShift::Mean { kl }),
        2 => Some(BaseShift::Towards { kl, from, to }),
        3 => Some(BaseShift::Wider { kl }),
        _ => Some(BaseShift::Narrower { kl }),
    };
}
