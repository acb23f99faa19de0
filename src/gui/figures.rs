//! Figures in the window, painted from the shapes that SVG and PNG are written from.

use std::collections::BTreeMap;

use eframe::egui::epaint::{Mesh, TextShape, Vertex, WHITE_UV};
use eframe::egui::{self, Color32, FontId, Pos2, Rect, Sense, Shape, Stroke, Ui, Vec2, pos2, vec2};

use super::theme::Theme;
use crate::figure::scene::{Anchor, Ink, Path, Scene, Text};
use crate::figure::{Figure, RenderOptions, scene};

/// Height between the axes, points.
const PLOT_HEIGHT: f64 = 300.0;
/// Widest figure: beyond, lines get long and points get lost.
const WIDEST: f32 = 900.0;
/// A pointer this near to a mark is meant for it, points.
const REACH: f32 = 12.0;

/// Figures as shapes, kept from frame to frame.
#[derive(Default)]
pub struct Drawings {
    /// By their place in the list.
    kept: BTreeMap<usize, Kept>,
}

/// A figure laid out for a width and a theme.
struct Kept {
    figure: Figure,
    width: f32,
    dark: bool,
    size: Vec2,
    shapes: Vec<Shape>,
    /// Where marks are, and what they say.
    tips: Vec<(Pos2, String)>,
}

impl Drawings {
    /// Shows the figure in place `at` of a list.
    pub fn show(&mut self, ui: &mut Ui, at: usize, figure: &Figure) {
        let (width, dark) = (ui.available_width().min(WIDEST).floor(), Theme::of(ui).is_dark());
        let fits = |kept: &Kept| kept.width == width && kept.dark == dark && kept.figure == *figure;
        if !self.kept.get(&at).is_some_and(fits) {
            self.kept.insert(at, Kept::new(ui, figure, width, dark));
        }
        if let Some(kept) = self.kept.get(&at) {
            kept.show(ui);
        }
    }
}

impl Kept {
    fn new(ui: &Ui, figure: &Figure, width: f32, dark: bool) -> Self {
        // Caption and provenance are text of the window, to be selected and copied.
        let bare = Figure { title: String::new(), caption: String::new(), provenance: Vec::new(), ..figure.clone() };
        let scene = scene(&bare, &RenderOptions { dark, width: f64::from(width), plot_height: PLOT_HEIGHT });
        let mut kept = Self {
            figure: figure.clone(),
            width,
            dark,
            size: vec2(scene.size[0] as f32, scene.size[1] as f32),
            shapes: Vec::new(),
            tips: Vec::new(),
        };
        let clip = clip(&scene);
        for shape in &scene.shapes {
            match shape {
                scene::Shape::Path(path) => kept.path(path, clip),
                scene::Shape::Text(text) => kept.shapes.push(line(ui, text)),
            }
        }
        kept
    }

    fn path(&mut self, path: &Path, clip: Rect) {
        let points: Vec<Pos2> = path.points.iter().map(place).collect();
        if let Some(tip) = &path.tip
            && !points.is_empty()
        {
            let middle = points.iter().fold(Vec2::ZERO, |sum, at| sum + at.to_vec2()) / points.len() as f32;
            self.tips.push((middle.to_pos2(), tip.clone()));
        }
        if let Some(ink) = path.fill {
            let clipped = |at: &Pos2| if path.clipped { clip.clamp(*at) } else { *at };
            let corners: Vec<Pos2> = points.iter().map(clipped).collect();
            // Markers and bars are star-shaped about their middle; bands are strips between two
            // edges.
            let whole = path.stroke.is_some() || corners.len() <= 4;
            self.shapes.push(if whole { fan(&corners, colour(ink)) } else { strip(&corners, colour(ink)) });
        }
        let Some(stroke) = path.stroke else { return };
        let line = Stroke::new(stroke.width as f32, colour(stroke.ink));
        let mut points = points;
        if path.closed {
            points.extend(points.first().copied());
        }
        for part in if path.clipped && !path.closed { inside(&points, clip) } else { vec![points] } {
            match stroke.dash {
                Some([dash, gap]) => self.shapes.extend(Shape::dashed_line(&part, line, dash as f32, gap as f32)),
                None => self.shapes.push(Shape::line(part, line)),
            }
        }
    }

    fn show(&self, ui: &mut Ui) {
        let (rect, response) = ui.allocate_exact_size(self.size, Sense::hover());
        let about = format!("{}: {}", self.figure.title, self.figure.caption);
        response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, &about));
        if !ui.is_rect_visible(rect) {
            return;
        }
        let moved = self.shapes.iter().cloned().map(|mut shape| {
            shape.translate(rect.min.to_vec2());
            shape
        });
        ui.painter().extend(moved);
        let Some(pointer) = response.hover_pos() else { return };
        let off = |(at, _): &&(Pos2, String)| (rect.min + at.to_vec2()).distance(pointer);
        let near = self.tips.iter().filter(|tip| off(tip) <= REACH).min_by(|a, b| off(a).total_cmp(&off(b)));
        if let Some((at, tip)) = near {
            ui.painter().circle_stroke(rect.min + at.to_vec2(), 7.0, Stroke::new(1.0, Theme::of(ui).accent()));
            response.show_tooltip_text(tip.as_str());
        }
    }
}

fn place([x, y]: &[f64; 2]) -> Pos2 {
    pos2(*x as f32, *y as f32)
}

fn colour(ink: Ink) -> Color32 {
    let [r, g, b] = ink.rgb;
    super::theme::pixel(r, g, b).gamma_multiply(ink.alpha as f32)
}

fn clip(scene: &Scene) -> Rect {
    let [left, top, right, bottom] = scene.plot.map(|side| side as f32);
    Rect::from_min_max(pos2(left, top), pos2(right, bottom))
}

