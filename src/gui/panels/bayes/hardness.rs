//! Class hardness: the one-vs-rest Bayes error of each class (EBO 4.4), hardest first.

use eframe::egui::{self, Rect, RichText, Sense, Ui, pos2, vec2};

use super::law;
use crate::bayes::{ClassHardness, Figure};
use crate::figure::{Axis, Figure as Drawn, Point, Records, Series, Style};
use crate::gui::bayes_error_view::full_share;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::{self, comments, knobs_of, of_world};
use crate::gui::session::Session;
use crate::gui::session::bayes::Hardness;
use crate::gui::table_window;
use crate::gui::theme::{BAR_HEIGHT, Badge, Theme};
use crate::gui::widgets::{heading, hint, list};

pub fn show(ui: &mut Ui, cx: &mut Cx) {
    let why = "Bayes error of \"this class or not\": x is drawn from the class with probability ½, otherwise from the mixture \
               of the others. Bars with their 95 % intervals; pair importance sampling to 0.1 %, or draws of the world.";
    heading(ui, "Class hardness: one class against the rest", Some((Badge::Estimated, why)));
    let stream = &cx.session.bayes.hardness;
    let hardness = cx.session.bayes.hardness_shown();
    let theme = Theme::of(ui);
    if let Some(why) = &stream.trouble {
        ui.colored_label(theme.error(), why);
        return;
    }
    if hardness.classes.is_empty() {
        let text =
            if cx.prefs.tau > 0.0 { "Computing…" } else { "At τ = 0 every class is a point: nothing is hard." };
        hint(ui, text);
        return;
    }
    let classes = cx.prefs.prior.len();
    let largest = hardness.classes.iter().map(|one| one.one_vs_rest.interval.1).fold(1e-300, f64::max);
    let of = format!(
        "At τ = {}, hardest first; ½ the class, ½ the others. Bars from 0 to {}.",
        format::sig4(hardness.tau),
        percent(largest)
    );
    ui.horizontal_wrapped(|ui| {
        let session = cx.session;
        table_window::button(ui, cx.view, "Class hardness", "class-hardness.csv", || csv(session));
        plot::buttons(ui, cx, "Class hardness", || figure(session));
        hint(ui, if stream.running { format!("{of} Computing…") } else { of });
    });
    law::tell(ui, cx, hardness.law.as_ref());
    let names = cx.session.class_names().iter().map(|name| name.chars().count()).max().unwrap_or(1);
    let name_width = (8.0 * names as f32).clamp(40.0, 110.0);
    let texts: Vec<String> = hardness.classes.iter().map(|one| full_share(&one.one_vs_rest)).collect();
    let text_width = 8.5 * texts.iter().map(|text| text.chars().count()).max().unwrap_or(1) as f32;
    let width = (ui.available_width() - 90.0 - text_width - name_width).clamp(60.0, 640.0);
    list(300.0).id_salt("hardness").show(ui, |ui| {
        egui::Grid::new("class hardness").num_columns(4).spacing(vec2(10.0, 2.0)).show(ui, |ui| {
            for (rank, (one, text)) in hardness.classes.iter().zip(&texts).enumerate() {
                let colour = theme.class(one.class, classes);
                ui.label(RichText::new(format!("{}.", rank + 1)).color(theme.weak()));
                let name = RichText::new(cx.session.class_name(one.class)).color(colour).strong();
                ui.add_sized([name_width, BAR_HEIGHT], egui::Label::new(name).truncate());
                bar(ui, width, &one.one_vs_rest, largest, theme, colour);
                ui.label(RichText::new(text).monospace());
                ui.end_row();
            }
        });
    });
}

/// The bars as comma-separated values.
fn csv(session: &Session) -> String {
    let hardness = session.bayes.hardness_shown();
    let lines = Records::of(&hardness.classes)
        .field("class", |one| session.class_name(one.class))
        .field("one_vs_rest_bayes_error", |one| one.one_vs_rest.value)
        .field("low_95", |one| one.one_vs_rest.interval.0)
        .field("high_95", |one| one.one_vs_rest.interval.1);
    let origin = comments(&origin(session, hardness));
    format!("# plot: one-vs-rest Bayes error of each class (1/2 the class, 1/2 the others)\n{origin}{}", lines.text())
}

/// What it is of.
pub(super) fn origin(session: &Session, hardness: &Hardness) -> Vec<(String, String)> {
    of_world(session, knobs_of(hardness.tau, hardness.law.as_ref()).as_ref(), &[])
}

/// The bars as a figure, hardest first.
fn figure(session: &Session) -> Drawn {
    let hardness = session.bayes.hardness_shown();
    let bar = |(rank, one): (usize, &ClassHardness)| {
        let (low, high) = one.one_vs_rest.interval;
        Point::new(rank as f64, 100.0 * one.one_vs_rest.value).within(100.0 * low, 100.0 * high)
    };
    let points = hardness.classes.iter().enumerate().map(bar).collect();
    Drawn {
        id: "class-hardness".into(),
        title: "Class hardness: one class against the rest".into(),
        caption: "Bayes error of \"this class or not\", x being from it with probability ½, otherwise from the mixture of the others, \
                  with 95 % intervals."
            .into(),
        provenance: origin(session, hardness),
        x: Axis::named("class", hardness.classes.iter().map(|one| session.class_name(one.class))),
        y: Axis::linear("one-vs-rest Bayes error").in_unit("%"),
        series: vec![Series { name: "one against the rest".into(), style: Style::Bars, points, ..Series::default() }],
        ..Drawn::default()
    }
}

fn percent(share: f64) -> String {
    format!("{} %", format::sig4(100.0 * share))
}

fn bar(ui: &mut Ui, width: f32, figure: &Figure, largest: f64, theme: Theme, colour: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(vec2(width, BAR_HEIGHT), Sense::hover());
    let at = |value: f64| rect.min.x + rect.width() * (value / largest).clamp(0.0, 1.0) as f32;
    let painter = ui.painter();
    painter.rect_filled(rect, 2.0, theme.trough());
    let end = at(figure.value).max(rect.min.x + 1.0);
    painter.rect_filled(Rect::from_min_max(rect.min, pos2(end, rect.max.y)), 2.0, colour);
    let (low, high) = (at(figure.interval.0), at(figure.interval.1));
    let stroke = egui::Stroke::new(1.5, ui.visuals().text_color());
    painter.hline(low..=high, rect.center().y, stroke);
    for x in [low, high] {
        painter.vline(x, rect.center().y - 3.0..=rect.center().y + 3.0, stroke);
    }
}
