//! Straight ways between two images, and what they are straight in.

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

/// A straight way, parametrised by s from 0 to 1.
pub enum Course<'a> {
    /// z from one base-space image to another.
    Latent { map: &'a dyn SharedMap, from: Vec<f64>, to: Vec<f64> },
    /// Standard normal noise from one sample's to another's, both of one class.
    ClassLatent { flow: &'a dyn Flow, from: Vec<f32>, to: Vec<f32>, class: ClassId, tau: Tau },
    /// x from one image to another.
    Pixels { from: Vec<f32>, to: Vec<f32> },
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

    /// The images at some places.
    ///
    /// # Errors
    /// When the flow leaves the finite numbers there, or the device fails.
    pub fn at(&self, places: &[f64]) -> Result<Stretch> {
        match self {
            Self::Latent { map, from, to } => {
                let z: Vec<f64> = places.iter().flat_map(|&s| between(from, to, s)).collect();
                let Mapped { images: x, log_det } = map.decode_base(z.clone())?;
                Ok(Stretch { x: map.round(&x), unrounded: Some(map.scores(&z, log_det)) })
            }
            Self::ClassLatent { flow, from, to, class, tau } => {
                let (from, to) = (wide(from), wide(to));
                let noise = places.iter().flat_map(|&s| between(&from, &to, s)).map(|v| v as f32);
                let noise: Vec<f32> = noise.collect();
                let x = flow.decode(&noise, &vec![*class; places.len()], *tau, &mut silent())?.x;
                Ok(Stretch { x, unrounded: None })
            }
            Self::Pixels { from, to } => {
                let (from, to) = (wide(from), wide(to));
                let x = places.iter().flat_map(|&s| between(&from, &to, s)).map(|v| v as f32).collect();
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
