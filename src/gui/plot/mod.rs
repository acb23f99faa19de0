//! Every plot of the window: a [`Figure`] as data, painted from the shapes of its files, with zoom, legend, pointer and
//! the row of buttons that saves and copies it. There is no other way to a plot: `tests/layering.rs` looks.
//!
//! The wheel zooms about the pointer, a drag draws the frame of what is to be seen, a drag with Shift or the right button
//! moves it, a double click shows all again; `+`, `-` and `0` do the same for the keyboard. A click in the legend
//! takes a series away and brings it back.
//!
//! | file | what |
//! |---|---|
//! | `origin` | world and program, for figures of the open world |
//! | `painting` | the shapes of a scene as those of egui |
//! | `zoom` | the part in view, and numbers as places of the screen |
//! | `pointer` | the nearest points and their words |
//! | `gesture`, `marker` | what wheel, drags and keys ask for; a line that can be moved |

mod gesture;
mod marker;
mod origin;
mod painting;
mod pointer;
mod zoom;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use eframe::egui::{self, Color32, CursorIcon, Rect, Response, Sense, Stroke, StrokeKind, Ui, WidgetInfo, pos2};

use super::command::{Command, RunCommand};
use super::context::Cx;
use super::table_window;
use super::theme::Theme;
use super::widgets::hint;
use crate::figure::scene::{Entry, Key};
use crate::figure::{Axis, Figure, Frame, RenderOptions, Scale, Series, Slot, bounds, csv, scene_without, slots, thin};
use gesture::Gesture;
pub use origin::of_world;
use painting::Painting;
use zoom::{Map, Part, is_whole};

/// Height between the axes, points.
const HEIGHT: f64 = 300.0;
/// What a click in the legend does.
const HIDE: &str = "Click: it goes away, and the axes hold the rest";
const SHOW: &str = "Click: it comes back";
/// Widest figure: beyond, lines get long and points get lost.
const WIDEST: f32 = 900.0;
/// Radius of the ring around a point under the pointer, and of that around a chosen one.
const RING: f32 = 4.5;
const CHOSEN: f32 = 7.0;

/// What a plot has beside its figure.
pub struct About<'a> {
    /// What it is called for those who do not see it; title and caption, where it is not said.
    pub name: Option<&'a str>,
    /// Height between the axes, points.
    pub height: f64,
    /// Width, points; all there is, up to a limit, where it is not said.
    pub width: Option<f32>,
    /// The vertical reference line that can be taken and moved, by its place in the figure.
    pub movable: Option<usize>,
    /// Points with a ring around them: series, and place in it.
    pub chosen: &'a [[usize; 2]],
    /// A click means something: the pointer says so over marks.
    pub clicks: bool,
    /// The numbers of its table: title, name of the file, and how they are written; those of the figure, where it is not
    /// said.
    pub numbers: Option<(&'a str, &'static str, &'a dyn Fn() -> String)>,
}

impl Default for About<'_> {
    fn default() -> Self {
        let (name, width, movable, numbers) = (None, None, None, None);
        Self { name, height: HEIGHT, width, movable, chosen: &[], clicks: false, numbers }
    }
}

/// What the user did to a plot in this frame.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Touched {
    /// Where the movable line was moved to.
    pub moved: Option<f64>,
    /// The mark that was clicked: its series, and its place in it.
    pub mark: Option<[usize; 2]>,
    /// Where there was a click, in numbers of the axes.
    pub clicked: Option<[f64; 2]>,
}

/// A plot from frame to frame: what is in view, what is hidden, and how it was painted last.
#[derive(Default)]
pub struct Board {
    part: Option<Part>,
    /// The axes whose part that is: titles and scales.
    axes: Option<[(String, Scale); 2]>,
    /// Names of series and lines that were clicked away.
    hidden: BTreeSet<String>,
    gesture: Gesture,
    kept: Option<Kept>,
}

/// The plots of a list of figures.
#[derive(Default)]
pub struct Boards(BTreeMap<String, Board>);

