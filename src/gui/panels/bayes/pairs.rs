//! The Bayes errors of all pairs of classes as a heat map.

use std::ops::Range;

use eframe::egui::{self, Align2, FontId, Rect, Sense, Ui, pos2, vec2};

use super::hardness::origin;
use super::law;
use crate::figure::Records;
use crate::gui::context::Cx;
use crate::gui::format;
use crate::gui::plot::comments;
use crate::gui::session::Session;
use crate::gui::session::bayes::Hardness;
use crate::gui::table_window;
use crate::gui::theme::{Badge, Theme};
use crate::gui::widgets::{heading, hint};

/// Most decades of the colour scale.
const DECADES: f64 = 6.0;
/// Cells at least this wide carry their number, points.
const LABELLED: f32 = 40.0;
/// Width of the colour scale and its numbers, points.
const LEGEND: f32 = 76.0;

pub fn show(ui: &mut Ui, cx: &mut Cx) {
    let sampled = cx.session.bayes.must_be_sampled() == Some(true);
    let drawn = !cx.prefs.settings().label_law().labels_are_classes();
    let (mark, why) = match sampled {
        false if drawn => (
            Badge::Estimated,
            "Two labels alone, in proportion to how often they are drawn: from draws of the classes; intervals under the pointer.",
        ),
        true => (
            Badge::Estimated,
            "Two classes alone, their priors in proportion: from the draws of the curve; intervals under the pointer.",
        ),
        false => {
            (Badge::Exact, "Two classes alone, their priors in proportion: Φ of half their distance, in closed form.")
        }
    };
    heading(ui, "Pairs of classes: Bayes error of each pair alone", Some((mark, why)));
    let hardness = cx.session.bayes.hardness_shown();
    let classes = cx.session.class_names().len();
    if hardness.pairs.errors.len() != classes * classes || classes < 2 {
        match &cx.session.bayes.hardness.trouble {
            Some(why) => drop(ui.colored_label(Theme::of(ui).error(), why)),
            None if classes < 2 => hint(ui, "This world has no two classes."),
            None if cx.prefs.tau > 0.0 => hint(ui, "Computing…"),
            None => hint(ui, "At τ = 0 no pair overlaps."),
        }
        return;
    }
    let [least, top] = hardness.pairs.span.unwrap_or([-300.0; 2]);
    // The scale spans what there is, from one decade to six.
    let bottom = least.min(top - 1.0).max(top - DECADES);
    let (session, names) = (cx.session, cx.session.class_names());
    ui.horizontal_wrapped(|ui| {
        table_window::button(ui, cx.view, "Bayes errors of pairs", "pairs.csv", || csv(session, hardness));
        let tau = format::sig4(hardness.tau);
        hint(ui, format!("At τ = {tau}, per cent, colours logarithmic. Rows and columns are classes."));
    });
    law::tell(ui, cx, hardness.law.as_ref());
    Map { names, hardness, bottom, top, classes }.show(ui);
}

/// The cells as comma-separated values, each pair once, with 95 % intervals where there are any.
fn csv(session: &Session, hardness: &Hardness) -> String {
    let names = session.class_names();
    let pairs = (0..names.len()).flat_map(|a| (a + 1..names.len()).map(move |b| (a, b)));
    let mut lines = Records::of(pairs)
        .field("class_a", |(a, _)| &names[a])
        .field("class_b", |(_, b)| &names[b])
        .field("bayes_error", |(a, b)| hardness.pairs.errors[a * names.len() + b]);
    if !hardness.pair_intervals.is_empty() {
        let interval = |(a, b): (usize, usize)| {
            let found = hardness.pair_intervals.get(a * names.len() + b).copied().flatten();
            found.unwrap_or((f64::NAN, f64::NAN))
        };
        lines = lines.field("low_95", |pair| interval(pair).0).field("high_95", |pair| interval(pair).1);
    }
    let origin = comments(&origin(session, hardness));
    format!("# plot: Bayes error of each pair of classes alone, a fraction\n{origin}{}", lines.text())
}

