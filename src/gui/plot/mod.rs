//! Every plot of the window: a [`Figure`] as data, drawn by egui_plot, with the row of buttons that saves and copies it. There
//! is no other way to a plot: `tests/layering.rs` looks.
//!
//! Ctrl and the wheel zoom about the pointer, as two fingers do, a drag draws the frame of what is to be seen, a drag with Shift or the right button
//! moves it, one along an axis stretches that axis, a double click shows all again; `+`, `-` and `0` do the same for the
//! keyboard. A click in the legend takes a series away and brings it back.
//!
//! | file | what |
//! |---|---|
//! | `origin` | world and program, for figures of the open world |
//! | `map` | numbers as places of egui_plot and of the screen; how far a zoom goes |
//! | `items`, `axes`, `legend` | a figure as items of egui_plot; grid lines and labels; the names above it |
//! | `pointer` | the nearest points and their words |
//! | `wheel`, `marker` | zoom by hand and keys; a line that can be moved |

mod axes;
mod items;
mod legend;
mod map;
mod marker;
mod origin;
mod pointer;
mod wheel;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use eframe::egui::containers::menu::{MenuButton, MenuConfig};
use eframe::egui::{
    self, Button, CursorIcon, Id, Modifiers, PointerButton, PopupCloseBehavior, StrokeKind, Ui, WidgetInfo,
};
use egui_plot::{AxisHints, HoverPosition, ItemId, Plot, PlotBounds, PlotMemory, PlotTransform};

use super::command::{Command, RunCommand};
use super::context::Cx;
use super::table_window;
use super::theme::Theme;
use super::widgets::hint;
use crate::figure::{Figure, Frame, LabelRow, Scale, Series, Slot, bounds, csv, slots, thin};
use items::Items;
use map::{Map, Part, Places};
pub use origin::{comments, knobs_of, of_before, of_law, of_world};
use pointer::Visible;

/// Height between the axes, and of labels and title of the x axis below them, points.
const HEIGHT: f32 = 300.0;
const AXIS: f32 = 42.0;
/// Widest figure: beyond, lines get long and points get lost.
const WIDEST: f32 = 900.0;
/// Room beside a plot for half of the number that stands below its right end, points.
const BESIDE: f32 = 14.0;
/// Room of a label along x and along y, points.
const LABELS: [f64; 2] = [90.0, 45.0];

/// What a plot has beside its figure.
pub struct About<'a> {
    /// What it is called for those who do not see it; title and caption, where it is not said.
    pub name: Option<&'a str>,
    /// Height between the axes, points.
    pub height: f32,
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

/// A plot from frame to frame. What is in view and what is hidden, egui_plot remembers.
#[derive(Default)]
pub struct Board {
    kept: Option<Kept>,
}

/// The plots of a list of figures.
#[derive(Default)]
pub struct Boards(BTreeMap<String, Board>);

impl Boards {
    /// The plot of a figure, by its ID and its run: what was in view of one run says nothing of another.
    pub fn of(&mut self, figure: &Figure) -> &mut Board {
        self.0.entry(format!("{} of {}", figure.id, run_of(figure))).or_default()
    }
}

/// A figure as it is shown.
struct Kept {
    /// As it was given.
    figure: Arc<Figure>,
    seen: Seen,
    /// The same with no more points than can be seen.
    shown: Figure,
    slots: Vec<Slot>,
    /// Names below the x axis, where it has names.
    names: Option<LabelRow>,
    /// The axes that hold all that is not hidden.
    whole: Frame,
}

/// What is in view.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    /// Width of the plot, points.
    width: f32,
    /// Length of an x axis with names, points.
    length: f32,
    /// The ends of the axes, where that is not all.
    part: Option<Part>,
    /// Names of series and lines that were clicked away.
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
        let axes = [&figure.x, &figure.y].map(|axis| (axis.full_title(), axis.scale == Scale::Log10));
        // A part of steps is none of epochs, and one of a run none of another.
        let id = ui.make_persistent_id((&figure.id, about.name, run_of(figure), axes));
        let memory = PlotMemory::load(ui.ctx(), id);
        let width = about.width.unwrap_or_else(|| (ui.available_width() - BESIDE).min(WIDEST).floor());
        let seen = Seen::new(memory.as_ref(), figure, width);
        let kept = match self.kept.take() {
            Some(kept) if kept.seen == seen && kept.is_of(figure) => kept,
            _ => Kept::new(figure, seen),
        };
        let touched = kept.plot(ui, id, memory.map(|memory| memory.transform()), about);
        kept.row(ui, cx, id, about);
        self.kept = Some(kept);
        touched
    }
}

/// The buttons that save and copy a figure, of a plot or of bars that the window shows in its own way.
pub fn buttons(ui: &mut Ui, cx: &mut Cx, title: &str, figure: impl Fn() -> Figure) {
    let save = ui.button("Save figure…").on_hover_text("As it is shown, for a paper: SVG, PDF, PNG or CSV");
    if save.accessible_name(format!("Save the figure {title}")).clicked() {
        cx.commands.push(Command::Run(RunCommand::SaveFigure(Box::new(figure()))));
    }
    let copy = ui.button("Copy picture").on_hover_text("As it is shown, in the look of saved figures");
    if copy.accessible_name(format!("Copy the picture {title}")).clicked() {
        cx.commands.push(Command::Run(RunCommand::CopyPicture(Box::new(figure()))));
    }
}

