//! Figures in the window, painted from the shapes that SVG, PDF and PNG are written from.

use eframe::egui::epaint::{Mesh, TextShape, Vertex, WHITE_UV};
use eframe::egui::{self, Color32, FontId, Pos2, Rect, Shape, Stroke, Ui, Vec2, pos2, vec2};

use crate::figure::scene;
use crate::figure::scene::{Anchor, Ink, Path, Scene, Text};
use crate::gui::theme;

/// From so many shapes on, marks go without the thin ring that sets them apart.
const CROWDED: usize = 3000;

/// A scene as shapes of the window.
pub struct Painting {
    /// Its size, points.
    pub size: Vec2,
    /// The plot between its axes, from the corner of the picture.
    pub plot: Rect,
    /// What is drawn, and whether it ends at the edge of the plot.
    shapes: Vec<(bool, Shape)>,
    /// Where the corner of the picture is.
    corner: Pos2,
}

impl Painting {
    /// Lays a scene out with its corner at the origin.
    pub fn new(ui: &Ui, scene: &Scene) -> Self {
        let [left, top, right, bottom] = scene.plot.map(|side| side as f32);
        let mut painting = Self {
            size: vec2(scene.size[0] as f32, scene.size[1] as f32),
            plot: Rect::from_min_max(pos2(left, top), pos2(right, bottom)),
            shapes: Vec::new(),
            corner: Pos2::ZERO,
        };
        let crowded = scene.shapes.len() > CROWDED;
        for shape in &scene.shapes {
            match shape {
                scene::Shape::Path(path) => {
                    let ring = path.fill.is_some() && path.stroke.is_some_and(|stroke| stroke.ink == scene.ground);
                    painting.path(path, !(crowded && ring));
                }
                scene::Shape::Text(text) => painting.shapes.push((false, line(ui, text))),
            }
        }
        painting
    }

    fn path(&mut self, path: &Path, stroked: bool) {
        let points: Vec<Pos2> = path.points.iter().map(place).collect();
        if let Some(ink) = path.fill {
            // Markers and bars are star-shaped about their middle; bands are strips between two edges.
            let whole = path.stroke.is_some() || points.len() <= 4;
            let filled = if whole { fan(&points, colour(ink)) } else { strip(&points, colour(ink)) };
            self.fill(path.clipped, filled);
        }
        let Some(stroke) = path.stroke.filter(|_| stroked) else { return };
        let line = Stroke::new(stroke.width as f32, colour(stroke.ink));
        let mut points = points;
        if path.closed {
            points.extend(points.first().copied());
        }
        for part in if path.clipped && !path.closed { inside(&points, self.plot) } else { vec![points] } {
            match stroke.dash {
                Some([dash, gap]) => {
                    let dashes = Shape::dashed_line(&part, line, dash as f32, gap as f32);
                    self.shapes.extend(dashes.into_iter().map(|dash| (path.clipped, dash)));
                }
                None => self.shapes.push((path.clipped, Shape::line(part, line))),
            }
        }
    }

    /// Areas that follow each other become one: thousands of marks are then one shape.
    fn fill(&mut self, clipped: bool, area: Mesh) {
        match self.shapes.last_mut() {
            Some((same, Shape::Mesh(mesh))) if *same == clipped => std::sync::Arc::make_mut(mesh).append(area),
            _ => self.shapes.push((clipped, Shape::mesh(area))),
        }
    }

    /// Paints it with its corner at `corner`.
    pub fn paint(&mut self, ui: &Ui, corner: Pos2) {
        let by = corner - self.corner;
        if by != Vec2::ZERO {
            self.shapes.iter_mut().for_each(|(_, shape)| shape.translate(by));
            self.corner = corner;
        }
        let all = ui.painter();
        let clipped = all.with_clip_rect(self.plot.translate(corner.to_vec2()).intersect(all.clip_rect()));
        for (cut, shape) in &self.shapes {
            if *cut {
                clipped.add(shape.clone())
            } else {
                all.add(shape.clone())
            };
        }
    }
}

fn place([x, y]: &[f64; 2]) -> Pos2 {
    pos2(*x as f32, *y as f32)
}

fn colour(ink: Ink) -> Color32 {
    let [r, g, b] = ink.rgb;
    theme::pixel(r, g, b).gamma_multiply(ink.alpha as f32)
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
fn fan(points: &[Pos2], colour: Color32) -> Mesh {
    let middle = points.iter().fold(Vec2::ZERO, |sum, at| sum + at.to_vec2()) / points.len().max(1) as f32;
    let mut mesh = Mesh::default();
    mesh.vertices.push(vertex(middle.to_pos2(), colour));
    mesh.vertices.extend(points.iter().map(|at| vertex(*at, colour)));
    let n = points.len() as u32;
    (0..n).for_each(|i| mesh.add_triangle(0, 1 + i, 1 + (i + 1) % n));
    mesh
}

/// A strip between two edges: one forth, the other back.
fn strip(points: &[Pos2], colour: Color32) -> Mesh {
    let mut mesh = Mesh::default();
    mesh.vertices.extend(points.iter().map(|at| vertex(*at, colour)));
    let n = points.len() as u32;
    for i in 0..(n / 2).saturating_sub(1) {
        let (here, there) = ([i, n - 1 - i], [i + 1, n - 2 - i]);
        mesh.add_triangle(here[0], here[1], there[0]);
        mesh.add_triangle(here[1], there[1], there[0]);
    }
    mesh
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
    fn area(mesh: Mesh) -> f32 {
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
