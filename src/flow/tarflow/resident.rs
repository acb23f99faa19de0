//! Sampling that leaves the images on the device, for the eye.

use burn::tensor::{Int, Tensor, TensorData};

use super::engine::{BaseTokens, ResidentEngine};
use super::map::Map;
use super::{Condition, TarFlowOracle};
use crate::error::{Error, Result};
use crate::events::{Events, Progress};
use crate::flow::parameters::to_host;
use crate::flow::{BlockInversion, Decoding, Evidence, Flow, Resident, ResidentFlow, Scores, Unfinished};
use crate::units::{ClassId, Tau};

/// Of a world of one flow for all classes that computes with tensors in 32 bits.
impl ResidentFlow for TarFlowOracle {
    fn at_once(&self) -> usize {
        self.resident_map().map_or(1, |(_, engine)| engine.at_once())
    }

    fn decode_resident(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Resident> {
        let (map, engine) = self.resident_map()?;
        let conditions: Vec<Condition> = classes.iter().map(|&class| self.engine_of(class).1).collect();
        let x = self.solve_resident(engine, &self.place(noise, classes, tau), &conditions, events)?;
        let scores = self.score_resident(engine, map, &x, events)?;
        Ok(self.left_there(engine, x, scores))
    }

    fn is_painted(&self) -> bool {
        self.resident_map().is_ok_and(|(_, engine)| engine.is_painted())
    }

    fn evidence_resident(&self, x: &[f32], a: ClassId, b: ClassId, tau: Tau) -> Result<(Evidence, Tensor<2>)> {
        let (_, engine) = self.resident_map()?;
        self.evidence_on_device(engine, x, (a, b), tau)
    }

    fn fetch(&self, images: Tensor<4>) -> Result<Vec<f32>> {
        Ok(to_host(images)?.into_iter().map(|v| v as f32).collect())
    }
}

impl TarFlowOracle {
    /// The one map, whose arrays stay on a device, and what computes it there.
    pub(super) fn resident_map(&self) -> Result<(&Map, &dyn ResidentEngine)> {
        let resident_map = match self.maps() {
            [map] => map.engine.resident().map(|engine| (map, engine)),
            _ => None,
        };
        resident_map.ok_or_else(|| Error::input("the images of this flow are on the host"))
    }

    /// Tokens [N, T, P] of the images at base-space tokens `z`, block after block; the images are
    /// shown as they come along.
    pub(super) fn solve_resident(
        &self,
        engine: &dyn ResidentEngine,
        z: &[f64],
        conditions: &[Condition],
        events: &mut dyn Events<Decoding>,
    ) -> Result<Tensor<3>> {
        let (blocks, tokens) = (self.config().blocks, self.config().tokens());
        let strategies = self.strategies();
        let mut x = engine.tokens(z);
        for (turn, block) in (0..blocks).rev().enumerate() {
            let at = |done: usize| Progress { done: turn * tokens + done, total: blocks * tokens };
            let mut tick = |done: usize| events.report(Decoding { progress: at(done), x: None });
            x = engine.solve(block, x, conditions, strategies[block], None, &mut tick)?.x;
            let levels = self.pixels().levels(engine.images(x.clone()));
            events.report(Decoding { progress: at(tokens), x: Some(Unfinished::Resident(Box::new(levels))) })?;
        }
        Ok(x)
    }

    /// Tokens `x` [N, T, P] as images that stay where they are.
    pub(super) fn left_there(&self, engine: &dyn ResidentEngine, x: Tensor<3>, scores: Scores) -> Resident {
        let images = engine.images(x);
        Resident { levels: self.pixels().levels(images.clone()), images, scores }
    }

    /// Images that pass together where they are: as in [`Flow::score_classes`], and few where they
    /// keep a frame waiting.
    pub(super) fn together_resident(&self, engine: &dyn ResidentEngine) -> usize {
        self.pairs_together().min(engine.together())
    }

    /// Statistics under every class of tokens `x` [N, T, P] where they are; up to
    /// [`Self::together_resident`] of them pass together.
    fn score_resident(
        &self,
        engine: &dyn ResidentEngine,
        map: &Map,
        x: &Tensor<3>,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Scores> {
        let ([n, t, _], k) = (x.dims(), self.classes());
        let cells: Vec<(usize, ClassId)> = (0..n).flat_map(|i| (0..k).map(move |class| (i, class))).collect();
        let (mut quad, mut log_det) = (Vec::with_capacity(n * k), Vec::with_capacity(n * k));
        for run in cells.chunks(self.together_resident(engine)) {
            let rows: Vec<i32> = run.iter().map(|(i, _)| *i as i32).collect();
            let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [run.len()]), &x.device());
            let conditions: Vec<Condition> = run.iter().map(|&(_, class)| self.engine_of(class).1).collect();
            // Its classes have one base distribution, at 0.
            let base = BaseTokens { means: &[], var: &map.var };
            let (of_quad, of_log_det) = engine.terms(&x.clone().select(0, rows), &conditions, base)?;
            quad.extend(sums(&of_quad, t));
            log_det.extend(sums(&of_log_det, t));
            events.report(Decoding { progress: Progress { done: quad.len(), total: n * k }, x: None })?;
        }
        let (dims, log_norm) = (self.config().shape.dims(), vec![map.log_norm; k]);
        let scores = Scores { classes: k, dims, quad, log_det, log_norm };
        scores.check_finite()?;
        Ok(scores)
    }
}

/// Sums over the T tokens of each image.
pub(super) fn sums(terms: &[f64], t: usize) -> impl Iterator<Item = f64> {
    terms.chunks(t).map(|tokens| tokens.iter().sum())
}
