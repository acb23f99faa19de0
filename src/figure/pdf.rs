//! Figures as PDF 1.4: one page, lines, areas and outlines of letters.

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use tiny_skia::{PathSegment, Point, Transform};

use super::scene::{Ink, Path, Scene, Shape, Stroke, Text};
use super::{Figure, RenderOptions, layout, text};
use crate::error::{Error, Result};

/// Points on paper of a pixel, where nobody asked for a size: the pixel of CSS.
const PIXEL: f64 = 0.75;
/// Steps of transparency that are told apart.
const ALPHAS: f64 = 100.0;

/// The figure as a PDF with one page of its size. Equal figures give equal bytes. Letters are outlines, so that no font is
/// needed; title and description stand in the properties of the document.
///
/// # Errors
/// When its contents cannot be compressed.
pub fn pdf(figure: &Figure, look: &RenderOptions) -> Result<Vec<u8>> {
    let scene = layout::scene(figure, look);
    let mut page = Page { out: String::new(), alphas: Vec::new() };
    page.draw_all(&scene, look.paper.unwrap_or(PIXEL));
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let contents = packed.write_all(page.out.as_bytes()).and_then(|()| packed.finish());
    let contents = contents.map_err(|error| Error::Input(format!("figure {}: {error}", figure.id)))?;
    let [width, height] = scene.size.map(|side| number(side * look.paper.unwrap_or(PIXEL)));
    let mut states = String::new();
    for alpha in &page.alphas {
        let share = number(f64::from(*alpha) / ALPHAS);
        let _ = write!(states, "/F{alpha} << /ca {share} >> /S{alpha} << /CA {share} >> ");
    }
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".into(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".into(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources << /ExtGState << {states}>> >> >>"
        ),
        format!("<< /Length {} /Filter /FlateDecode >>", contents.len()),
        format!(
            "<< /Title {} /Subject {} /Creator (bayescope {}) >>",
            words(&scene.title),
            words(&scene.description),
            env!("CARGO_PKG_VERSION")
        ),
    ];
    Ok(document(&objects, &contents))
}

/// The file: objects, the fourth with a stream, their places, and where to begin.
fn document(objects: &[String], stream: &[u8]) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend_from_slice(format!("{} 0 obj\n{object}\n", i + 1).as_bytes());
        if i == 3 {
            file.extend_from_slice(b"stream\n");
            file.extend_from_slice(stream);
            file.extend_from_slice(b"\nendstream\n");
        }
        file.extend_from_slice(b"endobj\n");
    }
    let (table, count) = (file.len(), objects.len() + 1);
    file.extend_from_slice(format!("xref\n0 {count}\n0000000000 65535 f \n").as_bytes());
    for place in places {
        file.extend_from_slice(format!("{place:010} 00000 n \n").as_bytes());
    }
    let end = format!("trailer\n<< /Size {count} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{table}\n%%EOF\n");
    file.extend_from_slice(end.as_bytes());
    file
}

/// What is drawn, and the steps of transparency that it needs. Writing to a string does not fail.
struct Page {
    out: String,
    alphas: Vec<u32>,
}

impl Page {
    fn draw_all(&mut self, scene: &Scene, points: f64) {
        let height = number(scene.size[1] * points);
        // Pixels from the top left, as the scene counts them.
        let _ = writeln!(self.out, "{0} 0 0 -{0} 0 {height} cm 1 j", number(points));
        let [left, top, right, bottom] = [0.0, 0.0, scene.size[0], scene.size[1]];
        self.fill(scene.ground);
        let _ = writeln!(self.out, "{left} {top} {right} {bottom} re f");
        let [left, top, right, bottom] = scene.plot.map(number);
        let clip = format!("q {left} {top} m {right} {top} l {right} {bottom} l {left} {bottom} l h W n");
        for shape in &scene.shapes {
            match shape {
                Shape::Path(path) => self.path(path, &clip),
                Shape::Text(line) => self.line(line),
            }
        }
    }