struct Map<'a> {
    names: &'a [String],
    hardness: &'a Hardness,
    /// log₁₀ of the error the colour scale begins with.
    bottom: f64,
    /// log₁₀ of the largest error.
    top: f64,
    classes: usize,
}

impl Map<'_> {
    fn show(&self, ui: &mut Ui) {
        let font = egui::TextStyle::Small.resolve(ui.style());
        let margin = self.margin(ui, &font);
        let room = (ui.available_width() - LEGEND - margin - 12.0).clamp(120.0, 560.0);
        let side = (room / self.classes as f32).clamp(3.0, 52.0);
        let height = (side * if side >= LABELLED { 0.56 } else { 1.0 }).max(3.0);
        let grid = vec2(side, height) * self.classes as f32;
        let size = vec2(margin + grid.x + 12.0 + LEGEND, grid.y.max(110.0) + 18.0);
        let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Bayes errors of pairs of classes"));
        let cells = Rect::from_min_size(rect.min + vec2(margin, 18.0), grid);
        let cell = |row: usize, column: usize| {
            let corner = cells.min + vec2(side * column as f32, height * row as f32);
            Rect::from_min_size(corner, vec2(side, height))
        };
        self.axes(ui, &font, &cell, rect, margin);
        // A few thousand classes have millions of cells: those that are scrolled away cost nothing.
        let clip = ui.clip_rect();
        let columns = met([clip.min.x, clip.max.x], cells.min.x, side, self.classes);
        for row in met([clip.min.y, clip.max.y], cells.min.y, height, self.classes) {
            for column in columns.clone() {
                self.cell(ui, &font, cell(row, column), row, column);
            }
        }
        let legend = Rect::from_min_size(pos2(cells.max.x + 12.0, cells.min.y), vec2(14.0, grid.y.max(110.0) - 4.0));
        self.legend(ui, &font, legend);
        let pointer = response.hover_pos().filter(|at| cells.contains(*at));
        if let Some(at) = pointer {
            let place = at - cells.min;
            let (row, column) = ((place.y / height) as usize, (place.x / side) as usize);
            if row != column && row < self.classes && column < self.classes {
                response.on_hover_text_at_pointer(self.about(row, column));
            }
        }
    }

    fn error(&self, row: usize, column: usize) -> f64 {
        self.hardness.pairs.errors[row * self.classes + column]
    }

    fn about(&self, row: usize, column: usize) -> String {
        let error = self.error(row, column);
        let (a, b) = (&self.names[row], &self.names[column]);
        if error.is_nan() {
            format!("{a} and {b}: both priors are 0")
        } else {
            let text = format!("{a} and {b}: {} %", format::sig4(100.0 * error));
            match self.hardness.pair_intervals.get(row * self.classes + column) {
                Some(Some((low, high))) => {
                    format!("{text}, 95 %: {} to {} %", format::sig4(100.0 * low), format::sig4(100.0 * high))
                }
                _ => text,
            }
        }
    }

    /// Room for the names of rows.
    fn margin(&self, ui: &Ui, font: &FontId) -> f32 {
        let width =
            |name: &String| ui.painter().layout_no_wrap(short(name), font.clone(), ui.visuals().text_color()).size().x;
        self.names.iter().take(200).map(width).fold(16.0, f32::max).min(90.0) + 6.0
    }

    fn axes(&self, ui: &Ui, font: &FontId, cell: &dyn Fn(usize, usize) -> Rect, rect: Rect, widest: f32) {
        let theme = Theme::of(ui);
        let size = cell(0, 0).size();
        // Names that would overlap are left out; the pointer tells them.
        let every = |room: f32, needed: f32| (needed / room).ceil().max(1.0) as usize;
        let (rows, columns) = (every(size.y, 11.0), every(size.x, widest + 4.0));
        for (class, name) in self.names.iter().enumerate() {
            let colour = theme.class(class, self.classes);
            if class % rows == 0 {
                let at = pos2(cell(class, 0).min.x - 5.0, cell(class, 0).center().y);
                ui.painter().text(at, Align2::RIGHT_CENTER, short(name), font.clone(), colour);
            }
            if class % columns == 0 {
                let at = pos2(cell(0, class).center().x, rect.min.y + 8.0);
                ui.painter().text(at, Align2::CENTER_CENTER, short(name), font.clone(), colour);
            }
        }
    }

    fn share(&self, log: f64) -> f32 {
        ((log - self.bottom) / (self.top - self.bottom)).clamp(0.0, 1.0) as f32
    }

    fn cell(&self, ui: &Ui, font: &FontId, rect: Rect, row: usize, column: usize) {
        let theme = Theme::of(ui);
        let error = self.error(row, column);
        if row == column || error.is_nan() {
            ui.painter().rect_filled(rect.shrink(0.5), 0.0, theme.trough());
            return;
        }
        let share = self.share(self.hardness.pairs.logs[row * self.classes + column]);
        let gap = if rect.width() > 8.0 { 0.5 } else { 0.0 };
        ui.painter().rect_filled(rect.shrink(gap), 0.0, theme.heat(share));
        if rect.width() >= LABELLED {
            let text = cell_text(100.0 * error);
            ui.painter().text(rect.center(), Align2::CENTER_CENTER, text, font.clone(), theme.on_heat(share));
        }
    }

    fn legend(&self, ui: &Ui, font: &FontId, rect: Rect) {
        let theme = Theme::of(ui);
        const STEPS: usize = 48;
        for i in 0..STEPS {
            let share = 1.0 - i as f32 / (STEPS - 1) as f32;
            let top = rect.min.y + rect.height() * i as f32 / STEPS as f32;
            let band =
                Rect::from_min_size(pos2(rect.min.x, top), vec2(rect.width(), rect.height() / STEPS as f32 + 0.6));
            ui.painter().rect_filled(band, 0.0, theme.heat(share));
        }
        for tick in 0..=3 {
            let share = f64::from(tick) / 3.0;
            let value = 10f64.powf(self.bottom + (self.top - self.bottom) * share) * 100.0;
            let y = rect.max.y - rect.height() * share as f32;
            let cut = tick == 0 && self.top - self.bottom > DECADES - 0.01;
            let least = if cut { "≤ " } else { "" };
            let text = format!("{least}{} %", cell_text(value));
            let at = pos2(rect.max.x + 5.0, y.clamp(rect.min.y + 5.0, rect.max.y - 5.0));
            ui.painter().text(at, Align2::LEFT_CENTER, text, font.clone(), ui.visuals().text_color());
        }
    }
}

