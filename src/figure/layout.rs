//! Layout: title, plot with axes, legend, caption and provenance, from top to bottom.

use super::bounds::{Frame, bounds};
use super::grid;
use super::labels::{self, AxisLabel, LABEL_GAP, LabelRow, column, label_row};
use super::legend::Legend;
use super::palette::Theme;
use super::scene::{Anchor, Ink, Path, Scene, Shape, Stroke, Text};
use super::series::Painter;
use super::text::{self, LEADING};
use super::{Axis, Figure, RenderOptions, minor_ticks};

/// Free space around the picture.
const EDGE: f64 = 18.0;
/// Free space right of the plot, and below title and axis.
const SPACE: f64 = 14.0;
/// Font sizes.
const TITLE: f64 = 17.0;
const AXIS: f64 = 13.0;
const CAPTION: f64 = 12.0;
const PROVENANCE: f64 = 10.5;
/// Widest legend, as a share of the picture.
const LEGEND: f64 = 0.3;
/// Below this width the legend stands below the plot: beside it, it would take the room of the lines.
const NARROW: f64 = 460.0;
/// The least a plot is left with, whatever else there is.
const LEAST: f64 = 120.0;
/// Least distance between names that are kept apart by lines.
const WIDE: f64 = 30.0;
/// Lengths of the marks at labels and between.
const MARK: f64 = 4.0;
const MINOR: f64 = 2.5;

/// The whole figure as shapes.
pub fn scene(figure: &Figure, look: &RenderOptions) -> Scene {
    let theme = Theme::new(look.dark);
    let width = usable(look.width).max(LEAST + 2.0 * EDGE).ceil();
    let frame = bounds(figure);
    let narrow = width < NARROW;
    let legend = Legend::new(figure, if narrow { width - 2.0 * EDGE } else { LEGEND * width });
    let title = if look.bare { Vec::new() } else { text::wrap(&figure.title, TITLE, width - 2.0 * EDGE) };
    let top = EDGE + block_height(title.len(), TITLE) + if look.bare { 0.0 } else { SPACE };
    let below_top = usable(look.plot_height).max(LEAST);
    let mut axes = Axes::new(figure, &frame, [width, below_top], if narrow { 0.0 } else { legend.width });
    let below_top = if figure.grids.is_empty() { below_top } else { axes.with_squares(&frame, below_top) };
    let plot = [axes.left, top, axes.right, top + below_top];
    let mut scene = Scene {
        size: [width, 0.0],
        plot,
        ground: theme.ground,
        shapes: Vec::new(),
        id: figure.id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect(),
        title: figure.title.clone(),
        description: description(figure, &frame, look.bare),
    };
    for (i, line) in title.iter().enumerate() {
        let at = [EDGE, EDGE + TITLE + i as f64 * TITLE * LEADING];
        scene.shapes.push(words(line, at, Anchor::Start, TITLE, theme.text).bold().shape());
    }
    axes.paint(&mut scene, figure, &frame, &theme);
    let painter = Painter::new(figure, frame, plot, look.dark);
    painter.paint(&mut scene);
    let under = plot[3] + axes.below;
    let under = under + grid::scales(figure, &mut scene, under, look.dark);
    let (corner, bottom) = match narrow && legend.height > 0.0 {
        true => ([EDGE, under + SPACE], under + SPACE + legend.height),
        false => ([axes.right + axes.legend_gap, top], under.max(top + legend.height)),
    };
    legend.paint(&mut scene, &painter, &theme, corner);
    scene.size[1] = match look.bare {
        true => bottom + EDGE,
        false => foot(&mut scene, figure, &frame, &theme, bottom + SPACE),
    }
    .ceil();
    scene
}

/// A length a picture can have: JSON and sliders may say anything.
fn usable(length: f64) -> f64 {
    if length.is_finite() { length.clamp(0.0, 20_000.0) } else { 0.0 }
}

fn block_height(lines: usize, size: f64) -> f64 {
    lines as f64 * size * LEADING
}

