//! Straight ways between images, and what they are straight in.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::events::silent;
use crate::flow::{Flow, Mapped, Scores, SharedMap};
use crate::units::{ClassId, Tau};

/// What a walk follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A straight line in the latent space all classes share.
    Latent,
    /// A straight line in the latent space of the class both ends were drawn from.
    ClassLatent,
    /// A straight line in x, pixel by pixel: what lies between two images of a class-map world need
    /// not look like an image.
    Pixels,
    /// The gradient of log p(y|x) with respect to x.
    Gradient,
}

/// A straight way between two images, or the surface between four: upper left, upper right, lower left, lower right.
pub enum Course<'a> {
    /// z of base-space images.
    Latent { map: &'a dyn SharedMap, corners: Vec<Vec<f64>> },
    /// Standard normal noise of images of one class.
    ClassLatent { flow: &'a dyn Flow, corners: Vec<Vec<f64>>, class: ClassId, tau: Tau },
    /// x of images.
    Pixels { corners: Vec<Vec<f64>> },
}

/// Images on a way.
pub struct Stretch {
    /// World-space x, NCHW.
    pub x: Vec<f32>,
    /// Their statistics before x was rounded to 32 bits, where the way knows them.
    pub unrounded: Option<Scores>,
}

impl Course<'_> {
    /// What the way is straight in.
    pub fn way(&self) -> Way {
        match self {
            Self::Latent { .. } => Way::Latent,
            Self::ClassLatent { .. } => Way::ClassLatent,
            Self::Pixels { .. } => Way::Pixels,
        }
    }

    /// The images at some places: shares of the way across, and down, 0 to 1. Of a way between two images
    /// the second counts for nothing.
    ///
    /// # Errors
    /// When the flow leaves the finite numbers there, or the device fails.
    pub fn at(&self, places: &[[f64; 2]]) -> Result<Stretch> {
        let mixed = |corners: &[Vec<f64>]| -> Vec<f64> { places.iter().flat_map(|&at| mixed(corners, at)).collect() };
        match self {
            Self::Latent { map, corners } => {
                let z = mixed(corners);
                let Mapped { images: x, log_det } = map.decode_base(z.clone())?;
                Ok(Stretch { x: map.round(&x), unrounded: Some(map.scores(&z, log_det)) })
            }
            Self::ClassLatent { flow, corners, class, tau } => {
                let noise: Vec<f32> = mixed(corners).into_iter().map(|v| v as f32).collect();
                let x = flow.decode(&noise, &vec![*class; places.len()], *tau, &mut silent())?.x;
                Ok(Stretch { x, unrounded: None })
            }
            Self::Pixels { corners } => {
                let x = mixed(corners).into_iter().map(|v| v as f32).collect();
                Ok(Stretch { x, unrounded: None })
            }
        }
    }
}

pub fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| f64::from(v)).collect()
}

fn between(from: &[f64], to: &[f64], s: f64) -> Vec<f64> {
    from.iter().zip(to).map(|(a, b)| a + s * (b - a)).collect()
}

/// The bilinear mixture of corners, two in a row.
fn mixed(corners: &[Vec<f64>], [across, down]: [f64; 2]) -> Vec<f64> {
    let mut rows = corners.chunks(2).map(|ends| between(&ends[0], &ends[ends.len() - 1], across));
    let first = rows.next().unwrap_or_default();
    rows.fold(first, |above, below| between(&above, &below, down))
}
