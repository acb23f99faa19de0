//! p(y|x) along the path.

use eframe::egui::{self, RichText, Ui, vec2};
use egui_plot::{
    GridInput, GridMark, HoverPosition, Line, LineStyle, MarkerShape, PlotBounds, PlotPoints, PlotUi, Points, VLine,
};

use super::unit;
use crate::figure::records;
use crate::gui::format;
use crate::gui::session::Session;
use crate::gui::theme::Theme;
use crate::gui::widgets::still_plot;
use crate::units::ClassId;
use crate::worker::walk::{Mark, WalkDot, WalkHistory};

/// Classes drawn at most.
const MOST: usize = 12;

/// The points as comma-separated values: of every class, also of those too small to be drawn.
pub fn csv(session: &Session, walk: &WalkHistory) -> String {
    let unit = unit(walk);
    let position = if unit.is_empty() { "position".to_owned() } else { format!("position ({unit})") };
    let head = std::iter::once(position).chain(session.class_names().iter().map(|name| format!("p({name}|x)")));
    let record = |dot: &WalkDot| {
        let p = &dot.tile.posterior.probabilities;
        std::iter::once(dot.position.to_string()).chain(p.iter().map(f64::to_string)).collect::<Vec<_>>()
    };
    let points = walk.along().into_iter().map(|(_, dot)| record(dot));
    "# plot: p(y|x) along the path\n".to_owned() + &records(std::iter::once(head.collect()).chain(points))
}

/// The plot; a click in it chooses the nearest point.
pub fn show(ui: &mut Ui, session: &Session, walk: &WalkHistory, mark: Mark) -> Option<Mark> {
    let theme = Theme::of(ui);
    let mut classes = walk.classes();
    let left_out = classes.len().saturating_sub(MOST);
    classes.truncate(MOST);
    legend(ui, session, walk, &classes, left_out);
    let all = session.class_names().len();
    let along = walk.along();
    let last = along.last().map_or(1.0, |(_, dot)| dot.position).max(1e-9);
    let label = |at: &HoverPosition<'_>| match at {
        HoverPosition::NearDataPoint { plot_name, position, .. } => {
            let (at, p) = (format::sig4(position.x), format::sig4(position.y));
            Some(format!("{plot_name}\nposition {at} {}\np(y|x) = {p}", unit(walk)))
        }
        HoverPosition::Elsewhere { .. } => None,
    };
    let unit = unit(walk);
    let axis = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
    // No class has this colour.
    let contrast = ui.visuals().strong_text_color();
    let plot = still_plot("walk plot", theme)
        .height(170.0)
        .x_axis_label(format!("position along the path{axis}"))
        .y_axis_label("p(y|x)")
        .label_formatter(label);
    let plot = if last == 1.0 { plot.x_grid_spacer(fifths) } else { plot };
    let shown = plot.y_grid_spacer(fifths).show(ui, |plot| {
        plot.set_plot_bounds(PlotBounds::from_min_max([-0.02 * last, -0.03], [1.02 * last, 1.03]));
        for &class in &classes {
            let points: Vec<[f64; 2]> =
                along.iter().map(|(_, dot)| [dot.position, dot.tile.posterior.probabilities[class]]).collect();
            curve(plot, session.class_name(class), points, theme.class(class, all));
        }
        if let Some(dot) = walk.at(mark) {
            let here = VLine::new("shown below", dot.position).color(theme.accent()).width(1.0);
            plot.vline(here.style(LineStyle::dashed_dense()).allow_hover(false));
        }
        middle(plot, walk, contrast);
        plot.pointer_coordinate().filter(|_| plot.response().clicked())
    });
    shown.response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, "p(y|x) along the path"));
    let clicked = shown.inner?.x;
    let off = |position: f64| (position - clicked).abs();
    along.iter().min_by(|(_, a), (_, b)| off(a.position).total_cmp(&off(b.position))).map(|(mark, _)| *mark)
}

fn curve(plot: &mut PlotUi<'_>, name: &str, points: Vec<[f64; 2]>, colour: egui::Color32) {
    plot.line(Line::new(name, PlotPoints::from(points.clone())).color(colour).width(2.0).allow_hover(false));
    plot.points(Points::new(name, PlotPoints::from(points)).color(colour).radius(2.0));
}

/// Grid lines from 0 to 1 that one decimal names exactly.
fn fifths(_: GridInput) -> Vec<GridMark> {
    (0..=5).map(|i| GridMark { value: 0.2 * f64::from(i), step_size: 0.2 }).collect()
}

/// The mark of the 50/50 point.
fn middle(plot: &mut PlotUi<'_>, walk: &WalkHistory, colour: egui::Color32) {
    let Some(arrival) = walk.arrival.as_ref().filter(|arrival| arrival.why_not.is_none()) else { return };
    let (at, p) = (arrival.middle.position, &arrival.middle.tile.posterior.probabilities);
    plot.vline(VLine::new("50/50", at).color(colour).width(1.5).allow_hover(false));
    let point = Points::new("50/50", PlotPoints::from(vec![[at, p[arrival.target]]]));
    plot.points(point.color(colour).radius(5.0).shape(MarkerShape::Diamond).allow_hover(false));
}

/// Names of the curves, above them: inside the plot they would cover it wherever they stood.
fn legend(ui: &mut Ui, session: &Session, walk: &WalkHistory, classes: &[ClassId], left_out: usize) {
    let theme = Theme::of(ui);
    let all = session.class_names().len();
    ui.horizontal_wrapped(|ui| {
        for &class in classes {
            let part = match &walk.arrival {
                Some(arrival) if arrival.start == class => " (start)",
                Some(arrival) if arrival.target == class => " (goal)",
                _ => "",
            };
            key(ui, theme.class(class, all), &format!("{}{part}", session.class_name(class)));
        }
        if walk.arrival.as_ref().is_some_and(|arrival| arrival.why_not.is_none()) {
            key(ui, ui.visuals().strong_text_color(), "50/50");
        }
        let more = if left_out > 0 { format!(" and {left_out} more") } else { String::new() };
        let note = format!("classes ever above 1 %{more}");
        ui.label(RichText::new(note).small().color(theme.weak()));
    });
}

fn key(ui: &mut Ui, colour: egui::Color32, text: &str) {
    ui.spacing_mut().item_spacing.x = 4.0;
    let (rect, _) = ui.allocate_exact_size(vec2(16.0, 12.0), egui::Sense::hover());
    ui.painter().line_segment([rect.left_center(), rect.right_center()], egui::Stroke::new(3.0, colour));
    ui.label(text);
    ui.add_space(8.0);
}
