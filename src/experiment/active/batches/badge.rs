//! BADGE (Ash et al. 2020): gradients of the loss with respect to the last layer's weights, as if the label were
//! the classifier's own decision, chosen by the seeding of k-means++ (Arthur & Vassilvitskii 2007). A large
//! gradient is an unsure answer; gradients that differ are a batch that does not say one thing often.
//!
//! The gradient is an outer product (q − e_ŷ) ⊗ h of K and D numbers. Products of two are those of their
//! parts, so it is never written out.

use rand::{Rng, RngExt};

use super::geometry::{Rows, dot, largest};
use crate::measure::argmax;
use crate::parallel;

/// The gradient of −log q(ŷ|x) with respect to the last layer's weights, as its two parts.
pub(super) struct Embedding<'a> {
    /// q − e_ŷ, [N, K].
    pub errors: Vec<f32>,
    /// What the last layer reads, [N, D].
    pub read: Rows<'a>,
    classes: usize,
    /// Squared lengths, [N].
    pub lengths: Vec<f64>,
}

impl<'a> Embedding<'a> {
    /// From log q [N, K] and what the last layer reads; ŷ is the largest q, of equals the first.
    pub fn new(log_q: &[f64], classes: usize, read: Rows<'a>) -> Self {
        let error = |log_q: &[f64]| {
            let decision = argmax(log_q);
            let of = |(class, log_q): (usize, &f64)| (log_q.exp() - f64::from(u8::from(class == decision))) as f32;
            log_q.iter().enumerate().map(of).collect::<Vec<f32>>()
        };
        let errors: Vec<f32> = log_q.chunks_exact(classes).flat_map(error).collect();
        let mut all = Self { errors, read, classes, lengths: Vec::new() };
        all.lengths = parallel::map(read.len(), |i| all.product(i, i));
        all
    }

    fn error(&self, i: usize) -> &[f32] {
        &self.errors[i * self.classes..(i + 1) * self.classes]
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        dot(self.error(i), self.error(j)) * dot(self.read.row(i), self.read.row(j))
    }

    /// Squared distance of two gradients; not below 0 by rounding.
    pub fn squared(&self, i: usize, j: usize) -> f64 {
        (self.lengths[i] + self.lengths[j] - 2.0 * self.product(i, j)).max(0.0)
    }
}

/// Returns `count` places: the longest gradient first, as the authors' program has it, then each by chance in
/// proportion to its squared distance from the nearest before it.
pub(in super::super) fn badge(
    log_q: &[f64],
    classes: usize,
    read: Rows<'_>,
    count: usize,
    rng: &mut impl Rng,
) -> Vec<usize> {
    let all = Embedding::new(log_q, classes, read);
    let count = count.min(read.len());
    let mut chosen: Vec<usize> = largest(&all.lengths).into_iter().take(count).collect();
    let mut distances = vec![f64::INFINITY; read.len()];
    while let (Some(&last), true) = (chosen.last(), chosen.len() < count) {
        parallel::each_mut(&mut distances, |i, distance| *distance = distance.min(all.squared(i, last)));
        distances[last] = 0.0;
        match drawn(&distances, rng.random()) {
            Some(next) => chosen.push(next),
            // All that is left coincides with what was chosen: those that come first.
            None => {
                let mut free = vec![true; read.len()];
                chosen.iter().for_each(|&i| free[i] = false);
                let rest = (0..read.len()).filter(|&i| free[i]).take(count - chosen.len());
                chosen.extend(rest.collect::<Vec<_>>());
            }
        }
    }
    chosen
}