/// Which of `n` cells in a row, each `step` wide and the first at `origin`, meet a stretch.
fn met([from, to]: [f32; 2], origin: f32, step: f32, n: usize) -> Range<usize> {
    let [first, end] = [((from - origin) / step).floor(), ((to - origin) / step).ceil()];
    (first.max(0.0) as usize).min(n)..(end.max(0.0) as usize).min(n)
}

fn short(name: &str) -> String {
    if name.chars().count() <= 12 { name.to_owned() } else { name.chars().take(11).chain(['…']).collect() }
}

/// Two or three digits, whatever the size.
fn cell_text(percent: f64) -> String {
    match percent {
        10.0.. => format!("{percent:.1}"),
        0.1..10.0 => format!("{percent:.2}"),
        0.001..0.1 => format!("{percent:.3}"),
        0.0 => "0".into(),
        _ => format!("{percent:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_are_scrolled_away_are_left_out() {
        assert_eq!(met([100.0, 200.0], 50.0, 10.0, 30), 5..15);
        assert_eq!(met([0.0, 1000.0], 50.0, 10.0, 30), 0..30);
        assert_eq!(met([f32::NEG_INFINITY, f32::INFINITY], 50.0, 10.0, 30), 0..30);
        // Those that are cut are there.
        assert_eq!(met([55.0, 76.0], 50.0, 10.0, 30), 0..3);
        assert!(met([0.0, 50.0], 50.0, 10.0, 30).is_empty() && met([400.0, 500.0], 50.0, 10.0, 30).is_empty());
    }
}
