//! Where in an image the evidence lies: log p(x|a) − log p(x|b) as a sum over places (theory §2),
//! checked and drawn.

use crate::data::{ImageShape, contact_sheet};
use crate::device::{ImageSource, in_place};
use crate::error::{Error, Result};
use crate::flow::Evidence;
use crate::oracle::posterior::Posterior;
use crate::oracle::world::World;
use crate::units::{ClassId, Tau};

/// Side to which a picture and its map are enlarged on a sheet, pixels.
const SIDE: usize = 128;
/// Ends and middle of the colours of a sheet: blue for b, near white, orange for a. Apart for
/// colour-blind eyes too.
const RAMP: [[f64; 3]; 3] = [[28.0, 92.0, 168.0], [246.0, 246.0, 243.0], [201.0, 90.0, 12.0]];

impl Evidence {
    /// Σ cells, nats.
    pub fn sum(&self) -> f64 {
        self.cells.iter().sum()
    }

    /// The largest |cell|, nats: the ends of a symmetric colour scale.
    pub fn extent(&self) -> f64 {
        self.cells.iter().fold(0.0, |most: f64, cell| most.max(cell.abs()))
    }

    /// What this map has more than another of the same world and classes, place by place.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        let cells = self.cells.iter().zip(&other.cells).map(|(here, there)| here - there).collect();
        Self { cells, total: self.total - other.total, ..*self }
    }
}

/// The most probable class and the next: what an evidence map compares by default. `None` in a
/// world of one class.
pub fn leaders(p: &Posterior) -> Option<(ClassId, ClassId)> {
    let others = p.log_probabilities.iter().enumerate().filter(|(class, _)| *class != p.decision);
    let (second, _) = others.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
    Some((p.decision, second))
}

impl World {
    /// Which part of the world-space image `x` (CHW) speaks for class a and against class b at
    /// temperature τ.
    ///
    /// # Errors
    /// When a class is not of this world, at τ = 0 (there is no density), when the image has none,
    /// or the device fails.
    pub fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        self.explains(a, b, tau)?;
        self.flow().evidence(x, a, b, tau)
    }

    /// [`Self::evidence`], and its cells where a window paints them, if they were computed there. A
    /// window paints as well from the host's: that they could not stay is no reason to do without.
    ///
    /// # Errors
    /// As [`Self::evidence`].
    pub fn evidence_painted(
        &self,
        x: &[f32],
        (a, b): (ClassId, ClassId),
        tau: Tau,
    ) -> Result<(Evidence, Option<ImageSource>)> {
        self.explains(a, b, tau)?;
        let Some(flow) = self.flow().resident().filter(|flow| flow.is_painted()) else {
            return Ok((self.flow().evidence(x, a, b, tau)?, None));
        };
        let (evidence, cells) = flow.evidence_resident(x, a, b, tau)?;
        let cells = in_place(cells).unwrap_or_else(|error| {
            tracing::debug!("an evidence map is painted from the host: {error}");
            None
        });
        Ok((evidence, cells))
    }

    /// Whether there is such evidence.
    fn explains(&self, a: ClassId, b: ClassId, tau: Tau) -> Result<()> {
        [a, b].into_iter().try_for_each(|class| self.check_class(class))?;
        if tau.get() == 0.0 {
            return Err(Error::input("at τ = 0 there is no density, and so no evidence map: set τ > 0"));
        }
        Ok(())
    }

    /// Pictures with their evidence maps, a row each, as RGB: blue speaks for b, orange for a, each
    /// map scaled to its own largest cell.
    ///
    /// # Errors
    /// When there is nothing to draw.
    pub fn evidence_sheet(&self, x: &[f32], maps: &[Evidence]) -> Result<(ImageShape, Vec<u8>)> {
        let shape = self.shape();
        let rgb = ImageShape { channels: 3, ..shape };
        let mut pixels = Vec::with_capacity(2 * maps.len() * rgb.dims());
        for (x, map) in x.chunks(shape.dims()).zip(maps) {
            let picture = self.flow().pixels().picture(x);
            let plane = |c: usize| {
                let c = if shape.channels < 3 { 0 } else { c };
                &picture[c * shape.height * shape.width..(c + 1) * shape.height * shape.width]
            };
            (0..3).for_each(|c| pixels.extend_from_slice(plane(c)));
            pixels.extend(drawn(map, shape));
        }
        contact_sheet(rgb, &pixels, 2, (SIDE / shape.width.max(1)).max(1))
    }
}

/// A map at the size of its image, RGB planes.
fn drawn(map: &Evidence, shape: ImageShape) -> Vec<u8> {
    let extent = map.extent().max(f64::MIN_POSITIVE);
    let at = |row: usize, column: usize| {
        let cell = (row * map.rows / shape.height) * map.columns + column * map.columns / shape.width;
        map.cells[cell] / extent
    };
    let channel = move |c: usize| {
        let places = (0..shape.height).flat_map(move |row| (0..shape.width).map(move |column| (row, column)));
        places.map(move |(row, column)| colour(at(row, column))[c])
    };
    (0..3).flat_map(channel).collect()
}

/// The colour of a share of the scale, −1 to 1.
fn colour(share: f64) -> [u8; 3] {
    let end = if share < 0.0 { RAMP[0] } else { RAMP[2] };
    let mix = |c: usize| (RAMP[1][c] + (end[c] - RAMP[1][c]) * share.abs().min(1.0)).round() as u8;
    [mix(0), mix(1), mix(2)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Prior;
    use crate::units::Smoothing;

    #[test]
    fn the_leaders_are_the_two_most_probable_classes() {
        let posterior = |values: &[f64]| Posterior::new(values.to_vec(), &Prior::uniform(values.len()), Smoothing::ONE);
        assert_eq!(leaders(&posterior(&[-3.0, 1.0, 0.5])), Some((1, 2)));
        assert_eq!(leaders(&posterior(&[0.0, 0.0, 0.0])), Some((0, 1)));
        assert_eq!(leaders(&posterior(&[0.0])), None);
    }

    #[test]
    fn a_map_is_drawn_in_its_places_and_its_signs() {
        let map = Evidence { rows: 1, columns: 2, cells: vec![-2.0, 1.0], total: -1.0 };
        let shape = ImageShape { channels: 1, height: 2, width: 4 };
        let rgb = drawn(&map, shape);
        let red = &rgb[..8];
        assert_eq!(red, [28, 28, 224, 224, 28, 28, 224, 224]);
        assert_eq!(colour(0.0), [246, 246, 243]);
    }
}