impl Boards {
    /// The plot of a figure, by its ID and its run: what was in view of one run says nothing of another.
    pub fn of(&mut self, figure: &Figure) -> &mut Board {
        let run = figure.provenance.iter().find(|(name, _)| name == "run").map_or("", |(_, run)| run.as_str());
        self.0.entry(format!("{} of {run}", figure.id)).or_default()
    }
}

/// A figure laid out.
struct Kept {
    /// As it was given.
    figure: Arc<Figure>,
    look: Look,
    /// Of it what is in view and not hidden.
    shown: Figure,
    slots: Vec<Slot>,
    frame: Frame,
    whole: Frame,
    keys: Vec<Key>,
    painting: Painting,
}

/// What a layout depends on beside the figure.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    width: f32,
    height: f64,
    dark: bool,
    part: Option<Part>,
    hidden: BTreeSet<String>,
}

impl Board {
    /// Shows a figure and its buttons.
    pub fn show(&mut self, ui: &mut Ui, cx: &mut Cx, figure: &Figure, about: &About) -> Touched {
        let kept = self.kept.as_ref().map(|kept| &kept.figure).filter(|kept| ***kept == *figure);
        let figure = kept.cloned().unwrap_or_else(|| Arc::new(figure.clone()));
        self.show_shared(ui, cx, &figure, about)
    }

    /// The same for a figure that is kept elsewhere: a long one is not compared point by point.
    pub fn show_shared(&mut self, ui: &mut Ui, cx: &mut Cx, figure: &Arc<Figure>, about: &About) -> Touched {
        let axes = [&figure.x, &figure.y].map(|axis| (axis.full_title(), axis.scale));
        if self.axes.as_ref() != Some(&axes) {
            // A part of steps is none of epochs.
            (self.part, self.axes) = (None, Some(axes));
        }
        let (response, touched) = self.picture(ui, figure, about);
        self.row(ui, cx, figure, about);
        let omitted = self.kept.as_ref().filter(|_| self.part.is_none()).map(|kept| kept.frame.omitted.to_string());
        omitted.into_iter().filter(|text| !text.is_empty()).for_each(|text| {
            ui.colored_label(Theme::of(ui).warning(), text);
        });
        let name = about.name.map_or_else(|| format!("{}: {}", figure.title, figure.caption), str::to_owned);
        response.widget_info(|| WidgetInfo::labeled(egui::Role::Image, true, &name));
        touched
    }

    fn picture(&mut self, ui: &mut Ui, figure: &Arc<Figure>, about: &About) -> (Response, Touched) {
        let look = self.look(ui, about);
        if self.kept.as_ref().is_none_or(|kept| !kept.fits(figure, &look)) {
            self.kept = Some(Kept::new(ui, figure, look));
        }
        let Some(kept) = &mut self.kept else { return (ui.response(), Touched::default()) };
        let (rect, response) = ui.allocate_exact_size(kept.painting.size, Sense::click_and_drag());
        let map = Map::new(&kept.shown, &kept.frame, kept.painting.plot.translate(rect.min.to_vec2()));
        let line = about.movable.and_then(|rule| kept.shown.rules.get(rule)).and_then(|rule| map.column(rule.at));
        let line = line.filter(|x| map.plot.x_range().contains(*x));
        let taken = line.map(|x| marker::line(ui, response.id, &map, x));
        let over = response.hover_pos().or(taken.as_ref().and_then(|(line, _)| line.hover_pos()));
        let over = over.filter(|at| map.plot.contains(*at));
        let asked = self.gesture.follow(ui, &response, &map, over, &kept.whole);
        let mut touched = Touched { moved: taken.as_ref().and_then(|(_, moved)| *moved), ..Touched::default() };
        if ui.is_rect_visible(rect) {
            kept.painting.paint(ui, rect.min);
            kept.over(ui, &map, line, about);
            self.gesture.paint(ui, &map);
        }
        if let Some(pointer) = over.filter(|_| !response.dragged() && response.hovered()) {
            ui.set_cursor_icon(self.gesture.cursor());
            kept.point_at(ui, &response, &map, pointer, about, &mut touched);
        }
        let (keys, whole) = (kept.keys.clone(), kept.whole);
        let whole_again = asked.all || asked.part.is_some_and(|part| is_whole(part, &whole, figure));
        self.part = if whole_again { None } else { asked.part.or(self.part) };
        self.legend(ui, figure, rect, &response, &keys);
        (response, touched)
    }

