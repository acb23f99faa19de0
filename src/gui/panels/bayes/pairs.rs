//! The Bayes errors of all pairs of classes as a heat map.

use std::f32::consts::FRAC_PI_2;
use std::ops::Range;

use eframe::egui::epaint::TextShape;
use eframe::egui::{self, Align2, Color32, FontId, Pos2, Rect, Sense, Ui, pos2, vec2};

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
/// Errors within so many decades are alike: in colours of their own their rounding would look like a pattern.
const ALIKE: f64 = 0.01;
/// Cells at least this wide carry their number, points.
const LABELLED: f32 = 40.0;
/// Width of the colour scale and its numbers, points.
const LEGEND: f32 = 76.0;
/// Room of a name along the columns, of level names above them and beside each other, points.
const NAME: f32 = 11.0;
const HEAD: f32 = 18.0;
const APART: f32 = 4.0;

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
    let bottom = bottom(least, top);
    let (session, names) = (cx.session, cx.session.class_names());
    ui.horizontal_wrapped(|ui| {
        table_window::button(ui, cx.view, "Bayes errors of pairs", "pairs.csv", || csv(session, hardness));
        let tau = format::sig4(hardness.tau);
        hint(ui, format!("At τ = {tau}, per cent, colours logarithmic. Rows and columns are classes; of each pair π in proportion."));
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
    format!(
        "# plot: Bayes error of each pair of classes alone (priors in proportion), a fraction\n{origin}{}",
        lines.text()
    )
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
        let (turned, every) = headings(side, margin);
        let head = if turned { margin } else { HEAD };
        let size = vec2(margin + grid.x + 12.0 + LEGEND, grid.y.max(110.0) + head);
        let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "Bayes errors of pairs of classes"));
        let cells = Rect::from_min_size(rect.min + vec2(margin, head), grid);
        let cell = |row: usize, column: usize| {
            let corner = cells.min + vec2(side * column as f32, height * row as f32);
            Rect::from_min_size(corner, vec2(side, height))
        };
        self.axes(ui, &font, &cell, (turned, every));
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

    fn axes(&self, ui: &Ui, font: &FontId, cell: &dyn Fn(usize, usize) -> Rect, (turned, columns): (bool, usize)) {
        let theme = Theme::of(ui);
        let rows = every(cell(0, 0).height(), NAME);
        for (class, name) in self.names.iter().enumerate() {
            let colour = theme.class(class, self.classes);
            if class % rows == 0 {
                let at = pos2(cell(class, 0).min.x - 5.0, cell(class, 0).center().y);
                ui.painter().text(at, Align2::RIGHT_CENTER, short(name), font.clone(), colour);
            }
            if class % columns == 0 {
                let at = cell(0, class).center_top() - vec2(0.0, APART);
                above(ui, short(name), font, colour, (at, turned));
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

/// log₁₀ of the error the colour scale begins with: it spans what there is, six decades at most, and one where all are alike.
fn bottom(least: f64, top: f64) -> f64 {
    if top - least < ALIKE { top - 1.0 } else { least.max(top - DECADES) }
}

/// Every which name is written, where each needs so much room. The pointer tells those that are left out.
fn every(room: f32, needed: f32) -> usize {
    (needed / room).ceil().max(1.0) as usize
}

/// Whether the names of columns are turned, since they do not fit beside each other, and every which is written.
fn headings(column: f32, widest: f32) -> (bool, usize) {
    let turned = widest + APART > column;
    (turned, every(column, if turned { NAME } else { widest + APART }))
}

/// Writes a name upwards from a place, or level above it.
fn above(ui: &Ui, name: String, font: &FontId, colour: Color32, (at, turned): (Pos2, bool)) {
    let galley = ui.painter().layout_no_wrap(name, font.clone(), colour);
    let (anchor, angle) = if turned { (Align2::LEFT_CENTER, -FRAC_PI_2) } else { (Align2::CENTER_BOTTOM, 0.0) };
    let corner = at - anchor.pos_in_rect(&galley.rect).to_vec2();
    ui.painter().add(TextShape::new(corner, galley, colour).with_angle_and_anchor(angle, anchor));
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
    #[test]
    fn the_colour_scale_spans_the_errors_there_are() {
        // Pairs of 11.1 to 13.1 %.
        let [least, top] = [0.111f64.log10(), 0.131f64.log10()];
        assert_eq!(bottom(least, top), least);
        assert_eq!(bottom(-300.0, top), top - DECADES);
        assert_eq!([bottom(top, top), bottom(top - 0.001, top)], [top - 1.0; 2], "one pair, or all alike");
    }

    #[test]
    fn names_that_do_not_fit_beside_each_other_are_turned_and_all_there() {
        assert_eq!(headings(52.0, 22.0), (false, 1));
        assert_eq!(headings(48.0, 70.0), (true, 1));
        assert_eq!(headings(3.0, 96.0), (true, 4), "a thousand classes");
    }
}
