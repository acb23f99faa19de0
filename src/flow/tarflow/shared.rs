//! A TarFlow with one map for all classes: BLC's flow without class embeddings, EBO's classes in
//! the base distribution.
//!
//! ```text
//! p(x|y) = N(f(x); μ_y, τ²·diag(var)) |det ∂f/∂x|
//! ```
//!
//! One pass gives the likelihoods of every class, and the Bayes error is a Gaussian integral, as
//! for a conditional Glow.

use std::ops::Range;

use burn::tensor::Device;

use super::{MEANS, TarFlowConfig, TarFlowOracle};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, silent};
use crate::flow::base::GaussianBase;
use crate::flow::preprocess::Preprocessing;
use crate::flow::weights::Weights;
use crate::flow::{Decoded, Decoding, Evidence, Flow, Mapped, Precision, Scores, SharedMap, check_finite};
use crate::units::{ClassId, Tau};

/// A frozen TarFlow whose classes are the means of its base distribution.
pub struct SharedTarFlow {
    /// The map, as a world of one class.
    map: TarFlowOracle,
    /// The base distribution, in the order of an image (NCHW).
    base: GaussianBase,
}

impl SharedTarFlow {
    /// From named arrays, on a device.
    ///
    /// # Errors
    /// When an array is missing or misshapen.
    pub fn new(
        config: &TarFlowConfig,
        weights: Weights,
        pixels: Preprocessing,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        config.validate()?;
        let misfit = |e: String| Error::input(format!("weights do not fit this TarFlow: {e}"));
        config.check(&weights).map_err(misfit)?;
        let array = |name: &str| -> Vec<f64> {
            let values = weights.0.get(name).map_or(&[][..], |array| &array.values);
            config.unpatchify(&values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>())
        };
        let base = GaussianBase::new(array(MEANS), &array("var"));
        let map = TarFlowOracle::new(config, weights, pixels, device, precision)?;
        Ok(Self { map, base })
    }

    fn encode_images(&self, x: &[f64]) -> Result<Mapped> {
        let config = self.map.config();
        let tokens = config.patchify(x);
        let (dims, per_pass) = (config.shape.dims(), self.map.images_per_pass());
        let mut found = Mapped { images: Vec::with_capacity(x.len()), log_det: Vec::new() };
        for images in tokens.chunks(per_pass * dims) {
            let (engine, condition) = self.map.engine_of(0);
            let encoded = engine.encode(images, &vec![condition; images.len() / dims])?;
            found.images.extend(config.unpatchify(&encoded.z));
            found.log_det.extend(encoded.log_det.chunks(config.tokens()).map(|terms| terms.iter().sum::<f64>()));
        }
        check_finite(&found.images, dims)?;
        Ok(found)
    }

    fn decode_images(&self, z: Vec<f64>, events: &mut dyn Events<Decoding>) -> Result<Vec<f64>> {
        let config = self.map.config();
        let classes = vec![0; z.len() / config.shape.dims()];
        let x = self.map.decode_tokens(config.patchify(&z), &classes, None, events)?;
        let x = config.unpatchify(&x);
        check_finite(&x, config.shape.dims())?;
        Ok(x)
    }
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

fn narrow(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&v| v as f32).collect()
}

impl SharedMap for SharedTarFlow {
    fn base(&self) -> &GaussianBase {
        &self.base
    }

    fn encode_base(&self, x: &[f64]) -> Result<Mapped> {
        self.encode_images(x)
    }

    fn decode_base(&self, z: Vec<f64>) -> Result<Mapped> {
        let x = self.decode_images(z, &mut silent())?;
        let log_det = self.encode_images(&x)?.log_det;
        Ok(Mapped { images: x, log_det })
    }

    fn round(&self, x: &[f64]) -> Vec<f32> {
        narrow(x)
    }
}

impl Flow for SharedTarFlow {
    fn shape(&self) -> ImageShape {
        self.map.shape()
    }

    fn classes(&self) -> usize {
        self.base.classes()
    }

    fn pixels(&self) -> Preprocessing {
        self.map.pixels()
    }

    fn latent_space(&self) -> Option<&dyn SharedMap> {
        Some(self)
    }

    fn stages(&self) -> usize {
        self.map.stages()
    }

    fn images_per_pass(&self) -> usize {
        self.map.images_per_pass()
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        let Mapped { images: z, log_det } = self.encode_images(&wide(x))?;
        let all = self.scores(&z, log_det);
        Ok(if classes.len() == all.classes { all } else { all.select(classes) })
    }

    /// x = f⁻¹(μ_y + τ √var noise). Statistics come from x itself, by one forward pass.
    fn decode(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Decoded> {
        let x = self.decode_images(self.base.place(noise, classes, tau), events)?;
        Ok(Decoded { x: narrow(&x), scores: None })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        Ok(self.base.unplace(&self.encode_images(&wide(x))?.images, classes, tau))
    }

    /// The map is shared, so only the base terms differ: one for each patch.
    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        let config = self.map.config();
        let Mapped { images: z, log_det } = self.encode_images(&wide(x))?;
        let terms = config.patchify(&self.base.evidence_terms(&z, a, b, tau));
        let cells = terms.chunks(config.token_dims()).map(|terms| terms.iter().sum()).collect();
        let log_likelihoods = self.scores(&z, log_det).log_likelihoods(0, tau);
        let ImageShape { height, width, .. } = config.shape;
        let (rows, columns) = (height / config.patch, width / config.patch);
        Ok(Evidence { rows, columns, cells, total: log_likelihoods[a] - log_likelihoods[b] })
    }
}
