//! Ink on an image: strokes of a round brush with soft edges, in pixels of the image. No egui.

use std::collections::VecDeque;

/// Bytes that undone and done strokes may take.
const ROOM: usize = 32 << 20;
/// Ink that covers less of a pixel cannot be seen.
const SEEN: f32 = 1.0 / 255.0;

/// What a stroke does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tool {
    /// Leaves ink of this colour, 8-bit levels; of a grey image the first counts.
    Pen([u8; 3]),
    /// Takes ink away.
    Eraser,
}

/// Ink over an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Width and height, pixels.
    size: [usize; 2],
    /// How much of each pixel is covered, 0 to 1, row-major.
    cover: Vec<f32>,
    /// Levels times cover, red, green and blue of each pixel.
    ink: Vec<[f32; 3]>,
}

/// A stroke under way: what was there before, and how much of each pixel it has touched.
#[derive(Debug, Clone)]
struct Stroke {
    tool: Tool,
    radius: f32,
    before: Layer,
    touched: Vec<f32>,
    at: [f32; 2],
}

/// A layer with its strokes, which can be undone.
#[derive(Debug, Clone)]
pub struct Ink {
    layer: Layer,
    stroke: Option<Stroke>,
    done: VecDeque<Layer>,
    undone: Vec<Layer>,
    revision: u64,
}

impl Layer {
    /// Without ink.
    pub fn empty(size: [usize; 2]) -> Self {
        let pixels = size[0] * size[1];
        Self { size, cover: vec![0.0; pixels], ink: vec![[0.0; 3]; pixels] }
    }

    /// Whether there is no ink that can be seen.
    pub fn is_empty(&self) -> bool {
        self.cover.iter().all(|cover| *cover < SEEN)
    }

    fn bytes(&self) -> usize {
        16 * self.cover.len()
    }

    /// Which pixels ink covers so that it can be seen, row-major.
    pub fn inked(&self) -> Vec<bool> {
        self.cover.iter().map(|cover| *cover >= SEEN).collect()
    }

    /// The picture of the ink over a ground, 8-bit CHW; three channels or one.
    pub fn over(&self, ground: &[u8]) -> Vec<u8> {
        let area = self.cover.len().max(1);
        let level = |(at, below): (usize, &u8)| {
            let (channel, i) = ((at / area).min(2), at % area);
            if self.cover[i] < SEEN {
                return *below;
            }
            (f32::from(*below) * (1.0 - self.cover[i]) + self.ink[i][channel]).round() as u8
        };
        ground.iter().enumerate().map(level).collect()
    }

    /// `before` under so much of a tool.
    fn apply(before: &Self, touched: &[f32], tool: Tool) -> Self {
        let mut after = before.clone();
        for (i, &share) in touched.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let (colour, full) = match tool {
                Tool::Pen(colour) => (colour.map(f32::from), 1.0),
                Tool::Eraser => ([0.0; 3], 0.0),
            };
            after.cover[i] = before.cover[i] * (1.0 - share) + full * share;
            for (ink, colour) in after.ink[i].iter_mut().zip(colour) {
                *ink = *ink * (1.0 - share) + colour * full * share;
            }
        }
        after
    }
}

