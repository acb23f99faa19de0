//! What plots of courses have in common: what is drawn, over what, on which axes, how smooth.

use eframe::egui::{Align, ComboBox, Layout, Response, Slider, Ui, vec2};

use crate::run::monitor::{Over, Quantity};

/// Room for a name in a field, points.
pub const FIELD: f32 = 190.0;
/// Room for the smoothing with its name, points.
const SMOOTHING: f32 = 240.0;

/// A choice among values that have names; `name` and `about` say what is chosen.
pub fn choose<T: Copy + PartialEq>(
    ui: &mut Ui,
    (name, about): (&str, &str),
    chosen: &mut T,
    offered: &[T],
    named: impl Fn(T) -> &'static str,
) {
    let list = ComboBox::from_id_salt(name).selected_text(named(*chosen)).width(FIELD);
    let shown = list.show_ui(ui, |ui| {
        for one in offered {
            ui.selectable_value(chosen, *one, named(*one));
        }
    });
    call(shown.response, name, about);
}

/// What is drawn.
pub fn quantity(ui: &mut Ui, name: &str, chosen: &mut Quantity, offered: &[Quantity]) {
    let about = "What is drawn, beside its floor: A under losses, the Bayes error under errors";
    choose(ui, (name, about), chosen, offered, Quantity::name);
}

/// Over what it is drawn, and on which axes.
pub fn axes(ui: &mut Ui, name: (&str, &str), over: &mut Over, offered: &[Over], log: &mut [bool; 2]) {
    ui.label("over");
    choose(ui, name, over, offered, Over::name);
    ui.checkbox(&mut log[0], "log x").on_hover_text("Equal ratios of the axis are equal distances");
    ui.checkbox(&mut log[1], "log y").on_hover_text("Equal ratios of the figure are equal distances");
}

/// How smooth lines are, 0 to 1.
pub fn smoothing(ui: &mut Ui, weight: &mut f64) {
    // A slider does not say beforehand how wide it is: with this room it moves to the next row where there is none left.
    let room = vec2(SMOOTHING, ui.spacing().interact_size.y);
    ui.allocate_ui_with_layout(room, Layout::left_to_right(Align::Center), |ui| {
        let label = ui.label("Smoothing");
        let slider = ui.add(Slider::new(weight, 0.0..=0.99).max_decimals(2).update_while_editing(false));
        let about = "Weight of what came before in a running mean; what was logged stays in sight, pale";
        slider.labelled_by(label.id).on_hover_text(about);
    });
}

/// Gives a control its name and what it means.
pub fn call(response: Response, name: &str, about: &str) {
    drop(response.on_hover_text(about).accessible_name(name));
}
