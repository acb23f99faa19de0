//! A TarFlow that no longer changes, as the class-map flow of a world: p(x|y) = N(z_y(x); 0,
//! τ²·diag(var)) |det ∂z_y/∂x|.

use std::cell::RefCell;
use std::ops::Range;

use burn::tensor::Device;

use super::engine::Engine;
use super::evidence::distances;
use super::map::Map;
use super::{Condition, TarFlowConfig};
use crate::data::ImageShape;
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::{Guidance, Strategy};
use crate::flow::weights::Weights;
use crate::flow::{
    BlockInversion, Decoded, Decoding, DifferentiableFlow, Evidence, Flow, GuidedFlow, Precision, ResidentFlow, Scores,
    Unfinished, check_finite,
};
use crate::units::{ClassId, Tau};

/// Arithmetic of a pass on a card that paints nothing: tenths of a second of a slow one, so that
/// nobody waits long for it to end.
const CARD_FLOP: f64 = 3e11;
/// Times [`Flow::images_per_pass`] at most.
const MAX_PASS_MULTIPLE: usize = 8;

/// A frozen TarFlow: one for all classes, or one for each.
pub struct TarFlowOracle {
    config: TarFlowConfig,
    pixels: Preprocessing,
    /// One, or as many as classes.
    maps: Vec<Map>,
    /// How each block is inverted.
    pub(super) strategies: RefCell<Vec<Strategy>>,
}

