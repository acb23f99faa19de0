//! p(y|x) along the path.

use eframe::egui::Ui;

use super::unit;
use crate::figure::{Axis, Figure, Point, Rule, Series, Style, Way, records};
use crate::gui::context::Cx;
use crate::gui::plot::{About, Board, comments, of_world};
use crate::gui::session::Session;
use crate::gui::theme::both_grounds;
use crate::gui::widgets::hint;
use crate::oracle::world::Settings;
use crate::worker::walk::{Mark, WalkDot, WalkHistory};

/// Classes drawn at most.
const MOST: usize = 12;
/// What the plot is called.
const TITLE: &str = "p(y|x) along the path";

/// The points as comma-separated values: of every class, also of those too small to be drawn.
fn csv(session: &Session, walk: &WalkHistory, origin: &[(String, String)]) -> String {
    let unit = unit(walk);
    let position = if unit.is_empty() { "position".to_owned() } else { format!("position ({unit})") };
    let head = std::iter::once(position).chain(session.class_names().iter().map(|name| format!("p({name}|x)")));
    let record = |dot: &WalkDot| {
        let p = &dot.tile.posterior.probabilities;
        std::iter::once(dot.position.to_string()).chain(p.iter().map(f64::to_string)).collect::<Vec<_>>()
    };
    let points = walk.along().into_iter().map(|(_, dot)| record(dot));
    let table = records(std::iter::once(head.collect()).chain(points));
    format!("# plot: p(y|x) along the path\n{}{table}", comments(origin))
}

/// The plot; a click in it chooses the nearest point.
pub fn show(
    ui: &mut Ui,
    cx: &mut Cx,
    (walk, mark, settings, from): (&WalkHistory, Mark, &Settings, &str),
    board: &mut Board,
) -> Option<Mark> {
    let session = cx.session;
    let origin = of_world(session, Some(settings), &[("walk from", from.to_owned())]);
    let numbers = || csv(session, walk, &origin);
    let figure = figure(session, walk, mark, origin.clone());
    let about = About {
        name: Some(TITLE),
        height: 170.0,
        clicks: true,
        numbers: Some((TITLE, "walk.csv", &numbers)),
        ..About::default()
    };
    let clicked = board.show(ui, cx, &figure, &about).clicked;
    let left_out = walk.classes().len().saturating_sub(MOST);
    let more = if left_out > 0 { format!("; {left_out} more are in the table") } else { String::new() };
    hint(ui, format!("Classes ever above 1 %{more}. A click chooses the nearest point."));
    let [clicked, _] = clicked?;
    let off = |position: f64| (position - clicked).abs();
    let along = walk.along();
    along.iter().min_by(|(_, a), (_, b)| off(a.position).total_cmp(&off(b.position))).map(|(mark, _)| *mark)
}

fn figure(session: &Session, walk: &WalkHistory, mark: Mark, provenance: Vec<(String, String)>) -> Figure {
    let along = walk.along();
    // Of the start alone the end of the path is not known.
    let last = along.last().map(|(_, dot)| dot.position).filter(|last| *last > 0.0).unwrap_or(1.0);
    let all = session.class_names().len();
    let series = walk.classes().into_iter().take(MOST).map(|class| {
        let points = along.iter().map(|(_, dot)| Point::new(dot.position, dot.tile.posterior.probabilities[class]));
        let part = match &walk.arrival {
            Some(arrival) if arrival.start == class => " (start)",
            Some(arrival) if arrival.target == class => " (goal)",
            _ => "",
        };
        Series {
            name: format!("{}{part}", session.class_name(class)),
            style: Style::LinePoints,
            colour: class,
            points: points.collect(),
            own: Some(both_grounds(class, all)),
            ..Series::default()
        }
    });
    let at = |at: f64, label: &str| Rule { way: Way::Vertical, at, low: None, high: None, label: label.into() };
    let arrival = walk.arrival.as_ref().filter(|arrival| arrival.why_not.is_none());
    let middle = arrival.map(|arrival| at(arrival.middle.position, "50/50"));
    let here = walk.at(mark).map(|dot| at(dot.position, "shown below"));
    let (x, unit) = (Axis::linear("position along the path"), unit(walk));
    let x = if unit.is_empty() { x } else { x.in_unit(unit) };
    Figure {
        id: "walk".into(),
        title: TITLE.into(),
        caption: "The exact posterior of the image at each place of the path, of the classes that are ever above 1 %."
            .into(),
        provenance,
        x: Axis { range: Some([-0.02 * last, 1.02 * last]), ..x },
        y: Axis { range: Some([-0.03, 1.03]), ..Axis::linear("p(y|x)") },
        series: series.collect(),
        rules: middle.into_iter().chain(here).collect(),
        ..Figure::default()
    }
}
