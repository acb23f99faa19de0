//! One Bayes error by every method.

use eframe::egui::{self, RichText, Ui, vec2};

use crate::bayes::{Badge, Estimate};
use crate::gui::bayes_error_view::{half_width, provenance};
use crate::gui::command::Command;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::theme::Theme;
use crate::gui::widgets::{badge, complain, heading, hint};

pub fn show(ui: &mut Ui, cx: &mut Cx) {
    heading(ui, "All methods on this world", None);
    let comparison = &cx.session.bayes.comparison;
    let theme = Theme::of(ui);
    ui.horizontal_wrapped(|ui| {
        let run = ui.add_enabled(!comparison.running, egui::Button::new("Run all methods"));
        let about = "Each method at the present τ, T and π, to 1e-4 relative or until its three seconds are up; HDR as EBO sets it.";
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
    if comparison.value.law.as_ref().is_some_and(|law| *law != cx.prefs.settings().label_law()) {
        complain(ui, "Of another class prior, T or label noise, which have moved since. Run again.");
    }
    if comparison.value.rows.is_empty() {
        return;
    }
    let head = ["method", "E (%)", "± 95 % (%)", "relative", "points", "time"];
    line(ui, head.map(|title| RichText::new(title).small().color(theme.weak())), "");
    for (method, outcome) in &comparison.value.rows {
        match outcome {
            Ok(estimate) => row(ui, estimate),
            Err(why) => {
                let empty = || RichText::new("");
                let text = RichText::new("does not apply").color(theme.weak());
                line(ui, [RichText::new(method.name()), text, empty(), empty(), empty(), empty()], why);
                hint(ui, why);
            }
        }
    }
    hint(ui, "Times are of the study thread, beside whatever else is running.");
}

/// Widths of the columns where there is room, points.
const WIDTHS: [f32; 6] = [158.0, 100.0, 74.0, 64.0, 86.0, 66.0];

fn line(ui: &mut Ui, cells: [RichText; 6], about: &str) {
    let gaps = ui.spacing().item_spacing.x * WIDTHS.len() as f32;
    let scale = ((ui.available_width() - gaps) / WIDTHS.iter().sum::<f32>()).clamp(0.3, 1.25);
    ui.horizontal(|ui| {
        for (text, width) in cells.into_iter().zip(WIDTHS.map(|width| width * scale)) {
            let size = vec2(width, ui.spacing().interact_size.y * 0.9);
            let cell = ui.allocate_ui_with_layout(size, egui::Layout::left_to_right(egui::Align::Center), |ui| {
                ui.set_min_width(width);
                let words = text.text().to_owned();
                glossary::explain(ui.add(egui::Label::new(text).truncate()), &words);
            });
            if !about.is_empty() {
                cell.response.on_hover_text(about);
            }
        }
    });
}

fn row(ui: &mut Ui, estimate: &Estimate) {
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
    let [value, half, relative, points, time] = cells.map(|text| RichText::new(text).monospace());
    let name = RichText::new(estimate.method.name());
    line(ui, [name, value, half, relative, points, time], &provenance(estimate));
    ui.horizontal_wrapped(|ui| {
        badge(ui, estimate.badge, &provenance(estimate));
        hint(ui, estimate.why.clone());
    });
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
