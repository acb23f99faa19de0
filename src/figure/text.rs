//! Widths, line breaks and outlines of text, in the fonts that egui carries.

use std::sync::LazyLock;

use skrifa::charmap::Charmap;
use skrifa::instance::{LocationRef, Size};
use skrifa::metrics::GlyphMetrics;
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};

/// A font with what is asked of it for every character.
struct Face {
    font: FontRef<'static>,
    glyphs: Charmap<'static>,
    /// In units of the font.
    widths: GlyphMetrics<'static>,
    units_per_size: f64,
}

/// Fonts in the order in which they are asked for a character; the second has many more signs.
static FACES: LazyLock<Vec<Face>> = LazyLock::new(|| {
    let files = [epaint_default_fonts::UBUNTU_LIGHT, epaint_default_fonts::HACK_REGULAR];
    let face = |font: FontRef<'static>| Face {
        glyphs: font.charmap(),
        widths: font.glyph_metrics(Size::unscaled(), LocationRef::default()),
        units_per_size: f64::from(font.metrics(Size::unscaled(), LocationRef::default()).units_per_em),
        font,
    };
    files.into_iter().filter_map(|file| FontRef::new(file).ok()).map(face).collect()
});

/// Families for the SVG: the one measured here, then common ones.
pub(super) const FAMILY: &str = "'Ubuntu Light', Ubuntu, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";

/// Distance between the baselines of two lines, in font sizes.
pub(super) const LEADING: f64 = 1.3;

/// Returns the first font with `character` and the glyph there, or the first font's missing glyph.
fn glyph(character: char) -> Option<(&'static Face, GlyphId)> {
    // Ubuntu's π is a small п, which reads as n.
    let asked = if character == 'π' { 1.. } else { 0.. };
    let found = FACES.get(asked)?.iter().find_map(|face| Some((face, face.glyphs.map(character)?)));
    found.or_else(|| FACES.first().map(|face| (face, GlyphId::NOTDEF)))
}

/// Widths of characters and the size of the letters in the same unit: most text is of these, and asking the font takes long.
static ASCII: LazyLock<Vec<Option<[f64; 2]>>> = LazyLock::new(|| ('\0'..'\u{80}').map(of_font).collect());

/// Width of a character in units of its font, and how many of them a size has.
fn of_font(character: char) -> Option<[f64; 2]> {
    let (face, id) = glyph(character)?;
    Some([f64::from(face.widths.advance_width(id)?), face.units_per_size])
}

fn advance(character: char, size: f64) -> f64 {
    let known = ASCII.get(character as usize).copied().unwrap_or_else(|| of_font(character));
    known.map_or(0.0, |[width, units]| width * size / units)
}

/// Width of one line of text, in the unit of `size`.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|character| advance(character, size)).sum()
}

/// Width of the widest of several lines.
pub(super) fn widest(lines: &[String], size: f64) -> f64 {
    lines.iter().map(|line| width(line, size)).fold(0.0, f64::max)
}

/// Breaks text into lines no wider than `room`, between words, or inside words wider than that.
pub(super) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace().flat_map(|word| pieces(word, size, room)) {
        let joined = if line.is_empty() { word.clone() } else { format!("{line} {word}") };
        if !line.is_empty() && width(&joined, size) > room {
            lines.push(std::mem::replace(&mut line, word));
        } else {
            line = joined;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A word in parts that fit into `room`, at least a character each.
fn pieces(word: &str, size: f64, room: f64) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0.0;
    for character in word.chars() {
        let more = advance(character, size);
        if used > 0.0 && used + more > room {
            parts.push(String::new());
            used = 0.0;
        }
        used += more;
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    parts
}

/// The outlines of one line of text that starts at the origin: y downwards, the baseline at 0.
pub(super) fn outline(text: &str, size: f64) -> Option<tiny_skia::Path> {
    let mut pen = Pen { path: tiny_skia::PathBuilder::new(), x: 0.0 };
    for character in text.chars() {
        let Some((face, id)) = glyph(character) else { continue };
        if let Some(shape) = face.font.outline_glyphs().get(id) {
            let settings = DrawSettings::unhinted(Size::new(size as f32), LocationRef::default());
            // A glyph whose program is damaged stays empty; the text around it is still read.
            let _ = shape.draw(settings, &mut pen);
        }
        pen.x += advance(character, size) as f32;
    }
    pen.path.finish()
}

/// Collects the outlines of one glyph after another.
struct Pen {
    path: tiny_skia::PathBuilder,
    x: f32,
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.x + x, -y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.x + x, -y);
    }

    fn quad_to(&mut self, cx: f32, cy: f32, x: f32, y: f32) {
        self.path.quad_to(self.x + cx, -cy, self.x + x, -y);
    }

    fn curve_to(&mut self, c1x: f32, c1y: f32, c2x: f32, c2y: f32, x: f32, y: f32) {
        self.path.cubic_to(self.x + c1x, -c1y, self.x + c2x, -c2y, self.x + x, -y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
