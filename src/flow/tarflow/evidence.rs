//! Where in an image the evidence lies: log p(x|a) − log p(x|b) token by token, each at the place
//! of its patch.

use burn::tensor::Tensor;

use super::TarFlowOracle;
use super::engine::{Encoded, Kept, ResidentEngine};
use crate::data::ImageShape;
use crate::error::{Error, Result};
use crate::flow::{Evidence, Flow};
use crate::units::{ClassId, Tau};

/// Σ_p z²/var of every token of `z` [T, P].
pub fn distances(z: &[f64], var: &[f64], p: usize) -> Vec<f64> {
    let tokens = z.chunks(p).zip(var.chunks(p));
    tokens.map(|(z, var)| z.iter().zip(var).map(|(z, var)| z * z / var).sum()).collect()
}

/// ½ log(2π var) of every token of `var` [T, P].
fn log_norms(var: &[f64], p: usize) -> Vec<f64> {
    var.chunks(p).map(|var| var.iter().map(|v| 0.5 * (2.0 * std::f64::consts::PI * v).ln()).sum()).collect()
}

impl TarFlowOracle {
    /// The evidence of image `x`, whose tokens `encode` takes through the map of a class, and what
    /// else it has to say of either.
    pub(super) fn evidence_of<E>(
        &self,
        x: &[f32],
        (a, b): (ClassId, ClassId),
        tau: Tau,
        encode: impl Fn(&[f64], ClassId) -> Result<(Encoded, E)>,
    ) -> Result<(Evidence, E, E)> {
        let (tokens, p) = (self.tokens(x), self.config().token_dims());
        // log p(x|class) as a sum over tokens: base term and log-determinants.
        let terms = |class: ClassId| -> Result<(Vec<f64>, E)> {
            let ((encoded, more), var) = (encode(&tokens, class)?, &self.map_of(class).0.var);
            let base = distances(&encoded.z, var, p).into_iter().zip(log_norms(var, p)).zip(encoded.log_det);
            let half_precision = 0.5 / (tau.get() * tau.get());
            Ok((base.map(|((quad, norm), log_det)| log_det - half_precision * quad - norm).collect(), more))
        };
        let ((of_a, more_of_a), (of_b, more_of_b)) = (terms(a)?, terms(b)?);
        let of = |class: ClassId| Ok::<f64, Error>(self.score_classes(x, class..class + 1)?.log_likelihoods(0, tau)[0]);
        let (ImageShape { height, width, .. }, patch) = (self.shape(), self.config().patch);
        let cells = of_a.iter().zip(of_b).map(|(a, b)| a - b).collect();
        let evidence = Evidence { rows: height / patch, columns: width / patch, cells, total: of(a)? - of(b)? };
        Ok((evidence, more_of_a, more_of_b))
    }

    /// [`Self::evidence_of`] in a world of one flow, and the cells [rows, columns] where they were
    /// computed.
    pub(super) fn evidence_on_device(
        &self,
        engine: &dyn ResidentEngine,
        x: &[f32],
        classes: (ClassId, ClassId),
        tau: Tau,
    ) -> Result<(Evidence, Tensor<2>)> {
        // One base distribution for both classes: its norms cancel.
        let var = &self.map_of(classes.0).0.var;
        let weight: Vec<f64> = var.iter().map(|var| 0.5 / (tau.get() * tau.get() * var)).collect();
        let (weight, tokens) = (engine.tokens(&weight), self.config().tokens());
        let encode = |x: &[f64], class| {
            let (encoded, Kept { z, log_det }) = engine.encode_kept(x, self.map_of(class).1)?;
            Ok((encoded, log_det - (z.square() * weight.clone()).sum_dim(2).reshape([tokens])))
        };
        let (evidence, of_a, of_b) = self.evidence_of(x, classes, tau, encode)?;
        let cells = (of_a - of_b).reshape([evidence.rows, evidence.columns]);
        Ok((evidence, cells))
    }
}