/// The run that a figure is of.
fn run_of(figure: &Figure) -> &str {
    figure.provenance.iter().find(|(name, _)| name == "run").map_or("", |(_, run)| run)
}

/// What the legend names.
fn names(figure: &Figure) -> impl Iterator<Item = &String> {
    figure.series.iter().map(|series| &series.name).chain(figure.rules.iter().map(|rule| &rule.label))
}

impl Seen {
    fn new(memory: Option<&PlotMemory>, figure: &Figure, width: f32) -> Self {
        let part = memory.filter(|memory| !memory.auto_bounds.all());
        // Below an axis of names stand as many as there is room for.
        let length =
            memory.filter(|_| !figure.x.categories.is_empty()).map(|memory| memory.transform().frame().width());
        let length = length.unwrap_or(width).floor();
        let hidden = |name: &&String| memory.is_some_and(|memory| memory.hidden_items.contains(&ItemId::new(name)));
        let part = part.map(|memory| Places::of(figure).part(memory.bounds()));
        Self { width, length, part, hidden: names(figure).filter(hidden).cloned().collect() }
    }

    /// The figure without what is hidden.
    fn of(&self, mut figure: Figure) -> Figure {
        figure.series.retain(|series| !self.hidden.contains(&series.name));
        figure.rules.retain(|rule| !self.hidden.contains(&rule.label));
        figure
    }
}

impl Kept {
    fn new(figure: &Arc<Figure>, seen: Seen) -> Self {
        let columns = (seen.width as usize * 2).max(1) / lines_share(&figure.series);
        let shown = thin(figure, seen.part.map(|[x, _]| x), columns);
        let whole = if seen.hidden.is_empty() { bounds(figure) } else { bounds(&seen.of((**figure).clone())) };
        let (slots, ends) = (slots(&shown), seen.part.map_or(whole.x, |[x, _]| x));
        let names = axes::names(&figure.x, ends, seen.width, seen.length);
        Self { figure: figure.clone(), seen, shown, slots, names, whole }
    }

    fn is_of(&self, figure: &Arc<Figure>) -> bool {
        Arc::ptr_eq(&self.figure, figure) || self.figure == *figure
    }

    /// The plot of egui_plot. `before`: where it was in the last frame.
    fn plot(&self, ui: &mut Ui, id: Id, before: Option<PlotTransform>, about: &About) -> Touched {
        let Self { shown: figure, slots, seen: Seen { width, hidden, .. }, .. } = self;
        let places = Places::of(figure);
        let whole = places.bounds(&self.whole);
        let visible = |transform| Visible { figure, slots, hidden, map: Map { places, transform } };
        let idle = !ui.input(|input| input.pointer.any_down());
        let hovered = before.filter(|_| idle).map(visible);
        let x_title = axes::title(&figure.x, *width);
        let below = self.names.as_ref().map(|names| axes::height(ui, names, &x_title));
        let mut x_axis = AxisHints::new_x().label(x_title).formatter(|mark, range| axes::label(&figure.x, mark, range));
        if let Some(below) = below {
            x_axis = x_axis.min_thickness(below);
        }
        let plot = self.empty(ui, id, &whole).height(about.height + below.unwrap_or(AXIS));
        let plot = plot.custom_x_axes(vec![x_axis]).y_axis_label(axes::title(&figure.y, about.height)).label_formatter(
            move |at| {
                let (HoverPosition::NearDataPoint { position, .. } | HoverPosition::Elsewhere { position }) = at;
                hovered.and_then(|visible| visible.words(visible.map.transform.position_from_point(position)))
            },
        );
        let (items, movable, chosen) = (Items::new(ui, figure, slots, whole), about.movable, about.chosen.to_vec());
        if names(figure).count() <= legend::MOST {
            legend::show(ui, id, &items.entries(movable));
        }
        let drawn = plot.show(ui, move |plot| {
            wheel::zoom(plot, &whole);
            items.add(plot, movable, &chosen);
        });
        if let Some(names) = &self.names {
            axes::write(ui, names, &drawn.transform);
        }
        let (response, visible) = (drawn.response, visible(drawn.transform));
        let name = about.name.map_or_else(|| format!("{}: {}", figure.title, figure.caption), str::to_owned);
        response.widget_info(|| WidgetInfo::labeled(egui::Role::Image, true, &name));
        if response.has_focus() {
            ui.painter().rect_stroke(response.rect, 2.0, ui.visuals().selection.stroke, StrokeKind::Outside);
        }
        let line = movable.and_then(|rule| figure.rules.get(rule)).filter(|rule| !hidden.contains(&rule.label));
        let moved = line.and_then(|rule| marker::handle(ui, id, &visible.map, rule.at));
        let mut touched = Touched { moved, ..Touched::default() };
        if let Some(at) = response.hover_pos().filter(|_| about.clicks) {
            let mark = visible.mark(at);
            if mark.is_some() {
                ui.set_cursor_icon(CursorIcon::PointingHand);
            }
            if response.clicked() {
                touched.clicked = Some(visible.map.numbers(at));
                touched.mark = mark.map(|mark| [mark.series, mark.point]);
            }
        }
        touched
    }