/// Returns the description for readers who cannot see the picture; that of a bare one has its provenance, too.
fn description(figure: &Figure, frame: &Frame, bare: bool) -> String {
    let names: Vec<_> = figure.series.iter().map(|series| series.name.as_str()).collect();
    let axes = match figure.grids.is_empty() {
        true => format!("{} over {}", figure.y.full_title(), figure.x.full_title()),
        false => figure.x.categories.join(", "),
    };
    let said = if bare { provenance(figure) } else { String::new() };
    let parts = [axes, names.join(", "), figure.caption.clone(), frame.omitted.to_string(), said];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
}

/// Where the numbers come from, in a line.
fn provenance(figure: &Figure) -> String {
    let pairs = figure.provenance.iter().map(|(key, value)| format!("{key}: {value}"));
    pairs.collect::<Vec<_>>().join("  ·  ")
}

/// What is left out, the caption and the provenance; returns the height of the picture.
fn foot(scene: &mut Scene, figure: &Figure, frame: &Frame, theme: &Theme, mut y: f64) -> f64 {
    let room = scene.size[0] - 2.0 * EDGE;
    let provenance = provenance(figure);
    let omitted = frame.omitted.to_string();
    let blocks = [
        (omitted.as_str(), CAPTION, theme.warning),
        (figure.caption.as_str(), CAPTION, theme.text),
        (provenance.as_str(), PROVENANCE, theme.weak),
    ];
    for (content, size, ink) in blocks.into_iter().filter(|(content, ..)| !content.trim().is_empty()) {
        let lines = text::wrap(content, size, room);
        scene.block(&lines, [EDGE, y + size], Anchor::Start, size, ink);
        y += block_height(lines.len(), size) + SPACE / 2.0;
    }
    y + EDGE - SPACE / 2.0
}

/// Both axes with their labels and titles.
struct Axes {
    left: f64,
    right: f64,
    /// Room taken below the plot.
    below: f64,
    /// From the right end of the x axis to the legend.
    legend_gap: f64,
    x: LabelRow,
    y: Vec<AxisLabel>,
    x_title: Vec<String>,
    y_title: Vec<String>,
    /// Where the right edge of the labels of y is, and how wide they are.
    y_width: f64,
}

impl Axes {
    fn new(figure: &Figure, frame: &Frame, [width, height]: [f64; 2], legend: f64) -> Self {
        // Beside squares there are no numbers.
        let numbered = figure.grids.is_empty().then(|| column(&figure.y, frame.y, height));
        let (y, y_width) = numbered.unwrap_or_default();
        let y_title = text::wrap(&figure.y.full_title(), AXIS, height);
        let titled = EDGE + block_height(y_title.len(), AXIS) + if y_title.is_empty() { 0.0 } else { LABEL_GAP };
        let mut left = titled + y_width + LABEL_GAP;
        let mut legend_gap = SPACE;
        let right = |left: f64, gap: f64| {
            let kept = if legend > 0.0 { legend + gap } else { gap - SPACE };
            (width - EDGE - kept).max(left + LEAST)
        };
        // Turned labels need more room at both ends, which leaves less between: twice is enough.
        let mut x = label_row(&figure.x, frame.x, right(left, legend_gap) - left, f64::INFINITY);
        for _ in 0..2 {
            left = left.max(EDGE + x.overhang[0]);
            legend_gap = legend_gap.max(x.overhang[1] + SPACE);
            x = label_row(&figure.x, frame.x, right(left, legend_gap) - left, f64::INFINITY);
        }
        let right = right(left, legend_gap);
        let x_title = text::wrap(&figure.x.full_title(), AXIS, right - left);
        let below =
            LABEL_GAP + x.height + if x_title.is_empty() { 0.0 } else { LABEL_GAP } + block_height(x_title.len(), AXIS);
        Self { left, right, below, legend_gap, x, y, x_title, y_title, y_width }
    }

    /// Gives both axes places of one length, within the room there is; returns the height of the plot.
    fn with_squares(&mut self, frame: &Frame, height: f64) -> f64 {
        let [across, up] = [frame.x, frame.y].map(|[low, high]| high - low);
        let place = ((self.right - self.left) / across).min(height / up);
        self.right = self.left + place * across;
        place * up
    }

