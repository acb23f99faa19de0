//! Product problems: means that are all combinations of points in mutually orthogonal subspaces,
//! with priors that multiply. Coordinates in different subspaces are independent given the class,
//! so 1 − E = Π (1 − E_f) and H = Σ H_f. Square constellations, hypercubes and products of small
//! problems are solved exactly, whatever K is.

use super::classes::{Scene, dot};
use super::quadrature::Scaled;
use super::{equidistant, line, plane};

/// |cos| of directions that count as orthogonal.
const ORTHOGONAL: f64 = 1e-10;
/// What figures of the problem and of its product may differ by through rounding alone, as a share of them.
const ROUNDING: f64 = 1e-11;
/// Relative differences that count as none.
const SAME: f64 = 1e-9;

/// A problem as a product of smaller ones.
pub(super) struct Product {
    factors: Vec<Scene>,
    /// How far a mean of the problem is from that of the product, at most.
    displacement: f64,
    /// The same of a prior, as a share of it.
    mismatch: f64,
    /// The largest distance of a mean from the first.
    extent: f64,
}

/// The factors of a product problem, of rank ≥ 1 and weights with sum 1; `None` for one.
pub(super) fn factors(scene: &Scene) -> Option<Product> {
    let total: f64 = scene.weights.iter().sum();
    // Factors of n and m points span n + m − 2 < n·m − 1 dimensions: general means are no product.
    if scene.rank < 3 || scene.rank + 1 >= scene.count() || scene.hidden > 0.0 || (total - 1.0).abs() > 1e-9 {
        return None;
    }
    let subspaces = subspaces(scene);
    if subspaces.len() < 2 {
        return None;
    }
    let parts: Vec<Part> = subspaces.iter().map(|basis| Part::new(scene, basis)).collect();
    let combinations: usize = parts.iter().map(|part| part.weights.len()).product();
    if combinations != scene.count() {
        return None;
    }
    // Every combination occurs (K different ones of K), with the product of its parts' weights.
    let mut seen: Vec<Vec<usize>> = (0..scene.count()).map(|g| parts.iter().map(|part| part.of[g]).collect()).collect();
    let off = seen.iter().zip(&scene.weights).map(|(combination, weight)| {
        let product: f64 = combination.iter().zip(&parts).map(|(&i, part)| part.weights[i]).product();
        (product / weight - 1.0).abs()
    });
    let mismatch = off.fold(0.0, f64::max);
    let displacement = displacement(scene, &subspaces, &parts);
    let extent = (0..scene.count()).map(|g| scene.distance(0, g)).fold(0.0, f64::max);
    seen.sort();
    seen.dedup();
    let is_product = mismatch < SAME && seen.len() == combinations;
    is_product.then(|| {
        let factors = parts.into_iter().map(Part::scene).collect();
        Product { factors, displacement, mismatch, extent }
    })
}

/// How far the means are from those that the points of the parts make up, at most. Axes of different subspaces that are not quite
/// orthogonal count once in the sum and once in what the product takes for granted.
fn displacement(scene: &Scene, subspaces: &[Vec<Vec<f64>>], parts: &[Part]) -> f64 {
    let off = |g: usize| {
        let mut rest: Vec<f64> = scene.mean(g).iter().zip(scene.mean(0)).map(|(a, b)| a - b).collect();
        for (part, basis) in parts.iter().zip(subspaces) {
            let (here, first) = (&part.points[part.of[g]], &part.points[part.of[0]]);
            for (axis, (here, first)) in basis.iter().zip(here.iter().zip(first)) {
                rest.iter_mut().zip(axis).for_each(|(rest, axis)| *rest -= (here - first) * axis);
            }
        }
        dot(&rest, &rest).sqrt()
    };
    2.0 * (0..scene.count()).map(off).fold(0.0, f64::max)
}

impl Product {
    /// How many factors there are.
    pub fn count(&self) -> usize {
        self.factors.len()
    }

    /// Returns whether its figures are those of the problem to rounding, in closed form.
    pub fn is_exact(&self) -> bool {
        self.factors.iter().all(|factor| factor.rank == 1) && self.relative() < ROUNDING
    }

    /// How far a figure of the product may be from that of the problem, as a share of it: a density at the distance d of its mean
    /// changes by the share d·displacement.
    fn relative(&self) -> f64 {
        self.displacement * (1.0 + self.extent) + self.mismatch
    }