/// A place by chance, in proportion to its weight, from a number between 0 and 1; `None` where all weigh nothing.
pub(super) fn drawn(weights: &[f64], at: f64) -> Option<usize> {
    let mut left = at * weights.iter().sum::<f64>();
    let heavy = || weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0);
    for (i, weight) in heavy() {
        left -= weight;
        if left < 0.0 {
            return Some(i);
        }
    }
    // Rounding may leave a rest of nothing.
    heavy().next_back().map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::log_softmax;
    use crate::units::Seed;

    const CLASSES: usize = 3;
    const DIM: usize = 4;

    fn numbers(seed: u64, n: usize) -> Vec<f32> {
        let mut rng = Seed(seed).rng(0);
        (0..n).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect()
    }

    /// Logits W h + b of a last layer, and from them log q.
    fn log_q(weights: &[f64], bias: &[f64], h: &[f32]) -> Vec<f64> {
        let logit = |k: usize| bias[k] + (0..DIM).map(|d| weights[k * DIM + d] * f64::from(h[d])).sum::<f64>();
        log_softmax(&(0..CLASSES).map(logit).collect::<Vec<f64>>(), CLASSES)
    }

    #[test]
    fn the_embedding_is_the_gradient_of_the_last_layer() {
        let weights: Vec<f64> = numbers(1, CLASSES * DIM).into_iter().map(f64::from).collect();
        let (bias, read) = ([0.1, -0.2, 0.3], numbers(2, 20 * DIM));
        let rows = Rows::new(&read, DIM);
        let answers: Vec<f64> = (0..20).flat_map(|i| log_q(&weights, &bias, rows.row(i))).collect();
        let all = Embedding::new(&answers, CLASSES, rows);
        let explicit = |i: usize| -> Vec<f64> {
            let (error, read) = (all.error(i), rows.row(i));
            error.iter().flat_map(|e| read.iter().map(move |h| f64::from(*e) * f64::from(*h))).collect()
        };
        for i in 0..20 {
            let decision = argmax(&answers[i * CLASSES..(i + 1) * CLASSES]);
            let loss = |at: usize, by: f64| {
                let mut moved = weights.clone();
                moved[at] += by;
                -log_q(&moved, &bias, rows.row(i))[decision]
            };
            for (at, gradient) in explicit(i).into_iter().enumerate() {
                let difference = (loss(at, 1e-5) - loss(at, -1e-5)) / 2e-5;
                assert!((gradient - difference).abs() < 1e-6, "{i}, {at}: {gradient} {difference}");
            }
            for j in 0..20 {
                let exact: f64 = explicit(i).iter().zip(explicit(j)).map(|(a, b)| (a - b).powi(2)).sum();
                assert!((all.squared(i, j) - exact).abs() < 1e-5, "{i} {j}");
            }
        }
    }

    #[test]
    fn the_longest_comes_first_then_by_squared_distance() {
        // Answers as sure as each other; what is read lies on a line at 0, 1, 2 and −4.
        let read = [0.0f32, 1.0, 2.0, -4.0];
        let answers = log_softmax(&[1.0, 0.0].repeat(4), 2);
        let draws = 4_000;
        let mut counts = [0usize; 4];
        for i in 0..draws {
            let chosen = badge(&answers, 2, Rows::new(&read, 1), 2, &mut Seed(3).rng(i));
            assert_eq!(chosen[0], 3);
            counts[chosen[1]] += 1;
        }
        // Squared distances from −4: 16, 25 and 36.
        for (count, expected) in counts.into_iter().zip([16.0, 25.0, 36.0, 0.0].map(|d: f64| d / 77.0)) {
            let share = count as f64 / draws as f64;
            assert!((share - expected).abs() < 4.0 * (0.25 / draws as f64).sqrt(), "{share} {expected}");
        }
    }

    #[test]
    fn duplicates_are_bought_where_nothing_else_is_left() {
        let read = [1.0f32, 1.0, 1.0, 2.0];
        let answers = log_softmax(&[1.0, 0.0].repeat(4), 2);
        let mut chosen = badge(&answers, 2, Rows::new(&read, 1), 4, &mut Seed(0).rng(0));
        assert_eq!(chosen[0], 3);
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2, 3]);
        assert!(badge(&[], 2, Rows::new(&[], 1), 4, &mut Seed(0).rng(0)).is_empty());
    }
}
