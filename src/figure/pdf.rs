//! Figures as PDF 1.4: one page, lines, areas and outlines of letters.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::types::LineJoinStyle;
use pdf_writer::writers::ExtGraphicsState;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, TextStr};
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
    let points = look.paper.unwrap_or(PIXEL);
    let mut drawn = Drawing { content: Content::new(), alphas: Vec::new() };
    drawn.draw_all(&scene, points);
    let Drawing { content, alphas } = drawn;
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = packed.write_all(&content.finish()).and_then(|()| packed.finish());
    let packed = packed.map_err(|error| Error::Input(format!("figure {}: {error}", figure.id)))?;
    let [catalog, pages, page, contents, properties] = [1, 2, 3, 4, 5].map(Ref::new);
    let mut file = Pdf::new();
    file.set_version(1, 4);
    file.catalog(catalog).pages(pages);
    file.pages(pages).kids([page]).count(1);
    let mut sheet = file.page(page);
    let [width, height] = scene.size.map(|side| short(side * points));
    sheet.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(contents);
    let mut resources = sheet.resources();
    let mut states = resources.ext_g_states();
    for alpha in alphas {
        let share = short(f64::from(alpha) / ALPHAS);
        let [fill, stroke] = [fill_state(alpha), stroke_state(alpha)];
        states.insert(Name(fill.as_bytes())).start::<ExtGraphicsState<'_>>().non_stroking_alpha(share);
        states.insert(Name(stroke.as_bytes())).start::<ExtGraphicsState<'_>>().stroking_alpha(share);
    }
    states.finish();
    resources.finish();
    sheet.finish();
    file.stream(contents, &packed).filter(Filter::FlateDecode);
    let program = format!("bayescope {}", env!("CARGO_PKG_VERSION"));
    let mut info = file.document_info(properties);
    info.title(TextStr(&scene.title)).subject(TextStr(&scene.description)).creator(TextStr(&program));
    info.finish();
    Ok(file.finish())
}

/// What is drawn, and the steps of transparency that it needs.
struct Drawing {
    content: Content,
    alphas: Vec<u32>,
}

impl Drawing {
    fn draw_all(&mut self, scene: &Scene, points: f64) {
        let [width, height] = scene.size;
        // Pixels from the top left, as the scene counts them.
        let (scale, top) = (short(points), short(height * points));
        self.content.transform([scale, 0.0, 0.0, -scale, 0.0, top]).set_line_join(LineJoinStyle::RoundJoin);
        self.fill(scene.ground);
        self.content.rect(0.0, 0.0, short(width), short(height)).fill_nonzero();
        for shape in &scene.shapes {
            match shape {
                Shape::Path(path) => self.path(path, scene.plot),
                Shape::Text(line) => self.line(line),
            }
        }
    }

    fn path(&mut self, path: &Path, [left, top, right, bottom]: [f64; 4]) {
        let Some(([x, y], rest)) = path.points.split_first() else { return };
        self.content.save_state();
        if path.clipped {
            let plot = [left, top, right - left, bottom - top].map(short);
            self.content.rect(plot[0], plot[1], plot[2], plot[3]).clip_nonzero().end_path();
        }
        path.fill.into_iter().for_each(|ink| self.fill(ink));
        path.stroke.into_iter().for_each(|stroke| self.stroke(stroke));
        let content = self.content.move_to(short(*x), short(*y));
        for [x, y] in rest {
            content.line_to(short(*x), short(*y));
        }
        match (path.fill.is_some(), path.stroke.is_some(), path.closed) {
            (true, true, true) => content.close_fill_nonzero_and_stroke(),
            (true, true, false) => content.fill_nonzero_and_stroke(),
            (true, false, _) => content.fill_nonzero(),
            (false, true, true) => content.close_and_stroke(),
            (false, true, false) => content.stroke(),
            (false, false, _) => content.end_path(),
        };
        content.restore_state();
    }

    /// A line of text as outlines; bold text is thickened as in the PNG.
    fn line(&mut self, line: &Text) {
        let Some(outline) = text::outline(&line.text, line.size) else { return };
        let [x, y] = line.at.map(|side| side as f32);
        let start = -(line.anchor.share() * text::width(&line.text, line.size)) as f32;
        let turned = Transform::from_translate(x, y).pre_rotate(line.angle as f32).pre_translate(start, 0.0);
        let Some(outline) = outline.transform(turned) else { return };
        self.content.save_state();
        self.fill(line.ink);
        if line.bold {
            self.stroke(Stroke::new(line.ink, 0.04 * line.size));
        }
        let mut last = Point::zero();
        for segment in outline.segments() {
            last = self.segment(segment, last);
        }
        match line.bold {
            true => self.content.fill_nonzero_and_stroke(),
            false => self.content.fill_nonzero(),
        };
        self.content.restore_state();
    }

    /// Returns where the pen is then.
    fn segment(&mut self, segment: PathSegment, from: Point) -> Point {
        let at = |point: Point| [point.x, point.y].map(|side| short(f64::from(side)));
        let mut curve = |a: Point, b: Point, to: Point| {
            let [[ax, ay], [bx, by], [x, y]] = [a, b, to].map(at);
            self.content.cubic_to(ax, ay, bx, by, x, y);
            to
        };
        match segment {
            PathSegment::QuadTo(by, to) => {
                // The same curve as a cubic one, the only one that PDF has.
                let towards =
                    |end: Point| Point::from_xy(end.x + (by.x - end.x) * 2.0 / 3.0, end.y + (by.y - end.y) * 2.0 / 3.0);
                curve(towards(from), towards(to), to)
            }
            PathSegment::CubicTo(a, b, to) => curve(a, b, to),
            PathSegment::MoveTo(to) => {
                let [x, y] = at(to);
                self.content.move_to(x, y);
                to
            }
            PathSegment::LineTo(to) => {
                let [x, y] = at(to);
                self.content.line_to(x, y);
                to
            }
            PathSegment::Close => {
                self.content.close_path();
                from
            }
        }
    }

    fn fill(&mut self, ink: Ink) {
        let state = fill_state(self.alpha(ink));
        let [r, g, b] = colour(ink);
        self.content.set_parameters(Name(state.as_bytes())).set_fill_rgb(r, g, b);
    }

    fn stroke(&mut self, stroke: Stroke) {
        let state = stroke_state(self.alpha(stroke.ink));
        let ([r, g, b], dash) = (colour(stroke.ink), stroke.dash.into_iter().flatten().map(short));
        let content = self.content.set_parameters(Name(state.as_bytes())).set_stroke_rgb(r, g, b);
        content.set_line_width(short(stroke.width)).set_dash_pattern(dash, 0.0);
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

/// Names of the states of transparency, of areas and of lines.
fn fill_state(alpha: u32) -> String {
    format!("F{alpha}")
}

fn stroke_state(alpha: u32) -> String {
    format!("S{alpha}")
}

fn colour(ink: Ink) -> [f32; 3] {
    ink.rgb.map(|value| short(f64::from(value) / 255.0))
}

/// Thousandths are finer than any eye.
fn short(value: f64) -> f32 {
    ((value * 1e3).round() / 1e3) as f32
}