    /// The plot without its items: axes, and what the hand does.
    fn empty<'a>(&'a self, ui: &Ui, id: Id, whole: &PlotBounds) -> Plot<'a> {
        let (figure, [left, bottom], [right, top]) = (&self.shown, whole.min(), whole.max());
        let (pan, frame) = match ui.input(|input| input.modifiers.shift) {
            true => (PointerButton::Primary, PointerButton::Secondary),
            false => (PointerButton::Secondary, PointerButton::Primary),
        };
        let ends = self.seen.part.map_or(self.whole.x, |[x, _]| x);
        let beside = axes::reaches_around(&figure.x, ends, self.seen.width.into(), LABELS[0]);
        of_width(id, self.seen.width)
            .default_x_bounds(left, right)
            .default_y_bounds(bottom, top)
            .allow_scroll(false)
            .allow_zoom(false)
            .pan_pointer_button(pan)
            .boxed_zoom_pointer_button(frame)
            .show_crosshair(false)
            .grid_color(Theme::of(ui).grid())
            .x_grid_spacer(move |input| axes::marks(&figure.x, &input, LABELS[0]))
            .y_grid_spacer(move |input| axes::marks(&figure.y, &input, LABELS[1]))
            .y_axis_formatter(move |mark, range| axes::y_label(&figure.y, mark, range, beside))
    }

    /// The buttons of a plot, and what it leaves out.
    fn row(&self, ui: &mut Ui, cx: &mut Cx, id: Id, about: &About) {
        let (figure, seen) = (&self.figure, &self.seen);
        let title = about.numbers.map_or(figure.title.as_str(), |(title, ..)| title);
        ui.horizontal_wrapped(|ui| {
            buttons(ui, cx, title, || self.as_shown());
            match about.numbers {
                Some((title, file, numbers)) => table_window::button(ui, cx.view, title, file, numbers),
                None => table_window::button(ui, cx.view, &figure.title, "figure.csv", || csv(figure)),
            }
            self.names(ui, id, title);
            if seen.part.is_none() {
                let command = ui.format_modifiers(Modifiers::COMMAND);
                hint(ui, format!("{command} + wheel: closer"));
            } else {
                let all =
                    ui.small_button("Show all").on_hover_text("The whole plot again: a double click does the same");
                if all.accessible_name(format!("Show all of {title}")).clicked()
                    && let Some(mut memory) = PlotMemory::load(ui.ctx(), id)
                {
                    memory.auto_bounds = true.into();
                    memory.store(ui.ctx(), id);
                }
            }
            if !seen.hidden.is_empty() {
                let what = seen.hidden.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                hint(ui, format!("hidden: {what}"));
            }
        });
        let omitted = self.whole.omitted.to_string();
        if seen.part.is_none() && !omitted.is_empty() {
            ui.colored_label(Theme::of(ui).warning(), omitted);
        }
    }

    /// The legend for the keyboard, and where it is too long for the plot.
    fn names(&self, ui: &mut Ui, id: Id, title: &str) {
        let open = MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside);
        let menu = MenuButton::from_button(Button::new("Legend").small()).config(open).ui(ui, |ui| {
            let Some(mut memory) = PlotMemory::load(ui.ctx(), id) else { return };
            let mut changed = false;
            for name in names(&self.figure) {
                let (item, mut shown) = (ItemId::new(name), !self.seen.hidden.contains(name));
                if ui.checkbox(&mut shown, name).changed() {
                    changed |= if shown { memory.hidden_items.remove(&item) } else { memory.hidden_items.insert(item) };
                }
            }
            if changed {
                memory.store(ui.ctx(), id);
            }
        });
        let menu = menu
            .0
            .on_hover_text("Hides series and lines, and brings them back: a click in the plot's legend does the same");
        drop(menu.accessible_name(format!("Legend of {title}")));
    }

    /// The figure with the axes that are in view and without what is hidden.
    fn as_shown(&self) -> Figure {
        let mut shown = self.seen.of((*self.figure).clone());
        if let Some([x, y]) = self.seen.part {
            (shown.x.range, shown.y.range) = (Some(x), Some(y));
        }
        shown
    }
}

/// By how much the lines of a figure share the points that a picture has for them: hundreds of lines with thousands of
/// points each would not be painted in time.
fn lines_share(series: &[Series]) -> usize {
    const FREELY: usize = 12;
    series.len().div_ceil(FREELY).max(1)
}

/// A plot that nothing is said of yet but its width.
fn of_width<'a>(id: Id, width: f32) -> Plot<'a> {
    Plot::new(id).id(id).width(width)
}
