//! One Bayes error by every method.

use eframe::egui::{self, RichText, Ui, vec2};

use crate::bayes::{Badge, Estimate};
use crate::gui::command::Command;
use crate::gui::format;
use crate::gui::panels::Cx;
use crate::gui::readout::{half_width, mark, provenance};
use crate::gui::theme::Theme;
use crate::gui::widgets::{badge, heading, hint};

/// The table.
pub fn show(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "All methods on this world", None);
    let comparison = &cx.session.bayes.comparison;
    let theme = Theme::of(ui);
    ui.horizontal_wrapped(|ui| {
        let run = ui.add_enabled(!comparison.running, egui::Button::new("Run all methods"));
        let about = "Each method at the present τ and π, to 1e-4 relative or until its three seconds are up; HDR as EBO sets it.";
        if run.on_hover_text(about).clicked() {
            cx.commands.push(Command::CompareMethods);
        }
        if comparison.asked() {
            let of = format!("at τ = {}; aim 1e-4 relative, three seconds each", format::sig4(comparison.value.tau));
            hint(ui, if comparison.running { format!("{of}; running…") } else { of });
        } else {
            hint(ui, "Values, intervals and times side by side: what the default method is worth.");
        }
    });
    if let Some(why) = &comparison.trouble {
        ui.colored_label(theme.error(), why);
    }
    if comparison.value.rows.is_empty() {
        return;
    }
    egui::ScrollArea::horizontal().id_salt("methods scroll").show(ui, |ui| {
        egui::Grid::new("methods").num_columns(7).striped(true).spacing(vec2(12.0, 4.0)).show(ui, |ui| {
            for title in ["method", "", "E (%)", "± 95 % (%)", "relative", "points", "time"] {
                ui.label(RichText::new(title).small().color(theme.weak()));
            }
            ui.end_row();
            for (method, outcome) in &comparison.value.rows {
                ui.label(method.name());
                match outcome {
                    Ok(estimate) => row(ui, estimate),
                    Err(why) => {
                        ui.label("");
                        // As long as its reason is, it must not widen a column of numbers.
                        let text = RichText::new("does not apply").color(theme.weak());
                        ui.label(text).on_hover_text(why);
                    }
                }
                ui.end_row();
            }
        });
    });
    hint(ui, "Point at a row for its settings. Times are of the study thread, beside whatever else is running.");
}

fn row(ui: &mut Ui, estimate: &Estimate) {
    let about = provenance(estimate);
    badge(ui, mark(estimate.badge), &about);
    let half = half_width(&estimate.figure);
    let exact = estimate.badge == Badge::Exact || half == 0.0;
    let relative = estimate.figure.relative_half_width();
    let cells = [
        number(100.0 * estimate.figure.value, 100.0 * half),
        if exact { "-".into() } else { format!("{:.1e}", 100.0 * half) },
        if exact || !relative.is_finite() { "-".into() } else { format!("{relative:.1e}") },
        format::count(usize::try_from(estimate.samples).unwrap_or(usize::MAX)),
        format::short_time(estimate.seconds),
    ];
    for text in cells {
        ui.label(RichText::new(text).monospace()).on_hover_text(&about);
    }
}

/// As many digits as the interval leaves sure, and two more.
fn number(value: f64, half: f64) -> String {
    let text = format::interval(value, half);
    let text = text.trim_start_matches('(');
    match (text.split_once(" ±"), text.split_once(")e")) {
        (Some((head, _)), Some((_, power))) => format!("{head}e{power}"),
        (Some((head, _)), None) => head.to_owned(),
        _ => text.to_owned(),
    }
}