    /// The same of a Bayes error, absolutely: two normal densities apart by δ have a total variation of at most δ/√(2π).
    fn absolute(&self) -> f64 {
        0.4 * self.displacement + self.mismatch
    }
}

/// E = 1 − Π (1 − E_f); `None` where a factor has no closed form and does not lie in a plane.
pub(super) fn bayes_error(product: &Product) -> Option<Scaled> {
    let factors = &product.factors;
    let errors: Vec<Scaled> = factors.iter().map(error_of).collect::<Option<_>>()?;
    let log_scale = errors.iter().map(|e| e.log_scale + e.value.ln()).fold(f64::NEG_INFINITY, f64::max);
    let scale = log_scale.exp();
    // 1 − Π(1 − E) over the scale, exact for E near 0 as near 1.
    let value = if scale < 1e-300 {
        errors.iter().map(|e| e.value * (e.log_scale - log_scale).exp()).sum()
    } else {
        -errors.iter().map(|e| (-(e.log_scale.exp() * e.value)).ln_1p()).sum::<f64>().exp_m1() / scale
    };
    let off = (product.relative() * value).min(product.absolute() / scale);
    let half_width =
        errors.iter().map(|e| e.half_width * (e.log_scale - log_scale).exp()).sum::<f64>() + 1e-14 * value + off;
    Some(Scaled { log_scale, value, half_width })
}

/// dE/dlog τ = Σ_f E_f′ Π_{h≠f} (1 − E_h).
pub(super) fn derivative(product: &Product) -> Option<Scaled> {
    let factors = &product.factors;
    let errors: Vec<f64> =
        factors.iter().map(|f| error_of(f).map(|e| e.log_scale.exp() * e.value)).collect::<Option<_>>()?;
    let slopes: Vec<Scaled> = factors.iter().map(slope_of).collect::<Option<_>>()?;
    let logs: Vec<f64> = slopes
        .iter()
        .enumerate()
        .map(|(f, slope)| {
            let others: f64 = (0..errors.len()).filter(|&h| h != f).map(|h| (-errors[h]).ln_1p()).sum();
            slope.log_scale + slope.value.ln() + others
        })
        .collect();
    // No term is less precise than the least precise slope; the errors' own rounding is far below.
    let relative = slopes.iter().filter(|s| s.value > 0.0).map(|s| s.half_width / s.value).fold(1e-12, f64::max);
    Some(Scaled::of_logs(&logs, relative + product.relative() * (1.0 + product.extent)))
}

/// H = Σ H_f; `None` where a factor's is not known by quadrature.
pub(super) fn entropy(product: &Product) -> Option<Scaled> {
    let parts = product.factors.iter().map(entropy_of).collect::<Option<Vec<_>>>()?;
    let mut sum = Scaled::total(&parts);
    sum.half_width += sum.value * product.relative() * (1.0 + product.extent);
    Some(sum)
}

fn error_of(factor: &Scene) -> Option<Scaled> {
    match factor.rank {
        1 => Some(line::bayes_error(factor)),
        2 => Some(plane::bayes_error(factor)),
        _ => equidistant::bayes_error(factor),
    }
}

fn slope_of(factor: &Scene) -> Option<Scaled> {
    match factor.rank {
        1 => Some(line::derivative(factor)),
        2 => Some(plane::derivative(factor)),
        _ => equidistant::derivative(factor),
    }
}

fn entropy_of(factor: &Scene) -> Option<Scaled> {
    match factor.rank {
        1 => line::entropy(factor),
        2 => plane::entropy(factor),
        _ => None,
    }
}

