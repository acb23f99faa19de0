//! Shifts of the base distribution: standard normal noise e becomes r·e + δ before the flow decodes
//! it.
//!
//! In both families an image of class y is an invertible function of e ~ N(0, I)
//! ([`Flow::decode`]). So KL(p′(x|y)‖p(x|y)) = KL(N(δ, r²I)‖N(0, I)) = ½‖δ‖² + ½D(r² − 1 − ln r²)
//! exactly, whatever the map, the class or τ.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::flow::base::latents;
use crate::parallel;
use crate::units::{Seed, Tau};

/// A shift of the base distribution of every class, given by its KL(p′(x|y)‖p(x|y)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum BaseShift {
    /// All means move by one random vector: KL = ½‖δ‖², δ in standard deviations of the base.
    Mean {
        /// Nats.
        kl: f64,
    },
    /// The means move along the line from class `from` to class `to`; only where classes share one
    /// map.
    Towards {
        /// Nats.
        kl: f64,
        /// A class.
        from: usize,
        /// Another class.
        to: usize,
    },
    /// The base temperature rises: KL = ½D(r² − 1 − ln r²), r = τ′/τ.
    Wider {
        /// Nats.
        kl: f64,
    },
    /// It falls.
    Narrower {
        /// Nats.
        kl: f64,
    },
}

/// What a base shift does to standard normal noise in a given world: e ↦ r·e + δ.
#[derive(Debug, Clone, PartialEq)]
pub struct BaseMap {
    /// r.
    pub ratio: f64,
    /// δ, [D]; empty where it is 0.
    pub offset: Vec<f64>,
}

impl BaseShift {
    /// KL(p′(x|y)‖p(x|y)), nats, the same for every class y.
    pub fn kl(self) -> f64 {
        match self {
            Self::Mean { kl } | Self::Towards { kl, .. } | Self::Wider { kl } | Self::Narrower { kl } => kl,
        }
    }

    /// Whether it can be planned.
    pub(super) fn validate(self) -> Result<()> {
        if !(self.kl() > 0.0 && self.kl().is_finite()) {
            return Err(Error::input("base.kl must be a number of nats > 0"));
        }
        match self {
            Self::Towards { from, to, .. } if from == to => {
                Err(Error::input(format!("class {from} cannot move towards itself")))
            }
            _ => Ok(()),
        }
    }

    /// Returns its map in the world of `flow` at base temperature τ; `seed` is that of random
    /// directions.
    ///
    /// # Errors
    /// Where classes do not share a map or do not exist, or have the same mean, and means are to
    /// move from one to another.
    pub fn of_flow(self, flow: &dyn Flow, tau: Tau, seed: Seed) -> Result<BaseMap> {
        let dims = flow.shape().dims();
        let moved = |direction: Vec<f64>, kl: f64| {
            let length = direction.iter().map(|v| v * v).sum::<f64>().sqrt();
            let step = (2.0 * kl).sqrt() / length;
            BaseMap { ratio: 1.0, offset: direction.into_iter().map(|v| v * step).collect() }
        };
        match self {
            Self::Mean { kl } => {
                let direction = latents(seed.split("direction"), 0, 1, dims);
                Ok(moved(direction.into_iter().map(f64::from).collect(), kl))
            }
            Self::Towards { kl, from, to } => Ok(moved(between(flow, tau, from, to)?, kl)),
            Self::Wider { kl } => Ok(BaseMap { ratio: log_ratio(kl, dims, true).exp(), offset: Vec::new() }),
            Self::Narrower { kl } => Ok(BaseMap { ratio: log_ratio(kl, dims, false).exp(), offset: Vec::new() }),
        }
    }
}

/// Σ^(−1/2)(μ_to − μ_from)/τ, the way between two classes in standard deviations of the base, [D].
fn between(flow: &dyn Flow, tau: Tau, from: usize, to: usize) -> Result<Vec<f64>> {
    let base = flow.shared_base().ok_or_else(|| {
        Error::input("a base shift towards a class needs classes that share one map; take mean, wider or narrower here")
    })?;
    if let Some(class) = [from, to].into_iter().find(|&class| class >= base.classes()) {
        let classes = base.classes();
        return Err(Error::input(format!(
            "a base shift names class {class}, which is not among the {classes} of this world"
        )));
    }
    let means = base.mean(from).iter().zip(base.mean(to));
    let way: Vec<f64> = means.zip(base.std()).map(|((a, b), std)| (b - a) / (std * tau.get())).collect();
    if way.iter().all(|v| *v == 0.0) {
        return Err(Error::input(format!("classes {from} and {to} have the same mean: there is no way between them")));
    }
    Ok(way)
}

/// ln r of ½D(r² − 1 − ln r²) = `kl`, above (`wider`) or below 0, by bisection to the last bit.
///
/// With t = ln r the left side is ½D(e^2t − 1 − 2t), which grows away from t = 0 on both sides.
/// Above 0 it is at least D·t²; below, at least ½D(2|t| − 1): each bounds the interval of the
/// solution.
fn log_ratio(kl: f64, dims: usize, wider: bool) -> f64 {
    let share = 2.0 * kl / dims as f64;
    let size = |t: f64| (2.0 * t).exp_m1() - 2.0 * t;
    let sign = if wider { 1.0 } else { -1.0 };
    let (mut near, mut far) = (0.0, if wider { (share / 2.0).sqrt() } else { (share + 1.0) / 2.0 });
    loop {
        let middle = 0.5 * (near + far);
        if middle <= near || middle >= far {
            return sign * middle;
        }
        if size(sign * middle) < share {
            near = middle;
        } else {
            far = middle;
        }
    }
}

impl BaseMap {
    /// Shifts the noise of images (NCHW) in place.
    pub fn apply(&self, noise: &mut [f32], dims: usize) {
        parallel::chunks_mut(noise, dims, |_, noise| {
            for (d, e) in noise.iter_mut().enumerate() {
                *e = (self.ratio * f64::from(*e) + self.offset.get(d).copied().unwrap_or(0.0)) as f32;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_has_the_kl_asked_for_on_its_side() {
        for dims in [1, 16, 3072, 196_608] {
            for kl in [1e-6, 0.0181, 0.2968, 1.0, 50.0, 1e4] {
                for wider in [true, false] {
                    let t = log_ratio(kl, dims, wider);
                    assert_eq!(t > 0.0, wider);
                    // e^2t − 1 − 2t = Σ_n≥2 (2t)^n/n!, summed apart from the bisection's formula
                    // where t is small.
                    let term = |n: i32| (2.0 * t).powi(n) / (1..=n).map(f64::from).product::<f64>();
                    let sum = if t.abs() < 0.5 { (2..20).map(term).sum() } else { (2.0 * t).exp() - 1.0 - 2.0 * t };
                    let found = 0.5 * dims as f64 * sum;
                    assert!((found / kl - 1.0).abs() < 1e-6, "{dims} {kl} {wider}: {found}");
                }
            }
        }
    }

    #[test]
    fn noise_is_stretched_and_moved_image_by_image() {
        let mut noise = vec![1.0f32, 2.0, -1.0, 0.0];
        BaseMap { ratio: 2.0, offset: vec![0.5, -0.5] }.apply(&mut noise, 2);
        assert_eq!(noise, [2.5, 3.5, -1.5, -0.5]);
        BaseMap { ratio: 1.0, offset: Vec::new() }.apply(&mut noise, 2);
        assert_eq!(noise, [2.5, 3.5, -1.5, -0.5]);
    }
}
