//! Loss against N, both logarithmic: cross-entropy, its aleatoric floor, its epistemic part with
//! the fitted law and its band, and the law fitted without the largest N with its forecast there.

use std::path::{Path, PathBuf};

use eframe::egui::{self, Align2, Color32, RichText, Ui};
use egui_plot::{
    FilledArea, HLine, HoverPosition, Line, LineStyle, MarkerShape, PlotBounds, PlotPoint, PlotPoints, PlotTransform,
    PlotUi, Points, Text,
};

use super::super::bayes::axis::Scale;
use crate::experiment::{Cell, CellResult, Law};
use crate::gui::format;
use crate::gui::glossary;
use crate::gui::theme::Theme;
use crate::gui::widgets::still_plot;
use crate::measure::{Estimate, HoldOut, Interval, Measured};
use crate::worker::runs::LawCurve;

/// Room beside the outermost points, log₁₀.
const MARGIN: f64 = 0.07;
/// Points of one N but of different classifiers stand so far apart, log₁₀: none hides another.
const ASIDE: f64 = 0.01;
/// A click this near to a point is meant for it, points.
const REACH: f32 = 12.0;
/// A KL of 0 has no place on a logarithmic axis: it is drawn here, nats.
const LEAST: f64 = 1e-6;
/// The interval of a forecast is seen whole up to this factor from it.
const FAR: f64 = 10.0;

/// Which parts are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Cross-entropy.
    pub total: bool,
    /// Its floor.
    pub aleatoric: bool,
    /// KL and its law.
    pub epistemic: bool,
    /// The law of KL fitted without the largest N, with its forecast.
    pub held_out: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { total: true, aleatoric: true, epistemic: true, held_out: true }
    }
}

impl Shown {
    /// Check boxes for the parts, the key of the plot. `held_out`: whether a law was tested by its
    /// largest N.
    pub fn choose(&mut self, ui: &mut Ui, held_out: bool) {
        let parts = [
            (&mut self.total, "cross-entropy L (squares)", "cross-entropy"),
            (&mut self.aleatoric, "aleatoric A (dashed)", "aleatoric"),
            (&mut self.epistemic, "epistemic KL (circles, law with 95 % band)", "epistemic"),
        ];
        for (shown, text, word) in parts {
            glossary::explain(ui.checkbox(shown, text), word);
        }
        if held_out {
            let text = "law without the largest N (dashed, diamond: its forecast with 95 % interval)";
            let about = "The law of KL fitted to all but the largest N, drawn on to it. Where the circles there lie outside the \
                         interval of the diamond, the law does not hold beyond what it was fitted to. Shown with KL.";
            let key = ui.add_enabled(self.epistemic, egui::Checkbox::new(&mut self.held_out, text));
            key.on_hover_text(about).on_disabled_hover_text(about);
        }
    }

    /// Whether the laws without the largest N are drawn.
    pub fn forecasts(self) -> bool {
        self.epistemic && self.held_out
    }
}

/// The cells of one architecture of one run.
pub struct Series<'a> {
    /// Folder of the run.
    pub folder: &'a Path,
    /// What it is called.
    pub name: String,
    /// Its colour.
    pub colour: Color32,
    /// Its law.
    pub law: &'a Law,
    /// The law, drawn.
    pub curve: Option<&'a LawCurve>,
    /// Its finished cells.
    pub cells: Vec<&'a CellResult>,
}

/// A number and its 95 % interval.
pub fn bracketed(Estimate { value, interval }: Estimate) -> String {
    let [value, low, high] = [value, interval.low, interval.high].map(format::sig4);
    format!("{value} [{low}, {high}]")
}

/// A point of the plot.
struct Mark<'a> {
    /// Where it stands.
    at: [f64; 2],
    series: &'a Series<'a>,
    cell: &'a CellResult,
    /// KL or L.
    part: &'static str,
    figure: Estimate,
}

