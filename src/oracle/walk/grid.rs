//! The grid between two or four images, with the exact posterior of every image in it. Its corners are the images themselves;
//! between them it is bilinear: in the latent space that all classes share; where the map depends on the class, in that of the class
//! that all corners are decided as, else pixel by pixel. The grid between two images is a walk.

use super::course::{Course, Way, wide};
use super::{TOGETHER, WalkPoint, Walker};
use crate::error::{Error, Result};
use crate::events::Events;
use crate::oracle::world::{Settings, World};

/// Images in a row, and rows, at most: every point is kept with its image.
pub const MOST_ACROSS: usize = 32;

/// A grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridSpec {
    /// World-space images, CHW: the ends of a row; or upper left, upper right, lower left, lower right.
    pub corners: Vec<Vec<f32>>,
    /// Images in a row, 2 to 32.
    pub columns: usize,
    /// Rows, 2 to 32; between two images there is one, whatever stands here.
    pub rows: usize,
}

/// A grid that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// What it is straight in.
    pub way: Way,
    /// Images in a row.
    pub columns: usize,
    /// Its images, row by row; their position is the share of the way across.
    pub points: Vec<WalkPoint>,
    /// Largest difference of a posterior from that of the image before it was rounded to 32 bits;
    /// absent where there was no such image.
    pub rounding: Option<f64>,
}

impl GridSpec {
    /// Columns and rows.
    pub fn size(&self) -> [usize; 2] {
        [self.columns, if self.corners.len() == 2 { 1 } else { self.rows }]
    }

    fn check(&self, world: &World, settings: &Settings) -> Result<()> {
        let (dims, shape) = (world.shape().dims(), world.shape());
        if ![2, 4].contains(&self.corners.len()) {
            return Err(Error::input(format!("a grid lies between 2 or 4 images, not {}", self.corners.len())));
        }
        if let Some(x) = self.corners.iter().find(|x| x.len() != dims) {
            return Err(Error::input(format!("{} values are no image of this world of {shape}", x.len())));
        }
        let (sides, [columns, rows]) = (2..=MOST_ACROSS, self.size());
        if !sides.contains(&columns) || (rows != 1 && !sides.contains(&rows)) {
            return Err(Error::input(format!("a grid has 2 to {MOST_ACROSS} columns and rows, not {columns}×{rows}")));
        }
        if settings.tau.get() == 0.0 {
            return Err(Error::input("at τ = 0 no image of a grid has a density: choose a τ above 0"));
        }
        world.check(settings)
    }

    /// Shares of the way across and down of image `i`.
    fn place(&self, i: usize) -> [f64; 2] {
        let [columns, rows] = self.size();
        let share = |at: usize, of: usize| at as f64 / (of - 1).max(1) as f64;
        [share(i % columns, columns), share(i / columns, rows)]
    }

    /// The corner that image `i` is.
    fn corner(&self, i: usize) -> Option<usize> {
        let [columns, rows] = self.size();
        let end = |at: usize, of: usize| match at {
            0 => Some(0),
            at => (at + 1 == of).then_some(1),
        };
        Some(end(i % columns, columns)? + 2 * end(i / columns, rows)?)
    }
}

/// Makes a grid. Deterministic. Its images are reported as they are made, row by row.
///
/// # Errors
/// When the spec does not fit, an image has no density, the device fails, or the caller stops.
pub fn grid(world: &World, spec: &GridSpec, settings: &Settings, events: &mut dyn Events<WalkPoint>) -> Result<Grid> {
    spec.check(world, settings)?;
    let walker = Walker { world, settings };
    let ends = walker.look(&vec![0.0; spec.corners.len()], spec.corners.concat())?;
    let course = walker.surface(&ends)?;
    let [columns, rows] = spec.size();
    let (all, mut points, mut drift) = ((0..columns * rows).collect::<Vec<usize>>(), Vec::new(), 0f64);
    for some in all.chunks(TOGETHER) {
        let inner = some.iter().filter(|&&i| spec.corner(i).is_none());
        let places: Vec<[f64; 2]> = inner.map(|&i| spec.place(i)).collect();
        let (found, moved) = if places.is_empty() { (Vec::new(), 0.0) } else { walker.stretch(&course, &places)? };
        drift = drift.max(moved);
        let mut found = found.into_iter();
        for &i in some {
            let of_corner = |corner: usize| WalkPoint { position: spec.place(i)[0], ..ends[corner].clone() };
            let Some(point) = spec.corner(i).map(of_corner).or_else(|| found.next()) else { continue };
            events.report(point.clone())?;
            points.push(point);
        }
    }
    let rounding = matches!(course, Course::Latent { .. }).then_some(drift);
    Ok(Grid { way: course.way(), columns, points, rounding })
}

impl Walker<'_> {
    /// What is straight between images.
    fn surface(&self, ends: &[WalkPoint]) -> Result<Course<'_>> {
        let flow = self.world.flow();
        if let Some(map) = flow.latent_space() {
            let encode = |end: &WalkPoint| Ok(map.encode_base(&wide(&end.x))?.images);
            return Ok(Course::Latent { map, corners: ends.iter().map(encode).collect::<Result<_>>()? });
        }
        // Label noise mixes the posterior of the label, not that of the class.
        let decided = |end: &WalkPoint| self.settings.of_class(end.posterior.log_likelihood.clone()).decision;
        let (class, tau) = (decided(&ends[0]), self.settings.tau);
        if ends.iter().any(|end| decided(end) != class) {
            return Ok(Course::Pixels { corners: ends.iter().map(|end| wide(&end.x)).collect() });
        }
        let noise = |end: &WalkPoint| flow.noise(&end.x, &[class], tau);
        Ok(Course::ClassLatent { flow, corners: ends.iter().map(noise).collect::<Result<_>>()?, class, tau })
    }
}
