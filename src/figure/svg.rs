//! Figures as SVG 1.1.

use std::fmt::Write;

use super::scene::{Anchor, Ink, Path, Scene, Shape, Stroke, Text};
use super::{Figure, RenderOptions, layout, text};

/// The figure as an SVG document. Equal figures give equal bytes. Text stays text.
pub fn svg(figure: &Figure, look: &RenderOptions) -> String {
    let scene = layout::scene(figure, look);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = document(&mut out, &scene, look.paper);
    out
}

fn document(out: &mut String, scene: &Scene, paper: Option<f64>) -> std::fmt::Result {
    let ([width, height], id) = (scene.size, scene.id.as_str());
    let side = |length: f64| paper.map_or_else(|| length.to_string(), |points| format!("{}pt", place(length * points)));
    let (wide, tall) = (side(width), side(height));
    let [left, top, right, bottom] = scene.plot.map(place);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{id}-title {id}-desc" font-family="{}" font-weight="300">"#,
        text::FAMILY
    )?;
    writeln!(out, r#"<title id="{id}-title">{}</title>"#, escaped(&scene.title))?;
    writeln!(out, r#"<desc id="{id}-desc">{}</desc>"#, escaped(&scene.description))?;
    writeln!(
        out,
        r#"<clipPath id="{id}-plot"><path d="M{left} {top}H{right}V{bottom}H{left}Z"/></clipPath><rect width="{width}" height="{height}" fill="{}"/>"#,
        hex(scene.ground)
    )?;
    for shape in &scene.shapes {
        match shape {
            Shape::Path(path) => draw(out, path, id)?,
            Shape::Text(text) => write_text(out, text)?,
        }
    }
    writeln!(out, "</svg>")
}

fn draw(out: &mut String, path: &Path, id: &str) -> std::fmt::Result {
    write!(out, r#"<path d=""#)?;
    for (i, at) in path.points.iter().enumerate() {
        let [x, y] = at.map(place);
        write!(out, "{}{x} {y}", if i == 0 { 'M' } else { 'L' })?;
    }
    write!(out, r#"{}""#, if path.closed { "Z" } else { "" })?;
    match path.fill {
        Some(ink) => paint(out, "fill", ink)?,
        None => write!(out, r#" fill="none""#)?,
    }
    if let Some(stroke) = path.stroke {
        outline(out, stroke)?;
    }
    if path.clipped {
        write!(out, r##" clip-path="url(#{id}-plot)""##)?;
    }
    match &path.tip {
        Some(tip) => writeln!(out, "><title>{}</title></path>", escaped(tip)),
        None => writeln!(out, "/>"),
    }
}

fn paint(out: &mut String, what: &str, ink: Ink) -> std::fmt::Result {
    write!(out, r#" {what}="{}""#, hex(ink))?;
    if ink.alpha < 1.0 {
        write!(out, r#" {what}-opacity="{}""#, place(ink.alpha))?;
    }
    Ok(())
}

fn outline(out: &mut String, stroke: Stroke) -> std::fmt::Result {
    paint(out, "stroke", stroke.ink)?;
    write!(out, r#" stroke-width="{}" stroke-linejoin="round""#, place(stroke.width))?;
    if let Some([dash, gap]) = stroke.dash {
        write!(out, r#" stroke-dasharray="{dash} {gap}""#)?;
    }
    Ok(())
}

fn write_text(out: &mut String, line: &Text) -> std::fmt::Result {
    let [x, y] = line.at.map(place);
    let width = place(text::width(&line.text, line.size));
    write!(out, r#"<text x="{x}" y="{y}" font-size="{}" textLength="{width}""#, place(line.size))?;
    // Wide fonts are squeezed as a whole: with spacing alone their letters would touch.
    write!(out, r#" lengthAdjust="spacingAndGlyphs""#)?;
    paint(out, "fill", line.ink)?;
    match line.anchor {
        Anchor::Start => {}
        Anchor::Middle => write!(out, r#" text-anchor="middle""#)?,
        Anchor::End => write!(out, r#" text-anchor="end""#)?,
    }
    if line.bold {
        write!(out, r#" font-weight="500""#)?;
    }
    if line.angle != 0.0 {
        write!(out, r#" transform="rotate({} {x} {y})""#, line.angle)?;
    }
    writeln!(out, ">{}</text>", escaped(&line.text))
}

fn hex(ink: Ink) -> String {
    let [r, g, b] = ink.rgb;
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Hundredths of a pixel are finer than any eye, and keep files small.
fn place(value: f64) -> f64 {
    (value * 100.0).round() / 100.0 + 0.0
}

/// Text as XML: markup escaped, control characters (forbidden in XML 1.0) as spaces.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push(' '),
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
