//! A picture as a list of shapes, for SVG, PDF and PNG. Pixels at scale 1, y downwards.

/// A colour and how much of it covers what is below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ink {
    /// sRGB.
    pub rgb: [u8; 3],
    /// From 0, nothing, to 1, everything.
    pub alpha: f64,
}

impl Ink {
    pub(super) fn solid(rgb: [u8; 3]) -> Self {
        Self { rgb, alpha: 1.0 }
    }

    /// The colour that covers everything and looks as this one does on `ground`.
    pub(super) fn over(self, ground: Self) -> Self {
        let mixed = |i: usize| self.alpha * f64::from(self.rgb[i]) + (1.0 - self.alpha) * f64::from(ground.rgb[i]);
        Self::solid([0, 1, 2].map(|i| mixed(i).round() as u8))
    }

    /// The same colour, covering only `alpha` of what is below.
    pub(super) fn pale(self, alpha: f64) -> Self {
        Self { alpha, ..self }
    }
}

/// The line around or along a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub ink: Ink,
    /// Pixels.
    pub width: f64,
    /// Lengths of dash and gap.
    pub dash: Option<[f64; 2]>,
}

impl Stroke {
    pub(super) fn new(ink: Ink, width: f64) -> Self {
        Self { ink, width, dash: None }
    }
}

/// Straight lines between points.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    /// Its corners, in order.
    pub points: Vec<[f64; 2]>,
    /// Whether the last corner is joined to the first.
    pub closed: bool,
    /// The colour inside, if any.
    pub fill: Option<Ink>,
    /// The line along it, if any.
    pub stroke: Option<Stroke>,
    /// Whether it ends at the edge of the plot.
    pub clipped: bool,
    /// What it is, for a pointer that rests on it in the SVG.
    pub tip: Option<String>,
}

/// Which part of a line of text is at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Anchor {
    /// Share of the text's width that lies before its place.
    pub(super) fn share(self) -> f64 {
        match self {
            Self::Start => 0.0,
            Self::Middle => 0.5,
            Self::End => 1.0,
        }
    }
}

/// One line of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Where the baseline is.
    pub at: [f64; 2],
    /// Which part of it is there.
    pub anchor: Anchor,
    /// Font size, pixels.
    pub size: f64,
    /// Its colour.
    pub ink: Ink,
    /// Drawn thicker.
    pub bold: bool,
    /// Turn about `at`, degrees clockwise.
    pub angle: f64,
    /// What is written.
    pub text: String,
}

/// One thing to draw.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Lines and areas.
    Path(Path),
    /// Words.
    Text(Text),
}

/// A whole picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Width and height, whole numbers.
    pub size: [f64; 2],
    /// Left, top, right and bottom of the plot.
    pub plot: [f64; 4],
    /// What is behind everything.
    pub ground: Ink,
    /// What is drawn, the first at the bottom.
    pub shapes: Vec<Shape>,
    /// Begins every name inside the SVG, so that two figures on one web page do not share them.
    pub id: String,
    /// For those who do not see the picture: its title.
    pub title: String,
    /// The same: what it shows.
    pub description: String,
}

impl Scene {
    pub(super) fn path(&mut self, path: Path) {
        self.shapes.push(Shape::Path(path));
    }

    pub(super) fn line(&mut self, ends: [[f64; 2]; 2], stroke: Stroke) {
        self.path(Path { points: ends.to_vec(), stroke: Some(stroke), ..Path::default() });
    }

    /// Lines of text below each other, the first baseline at `at`.
    pub(super) fn block(&mut self, lines: &[String], at: [f64; 2], anchor: Anchor, size: f64, ink: Ink) {
        for (i, text) in lines.iter().enumerate() {
            let at = [at[0], at[1] + i as f64 * size * super::text::LEADING];
            let (text, angle) = (text.clone(), 0.0);
            self.shapes.push(Shape::Text(Text { at, anchor, size, ink, bold: false, angle, text }));
        }
    }
}