impl TarFlowOracle {
    /// One TarFlow for all its classes (unconditional: one class).
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
        Self::of_classes(config, vec![weights], pixels, device, precision)
    }

    /// One unconditional TarFlow for each class, all of one architecture (BLC §2.1); or a single
    /// one for all classes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_classes(
        config: &TarFlowConfig,
        weights: Vec<Weights>,
        pixels: Preprocessing,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        let maps: Vec<Map> =
            weights.into_iter().map(|weights| Map::new(config, weights, device, precision)).collect::<Result<_>>()?;
        if maps.is_empty() || (maps.len() > 1 && config.embeddings() > 0) {
            return Err(Error::input("a world of one flow per class needs unconditional flows, at least one"));
        }
        Ok(Self { config: *config, pixels, maps, strategies: RefCell::new(vec![Strategy::Loop; config.blocks]) })
    }

    /// The architecture.
    pub fn config(&self) -> &TarFlowConfig {
        &self.config
    }

    /// One, or as many as classes.
    pub(super) fn maps(&self) -> &[Map] {
        &self.maps
    }

    /// The map of a class, and what its passes are conditioned on.
    pub(super) fn map_of(&self, class: ClassId) -> (&Map, Condition) {
        match &self.maps[..] {
            [map] => (map, (self.config.embeddings() > 0).then_some(class)),
            maps => (&maps[class], None),
        }
    }

    /// The engine of a class, and what its passes are conditioned on.
    pub fn engine_of(&self, class: ClassId) -> (&dyn Engine, Condition) {
        let (map, condition) = self.map_of(class);
        (map.engine.as_ref(), condition)
    }

    pub(super) fn tokens(&self, x: &[f32]) -> Vec<f64> {
        self.config.patchify(&x.iter().map(|&v| f64::from(v)).collect::<Vec<_>>())
    }

    pub(super) fn image(&self, tokens: &[f64]) -> Vec<f32> {
        self.config.unpatchify(tokens).into_iter().map(|v| v as f32).collect()
    }

    /// Base-space tokens z = τ √var·noise of each image's class.
    pub(super) fn place(&self, noise: &[f32], classes: &[ClassId], tau: Tau) -> Vec<f64> {
        let noise = self.tokens(noise);
        let images = noise.chunks(self.config.shape.dims()).zip(classes);
        let place = |(noise, &class): (&[f64], &ClassId)| {
            let var = &self.map_of(class).0.var;
            noise.iter().zip(var).map(|(e, var)| tau.get() * var.sqrt() * e).collect::<Vec<f64>>()
        };
        images.flat_map(place).collect()
    }

    /// Images of one map: tokens through the inverse of every block.
    fn invert(
        &self,
        map: &Map,
        mut x: Vec<f64>,
        conditions: &[Condition],
        guidance: Option<&Guidance>,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<f64>> {
        let (blocks, tokens) = (self.config.blocks, self.config.tokens());
        let strategies = self.strategies.borrow().clone();
        for (turn, block) in (0..blocks).rev().enumerate() {
            let at = |done: usize| Progress { done: turn * tokens + done, total: blocks * tokens };
            let mut tick = |done: usize| events.report(Decoding { progress: at(done), x: None });
            let solved = map.engine.invert(block, &x, conditions, strategies[block], guidance, &mut tick)?;
            x = solved.x;
            events.report(Decoding { progress: at(tokens), x: Some(Unfinished::Host(self.image(&x))) })?;
        }
        Ok(x)
    }

    /// Images of base-space tokens, every image by its class's map.
    pub(super) fn decode_tokens(
        &self,
        z: Vec<f64>,
        classes: &[ClassId],
        guidance: Option<&Guidance>,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<f64>> {
        if let [map] = &self.maps[..] {
            let conditions: Vec<Condition> = classes.iter().map(|&class| self.map_of(class).1).collect();
            return self.invert(map, z, &conditions, guidance, events);
        }
        let dims = self.config.shape.dims();
        let mut x = vec![0f64; z.len()];
        for (class, map) in self.maps.iter().enumerate() {
            let mine: Vec<usize> = (0..classes.len()).filter(|&i| classes[i] == class).collect();
            if mine.is_empty() {
                continue;
            }
            let part = mine.iter().flat_map(|&i| z[i * dims..(i + 1) * dims].iter().copied()).collect();
            // Images of one class alone are not what a viewer waits for: only the steps are passed
            // on.
            let mut steps = |d: Decoding| events.emit(Decoding { x: None, ..d });
            let solved = self.invert(map, part, &vec![None; mine.len()], guidance, &mut steps)?;
            for (&i, solved) in mine.iter().zip(solved.chunks(dims)) {
                x[i * dims..(i + 1) * dims].copy_from_slice(solved);
            }
        }
        Ok(x)
    }

    /// Pairs of image and class that pass an engine together. A small flow leaves a card idle
    /// between one launch and the next: where no frame waits for the end of a pass they are more
    /// than on a processor, which has the same to do for each.
    pub(super) fn pairs_together(&self) -> usize {
        let few = self.images_per_pass();
        let idle = self.maps.first().is_some_and(|map| map.engine.is_headless_gpu());
        let busy = if idle { (CARD_FLOP / self.config.flop_per_image()) as usize } else { few };
        busy.clamp(few, MAX_PASS_MULTIPLE * few)
    }

    /// Σ_d z²/var and log-det of every token of each image under each class of a range: [N, K, T]
    /// each. Up to [`Self::pairs_together`] images under a class pass an engine together.
    fn token_terms(&self, x: &[f64], classes: Range<ClassId>) -> Result<(Vec<f64>, Vec<f64>)> {
        let (dims, t, p, k) = (self.config.shape.dims(), self.config.tokens(), self.config.token_dims(), classes.len());
        let n = x.len() / dims;
        let (mut quad, mut log_det) = (vec![0.0; n * k * t], vec![0.0; n * k * t]);
        // Image after image where one map serves all classes; class after class where each has its
        // own.
        let cells: Vec<(usize, usize)> = match self.maps.len() {
            1 => (0..n).flat_map(|i| (0..k).map(move |column| (i, column))).collect(),
            _ => (0..k).flat_map(|column| (0..n).map(move |i| (i, column))).collect(),
        };
        for run in
            cells.chunk_by(|a, b| self.maps.len() == 1 || a.1 == b.1).flat_map(|run| run.chunks(self.pairs_together()))
        {
            let (map, _) = self.map_of(classes.start + run[0].1);
            let conditions: Vec<Condition> =
                run.iter().map(|(_, column)| self.map_of(classes.start + column).1).collect();
            let images = run.iter().flat_map(|(i, _)| &x[i * dims..(i + 1) * dims]);
            let encoded = map.engine.encode(&images.copied().collect::<Vec<f64>>(), &conditions)?;
            let found = encoded.z.chunks(dims).zip(encoded.log_det.chunks(t));
            for ((i, column), (z, log_dets)) in run.iter().zip(found) {
                let at = (i * k + column) * t;
                log_det[at..at + t].copy_from_slice(log_dets);
                quad[at..at + t].copy_from_slice(&distances(z, &map.var, p));
            }
        }
        Ok((quad, log_det))
    }

    pub(super) fn finite(&self, x: Vec<f32>) -> Result<Vec<f32>> {
        check_finite(&x, self.config.shape.dims())?;
        Ok(x)
    }
}

impl Flow for TarFlowOracle {
    fn shape(&self) -> ImageShape {
        self.config.shape
    }

    fn classes(&self) -> usize {
        if self.maps.len() > 1 { self.maps.len() } else { self.config.embeddings().max(1) }
    }

    fn pixels(&self) -> Preprocessing {
        self.pixels
    }

    fn block_inversion(&self) -> Option<&dyn BlockInversion> {
        Some(self)
    }

    fn differentiable(&self) -> Option<&dyn DifferentiableFlow> {
        Some(self)
    }

    fn guided(&self) -> Option<&dyn GuidedFlow> {
        Some(self)
    }

    fn pairs_per_pass(&self) -> Option<usize> {
        Some(self.pairs_together())
    }

    fn stages(&self) -> usize {
        self.config.blocks
    }

    fn resident(&self) -> Option<&dyn ResidentFlow> {
        self.resident_map().is_ok().then_some(self as &dyn ResidentFlow)
    }

    fn formats(&self) -> Vec<MatmulPrecision> {
        self.maps.first().map_or_else(|| vec![MatmulPrecision::F32], |map| map.engine.formats())
    }

    fn narrowed(&self, products: MatmulPrecision) -> Result<Box<dyn Flow>> {
        let maps = self.maps.iter().map(|map| map.narrowed(products)).collect::<Result<_>>()?;
        let strategies = self.strategies.clone();
        Ok(Box::new(Self { config: self.config, pixels: self.pixels, maps, strategies }))
    }

    /// 4,096 tokens, at most 64 images.
    fn images_per_pass(&self) -> usize {
        ((1 << 12) / self.config.tokens().max(1)).clamp(1, 64)
    }

    fn score_classes(&self, x: &[f32], classes: Range<ClassId>) -> Result<Scores> {
        let (dims, t) = (self.config.shape.dims(), self.config.tokens());
        let (x, k) = (self.tokens(x), classes.len());
        let (quad, log_det) = self.token_terms(&x, classes.clone())?;
        let sums = |terms: &[f64]| terms.chunks(t).map(|tokens| tokens.iter().sum()).collect::<Vec<f64>>();
        let log_norm = classes.map(|class| self.map_of(class).0.log_norm).collect();
        let scores = Scores { classes: k, dims, quad: sums(&quad), log_det: sums(&log_det), log_norm };
        scores.check_finite()?;
        Ok(scores)
    }

    /// x = f_y⁻¹(τ √var noise). Statistics come from x itself, by K forward passes.
    fn decode(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Decoded> {
        let x = self.decode_tokens(self.place(noise, classes, tau), classes, None, events)?;
        Ok(Decoded { x: self.finite(self.image(&x))?, scores: None })
    }

    fn noise(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        let dims = self.config.shape.dims();
        let mut all = Vec::with_capacity(x.len());
        for (x, &class) in x.chunks(dims).zip(classes) {
            let (map, condition) = self.map_of(class);
            let z = map.engine.encode(&self.tokens(x), &[condition])?.z;
            let noise: Vec<f64> = z.iter().zip(&map.var).map(|(z, var)| z / (tau.get() * var.sqrt())).collect();
            all.extend(self.config.unpatchify(&noise));
        }
        Ok(all)
    }

    fn evidence(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<Evidence> {
        let (evidence, ..) = self.evidence_of(x, (a, b), tau, |tokens, class| {
            let (engine, condition) = self.engine_of(class);
            Ok((engine.encode(tokens, &[condition])?, ()))
        })?;
        Ok(evidence)
    }
}
