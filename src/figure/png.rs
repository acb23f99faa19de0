//! Figures as PNG.

use ::png::{ColorType, Compression, Encoder, EncodingError, Filter};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, Rect, Shader, StrokeDash, Transform,
};

use super::scene::{Ink, Path, Scene, Shape, Stroke, Text};
use super::{Figure, RenderOptions, layout, text};
use crate::error::{Error, Result};

/// Most pixels of a picture: 400 MB of memory.
const MOST_PIXELS: f64 = 1e8;
/// How much thicker bold text is, in font sizes. The light font has no bold cut.
const BOLD: f64 = 0.04;
/// How much thicker all other text is: the light font is thin where one pixel is all there is.
const BODY: f64 = 0.012;

/// A picture as its pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pixels {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// sRGB, three bytes a pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

/// The figure as a PNG of `scale` times the size of its SVG; 2 suits most screens, 4 print. The
/// same arguments give the same bytes.
///
/// # Errors
/// A scale that is not a positive number, or one that gives more than 10⁸ pixels.
pub fn png(figure: &Figure, look: &RenderOptions, scale: f32) -> Result<Vec<u8>> {
    let scene = layout::scene(figure, look);
    let Pixels { width, height, rgb } = painted(&scene, scale)?;
    // What does not stand in the picture stands in its properties.
    let said = [("Title", &scene.title), ("Description", &scene.description)];
    let said = said.into_iter().filter(|_| look.bare);
    encoded(&rgb, [width, height], said).map_err(|error| Error::Input(format!("figure {}: {error}", figure.id)))
}

fn encoded<'a>(
    rgb: &[u8],
    [width, height]: [u32; 2],
    said: impl Iterator<Item = (&'a str, &'a String)>,
) -> std::result::Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, width, height);
    encoder.set_color(ColorType::Rgb);
    encoder.set_compression(Compression::Balanced);
    encoder.set_filter(Filter::NoFilter);
    for (key, text) in said {
        encoder.add_itxt_chunk(key.to_owned(), text.clone())?;
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(bytes)
}

/// The figure as pixels, `scale` for each of its SVG's in both directions.
///
/// # Errors
/// Those of [`png`].
pub fn pixels(figure: &Figure, look: &RenderOptions, scale: f32) -> Result<Pixels> {
    painted(&layout::scene(figure, look), scale)
}

fn painted(scene: &Scene, scale: f32) -> Result<Pixels> {
    let [width, height] = scene.size.map(|side| (side * f64::from(scale)).ceil());
    if !(scale > 0.0 && width * height <= MOST_PIXELS) {
        return Err(Error::input(format!(
            "a picture of {} × {} pixels at scale {scale} cannot be made: choose a scale above 0 that gives at most 10⁸ pixels",
            scene.size[0], scene.size[1]
        )));
    }
    let mut canvas = Canvas::new(scene, [width as u32, height as u32], scale).ok_or_else(|| {
        Error::Input(format!("figure {}: there is no memory for its pixels; choose a smaller scale", scene.id))
    })?;
    for shape in &scene.shapes {
        match shape {
            Shape::Path(path) => canvas.draw(path),
            Shape::Text(text) => canvas.write(text),
        }
    }
    // The ground covers everything: there is no alpha, and premultiplied colours are plain.
    let rgb = canvas.pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    Ok(Pixels { width: width as u32, height: height as u32, rgb })
}

/// The pixels and how to get to them.
struct Canvas {
    pixels: Pixmap,
    plot: Mask,
    scale: Transform,
}

impl Canvas {
    fn new(scene: &Scene, [width, height]: [u32; 2], scale: f32) -> Option<Self> {
        let mut pixels = Pixmap::new(width, height)?;
        let [r, g, b] = scene.ground.rgb;
        pixels.fill(Color::from_rgba8(r, g, b, u8::MAX));
        let mut plot = Mask::new(width, height)?;
        let scale = Transform::from_scale(scale, scale);
        let [left, top, right, bottom] = scene.plot.map(|side| side as f32);
        let area = PathBuilder::from_rect(Rect::from_ltrb(left, top, right, bottom)?);
        plot.fill_path(&area, FillRule::Winding, true, scale);
        Some(Self { pixels, plot, scale })
    }

    fn draw(&mut self, path: &Path) {
        let mut outline = PathBuilder::new();
        for (i, &[x, y]) in path.points.iter().enumerate() {
            match i {
                0 => outline.move_to(x as f32, y as f32),
                _ => outline.line_to(x as f32, y as f32),
            }
        }
        if path.closed {
            outline.close();
        }
        let Some(outline) = outline.finish() else { return };
        let clip = path.clipped.then_some(&self.plot);
        if let Some(ink) = path.fill {
            self.pixels.fill_path(&outline, &paint(ink), FillRule::Winding, self.scale, clip);
        }
        if let Some(stroke) = path.stroke {
            self.pixels.stroke_path(&outline, &paint(stroke.ink), &pen(stroke), self.scale, clip);
        }
    }

    fn write(&mut self, line: &Text) {
        let Some(outline) = text::outline(&line.text, line.size) else { return };
        let [x, y] = line.at.map(|side| side as f32);
        let start = -(line.anchor.share() * text::width(&line.text, line.size)) as f32;
        let turned = self.scale.pre_translate(x, y).pre_rotate(line.angle as f32).pre_translate(start, 0.0);
        self.pixels.fill_path(&outline, &paint(line.ink), FillRule::Winding, turned, None);
        let thicker = line.size * if line.bold { BOLD } else { BODY };
        self.pixels.stroke_path(&outline, &paint(line.ink), &pen(Stroke::new(line.ink, thicker)), turned, None);
    }
}

fn paint(ink: Ink) -> Paint<'static> {
    let ([r, g, b], alpha) = (ink.rgb, (ink.alpha * 255.0).round() as u8);
    Paint { shader: Shader::SolidColor(Color::from_rgba8(r, g, b, alpha)), ..Paint::default() }
}

fn pen(stroke: Stroke) -> tiny_skia::Stroke {
    tiny_skia::Stroke {
        width: stroke.width as f32,
        line_cap: LineCap::Butt,
        line_join: LineJoin::Round,
        dash: stroke.dash.and_then(|[dash, gap]| StrokeDash::new(vec![dash as f32, gap as f32], 0.0)),
        ..tiny_skia::Stroke::default()
    }
}