/// How far a point is from the piece of a line between two others.
fn distance(p: [f32; 2], [a, b]: [[f32; 2]; 2]) -> f32 {
    let (along, to) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length = along[0] * along[0] + along[1] * along[1];
    let share = if length > 0.0 { ((to[0] * along[0] + to[1] * along[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    (to[0] - share * along[0]).hypot(to[1] - share * along[1])
}

/// Adds what a round brush covers on its way between two points: of each pixel the share that a soft
/// edge of one pixel leaves. What was covered more stays.
fn touch(touched: &mut [f32], [width, height]: [usize; 2], radius: f32, way: [[f32; 2]; 2]) {
    let reach = radius + 0.5;
    let span = |axis: usize, end: usize| {
        let (low, high) = (way[0][axis].min(way[1][axis]) - reach, way[0][axis].max(way[1][axis]) + reach);
        (low.floor().max(0.0) as usize).min(end)..(high.ceil().max(0.0) as usize).min(end)
    };
    for row in span(1, height) {
        for column in span(0, width) {
            let share = (reach - distance([column as f32 + 0.5, row as f32 + 0.5], way)).clamp(0.0, 1.0);
            let here = &mut touched[row * width + column];
            *here = here.max(share);
        }
    }
}

impl Ink {
    /// None yet, on an image of this width and height.
    pub fn new(size: [usize; 2]) -> Self {
        Self { layer: Layer::empty(size), stroke: None, done: VecDeque::new(), undone: Vec::new(), revision: 0 }
    }

    /// The ink as it is now.
    pub fn layer(&self) -> &Layer {
        &self.layer
    }

    /// Counts up whenever the ink changes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Begins a stroke at a point, in pixels from the upper left corner, or goes on with the one under
    /// way. `radius` is half the width of the brush, pixels.
    pub fn draw(&mut self, tool: Tool, radius: f32, to: [f32; 2]) {
        let layer = &self.layer;
        let stroke = self.stroke.get_or_insert_with(|| Stroke {
            tool,
            radius,
            before: layer.clone(),
            touched: vec![0.0; layer.cover.len()],
            at: to,
        });
        touch(&mut stroke.touched, layer.size, stroke.radius, [stroke.at, to]);
        stroke.at = to;
        let after = Layer::apply(&stroke.before, &stroke.touched, stroke.tool);
        if after != self.layer {
            self.layer = after;
            self.revision += 1;
        }
    }

    /// Ends the stroke under way, if there is one.
    pub fn lift(&mut self) {
        if let Some(stroke) = self.stroke.take().filter(|stroke| stroke.before != self.layer) {
            self.remember(stroke.before);
        }
    }

    /// Takes all ink away, as a stroke that can be undone.
    pub fn clear(&mut self) {
        self.lift();
        let empty = Layer::empty(self.layer.size);
        if self.layer != empty {
            let before = std::mem::replace(&mut self.layer, empty);
            self.revision += 1;
            self.remember(before);
        }
    }

    fn remember(&mut self, before: Layer) {
        self.undone.clear();
        self.done.push_back(before);
        while self.done.len() > 1 && self.done.iter().map(Layer::bytes).sum::<usize>() > ROOM {
            self.done.pop_front();
        }
    }

    pub fn can_undo(&self) -> bool {
        !self.done.is_empty()
    }

    pub fn can_redo(&self) -> bool {
        !self.undone.is_empty()
    }

    /// Takes the last stroke back.
    pub fn undo(&mut self) {
        self.lift();
        if let Some(before) = self.done.pop_back() {
            self.undone.push(std::mem::replace(&mut self.layer, before));
            self.revision += 1;
        }
    }

    /// Makes the last undone stroke again.
    pub fn redo(&mut self) {
        self.lift();
        if let Some(after) = self.undone.pop() {
            self.done.push_back(std::mem::replace(&mut self.layer, after));
            self.revision += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    const SIZE: [usize; 2] = [24, 20];
    const WHITE: Tool = Tool::Pen([255; 3]);

    fn covered(ink: &Ink) -> f32 {
        ink.layer().cover.iter().sum()
    }

    /// A disc of radius r whose edge falls over one pixel covers π(r² + 1/12), wherever it lies between the pixels.
    #[test]
    fn a_dot_covers_its_area_wherever_it_lies() {
        let mut rng = Seed(3).rng(0);
        for radius in [1.0f32, 1.7, 3.0, 4.5] {
            for _ in 0..20 {
                let mut ink = Ink::new(SIZE);
                ink.draw(WHITE, radius, [rng.random_range(8.0..16.0), rng.random_range(8.0..12.0)]);
                let area = std::f32::consts::PI * (radius * radius + 1.0 / 12.0);
                assert!((covered(&ink) / area - 1.0).abs() < 0.08 / radius, "{radius}: {} of {area}", covered(&ink));
            }
        }
    }

    #[test]
    fn a_stroke_is_the_same_in_however_many_steps_and_covers_nothing_twice() {
        let (mut once, mut steps) = (Ink::new(SIZE), Ink::new(SIZE));
        once.draw(WHITE, 2.0, [4.0, 5.0]);
        once.draw(WHITE, 2.0, [20.0, 13.0]);
        for i in 0..=16 {
            steps.draw(WHITE, 2.0, [4.0 + i as f32, 5.0 + 0.5 * i as f32]);
        }
        // Back over the same way: soft edges stay soft within a stroke.
        steps.draw(WHITE, 2.0, [4.0, 5.0]);
        let apart = once.layer().cover.iter().zip(&steps.layer().cover).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-5);
        let edges = steps.layer().cover.iter().filter(|cover| (0.05..0.95).contains(*cover)).count();
        assert!(edges > 20, "only {edges} pixels have a soft edge");
    }

    #[test]
    fn every_stroke_is_undone_and_made_again_to_the_bit() {
        let mut rng = Seed(5).rng(0);
        let mut ink = Ink::new(SIZE);
        let mut states = vec![ink.layer().clone()];
        for i in 0..12 {
            let tool = if i % 3 == 2 { Tool::Eraser } else { Tool::Pen([20 * i, 200, 255 - 9 * i]) };
            for _ in 0..4 {
                let to = [rng.random_range(0.0..24.0), rng.random_range(0.0..20.0)];
                ink.draw(tool, 1.5, to);
            }
            ink.lift();
            states.push(ink.layer().clone());
        }
        // What changed nothing is no stroke.
        states.dedup();
        assert!(states.len() > 8);
        ink.clear();
        assert!(ink.layer().is_empty());
        ink.undo();
        for state in states.iter().rev() {
            assert_eq!(ink.layer(), state);
            ink.undo();
        }
        assert!(!ink.can_undo());
        for state in &states[1..] {
            ink.redo();
            assert_eq!(ink.layer(), state);
        }
        ink.undo();
        ink.draw(WHITE, 1.0, [3.0, 3.0]);
        ink.lift();
        assert!(!ink.can_redo(), "another stroke ends what was undone");
    }

    #[test]
    fn an_eraser_shows_the_ground_again_and_levels_stay_between_ground_and_ink() {
        let ground: Vec<u8> = (0..3 * 24 * 20).map(|i| (i % 251) as u8).collect();
        let mut ink = Ink::new(SIZE);
        assert_eq!(ink.layer().over(&ground), ground);
        let colour = [10, 130, 250];
        for x in [2.0, 21.0] {
            ink.draw(Tool::Pen(colour), 2.5, [x, 9.3]);
        }
        ink.lift();
        let drawn = ink.layer().over(&ground);
        let inked = ink.layer().inked();
        for (at, (now, before)) in drawn.iter().zip(&ground).enumerate() {
            let (channel, i) = (at / 480, at % 480);
            let ends = [*before, colour[channel]];
            assert!((ends[0].min(ends[1])..=ends[0].max(ends[1])).contains(now), "{ends:?} {now}");
            assert!(inked[i] || now == before);
        }
        assert_eq!(drawn[9 * 24 + 10], colour[0], "the middle of the stroke is the colour itself");
        ink.draw(Tool::Eraser, 60.0, [12.0, 10.0]);
        assert!(ink.layer().is_empty() && ink.layer().over(&ground) == ground);
        assert!(!ink.layer().inked().contains(&true));
    }

    #[test]
    fn a_pen_beyond_the_edge_draws_nothing_and_counts_no_change() {
        let mut ink = Ink::new(SIZE);
        for to in [[-9.0, 3.0], [40.0, 3.0], [5.0, -20.0], [5.0, 90.0]] {
            let mut away = ink.clone();
            away.draw(WHITE, 2.0, to);
            away.lift();
            assert!(away.revision() == 0 && !away.can_undo(), "{to:?}");
        }
        ink.draw(WHITE, 2.0, [0.0, 0.0]);
        assert_eq!(ink.revision(), 1);
    }
}
