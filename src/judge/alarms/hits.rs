//! How many hits a decision that does not know the labels can have.
//!
//! Given the images alone, label i is drawn from p_i, independent of all others. So the hits of a
//! classifier that has not seen the labels are independent Bernoulli(p_i[d_i]), d_i its decision:
//! their number is Poisson-binomial. Its tail is summed exactly, image by image (Chen & Liu 1997,
//! Statistica Sinica 7, direct recursion), in O(n·σ): probabilities below 1e-300 are dropped at
//! both ends, so the tail is right to 1e-11 relative down to 1e-280.

/// Smaller probabilities at the ends of the distribution are dropped.
const NEGLIGIBLE: f64 = 1e-300;

/// P(at least `hits` of independent events with `probabilities`) in [0, 1].
pub(super) fn upper_tail(probabilities: &[f64], hits: usize) -> f64 {
    tail(probabilities, hits, |k, hits| k >= hits)
}

/// P(at most `hits` of them).
pub(super) fn lower_tail(probabilities: &[f64], hits: usize) -> f64 {
    tail(probabilities, hits, |k, hits| k <= hits)
}

fn tail(probabilities: &[f64], hits: usize, counts: impl Fn(usize, usize) -> bool) -> f64 {
    let mut mass = vec![0.0; probabilities.len() + 2];
    mass[0] = 1.0;
    // mass[first..=last] is what is not negligible.
    let (mut first, mut last) = (0, 0);
    for &p in probabilities {
        let p = p.clamp(0.0, 1.0);
        last += 1;
        mass[last] = 0.0;
        for k in (first + 1..=last).rev() {
            mass[k] = mass[k] * (1.0 - p) + mass[k - 1] * p;
        }
        mass[first] *= 1.0 - p;
        while first < last && mass[first] < NEGLIGIBLE {
            mass[first] = 0.0;
            first += 1;
        }
        while first < last && mass[last] < NEGLIGIBLE {
            mass[last] = 0.0;
            last -= 1;
        }
    }
    let within = (first..=last).filter(|&k| counts(k, hits));
    // An empty sum is −0.
    within.map(|k| mass[k]).sum::<f64>().clamp(0.0, 1.0) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    /// All 2ⁿ outcomes.
    fn brute(p: &[f64], counts: impl Fn(usize) -> bool) -> f64 {
        let outcome = |mask: u32| {
            let weight: f64 =
                p.iter().enumerate().map(|(i, p)| if mask >> i & 1 == 1 { *p } else { 1.0 - p }).product();
            if counts(mask.count_ones() as usize) { weight } else { 0.0 }
        };
        (0..1u32 << p.len()).map(outcome).sum()
    }

    #[test]
    fn tails_are_those_of_all_outcomes() {
        for trial in 0..20 {
            let mut rng = Seed(4).rng(trial);
            let p: Vec<f64> = (0..12).map(|_| rng.random::<f64>().powi(3)).collect();
            for hits in 0..=13 {
                let (up, low) = (brute(&p, |k| k >= hits), brute(&p, |k| k <= hits));
                assert!((upper_tail(&p, hits) - up).abs() <= 1e-13 * up.max(1e-300), "{hits}");
                assert!((lower_tail(&p, hits) - low).abs() <= 1e-13 * low.max(1e-300), "{hits}");
            }
        }
        assert_eq!(upper_tail(&[1.0, 0.0], 1), 1.0);
        assert_eq!((upper_tail(&[1.0, 0.0], 2), upper_tail(&[], 0)), (0.0, 1.0));
    }

    #[test]
    fn the_far_tail_of_a_binomial_is_right() {
        // P(Bin(1000, ½) ≥ 900) by its own terms.
        let (n, p) = (1000usize, 0.5f64);
        let log_choose = |k: usize| (1..=k).map(|j| ((n - k + j) as f64 / j as f64).ln()).sum::<f64>();
        let exact: f64 = (900..=n).map(|k| (log_choose(k) + n as f64 * p.ln()).exp()).sum();
        let found = upper_tail(&vec![p; n], 900);
        assert!(exact < 1e-150 && (found / exact - 1.0).abs() < 1e-10, "{found} {exact}");
    }

    #[test]
    fn many_images_cost_little() {
        let p: Vec<f64> = (0..60_000).map(|i| 0.5 + 0.4 * (f64::from(i)).sin()).collect();
        let mean: f64 = p.iter().sum();
        let (up, low) = (upper_tail(&p, mean.round() as usize), lower_tail(&p, mean.round() as usize));
        assert!((up - 0.5).abs() < 0.01 && (low - 0.5).abs() < 0.01, "{up} {low}");
    }
}