impl Mark<'_> {
    fn words(&self) -> String {
        let figure = bracketed(self.figure);
        let Self { part, series, cell, .. } = self;
        let Cell { train_size, seed, .. } = cell.cell;
        let n = format::count(train_size);
        format!("{}\nN = {n}, seed {seed}\n{part} = {figure} nats\nClick for its worst images", series.name)
    }
}

/// The forecast of a law for the N that it was not fitted to.
struct Held<'a> {
    /// Where it stands.
    at: [f64; 2],
    series: &'a Series<'a>,
    found: &'a HoldOut,
}

impl Held<'_> {
    fn words(&self) -> String {
        let HoldOut { n, forecast, came, holds, .. } = self.found;
        let verdict = if *holds { "inside" } else { "outside" };
        format!(
            "{}\nHeld-out N = {n}: the law fitted without it\nforecasts KL = {} nats;\n{} came, {verdict} the forecast's interval",
            self.series.name,
            bracketed(*forecast),
            bracketed(*came)
        )
    }
}

/// The forecasts that are drawn.
fn forecasts<'a>(series: &'a [Series<'a>], shown: Shown) -> Vec<Held<'a>> {
    let of = |(i, one): (usize, &'a Series<'a>)| {
        let found = one.law.hold_out.as_ref()?;
        // Between the points of this classifier and those of the next.
        let x = found.n.log10() + aside(i, series.len()) + 0.5 * ASIDE;
        Some(Held { at: [x, place(found.forecast.value)], series: one, found })
    };
    series.iter().enumerate().filter(|_| shown.forecasts()).filter_map(of).collect()
}

/// How far from their N the points of a series stand, log₁₀.
fn aside(series: usize, of: usize) -> f64 {
    ASIDE * (series as f64 - (of - 1) as f64 / 2.0)
}

/// All points that are drawn, those of one classifier together.
fn marks<'a>(series: &'a [Series<'a>], shown: Shown) -> Vec<Mark<'a>> {
    type Part = (bool, &'static str, fn(&Measured) -> Estimate);
    let parts: [Part; 2] = [(shown.epistemic, "KL", |m| m.epistemic), (shown.total, "L", |m| m.cross_entropy)];
    let mut all = Vec::new();
    for (i, one) in series.iter().enumerate() {
        let aside = aside(i, series.len());
        for (_, part, of) in parts.into_iter().filter(|(shown, ..)| *shown) {
            all.extend(one.cells.iter().map(|cell| {
                let figure = of(&cell.measured);
                let at = [(cell.cell.train_size as f64).log10() + aside, place(figure.value)];
                Mark { at, series: one, cell, part, figure }
            }));
        }
    }
    all
}

/// The mark nearest to a place of the screen, if it is near enough to be meant.
fn nearest<'a, 'b>(marks: &'b [Mark<'a>], to: egui::Pos2, transform: &PlotTransform) -> Option<&'b Mark<'a>> {
    let off = |mark: &Mark<'_>| {
        let [x, y] = mark.at;
        transform.position_from_point(&PlotPoint::new(x, y)).distance(to)
    };
    let near = marks.iter().map(|mark| (off(mark), mark)).filter(|(off, _)| *off <= REACH);
    near.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, mark)| mark)
}

