//! Draws the variables of a wedge by blocks; sums over points and tensor products of nodes.

use super::super::normal::{FAR, cdf_with, log_tail, quantile_near, quantile_with, tail, tail_quantile_of_log};
use super::super::simd::{Arithmetic, BLOCK, Block, Kernel};
use super::super::sobol::Scramble;
use super::{Lead, Wedge};

/// b from which Q(b) is handled by its logarithm.
const LOG_FROM: f64 = 36.0;

impl Wedge {
    /// The integrand at a block of points; `uniform(d, out)` gives coordinate d, `y` the variables.
    #[inline(always)]
    pub fn integrand<A: Arithmetic>(&self, y: &mut [Block], mut uniform: impl FnMut(usize, &mut Block)) -> Block {
        let mut weight = [1.0; BLOCK];
        let mut u = [0.0; BLOCK];
        let mut dim = 0;
        match self.lead {
            Lead::At(b) => y[0].fill(b),
            Lead::Beyond(b) => {
                uniform(0, &mut u);
                dim = 1;
                beyond::<A>(b, &u, &mut y[0]);
            }
        }
        for variable in 1..=self.variables {
            let (before, after) = y.split_at_mut(variable);
            let mut high = [0.0; BLOCK];
            affine::<A>(self.row(variable), before, &mut high);
            let last = variable == self.variables;
            if !last {
                uniform(dim, &mut u);
                dim += 1;
            }
            let new = if last { None } else { Some(&mut after[0]) };
            if self.dependents.iter().any(|d| d.variable == variable) {
                self.draw_between::<A>(variable, before, high, &u, &mut weight, new);
            } else {
                draw_below::<A>(&high, &u, &mut weight, new);
            }
        }
        weight
    }

    #[inline(always)]
    fn draw_between<A: Arithmetic>(
        &self,
        variable: usize,
        before: &[Block],
        mut high: Block,
        u: &Block,
        weight: &mut Block,
        new: Option<&mut Block>,
    ) {
        let mut low = [-40.0; BLOCK];
        let mut bound = [0.0; BLOCK];
        for dependent in self.dependents.iter().filter(|d| d.variable == variable) {
            affine::<A>(&dependent.row, before, &mut bound);
            for i in 0..BLOCK {
                let (b, h, l) = (bound[i], high[i], low[i]);
                high[i] = if dependent.upper && b < h { b } else { h };
                low[i] = if !dependent.upper && b > l { b } else { l };
            }
        }
        for i in 0..BLOCK {
            let below = cdf_with::<A>(low[i]);
            let p = cdf_with::<A>(high[i]) - below;
            let p = if p > 0.0 { p } else { 0.0 };
            weight[i] *= p;
            low[i] = A::mul_add(u[i], p, below);
        }
        if let Some(new) = new {
            for i in 0..BLOCK {
                new[i] = quantile_with::<A>(low[i]);
            }
        }
    }
}

/// t with Q(t) = u·Q(b).
#[inline(always)]
fn beyond<A: Arithmetic>(b: f64, u: &Block, t: &mut Block) {
    if b > LOG_FROM {
        let log = log_tail(b);
        for i in 0..BLOCK {
            t[i] = tail_quantile_of_log(log + u[i].ln());
        }
        return;
    }
    let q = tail(b);
    for i in 0..BLOCK {
        t[i] = -quantile_with::<A>(u[i] * q);
    }
}

/// row[0] − Σ row[1 + m]·y[m].
#[inline(always)]
fn affine<A: Arithmetic>(row: &[f64], y: &[Block], out: &mut Block) {
    out.fill(row[0]);
    let coefficients = &row[1..];
    let whole = coefficients.len() / 4 * 4;
    for (c, y) in coefficients[..whole].chunks_exact(4).zip(y.chunks_exact(4)) {
        let [a, b, c, d] = [-c[0], -c[1], -c[2], -c[3]];
        for i in 0..BLOCK {
            let near = A::mul_add(b, y[1][i], A::mul_add(a, y[0][i], out[i]));
            out[i] = A::mul_add(d, y[3][i], A::mul_add(c, y[2][i], near));
        }
    }
    for (c, y) in coefficients[whole..].iter().zip(&y[whole..]) {
        for i in 0..BLOCK {
            out[i] = A::mul_add(-c, y[i], out[i]);
        }
    }
}

