//! Key pictures: samples at a few temperatures, between which the window draws them while τ moves.

use std::time::Duration;

use crate::data::ImageShape;
use crate::device::MatmulPrecision;
use crate::oracle::posterior::Prior;
use crate::oracle::world::SampleSpec;
use crate::units::{ClassId, Seed, Tau};

/// What the picture of a running number at a τ depends on, beside these two.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyOrigin {
    /// The world (`OracleInfo::world_id`).
    pub world: String,
    /// Seed of classes and latents.
    pub seed: Seed,
    /// All from this class, or from the prior.
    pub class: Option<ClassId>,
    /// Class prior π, by which the classes are drawn.
    pub prior: Prior,
    /// Format of the matrix products.
    pub products: MatmulPrecision,
}

impl KeyOrigin {
    /// Of these samples of a world.
    pub fn new(world: String, spec: &SampleSpec, prior: Prior) -> Self {
        Self { world, seed: spec.seed, class: spec.class, prior, products: spec.products }
    }
}

/// Asks for key pictures. The newest request wins; pictures that were made for an older one come all
/// the same.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRequest {
    /// Of which samples.
    pub origin: KeyOrigin,
    /// At which τ of which running numbers, most urgent first.
    pub wanted: Vec<(Tau, Vec<usize>)>,
    /// τ moves: a gallery under way is out of date, and is given up.
    pub moving: bool,
}

/// Key pictures; they add up until they are taken.
#[derive(Debug, Clone)]
pub struct KeyPictures {
    /// Of which samples.
    pub origin: KeyOrigin,
    /// Shape of the pictures.
    pub shape: ImageShape,
    /// τ, running number and CHW bytes; `None` of one that cannot be made.
    pub pictures: Vec<(Tau, usize, Option<Vec<u8>>)>,
    /// Nothing is drawn, because this world takes so long for a sample.
    pub too_slow: Option<Duration>,
}
