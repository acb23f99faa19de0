//! L-BFGS (Nocedal & Wright 2006, algorithm 7.5) with halved steps, for smooth convex functions.

use std::collections::VecDeque;

/// Steps, at most.
const STEPS: usize = 1000;
/// Steps of which the curvature is remembered.
const MEMORY: usize = 12;
/// The largest component of the gradient at which the search ends.
const FLAT: f64 = 1e-9;
/// Share of the fall that the slope promises, at least (Armijo).
const ENOUGH: f64 = 1e-4;
/// Halvings of a step, at most.
const HALVINGS: usize = 60;

/// A step and the change of the gradient on it.
struct Curvature {
    step: Vec<f64>,
    change: Vec<f64>,
    /// 1 / (step · change).
    inverse: f64,
}

/// Where `function` has its least value, starting at `x`. It writes its gradient into the second
/// argument and returns its value.
pub(super) fn minimise(mut x: Vec<f64>, function: impl Fn(&[f64], &mut [f64]) -> f64) -> Vec<f64> {
    let mut gradient = vec![0.0; x.len()];
    let mut value = function(&x, &mut gradient);
    let mut memory: VecDeque<Curvature> = VecDeque::with_capacity(MEMORY);
    for _ in 0..STEPS {
        if gradient.iter().all(|g| g.abs() < FLAT) {
            break;
        }
        let mut direction = newton_like(&gradient, &memory);
        if dot(&direction, &gradient) >= 0.0 {
            memory.clear();
            direction = gradient.iter().map(|g| -g).collect();
        }
        let first = if memory.is_empty() { 1.0 / dot(&gradient, &gradient).sqrt().max(1.0) } else { 1.0 };
        let Some((next, reached, new)) = search(&x, value, &gradient, &direction, first, &function) else { break };
        let step: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let change: Vec<f64> = new.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let along = dot(&step, &change);
        if along > f64::EPSILON * dot(&change, &change) {
            if memory.len() == MEMORY {
                memory.pop_front();
            }
            memory.push_back(Curvature { step, change, inverse: 1.0 / along });
        }
        (x, value, gradient) = (next, reached, new);
    }
    x
}

type Reached = (Vec<f64>, f64, Vec<f64>);

/// The first of ever shorter steps that falls enough; none where rounding leaves nothing to gain.
fn search(
    x: &[f64],
    value: f64,
    gradient: &[f64],
    direction: &[f64],
    first: f64,
    function: &impl Fn(&[f64], &mut [f64]) -> f64,
) -> Option<Reached> {
    let slope = dot(direction, gradient);
    let (mut length, mut new) = (first, vec![0.0; x.len()]);
    for _ in 0..HALVINGS {
        let next: Vec<f64> = x.iter().zip(direction).map(|(x, d)| x + length * d).collect();
        let reached = function(&next, &mut new);
        if reached < value && reached <= value + ENOUGH * length * slope {
            return Some((next, reached, new));
        }
        length /= 2.0;
    }
    None
}

/// −H⁻¹·gradient by the remembered curvature.
fn newton_like(gradient: &[f64], memory: &VecDeque<Curvature>) -> Vec<f64> {
    let mut d: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut taken = Vec::with_capacity(memory.len());
    for one in memory.iter().rev() {
        let share = one.inverse * dot(&one.step, &d);
        d.iter_mut().zip(&one.change).for_each(|(d, change)| *d -= share * change);
        taken.push(share);
    }
    if let Some(last) = memory.back() {
        let scale = 1.0 / (last.inverse * dot(&last.change, &last.change));
        d.iter_mut().for_each(|d| *d *= scale);
    }
    for (one, share) in memory.iter().zip(taken.iter().rev()) {
        let back = one.inverse * dot(&one.change, &d);
        d.iter_mut().zip(&one.step).for_each(|(d, step)| *d += (share - back) * step);
    }
    d
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretched_bowl_and_a_curved_valley_end_at_their_lowest_point() {
        // Curvatures 1 to 10⁶ over eight directions.
        let curvature = |i: usize| 10f64.powf(6.0 * i as f64 / 7.0);
        let bowl = |x: &[f64], g: &mut [f64]| {
            let each = x.iter().zip(g).enumerate().map(|(i, (x, g))| {
                let d = x - i as f64;
                *g = curvature(i) * d;
                0.5 * curvature(i) * d * d
            });
            each.sum()
        };
        let found = minimise(vec![5.0; 8], bowl);
        assert!(found.iter().enumerate().all(|(i, x)| (x - i as f64).abs() < 1e-7), "{found:?}");
        let rosenbrock = |x: &[f64], g: &mut [f64]| {
            let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
            g[0] = -2.0 * a - 400.0 * x[0] * b;
            g[1] = 200.0 * b;
            a * a + 100.0 * b * b
        };
        let found = minimise(vec![-1.2, 1.0], rosenbrock);
        assert!(found.iter().all(|x| (x - 1.0).abs() < 1e-6), "{found:?}");
    }
}