/// Orthonormal bases of the finest mutually orthogonal subspaces that hold every edge of a minimum
/// spanning tree of the means: in a product, each such edge moves in one factor only, for two moves
/// could be made one after the other.
fn subspaces(scene: &Scene) -> Vec<Vec<Vec<f64>>> {
    let mut bases: Vec<Vec<Vec<f64>>> = Vec::new();
    for (g, h) in spanning_tree(scene) {
        let d = scene.distance(g, h);
        let edge: Vec<f64> = scene.mean(g).iter().zip(scene.mean(h)).map(|(a, b)| (b - a) / d).collect();
        let (touched, apart): (Vec<_>, Vec<_>) = bases
            .into_iter()
            .partition(|basis: &Vec<Vec<f64>>| basis.iter().any(|axis| dot(axis, &edge).abs() > ORTHOGONAL));
        let mut merged: Vec<Vec<f64>> = touched.into_iter().flatten().collect();
        let mut rest = edge;
        for axis in &merged {
            let along = dot(axis, &rest);
            rest.iter_mut().zip(axis).for_each(|(r, a)| *r -= along * a);
        }
        let length = dot(&rest, &rest).sqrt();
        if length > ORTHOGONAL {
            merged.push(rest.iter().map(|x| x / length).collect());
        }
        bases = apart;
        bases.push(merged);
    }
    bases
}

/// Prim's algorithm.
fn spanning_tree(scene: &Scene) -> Vec<(usize, usize)> {
    let mut nearest: Vec<(f64, usize)> = (0..scene.count()).map(|g| (scene.distance(0, g), 0)).collect();
    let mut outside: Vec<usize> = (1..scene.count()).collect();
    let mut edges = Vec::new();
    while let Some(at) = (0..outside.len()).min_by(|&a, &b| nearest[outside[a]].0.total_cmp(&nearest[outside[b]].0)) {
        let new = outside.swap_remove(at);
        edges.push((nearest[new].1, new));
        for &g in &outside {
            let d = scene.distance(new, g);
            if d < nearest[g].0 {
                nearest[g] = (d, new);
            }
        }
    }
    edges
}

/// The means seen in one subspace.
struct Part {
    rank: usize,
    points: Vec<Vec<f64>>,
    weights: Vec<f64>,
    /// Which point each class has.
    of: Vec<usize>,
}

impl Part {
    fn new(scene: &Scene, basis: &[Vec<f64>]) -> Self {
        let (mut points, mut weights): (Vec<Vec<f64>>, Vec<f64>) = (Vec::new(), Vec::new());
        let largest = scene.means.iter().fold(1e-300, |a: f64, &b| a.max(b.abs()));
        let of = (0..scene.count()).map(|g| {
            let point: Vec<f64> = basis.iter().map(|axis| dot(axis, scene.mean(g))).collect();
            let same = |other: &Vec<f64>| other.iter().zip(&point).all(|(a, b)| (a - b).abs() < SAME * largest);
            let at = points.iter().position(same).unwrap_or_else(|| {
                points.push(point);
                weights.push(0.0);
                points.len() - 1
            });
            weights[at] += scene.weights[g];
            at
        });
        let of = of.collect();
        Self { rank: basis.len(), points, weights, of }
    }

    fn scene(self) -> Scene {
        let members = (0..self.weights.len()).map(|i| vec![i]).collect();
        Scene::new(self.rank, self.points.concat(), self.weights, 0.0, members)
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::bayes::classes::{GaussianClasses, Merge};
    use crate::units::Tau;

    #[test]
    fn what_is_nearly_a_product_lies_within_the_half_width_of_it() {
        let (standard, nearly) = (Normal::standard(), 1.0 + 9e-8);
        let error_of = |far: f64| {
            let corners = [(0.0, 1.0), (1000.0, far)]
                .into_iter()
                .flat_map(|(x, y)| [0.0, y].into_iter().flat_map(move |y| [0.0, 1.0].map(|z| vec![x, y, z])));
            let classes = GaussianClasses::new(corners.collect(), vec![0.125; 8]).unwrap();
            let product = factors(&classes.scene(Tau::ONE, Merge::Best)).unwrap();
            let sum = bayes_error(&product).unwrap();
            let scale = sum.log_scale.exp();
            (scale * sum.value, scale * sum.half_width, product.is_exact())
        };
        // Far from each other the two squares are problems of their own.
        let half = |y: f64| 1.0 - standard.cdf(0.5) * standard.cdf(0.5 * y);
        for (far, exact) in [(1.0, true), (nearly, false)] {
            let truth = 0.5 * (half(1.0) + half(far));
            let (value, half_width, told) = error_of(far);
            assert!((value - truth).abs() <= half_width, "{value} ± {half_width}, truth {truth}");
            assert_eq!(told, exact, "{half_width}");
            assert!(half_width < if exact { 1e-12 } else { 1e-6 }, "{half_width}");
        }
    }
}