    fn look(&self, ui: &Ui, about: &About) -> Look {
        let width = about.width.unwrap_or_else(|| ui.available_width().min(WIDEST).floor());
        let (dark, hidden) = (Theme::of(ui).is_dark(), self.hidden.clone());
        Look { width, height: about.height, dark, part: self.part, hidden }
    }

    /// The entries of the legend, each a switch.
    fn legend(&mut self, ui: &mut Ui, figure: &Figure, rect: Rect, plot: &Response, keys: &[Key]) {
        for key in keys {
            let Some(name) = named(figure, key.entry) else { continue };
            let [left, top, right, bottom] = key.area.map(|side| side as f32);
            let area = Rect::from_min_max(pos2(left, top), pos2(right, bottom)).translate(rect.min.to_vec2());
            let response = ui.interact(area, plot.id.with(("key", key.entry)), Sense::click());
            let shown = !self.hidden.contains(name);
            response.widget_info(|| WidgetInfo::selected(egui::Role::CheckBox, true, shown, format!("Show {name}")));
            let response =
                response.on_hover_cursor(CursorIcon::PointingHand).on_hover_text(if shown { HIDE } else { SHOW });
            if response.has_focus() {
                ui.painter().rect_stroke(area, 2.0, ui.visuals().selection.stroke, StrokeKind::Outside);
            }
            if response.clicked() {
                match shown {
                    true => drop(self.hidden.insert(name.to_owned())),
                    false => drop(self.hidden.remove(name)),
                }
            }
        }
    }

    /// The buttons of a plot.
    fn row(&mut self, ui: &mut Ui, cx: &mut Cx, figure: &Arc<Figure>, about: &About) {
        let title = about.numbers.map_or(figure.title.as_str(), |(title, ..)| title);
        ui.horizontal_wrapped(|ui| {
            let save =
                ui.small_button("Save figure…").on_hover_text("As it is shown, for a paper: SVG, PDF, PNG or CSV");
            if save.accessible_name(format!("Save the figure {title}")).clicked() {
                cx.commands.push(Command::Run(RunCommand::SaveFigure(Box::new(self.as_shown(figure)))));
            }
            let copy = ui.small_button("Copy picture").on_hover_text("As it is shown, in the look of saved figures");
            if copy.accessible_name(format!("Copy the picture {title}")).clicked() {
                cx.commands.push(Command::Run(RunCommand::CopyPicture(Box::new(self.as_shown(figure)))));
            }
            match about.numbers {
                Some((title, file, numbers)) => table_window::button(ui, cx.view, title, file, numbers),
                None => table_window::button(ui, cx.view, &figure.title, "figure.csv", || csv(figure)),
            }
            if self.part.is_some() {
                let all =
                    ui.small_button("Show all").on_hover_text("The whole plot again: a double click does the same");
                if all.accessible_name(format!("Show all of {title}")).clicked() {
                    self.part = None;
                }
            }
            if !self.hidden.is_empty() {
                let what = self.hidden.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                hint(ui, format!("hidden: {what}"));
            }
        });
    }

    /// The figure with the axes that are in view and without what is hidden.
    fn as_shown(&self, figure: &Figure) -> Figure {
        let mut shown = figure.clone();
        shown.series.retain(|series| !self.hidden.contains(&series.name));
        shown.rules.retain(|rule| !self.hidden.contains(&rule.label));
        cut(&mut shown, self.part);
        shown
    }
}

/// Sets the axes to the part in view.
fn cut(figure: &mut Figure, part: Option<Part>) {
    if let Some([x, y]) = part {
        (figure.x.range, figure.y.range) = (Some(x), Some(y));
    }
}

fn named(figure: &Figure, entry: Entry) -> Option<&str> {
    match entry {
        Entry::Series(i) => figure.series.get(i).map(|series| series.name.as_str()),
        Entry::Rule(i) => figure.rules.get(i).map(|rule| rule.label.as_str()),
    }
}

