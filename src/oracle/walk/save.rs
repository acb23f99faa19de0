//! A walk on its way to a file.

use std::path::Path;

use super::{Walk, WalkPoint};
use crate::data::{Column, Stored, write_sheet, write_table};
use crate::error::{Error, Result};
use crate::oracle::export::scale;
use crate::oracle::world::World;

/// Images in a row of the contact sheet.
const COLUMNS: usize = 8;

impl Walk {
    /// The points in order, then the 50/50 point (or the one that comes closest).
    pub fn all_points(&self) -> Vec<&WalkPoint> {
        self.points.iter().chain([&self.boundary.point]).collect()
    }
}

/// Writes the points of a walk in order and the 50/50 point last: `.png` is a contact sheet,
/// clipped for the eye; `.npz` holds world-space `x`, `position`, `posterior`, `logp`, `aleatoric`
/// and `log_px`.
///
/// # Errors
/// Names the file; for any other ending says which there are.
pub fn save(world: &World, walk: &Walk, path: &Path) -> Result<()> {
    let points = walk.all_points();
    match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("png") => {
            let pixels: Vec<u8> = points.iter().flat_map(|point| world.flow().pixels().picture(&point.x)).collect();
            write_sheet(path, world.shape(), &pixels, COLUMNS, scale(world.shape()), world.held_noise().as_ref())
        }
        Some("npz") => write_arrays(world, &points, path),
        _ => Err(Error::input(format!("{}: a walk is saved as .png or .npz", path.display()))),
    }
}

fn write_arrays(world: &World, points: &[&WalkPoint], path: &Path) -> Result<()> {
    let (shape, k) = (world.shape(), world.class_names().len());
    let column = |name, stored, shape: &[usize]| Column { name, stored, shape: shape.to_vec() };
    let columns = [
        column("x", Stored::F32, &[shape.channels, shape.height, shape.width]),
        column("position", Stored::F64, &[]),
        column("posterior", Stored::F64, &[k]),
        column("logp", Stored::F64, &[k]),
        column("aleatoric", Stored::F64, &[]),
        column("log_px", Stored::F64, &[]),
    ];
    write_table(path, points.len(), &columns, &mut |column, rows| {
        let of = |point: &&WalkPoint| match column {
            0 => point.x.iter().map(|&v| f64::from(v)).collect(),
            1 => vec![point.position],
            2 => point.posterior.probabilities.clone(),
            3 => point.posterior.log_likelihood.clone(),
            4 => vec![point.posterior.entropy_nats],
            _ => vec![point.posterior.log_px],
        };
        Ok(points[rows].iter().flat_map(of).collect())
    })
}