    fn path(&mut self, path: &Path, clip: &str) {
        if path.points.is_empty() {
            return;
        }
        let _ = writeln!(self.out, "{}", if path.clipped { clip } else { "q" });
        path.fill.into_iter().for_each(|ink| self.fill(ink));
        path.stroke.into_iter().for_each(|stroke| self.stroke(stroke));
        for (i, [x, y]) in path.points.iter().enumerate() {
            let _ = write!(self.out, "{} {} {} ", number(*x), number(*y), if i == 0 { 'm' } else { 'l' });
        }
        let paint = match (path.fill.is_some(), path.stroke.is_some(), path.closed) {
            (true, true, true) => "b",
            (true, true, false) => "B",
            (true, false, _) => "f",
            (false, true, true) => "s",
            (false, true, false) => "S",
            (false, false, _) => "n",
        };
        let _ = writeln!(self.out, "{paint} Q");
    }

    /// A line of text as outlines; bold text is thickened as in the PNG.
    fn line(&mut self, line: &Text) {
        let Some(outline) = text::outline(&line.text, line.size) else { return };
        let [x, y] = line.at.map(|side| side as f32);
        let start = -(line.anchor.share() * text::width(&line.text, line.size)) as f32;
        let turned = Transform::from_translate(x, y).pre_rotate(line.angle as f32).pre_translate(start, 0.0);
        let Some(outline) = outline.transform(turned) else { return };
        let _ = writeln!(self.out, "q");
        self.fill(line.ink);
        if line.bold {
            self.stroke(Stroke::new(line.ink, 0.04 * line.size));
        }
        let mut last = Point::zero();
        for segment in outline.segments() {
            last = self.segment(segment, last);
        }
        let _ = writeln!(self.out, "{} Q", if line.bold { "B" } else { "f" });
    }

    /// Returns where the pen is then.
    fn segment(&mut self, segment: PathSegment, from: Point) -> Point {
        let at = |point: Point| format!("{} {}", number(f64::from(point.x)), number(f64::from(point.y)));
        let _ = match segment {
            PathSegment::MoveTo(to) => write!(self.out, "{} m ", at(to)),
            PathSegment::LineTo(to) => write!(self.out, "{} l ", at(to)),
            PathSegment::QuadTo(by, to) => {
                // The same curve as a cubic one, the only one that PDF has.
                let towards =
                    |end: Point| Point::from_xy(end.x + (by.x - end.x) * 2.0 / 3.0, end.y + (by.y - end.y) * 2.0 / 3.0);
                write!(self.out, "{} {} {} c ", at(towards(from)), at(towards(to)), at(to))
            }
            PathSegment::CubicTo(a, b, to) => write!(self.out, "{} {} {} c ", at(a), at(b), at(to)),
            PathSegment::Close => write!(self.out, "h "),
        };
        match segment {
            PathSegment::MoveTo(to) | PathSegment::LineTo(to) => to,
            PathSegment::QuadTo(_, to) | PathSegment::CubicTo(_, _, to) => to,
            PathSegment::Close => from,
        }
    }

    fn fill(&mut self, ink: Ink) {
        let alpha = self.alpha(ink);
        let _ = writeln!(self.out, "/F{alpha} gs {} rg", colour(ink));
    }

    fn stroke(&mut self, stroke: Stroke) {
        let alpha = self.alpha(stroke.ink);
        let dash = stroke.dash.map_or_else(String::new, |[dash, gap]| format!("{} {}", number(dash), number(gap)));
        let _ = writeln!(self.out, "/S{alpha} gs {} RG {} w [{dash}] 0 d", colour(stroke.ink), number(stroke.width));
    }

    /// The step of transparency of an ink, noted for the page's resources.
    fn alpha(&mut self, ink: Ink) -> u32 {
        let step = (ink.alpha.clamp(0.0, 1.0) * ALPHAS).round() as u32;
        if !self.alphas.contains(&step) {
            self.alphas.push(step);
        }
        step
    }
}

fn colour(ink: Ink) -> String {
    ink.rgb.map(|value| number(f64::from(value) / 255.0)).join(" ")
}

/// Thousandths are finer than any eye; PDF has no exponents.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".into(),
        short => short.into(),
    }
}

/// Text of the document's properties: UTF-16 in hexadecimal digits, in which nothing needs an escape.
fn words(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("{unit:04X}")).collect();
    format!("<FEFF{units}>")
}