impl Kept {
    fn new(ui: &Ui, figure: &Arc<Figure>, look: Look) -> Self {
        let columns = (look.width as usize * 2).max(1);
        let mut shown = thin(figure, look.part.map(|[x, _]| x), columns / lines_share(&figure.series));
        cut(&mut shown, look.part);
        let entries = (0..shown.series.len()).map(Entry::Series).chain((0..shown.rules.len()).map(Entry::Rule));
        let away = |entry: &Entry| named(figure, *entry).is_some_and(|name| look.hidden.contains(name));
        let hidden: BTreeSet<Entry> = entries.filter(away).collect();
        let (dark, width) = (look.dark, f64::from(look.width));
        let options = RenderOptions { dark, width, plot_height: look.height, bare: true, ..RenderOptions::default() };
        let scene = scene_without(&shown, &options, &hidden);
        // What is hidden is neither pointed at nor moved.
        for entry in hidden {
            match entry {
                Entry::Series(i) => shown.series[i].points.clear(),
                Entry::Rule(i) => shown.rules[i].at = f64::NAN,
            }
        }
        let uncut = |axis: &Axis, own: &Axis| Axis { range: own.range, ..axis.clone() };
        let whole = match look.part {
            None => scene.frame,
            Some(_) => {
                bounds(&Figure { x: uncut(&shown.x, &figure.x), y: uncut(&shown.y, &figure.y), ..(**figure).clone() })
            }
        };
        let (frame, slots) = (scene.frame, slots(&shown));
        let painting = Painting::new(ui, &scene);
        Self { figure: figure.clone(), look, shown, slots, frame, whole, keys: scene.keys, painting }
    }

    fn fits(&self, figure: &Arc<Figure>, look: &Look) -> bool {
        self.look == *look && (Arc::ptr_eq(&self.figure, figure) || self.figure == *figure)
    }

    /// What lies over the figure: the line that can be moved, with its grip, and the chosen points.
    fn over(&self, ui: &Ui, map: &Map, line: Option<f32>, about: &About) {
        let painter = ui.painter().with_clip_rect(map.plot.expand(CHOSEN).intersect(ui.clip_rect()));
        line.into_iter().for_each(|x| marker::paint(&painter, map, x, Theme::of(ui).mismatch()));
        for [series, point] in about.chosen {
            let point = self.shown.series.get(*series).and_then(|series| series.points.get(*point));
            let beside = self.slots.get(*series).map_or(0.0, |slot| slot.offset);
            let Some(at) = point.and_then(|point| map.at([point.x, point.y], beside)) else { continue };
            painter.circle_stroke(at, CHOSEN, Stroke::new(1.5, ui.visuals().strong_text_color()));
        }
    }

    /// Says what lies under the pointer, and notes what was clicked.
    fn point_at(&self, ui: &Ui, response: &Response, map: &Map, at: egui::Pos2, about: &About, touched: &mut Touched) {
        let near = pointer::nearest(&self.shown, &self.slots, map, at);
        let mark = pointer::mark(&self.shown, &self.slots, map, at);
        let ring = Stroke::new(1.0, Theme::of(ui).accent());
        for near in near.iter().chain(mark.iter()) {
            ui.painter().circle_stroke(near.at, RING, ring);
        }
        if let Some(words) = pointer::words(&self.shown, &near, mark) {
            response.show_tooltip_text(words);
        }
        if about.clicks && mark.is_some() {
            ui.set_cursor_icon(CursorIcon::PointingHand);
        }
        if about.clicks && response.clicked() {
            touched.clicked = Some(map.numbers(at));
            touched.mark = mark.map(|mark| [mark.series, mark.point]);
        }
    }
}

/// By how much the lines of a figure share the points that a picture has for them: hundreds of lines with thousands of
/// points each would not be painted in time.
fn lines_share(series: &[Series]) -> usize {
    const FREELY: usize = 40;
    series.len().div_ceil(FREELY).max(1)
}

/// The ink of a frame that is drawn.
fn faint(colour: Color32) -> Color32 {
    colour.gamma_multiply(0.15)
}
