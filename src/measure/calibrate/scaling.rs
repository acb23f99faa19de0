//! Softmax regression on log q: z = W log q + b, q′ = softmax(z), W and b of least mean −log
//! q′(label). W is β·1 (temperature), diagonal (vector), or any (Dirichlet).

use super::minimise::minimise;
use crate::units::ClassId;

/// Labels that q tells without error have no best W: it would grow for ever. This weight of (W −
/// 1)² on the diagonal, and of b² where nothing else holds b, gives one, and is not felt elsewhere.
const HOLD: f64 = 1e-6;

/// The least β of a temperature, 1/T: a classifier that is worse than chance would be turned upside
/// down by a negative one, which is no temperature. At any β above 0 every decision stays.
pub(super) const LEAST_BETA: f64 = 1e-3;

/// What Dirichlet scaling pays for (Kull et al. 2019, ODIR), beside the mean −log q′(label), nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    /// λ of λ/(K(K − 1)) Σ w² off the diagonal of W.
    pub off_diagonal: f64,
    /// μ of μ/K Σ b².
    pub intercept: f64,
}

/// Which W.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// β·1 with β ≥ [`LEAST_BETA`], and b = 0.
    Scalar,
    /// Diagonal.
    Diagonal,
    /// Any.
    Full,
}

/// A fitted W and b.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    classes: usize,
    /// [K, K], a row for each class of q′.
    weights: Vec<f64>,
    bias: Vec<f64>,
}

impl Scaling {
    pub(super) fn fit(layout: Layout, log_q: &[f64], labels: &[ClassId], classes: usize, penalty: Penalty) -> Self {
        let problem = Problem { layout, log_q, labels, k: classes, penalty };
        let mut found = minimise(problem.start(), |free, gradient| problem.loss(free, gradient));
        if layout == Layout::Scalar {
            // The loss is convex in β: bounded, its least is at the bound.
            found[0] = found[0].max(LEAST_BETA);
        }
        problem.scaling(&found)
    }

    /// z of `log_q` [n, K].
    pub(super) fn logits(&self, log_q: &[f64]) -> Vec<f64> {
        let k = self.classes;
        let row = |x: &[f64], y: usize| {
            let weighted: f64 = self.weights[y * k..(y + 1) * k].iter().zip(x).map(|(w, x)| w * x).sum();
            weighted + self.bias[y]
        };
        log_q.chunks_exact(k).flat_map(|x| (0..k).map(move |y| row(x, y))).collect()
    }

    /// β of a temperature scaling: one over the temperature.
    #[cfg(test)]
    pub(super) fn beta(&self) -> f64 {
        self.weights[0]
    }
}

/// What is minimised.
struct Problem<'a> {
    layout: Layout,
    log_q: &'a [f64],
    labels: &'a [ClassId],
    k: usize,
    penalty: Penalty,
}

impl Problem<'_> {
    /// The free numbers of the identity: those of W, then of b.
    fn start(&self) -> Vec<f64> {
        let k = self.k;
        match self.layout {
            Layout::Scalar => vec![1.0],
            Layout::Diagonal => [vec![1.0; k], vec![0.0; k]].concat(),
            Layout::Full => (0..k * k + k).map(|i| f64::from(u8::from(i < k * k && i % (k + 1) == 0))).collect(),
        }
    }

    fn scaling(&self, free: &[f64]) -> Scaling {
        let k = self.k;
        let diagonal = |of: &dyn Fn(usize) -> f64| {
            (0..k * k).map(|i| if i % (k + 1) == 0 { of(i / k) } else { 0.0 }).collect::<Vec<f64>>()
        };
        let (weights, bias) = match self.layout {
            Layout::Scalar => (diagonal(&|_| free[0]), vec![0.0; k]),
            Layout::Diagonal => (diagonal(&|y| free[y]), free[k..].to_vec()),
            Layout::Full => (free[..k * k].to_vec(), free[k * k..].to_vec()),
        };
        Scaling { classes: k, weights, bias }
    }

    /// Mean −log q′(label) with the penalties, nats, and its gradient.
    fn loss(&self, free: &[f64], gradient: &mut [f64]) -> f64 {
        let (k, n) = (self.k, self.labels.len() as f64);
        let logits = self.scaling(free).logits(self.log_q);
        gradient.fill(0.0);
        let mut loss = 0.0;
        let mut rest = vec![0.0; k];
        for ((z, x), &label) in logits.chunks_exact(k).zip(self.log_q.chunks_exact(k)).zip(self.labels) {
            let most = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = z.iter().map(|z| (z - most).exp()).sum();
            loss += most + sum.ln() - z[label];
            for (y, rest) in rest.iter_mut().enumerate() {
                *rest = ((z[y] - most).exp() / sum - f64::from(u8::from(y == label))) / n;
            }
            self.add(gradient, &rest, x);
        }
        loss / n + self.penalties(free, gradient)
    }

    /// Adds what an image with residuals `rest` gives.
    fn add(&self, gradient: &mut [f64], rest: &[f64], x: &[f64]) {
        let k = self.k;
        match self.layout {
            Layout::Scalar => gradient[0] += rest.iter().zip(x).map(|(r, x)| r * x).sum::<f64>(),
            Layout::Diagonal => {
                let (weights, offsets) = gradient.split_at_mut(k);
                for ((weight, offset), (r, x)) in weights.iter_mut().zip(offsets).zip(rest.iter().zip(x)) {
                    *weight += r * x;
                    *offset += r;
                }
            }
            Layout::Full => {
                for (y, r) in rest.iter().enumerate() {
                    gradient[y * k..(y + 1) * k].iter_mut().zip(x).for_each(|(g, x)| *g += r * x);
                    gradient[k * k + y] += r;
                }
            }
        }
    }

    fn penalties(&self, free: &[f64], gradient: &mut [f64]) -> f64 {
        let (k, Penalty { off_diagonal, intercept }) = (self.k, self.penalty);
        let pairs = (k * k.saturating_sub(1)).max(1) as f64;
        // Of each free number: the weight of its square, and where it is at rest.
        let term = |i: usize| match self.layout {
            Layout::Scalar => (HOLD, 1.0),
            Layout::Diagonal => (HOLD, f64::from(u8::from(i < k))),
            Layout::Full if i >= k * k => (intercept / k as f64 + HOLD, 0.0),
            Layout::Full if i.is_multiple_of(k + 1) => (HOLD, 1.0),
            Layout::Full => (off_diagonal / pairs + HOLD, 0.0),
        };
        let each = free.iter().zip(gradient).enumerate().map(|(i, (x, g))| {
            let (weight, rest) = term(i);
            *g += 2.0 * weight * (x - rest);
            weight * (x - rest).powi(2)
        });
        each.sum()
    }
}