/// Multiplies the weight by Φ(high), and draws a variable below it.
#[inline(always)]
fn draw_below<A: Arithmetic>(high: &Block, u: &Block, weight: &mut Block, new: Option<&mut Block>) {
    let mut p = [0.0; BLOCK];
    for i in 0..BLOCK {
        p[i] = cdf_with::<A>(high[i]);
        weight[i] *= p[i];
    }
    let Some(new) = new else { return };
    let mut extreme = 1.0f64;
    for i in 0..BLOCK {
        p[i] *= u[i];
        let inner = if p[i] < 0.5 { p[i] } else { 1.0 - p[i] };
        extreme = if inner < extreme { inner } else { extreme };
    }
    if extreme > FAR {
        for i in 0..BLOCK {
            new[i] = quantile_near::<A>(p[i]);
        }
    } else {
        for i in 0..BLOCK {
            new[i] = quantile_with::<A>(p[i]);
        }
    }
}

/// Points of one replicate that are taken together: two replicates share a block, so that each of thousands of
/// terms need not have a whole one.
pub(in super::super) const HALF: usize = BLOCK / 2;

/// Σ w of the integrand w over the half blocks `first..end` of a stream in two replicates, and Σ w(1 − w) of both together.
#[derive(Clone, Copy)]
pub(in super::super) struct Points<'a> {
    pub wedge: &'a Wedge,
    pub scrambles: [&'a Scramble; 2],
    pub stream: u64,
    pub first: u64,
    pub end: u64,
}

impl Kernel for Points<'_> {
    type Output = ([f64; 2], f64);

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> ([f64; 2], f64) {
        let mut y = vec![[0.0; BLOCK]; self.wedge.variables.max(1)];
        let (mut sums, mut between) = ([0.0; 2], 0.0);
        for half in self.first..self.end {
            let weight = self.wedge.integrand::<A>(&mut y, |dim, u| {
                for (scramble, u) in self.scrambles.iter().zip(u.chunks_exact_mut(HALF)) {
                    scramble.part(self.stream, half * HALF as u64, dim, u);
                }
            });
            sums.iter_mut().zip(weight.chunks_exact(HALF)).for_each(|(sum, part)| *sum += part.iter().sum::<f64>());
            between += weight.iter().map(|w| w * (1.0 - w)).sum::<f64>();
        }
        (sums, between)
    }
}

/// The integrand w by a tensor product of quadrature nodes in (0, 1), for few dimensions; and w(1 − w) by the same.
pub(in super::super) struct Tensor<'a> {
    pub wedge: &'a Wedge,
    pub nodes: &'a [f64],
    pub weights: &'a [f64],
}

impl Kernel for Tensor<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> [f64; 2] {
        let (n, dims) = (self.nodes.len(), self.wedge.dims());
        let total = n.pow(dims as u32);
        let mut y = vec![[0.0; BLOCK]; self.wedge.variables.max(1)];
        let digit = |point: usize, dim: usize| point / n.pow(dim as u32) % n;
        let (mut sum, mut between) = (0.0, 0.0);
        for first in (0..total).step_by(BLOCK) {
            // Points past the end repeat the last and count nothing.
            let point = |i: usize| (first + i).min(total - 1);
            let value = self.wedge.integrand::<A>(&mut y, |dim, u| {
                for (i, u) in u.iter_mut().enumerate() {
                    *u = self.nodes[digit(point(i), dim)];
                }
            });
            for (i, value) in value.iter().enumerate().take(total - first) {
                let weight: f64 = (0..dims).map(|dim| self.weights[digit(first + i, dim)]).product();
                sum += weight * value;
                between += weight * value * (1.0 - value);
            }
        }
        [sum, between]
    }
}
