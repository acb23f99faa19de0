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

use burn::tensor::{Device, Tensor};

use super::engine::{BaseTokens, Encoded, Kept, ResidentEngine};
use super::plan::calibration_noise;
use super::resident::sums;
use super::{MEANS, TarFlowConfig, TarFlowOracle};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::events::{Events, Progress, silent};
use crate::flow::base::GaussianBase;
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::{BlockPlan, Strategy};
use crate::flow::weights::Weights;
use crate::flow::{
    BlockInversion, Decoded, Decoding, Evidence, Flow, Mapped, Precision, Resident, ResidentFlow, Scores, SharedMap,
    check_finite,
};
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
            let Encoded { z, log_det } = engine.encode(images, &vec![condition; images.len() / dims])?;
            found.images.extend(config.unpatchify(&z));
            found.log_det.extend(sums(&log_det, config.tokens()));
        }
        check_finite(&found.images, dims)?;
        check_finite(&found.log_det, 1)?;
        Ok(found)
    }

    /// Base-space tokens z = μ_y + τ √var·noise of each image's class.
    fn place(&self, noise: &[f32], classes: &[ClassId], tau: Tau) -> Vec<f64> {
        self.map.config().patchify(&self.base.place(noise, classes, tau))
    }

    /// Evidence from one image in base space: the map is shared, so only the base terms differ, one
    /// for each patch.
    fn evidence_of(&self, Mapped { images: z, log_det }: Mapped, a: ClassId, b: ClassId, tau: Tau) -> Evidence {
        let config = self.map.config();
        let terms = config.patchify(&self.base.evidence_terms(&z, a, b, tau));
        let log_likelihoods = self.scores(&z, log_det).log_likelihoods(0, tau);
        let ImageShape { height, width, .. } = config.shape;
        Evidence {
            rows: height / config.patch,
            columns: width / config.patch,
            cells: sums(&terms, config.token_dims()).collect(),
            total: log_likelihoods[a] - log_likelihoods[b],
        }
    }

    /// Statistics under every class of tokens `x` [N, T, P] where they are, by one pass for all.
    fn score_resident(
        &self,
        engine: &dyn ResidentEngine,
        x: &Tensor<3>,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Scores> {
        let ([n, t, _], config) = (x.dims(), self.map.config());
        let var: Vec<f64> = config.patchify(&self.base.std().iter().map(|std| std * std).collect::<Vec<_>>());
        let means: Vec<f64> = (0..self.classes()).flat_map(|class| config.patchify(self.base.mean(class))).collect();
        let condition = self.map.engine_of(0).1;
        let (mut quad, mut log_det) = (Vec::with_capacity(n * self.classes()), Vec::with_capacity(n));
        while log_det.len() < n {
            let first = log_det.len();
            let images = self.map.together_resident(engine).min(n - first);
            let base = BaseTokens { means: &means, var: &var };
            let here = x.clone().slice(first..first + images);
            let (of_quad, of_log_det) = engine.terms(&here, &vec![condition; images], base)?;
            quad.extend(sums(&of_quad, t));
            log_det.extend(sums(&of_log_det, t));
            events.report(Decoding { progress: Progress { done: log_det.len(), total: n }, x: None })?;
        }
        let log_norm = vec![self.base.log_norm()];
        let scores = Scores { classes: self.classes(), dims: config.shape.dims(), quad, log_det, log_norm };
        scores.check_finite()?;
        Ok(scores)
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

    fn block_inversion(&self) -> Option<&dyn BlockInversion> {
        Some(self)
    }

    fn resident(&self) -> Option<&dyn ResidentFlow> {
        self.map.resident_map().is_ok().then_some(self as &dyn ResidentFlow)
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

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        Ok(self.evidence_of(self.encode_images(&wide(x))?, a, b, tau))
    }
}

impl BlockInversion for SharedTarFlow {
    fn strategies(&self) -> Vec<Strategy> {
        self.map.strategies()
    }

    fn set_strategies(&self, strategies: Vec<Strategy>) {
        self.map.set_strategies(strategies);
    }

    /// On samples of this world: those of its map alone lie around 0, not around the means of its
    /// classes.
    fn measure_strategies(
        &self,
        images: usize,
        tolerance: f64,
        report: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<BlockPlan>> {
        let classes: Vec<ClassId> = (0..images).map(|i| i % self.classes()).collect();
        let z = self.place(&calibration_noise(images, self.shape().dims()), &classes, Tau::ONE);
        self.map.measure_at(&z, &vec![0; images], tolerance, report)
    }
}

impl ResidentFlow for SharedTarFlow {
    fn at_once(&self) -> usize {
        self.map.at_once()
    }

    fn decode_resident(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Resident> {
        let (_, engine) = self.map.resident_map()?;
        let conditions = vec![self.map.engine_of(0).1; classes.len()];
        let x = self.map.solve_resident(engine, &self.place(noise, classes, tau), &conditions, events)?;
        let scores = self.score_resident(engine, &x, events)?;
        Ok(self.map.left_there(engine, x, scores))
    }

    fn is_painted(&self) -> bool {
        self.map.is_painted()
    }

    fn evidence_resident(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<(Evidence, Tensor<2>)> {
        let ((_, engine), config) = (self.map.resident_map()?, self.map.config());
        let tokens = config.patchify(&wide(x));
        let (Encoded { z, log_det }, Kept { z: there, .. }) = engine.encode_kept(&tokens, self.map.engine_of(0).1)?;
        let seen = Mapped { images: config.unpatchify(&z), log_det: sums(&log_det, config.tokens()).collect() };
        check_finite(&seen.images, config.shape.dims())?;
        check_finite(&seen.log_det, 1)?;
        let (slopes, centres) = self.base.evidence_lines(a, b, tau);
        let [slopes, centres] = [slopes, centres].map(|line| engine.tokens(&config.patchify(&line)));
        let evidence = self.evidence_of(seen, a, b, tau);
        let cells = ((there - centres) * slopes).sum_dim(2).reshape([evidence.rows, evidence.columns]);
        Ok((evidence, cells))
    }

    fn fetch(&self, images: Tensor<4>) -> Result<Vec<f32>> {
        self.map.fetch(images)
    }
}
