//! Loss against the number of training images, both logarithmic: cross-entropy, its aleatoric floor, its epistemic part with
//! the fitted law and its band.

use eframe::egui::{self, Align2, Color32, RichText, Ui};
use egui_plot::{
    FilledArea, HLine, HoverPosition, Line, LineStyle, MarkerShape, PlotBounds, PlotPoint, PlotPoints, PlotUi, Points,
    Text,
};

use super::super::bayes::axis::Scale;
use crate::experiment::{CellResult, Law};
use crate::gui::format;
use crate::gui::theme::Theme;
use crate::gui::widgets::still_plot;
use crate::measure::{Estimate, Measured};
use crate::worker::runs::LawCurve;

/// Room beside the outermost points, log₁₀.
const MARGIN: f64 = 0.07;
/// Points of one N but of different classifiers stand so far apart, log₁₀: none hides another.
const ASIDE: f64 = 0.01;
/// A KL of 0 has no place on a logarithmic axis: it is drawn here, nats.
const LEAST: f64 = 1e-6;

/// Which parts are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    total: bool,
    aleatoric: bool,
    epistemic: bool,
}

impl Default for Shown {
    fn default() -> Self {
        Self { total: true, aleatoric: true, epistemic: true }
    }
}

impl Shown {
    /// Check boxes for the parts.
    pub fn choose(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            ui.checkbox(&mut self.total, "cross-entropy L (squares)");
            ui.checkbox(&mut self.aleatoric, "aleatoric A (dashed)");
            ui.checkbox(&mut self.epistemic, "epistemic KL (circles, law with 95 % band)");
        });
    }
}

/// The cells of one architecture of one run.
pub struct Series<'a> {
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

/// The plot.
pub fn show(ui: &mut Ui, series: &[Series<'_>], floors: &[(String, f64)], shown: Shown) {
    let theme = Theme::of(ui);
    let mut sizes: Vec<usize> = series.iter().flat_map(|one| &one.cells).map(|cell| cell.cell.train_size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let label = move |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => {
            let off = |n: &&usize| ((**n as f64).log10() - position.x).abs();
            let n = sizes.iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
            let nats = format::sig4(Scale::Log.value(position.y));
            Some(format!("{plot_name}\nN = {}\n{nats} nats", format::count(*n)))
        }
        HoverPosition::Elsewhere { .. } => None,
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
    let bounds = bounds(series, floors, shown);
    let response = plot.show(ui, |plot| {
        plot.set_plot_bounds(bounds);
        // Bands lie under all points.
        series.iter().filter(|_| shown.epistemic).for_each(|one| law(plot, one));
        for (i, one) in series.iter().enumerate() {
            let aside = ASIDE * (i as f64 - (series.len() - 1) as f64 / 2.0);
            if shown.epistemic {
                points(plot, (one, aside), "KL", |m| m.epistemic, MarkerShape::Circle);
            }
            if shown.total {
                points(plot, (one, aside), "L", |m| m.cross_entropy, MarkerShape::Square);
            }
        }
        for (i, (of, floor)) in floors.iter().enumerate().filter(|(_, (_, floor))| shown.aleatoric && *floor > 0.0) {
            let at = floor.log10();
            let line = HLine::new(format!("aleatoric{of}"), at).color(theme.mismatch()).width(1.5);
            plot.hline(line.style(LineStyle::dashed_loose()).allow_hover(false));
            let text = format!("aleatoric A{of} = {} nats", format::sig4(*floor));
            // Names of floors close together would lie on each other.
            let (x, anchor) = match i % 2 {
                0 => (bounds.max()[0], Align2::RIGHT_BOTTOM),
                _ => (bounds.min()[0], Align2::LEFT_BOTTOM),
            };
            let text = Text::new(format!("aleatoric text{of}"), PlotPoint::new(x, at), RichText::new(text).small());
            plot.text(text.color(theme.mismatch()).anchor(anchor).allow_hover(false));
        }
    });
    let name = "Loss over the number of training images";
    response.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, name));
}

fn place(value: f64) -> f64 {
    value.max(LEAST).log10()
}

fn bounds(series: &[Series<'_>], floors: &[(String, f64)], shown: Shown) -> PlotBounds {
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
        heights.extend(floors.iter().map(|(_, floor)| *floor).filter(|floor| *floor > 0.0));
    }
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

/// Every seed's value with its interval, a little aside.
fn points(
    plot: &mut PlotUi<'_>,
    (one, aside): (&Series<'_>, f64),
    part: &str,
    of: fn(&Measured) -> Estimate,
    shape: MarkerShape,
) {
    let mut places = Vec::with_capacity(one.cells.len());
    for (i, cell) in one.cells.iter().enumerate() {
        let (x, figure) = ((cell.cell.train_size as f64).log10() + aside, of(&cell.measured));
        let ends = [figure.interval.low, figure.interval.high].map(|end| [x, place(end)]);
        let whisker = Line::new(format!("{} {part} interval {i}", one.name), PlotPoints::from(ends.to_vec()));
        plot.line(whisker.color(one.colour.gamma_multiply(0.6)).width(1.0).allow_hover(false));
        places.push([x, place(figure.value)]);
    }
    let marks = Points::new(format!("{}, {part}", one.name), PlotPoints::from(places));
    plot.points(marks.color(one.colour).radius(3.5).shape(shape).filled(shape == MarkerShape::Circle));
}
