//! Product problems: means that are all combinations of points in mutually orthogonal subspaces,
//! with priors that multiply. Coordinates in different subspaces are independent given the class,
//! so 1 − E = Π (1 − E_f) and H = Σ H_f. Square constellations, hypercubes and products of small
//! problems are solved exactly, whatever K is.

use super::classes::{Scene, dot};
use super::quadrature::Scaled;
use super::{equidistant, line, plane};

/// |cos| of directions that count as orthogonal.
const ORTHOGONAL: f64 = 1e-10;
/// Relative differences that count as none.
const SAME: f64 = 1e-9;

/// The factors of a product problem, of rank ≥ 1 and weights with sum 1; `None` for one.
pub(super) fn factors(scene: &Scene) -> Option<Vec<Scene>> {
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
    let multiply = seen.iter().zip(&scene.weights).all(|(combination, weight)| {
        let product: f64 = combination.iter().zip(&parts).map(|(&i, part)| part.weights[i]).product();
        (product / weight - 1.0).abs() < SAME
    });
    seen.sort();
    seen.dedup();
    (multiply && seen.len() == combinations).then(|| parts.into_iter().map(Part::scene).collect())
}

/// E = 1 − Π (1 − E_f); `None` where a factor has no closed form and does not lie in a plane.
pub(super) fn bayes_error(factors: &[Scene]) -> Option<Scaled> {
    let errors: Vec<Scaled> = factors.iter().map(error_of).collect::<Option<_>>()?;
    let log_scale = errors.iter().map(|e| e.log_scale + e.value.ln()).fold(f64::NEG_INFINITY, f64::max);
    let scale = log_scale.exp();
    // 1 − Π(1 − E) over the scale, exact for E near 0 as near 1.
    let value = if scale < 1e-300 {
        errors.iter().map(|e| e.value * (e.log_scale - log_scale).exp()).sum()
    } else {
        -errors.iter().map(|e| (-(e.log_scale.exp() * e.value)).ln_1p()).sum::<f64>().exp_m1() / scale
    };
    let half_width = errors.iter().map(|e| e.half_width * (e.log_scale - log_scale).exp()).sum::<f64>() + 1e-14 * value;
    Some(Scaled { log_scale, value, half_width })
}

/// dE/dlog τ = Σ_f E_f′ Π_{h≠f} (1 − E_h).
pub(super) fn derivative(factors: &[Scene]) -> Option<Scaled> {
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
    Some(Scaled::of_logs(&logs, relative))
}

/// H = Σ H_f; `None` where a factor's is not known by quadrature.
pub(super) fn entropy(factors: &[Scene]) -> Option<Scaled> {
    factors.iter().map(entropy_of).collect::<Option<Vec<_>>>().map(|parts| Scaled::total(&parts))
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