    fn paint(&self, scene: &mut Scene, figure: &Figure, frame: &Frame, theme: &Theme) {
        if !figure.grids.is_empty() {
            return self.write(scene, theme);
        }
        let [left, top, right, bottom] = scene.plot;
        let across = |share: f64| left + (right - left) * share;
        let up = |share: f64| bottom - (bottom - top) * share;
        let (grid, axis) = (Stroke::new(theme.grid, 1.0), Stroke::new(theme.axis, 1.0));
        for label in &self.y {
            let y = up(label.share);
            scene.line([[left, y], [right, y]], grid);
            scene.line([[left - MARK, y], [left, y]], axis);
        }
        let slot = (right - left) / (frame.x[1] - frame.x[0]);
        for label in &self.x.labels {
            let x = across(label.share);
            // Between names, where it keeps apart what stands at each of them.
            let beside = if figure.x.categories.is_empty() { x } else { x + slot / 2.0 };
            if beside <= right && slot >= WIDE || figure.x.categories.is_empty() {
                scene.line([[beside, top], [beside, bottom]], grid);
            }
            scene.line([[x, bottom], [x, bottom + MARK]], axis);
        }
        for share in minor(&figure.y, frame.y) {
            scene.line([[left - MINOR, up(share)], [left, up(share)]], axis);
        }
        for share in minor(&figure.x, frame.x) {
            scene.line([[across(share), bottom], [across(share), bottom + MINOR]], axis);
        }
        let corner = vec![[left, top], [left, bottom], [right, bottom]];
        scene.path(Path { points: corner, stroke: Some(axis), ..Path::default() });
        self.write(scene, theme);
    }

    fn write(&self, scene: &mut Scene, theme: &Theme) {
        let [left, top, right, bottom] = scene.plot;
        for label in &self.y {
            let y = bottom - (bottom - top) * label.share;
            let first =
                y + 0.35 * labels::LABEL_SIZE - (label.lines.len() - 1) as f64 * labels::LABEL_SIZE * LEADING / 2.0;
            scene.block(&label.lines, [left - LABEL_GAP, first], Anchor::End, labels::LABEL_SIZE, theme.text);
        }
        for label in &self.x.labels {
            self.below(scene, label, left + (right - left) * label.share, theme.text);
        }
        let under = bottom + self.below - block_height(self.x_title.len(), AXIS) + AXIS;
        scene.block(&self.x_title, [f64::midpoint(left, right), under], Anchor::Middle, AXIS, theme.text);
        let beside = left - LABEL_GAP - self.y_width - LABEL_GAP - block_height(self.y_title.len(), AXIS) + AXIS;
        for (i, line) in self.y_title.iter().enumerate() {
            let at = [beside + i as f64 * AXIS * LEADING, f64::midpoint(top, bottom)];
            scene.shapes.push(words(line, at, Anchor::Middle, AXIS, theme.text).turned(-90.0).shape());
        }
    }

    /// A label below the x axis, turned about its end if it must be.
    fn below(&self, scene: &mut Scene, label: &AxisLabel, x: f64, ink: Ink) {
        let anchor = if self.x.angle == 0.0 { Anchor::Middle } else { Anchor::End };
        // The middle of a line is so far above its baseline.
        let ((sin, cos), lift) = (self.x.angle.to_radians().sin_cos(), 0.35 * labels::LABEL_SIZE);
        for (line, [x, y]) in self.x.lines(label, x, scene.plot[3]) {
            let at = [x + lift * sin, y + lift * cos];
            scene.shapes.push(words(line, at, anchor, labels::LABEL_SIZE, ink).turned(-self.x.angle).shape());
        }
    }
}

/// Shares of the axis at its small marks.
fn minor(axis: &Axis, [low, high]: [f64; 2]) -> Vec<f64> {
    let scale = axis.shown_scale();
    let [start, end] = [low, high].map(|value| scale.place(value));
    minor_ticks([low, high], scale).into_iter().map(|at| (scale.place(at) - start) / (end - start)).collect()
}

fn words(text: &str, at: [f64; 2], anchor: Anchor, size: f64, ink: Ink) -> Text {
    Text { at, anchor, size, ink, bold: false, angle: 0.0, text: text.to_owned() }
}

impl Text {
    fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    fn turned(self, angle: f64) -> Self {
        Self { angle, ..self }
    }

    fn shape(self) -> Shape {
        Shape::Text(self)
    }
}
