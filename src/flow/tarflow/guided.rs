//! What moves the images of a TarFlow away from its samples: guidance, denoising, and the gradient
//! of its density.

use super::{Condition, TarFlowOracle};
use crate::error::Result;
use crate::events::Events;
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::SamplerOptions;
use crate::flow::{Decoding, DifferentiableFlow, Flow, GuidedFlow};
use crate::units::{ClassId, Tau};

impl DifferentiableFlow for TarFlowOracle {
    fn log_likelihood_gradient(&self, x: &[f32], classes: &[ClassId], tau: Tau) -> Result<Vec<f64>> {
        let dims = self.shape().dims();
        let mut all = Vec::with_capacity(x.len());
        let runs = classes.chunk_by(|a, b| a == b || self.maps().len() == 1);
        let mut first = 0;
        for run in runs {
            let (map, _) = self.map_of(run[0]);
            let conditions: Vec<Condition> = run.iter().map(|&class| self.map_of(class).1).collect();
            let weight: Vec<f64> = map.var.iter().map(|var| (tau.get() * tau.get() * var).recip()).collect();
            let x = self.tokens(&x[first * dims..(first + run.len()) * dims]);
            all.extend(self.config().unpatchify(&map.engine.gradient(&x, &conditions, &weight)?.0));
            first += run.len();
        }
        Ok(all)
    }
}

impl GuidedFlow for TarFlowOracle {
    fn guides(&self) -> bool {
        self.config().guides()
    }

    fn decode_with(
        &self,
        noise: &[f32],
        classes: &[ClassId],
        tau: Tau,
        options: &SamplerOptions,
        events: &mut dyn Events<Decoding>,
    ) -> Result<Vec<f32>> {
        let z = self.place(noise, classes, tau);
        let x = self.decode_tokens(z, classes, options.guidance.as_ref(), events)?;
        let x = self.finite(self.image(&x))?;
        if options.denoise { self.denoise(&x, classes) } else { Ok(x) }
    }

    fn denoise(&self, x: &[f32], classes: &[ClassId]) -> Result<Vec<f32>> {
        let Preprocessing::Gaussian { std } = self.pixels() else { return Ok(x.to_vec()) };
        let gradient = self.log_likelihood_gradient(x, classes, Tau::ONE)?;
        Ok(x.iter().zip(gradient).map(|(x, g)| (f64::from(*x) + std * std * g) as f32).collect())
    }
}