/// A line of text set by egui at the place of the layout.
fn line(ui: &Ui, text: &Text) -> Shape {
    let colour = colour(text.ink);
    let font = FontId::proportional(text.size as f32);
    let galley = ui.painter().layout_no_wrap(text.text.clone(), font, colour);
    // The layout gives the baseline.
    let ascent = galley.rows.first().and_then(|row| row.glyphs.first()).map_or(0.0, |glyph| glyph.pos.y);
    let share = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => 0.5,
        Anchor::End => 1.0,
    };
    let angle = (text.angle as f32).to_radians();
    let turned = egui::emath::Rot2::from_angle(angle) * vec2(-galley.size().x * share, -ascent);
    Shape::Text(TextShape::new(place(&text.at) + turned, galley, colour).with_angle(angle))
}

fn vertex(pos: Pos2, color: Color32) -> Vertex {
    Vertex { pos, uv: WHITE_UV, color }
}

/// A shape that is seen from its middle as a whole.
fn fan(points: &[Pos2], colour: Color32) -> Shape {
    let middle = points.iter().fold(Vec2::ZERO, |sum, at| sum + at.to_vec2()) / points.len().max(1) as f32;
    let mut mesh = Mesh::default();
    mesh.vertices.push(vertex(middle.to_pos2(), colour));
    mesh.vertices.extend(points.iter().map(|at| vertex(*at, colour)));
    let n = points.len() as u32;
    (0..n).for_each(|i| mesh.add_triangle(0, 1 + i, 1 + (i + 1) % n));
    Shape::mesh(mesh)
}

/// A strip between two edges: one forth, the other back.
fn strip(points: &[Pos2], colour: Color32) -> Shape {
    let mut mesh = Mesh::default();
    mesh.vertices.extend(points.iter().map(|at| vertex(*at, colour)));
    let n = points.len() as u32;
    for i in 0..(n / 2).saturating_sub(1) {
        let (here, there) = ([i, n - 1 - i], [i + 1, n - 2 - i]);
        mesh.add_triangle(here[0], here[1], there[0]);
        mesh.add_triangle(here[1], there[1], there[0]);
    }
    Shape::mesh(mesh)
}

/// The parts of a line that lie in a rectangle.
fn inside(points: &[Pos2], clip: Rect) -> Vec<Vec<Pos2>> {
    let mut parts: Vec<Vec<Pos2>> = Vec::new();
    for ends in points.windows(2) {
        let Some([a, b]) = cut(ends[0], ends[1], clip) else { continue };
        match parts.last_mut().filter(|part| part.last() == Some(&a)) {
            Some(part) => part.push(b),
            None => parts.push(vec![a, b]),
        }
    }
    parts
}

/// The part of a straight line that lies in a rectangle (Liang & Barsky 1984).
fn cut(a: Pos2, b: Pos2, clip: Rect) -> Option<[Pos2; 2]> {
    let along = b - a;
    let (mut first, mut last) = (0.0_f32, 1.0_f32);
    let sides = [
        (-along.x, a.x - clip.left()),
        (along.x, clip.right() - a.x),
        (-along.y, a.y - clip.top()),
        (along.y, clip.bottom() - a.y),
    ];
    for (towards, room) in sides {
        match () {
            () if towards == 0.0 && room < 0.0 => return None,
            () if towards < 0.0 => first = first.max(room / towards),
            () if towards > 0.0 => last = last.min(room / towards),
            () => {}
        }
    }
    (first <= last)
        .then(|| [if first > 0.0 { a + along * first } else { a }, if last < 1.0 { a + along * last } else { b }])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIP: Rect = Rect { min: Pos2::new(0.0, 0.0), max: Pos2::new(10.0, 10.0) };

    #[test]
    fn lines_end_at_the_edge_of_the_plot() {
        let points = [pos2(-5.0, 5.0), pos2(5.0, 5.0), pos2(5.0, 20.0), pos2(20.0, 20.0), pos2(8.0, 8.0)];
        let parts = inside(&points, CLIP);
        assert_eq!(
            parts,
            [vec![pos2(0.0, 5.0), pos2(5.0, 5.0), pos2(5.0, 10.0)], vec![pos2(10.0, 10.0), pos2(8.0, 8.0)]]
        );
        assert!(inside(&[pos2(-1.0, -1.0), pos2(-1.0, 30.0)], CLIP).is_empty());
    }

    /// Area of a mesh.
    fn area(shape: Shape) -> f32 {
        let Shape::Mesh(mesh) = shape else { panic!("no mesh") };
        let at = |i: u32| mesh.vertices[i as usize].pos;
        let triangle = |t: &[u32]| {
            let (ab, ac) = (at(t[1]) - at(t[0]), at(t[2]) - at(t[0]));
            0.5 * (ab.x * ac.y - ab.y * ac.x).abs()
        };
        mesh.indices.chunks_exact(3).map(triangle).sum()
    }

    #[test]
    fn bands_and_markers_are_covered_once_and_wholly() {
        let band = [pos2(0.0, 0.0), pos2(4.0, 1.0), pos2(6.0, 0.0), pos2(6.0, 2.0), pos2(4.0, 3.0), pos2(0.0, 2.0)];
        assert_eq!(area(strip(&band, Color32::WHITE)), 12.0);
        assert_eq!(area(fan(&[pos2(0.0, 0.0), pos2(4.0, 0.0), pos2(0.0, 3.0)], Color32::WHITE)), 6.0);
        assert_eq!(area(fan(&[pos2(1.0, 1.0), pos2(1.0, 3.0), pos2(4.0, 3.0), pos2(4.0, 1.0)], Color32::WHITE)), 6.0);
    }
}