/// The plot; the run and the cell of a point that was clicked.
pub fn show(
    ui: &mut Ui,
    series: &[Series<'_>],
    floors: &[(String, Estimate)],
    shown: Shown,
    chosen: Option<&str>,
) -> Option<(PathBuf, String)> {
    let theme = Theme::of(ui);
    let (marks, held) = (marks(series, shown), forecasts(series, shown));
    let label = |at: &HoverPosition<'_>| {
        let HoverPosition::NearDataPoint { position, .. } = at else { return None };
        let here = |at: [f64; 2]| at == [position.x, position.y];
        let mark = marks.iter().find(|mark| here(mark.at)).map(Mark::words);
        mark.or_else(|| held.iter().find(|one| here(one.at)).map(Held::words))
    };
    let plot = still_plot("scaling law", theme)
        .height(300.0)
        .x_axis_label("training images N (logarithmic)")
        .y_axis_label("nats per image (logarithmic)")
        .x_grid_spacer(|input| Scale::Log.marks(&input))
        .y_grid_spacer(|input| Scale::Log.marks(&input))
        .x_axis_formatter(|mark, _| Scale::Log.label(&mark))
        .y_axis_formatter(|mark, _| Scale::Log.label(&mark))
        .label_formatter(label);
    let bounds = bounds(series, &held, floors, shown);
    // No classifier has this colour.
    let contrast = ui.visuals().strong_text_color();
    let response = plot.show(ui, |plot| {
        plot.set_plot_bounds(bounds);
        // Bands lie under all points.
        series.iter().filter(|_| shown.epistemic).for_each(|one| law(plot, one));
        held.iter().for_each(|one| without_largest(plot, one));
        for of_one in marks.chunk_by(|a, b| std::ptr::eq(a.series, b.series) && a.part == b.part) {
            points(plot, of_one);
        }
        for mark in marks.iter().filter(|mark| chosen == Some(mark.cell.id.as_str())) {
            let ring = Points::new("chosen cell", PlotPoints::from(vec![mark.at])).radius(7.0).filled(false);
            plot.points(ring.color(contrast).shape(MarkerShape::Circle).allow_hover(false));
        }
        if shown.aleatoric {
            aleatoric(plot, floors, &bounds, theme.mismatch());
        }
    });
    whiskers(ui, &marks, &held, &response.transform);
    let name = "Loss over the number of training images";
    response.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, name));
    let pointer = response.response.hover_pos().or(response.response.interact_pointer_pos())?;
    let mark = nearest(&marks, pointer, &response.transform)?;
    ui.set_cursor_icon(egui::CursorIcon::PointingHand);
    response.response.clicked().then(|| (mark.series.folder.to_owned(), mark.cell.id.clone()))
}

fn place(value: f64) -> f64 {
    value.max(LEAST).log10()
}

fn bounds(series: &[Series<'_>], held: &[Held<'_>], floors: &[(String, Estimate)], shown: Shown) -> PlotBounds {
    let cells = || series.iter().flat_map(|one| &one.cells);
    let mut heights: Vec<f64> = Vec::new();
    for cell in cells() {
        let m = &cell.measured;
        if shown.epistemic {
            heights.extend([m.epistemic.value, m.epistemic.interval.high]);
        }
        if shown.total {
            heights.extend([m.cross_entropy.value, m.cross_entropy.interval.high]);
        }
    }
    if shown.aleatoric {
        heights.extend(floors.iter().map(|(_, floor)| floor.value).filter(|floor| *floor > 0.0));
    }
    heights.extend(held.iter().flat_map(|one| {
        let Estimate { value, interval: Interval { low, high } } = one.found.forecast;
        [value, low.max(value / FAR), high.min(value * FAR)]
    }));
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low <= high { (low - MARGIN, high + MARGIN) } else { (-1.0, 1.0) }
    };
    let (left, right) = range(&mut cells().map(|cell| (cell.cell.train_size as f64).log10()));
    let (bottom, top) = range(&mut heights.into_iter().map(place));
    PlotBounds::from_min_max([left, bottom], [right, top])
}

/// The fitted curve and its band.
fn law(plot: &mut PlotUi<'_>, one: &Series<'_>) {
    let Some(curve) = one.curve else { return };
    let column = |i: usize| -> Vec<f64> { curve.points.iter().map(|point| place(point[i])).collect() };
    let xs: Vec<f64> = curve.points.iter().map(|point| point[0].log10()).collect();
    let name = format!("{}, law", one.name);
    let band = FilledArea::new(format!("{name}, band"), &xs, &column(2), &column(3));
    plot.add(band.fill_color(one.colour.gamma_multiply(0.22)).allow_hover(false));
    let middle: Vec<[f64; 2]> = xs.iter().zip(column(1)).map(|(x, y)| [*x, y]).collect();
    plot.line(Line::new(name, PlotPoints::from(middle)).color(one.colour).width(2.0).allow_hover(false));
}

