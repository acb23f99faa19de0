//! Where the exact KL falls: a proposal of the look-ahead, which knows the truth. One step of the last layer on an
//! image lowers the mean KL(p‖q) of the test images by the product of two gradients, to first order: that of
//! the mean KL, exact because p is known, and that of the loss on the image with its drawn label, whatever the classifier is told of it.
//! Images are taken greedily; after each the last layer makes its step, and the test images have other answers.

use super::geometry::{Rows, dot, largest};
use crate::measure::log_softmax;
use crate::parallel;

/// Images as the last layer reads them, with its answers.
pub(in super::super) struct Learner<'a> {
    /// What the last layer reads, [N, D].
    pub read: Rows<'a>,
    /// log q, [N, K]: logits but for a constant of each image.
    pub log_q: Vec<f64>,
}

impl Learner<'_> {
    /// The answers after a step of the last layer along `error` ⊗ `read` with `rate`.
    fn learn(&mut self, error: &[f64], read: &[f32], rate: f64) {
        let (rows, classes) = (self.read, error.len());
        parallel::chunks_mut(&mut self.log_q, classes, |i, log_q| {
            let near = rate * dot(rows.row(i), read);
            let moved: Vec<f64> = log_q.iter().zip(error).map(|(log_q, error)| log_q - near * error).collect();
            log_q.copy_from_slice(&log_softmax(&moved, classes));
        });
    }
}

/// Gradient of mean KL(p‖q) over images with respect to the weights, [K, D].
fn gradient(test: &Learner<'_>, p: &[f64], classes: usize) -> Vec<f32> {
    let (dim, n) = (test.read.dim(), test.read.len().max(1) as f64);
    let row = |class: usize| {
        let mut sums = vec![0f32; dim];
        for i in 0..test.read.len() {
            let at = i * classes + class;
            let error = ((test.log_q[at].exp() - p[at]) / n) as f32;
            sums.iter_mut().zip(test.read.row(i)).for_each(|(sum, read)| *sum += error * read);
        }
        sums
    };
    parallel::flat_map(classes, row)
}

/// Returns `count` places in `open`, whose `labels` are [N], that lower the mean KL on `test` most, whose
/// posteriors are `p` [n, K].
pub(in super::super) fn alignment(
    open: &mut Learner<'_>,
    labels: &[usize],
    test: &mut Learner<'_>,
    p: &[f64],
    count: usize,
) -> Vec<usize> {
    let n = labels.len();
    let classes = open.log_q.len().checked_div(n).unwrap_or(1);
    let lengths = open.read.each(|read| dot(read, read));
    // With this rate a step moves the logits of the image itself by its error, in the mean.
    let rate = n as f64 / lengths.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut chosen, mut free) = (Vec::with_capacity(count), vec![true; n]);
    while chosen.len() < count.min(n) {
        let slope = gradient(test, p, classes);
        let slope = Rows::new(&slope, open.read.dim());
        let error = |i: usize| -> Vec<f64> {
            let of = |(k, log_q): (usize, &f64)| log_q.exp() - f64::from(u8::from(k == labels[i]));
            open.log_q[i * classes..(i + 1) * classes].iter().enumerate().map(of).collect()
        };
        let fall = |i: usize| match free[i] {
            true => error(i).iter().enumerate().map(|(k, e)| e * dot(slope.row(k), open.read.row(i))).sum(),
            false => f64::NEG_INFINITY,
        };
        let falls: Vec<f64> = parallel::map(n, fall);
        let Some(next) = largest(&falls) else { break };
        let (error, read) = (error(next), open.read.row(next));
        open.learn(&error, read, rate);
        test.learn(&error, read, rate);
        free[next] = false;
        chosen.push(next);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    const CLASSES: usize = 3;
    const DIM: usize = 4;

    fn kl(log_q: &[f64], p: &[f64]) -> f64 {
        let n = log_q.len() / CLASSES;
        p.iter().zip(log_q).map(|(p, q)| p * (p.ln() - q)).sum::<f64>() / n as f64
    }

    #[test]
    fn the_first_choice_is_where_a_small_step_lowers_the_exact_kl_most() {
        for seed in 0..10 {
            let mut rng = Seed(seed).rng(0);
            let mut numbers = |n: usize| (0..n).map(|_| 2.0 * rng.random::<f32>() - 1.0).collect::<Vec<f32>>();
            let (weights, open, test) = (numbers(CLASSES * DIM), numbers(15 * DIM), numbers(25 * DIM));
            let labels: Vec<usize> = (0..15).map(|i| i % CLASSES).collect();
            let p: Vec<f64> = log_softmax(&numbers(25 * CLASSES), CLASSES).iter().map(|p| p.exp()).collect();
            let answers = |weights: &[f64], read: &[f32]| {
                let logit = |row: &[f32], k: usize| (0..DIM).map(|d| weights[k * DIM + d] * f64::from(row[d])).sum();
                let logits = read.chunks_exact(DIM).flat_map(|row| (0..CLASSES).map(move |k| logit(row, k)));
                log_softmax(&logits.collect::<Vec<f64>>(), CLASSES)
            };
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let of_open = answers(&weights, &open);
            let fall = |i: usize| {
                let row = &open[i * DIM..(i + 1) * DIM];
                let step = |k: usize, d: usize| {
                    let error = of_open[i * CLASSES + k].exp() - f64::from(u8::from(k == labels[i]));
                    weights[k * DIM + d] - 1e-4 * error * f64::from(row[d])
                };
                let moved: Vec<f64> = (0..CLASSES * DIM).map(|at| step(at / DIM, at % DIM)).collect();
                kl(&answers(&weights, &test), &p) - kl(&answers(&moved, &test), &p)
            };
            let best = (0..15).max_by(|&a, &b| fall(a).total_cmp(&fall(b))).unwrap();
            let learner = |read| Learner { read: Rows::new(read, DIM), log_q: answers(&weights, read) };
            let (mut of_open, mut of_test) = (learner(&open), learner(&test));
            let mut chosen = alignment(&mut of_open, &labels, &mut of_test, &p, 20);
            assert_eq!(chosen[0], best, "seed {seed}");
            chosen.sort_unstable();
            assert_eq!(chosen, (0..15).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_step_gives_the_answers_of_the_moved_weights() {
        let (read, at) = ([1.0f32, 2.0, -1.0, 0.5], [0.5f32, 1.0]);
        let mut learner = Learner { read: Rows::new(&read, 2), log_q: log_softmax(&[0.0f32, 1.0, 2.0, 0.0], 2) };
        learner.learn(&[0.25, -0.25], &at, 2.0);
        // Products of the rows with `at` are 2.5 and 0; the logits of the first move by −2·2.5·error.
        let expected = log_softmax(&[-1.25f32, 2.25, 2.0, 0.0], 2);
        for (found, expected) in learner.log_q.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6);
        }
    }
}