/// The law fitted without the largest N, on to it, and its forecast there.
fn without_largest(plot: &mut PlotUi<'_>, held: &Held<'_>) {
    let one = held.series;
    let course = one.curve.iter().flat_map(|curve| &curve.without_largest);
    let places: Vec<[f64; 2]> = course.map(|[n, kl]| [n.log10(), place(*kl)]).collect();
    let name = format!("{}, law without the largest N", one.name);
    let line = Line::new(name, PlotPoints::from(places)).color(one.colour).width(1.5);
    plot.line(line.style(LineStyle::dashed_dense()).allow_hover(false));
    let point = Points::new(format!("{}, forecast", one.name), PlotPoints::from(vec![held.at])).radius(6.0);
    plot.points(point.color(one.colour).shape(MarkerShape::Diamond).filled(false));
}

/// The aleatoric part of each run's test images.
fn aleatoric(plot: &mut PlotUi<'_>, floors: &[(String, Estimate)], bounds: &PlotBounds, colour: Color32) {
    for (i, (of, floor)) in floors.iter().enumerate().filter(|(_, (_, floor))| floor.value > 0.0) {
        let at = floor.value.log10();
        let line = HLine::new(format!("aleatoric{of}"), at).color(colour).width(1.5);
        plot.hline(line.style(LineStyle::dashed_loose()).allow_hover(false));
        let text = format!("aleatoric A{of} = {} nats, mean over the test images", bracketed(*floor));
        // Names of floors close together would lie on each other.
        let (x, anchor) = match i % 2 {
            0 => (bounds.max()[0], Align2::RIGHT_BOTTOM),
            _ => (bounds.min()[0], Align2::LEFT_BOTTOM),
        };
        let text = Text::new(format!("aleatoric text{of}"), PlotPoint::new(x, at), RichText::new(text).small());
        plot.text(text.color(colour).anchor(anchor).allow_hover(false));
    }
}

/// The intervals of all points. As thousands of plot lines each would cost a name, a list and a
/// search.
fn whiskers(ui: &Ui, marks: &[Mark<'_>], held: &[Held<'_>], transform: &PlotTransform) {
    let line = |x: f64, Estimate { interval, .. }: Estimate, width: f32, colour: Color32| {
        let end = |end: f64| transform.position_from_point(&PlotPoint::new(x, place(end)));
        egui::Shape::line_segment([end(interval.low), end(interval.high)], egui::Stroke::new(width, colour))
    };
    let of_mark = |mark: &Mark<'_>| line(mark.at[0], mark.figure, 1.0, mark.series.colour.gamma_multiply(0.6));
    let of_held = |one: &Held<'_>| line(one.at[0], one.found.forecast, 2.0, one.series.colour);
    let lines = marks.iter().map(of_mark).chain(held.iter().map(of_held));
    ui.painter().with_clip_rect(transform.frame().intersect(ui.clip_rect())).extend(lines);
}

/// The values of one part of one classifier.
fn points(plot: &mut PlotUi<'_>, marks: &[Mark<'_>]) {
    let Some(Mark { series, part, .. }) = marks.first() else { return };
    let places: Vec<[f64; 2]> = marks.iter().map(|mark| mark.at).collect();
    let (shape, filled) = if *part == "KL" { (MarkerShape::Circle, true) } else { (MarkerShape::Square, false) };
    let points = Points::new(format!("{}, {part}", series.name), PlotPoints::from(places));
    plot.points(points.color(series.colour).radius(3.5).shape(shape).filled(filled));
}
