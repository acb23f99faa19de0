//! Nearest neighbours, leave-one-out.
//!
//! For many samples the neighbour's label is an independent draw from the same posterior, so the
//! 1-NN error tends to R = E[1 − Σ p_y²]; with E* the Bayes error (Cover & Hart 1967)
//!
//! (K−1)/K · (1 − √(1 − K/(K−1) · R)) ≤ E* ≤ R ≤ E* (2 − K/(K−1) · E*).

use super::geometry::Geometry;
use super::{Chosen, Estimator, Graded};
use crate::error::{Error, Result};
use crate::parallel;
use crate::units::ClassId;

/// Numbers of neighbours tried unless a caller wants others: odd, so that two classes never tie.
pub const KS: [usize; 12] = [1, 3, 5, 7, 9, 13, 17, 23, 31, 41, 51, 63];

/// Neighbours of [`devijver`] by default: few, so that they are still near.
pub const DEVIJVER_K: usize = 5;

/// Lower end of the Bayes error of K classes given the asymptotic 1-NN error R (Cover & Hart 1967).
/// An R above (K−1)/K, which chance can bring, counts as that.
pub(super) fn cover_hart(r: f64, classes: usize) -> f64 {
    let most = (classes as f64 - 1.0) / classes as f64;
    most * (1.0 - (1.0 - r / most).max(0.0).sqrt())
}

/// Leave-one-out 1-NN error: `upper` for many samples; `lower` is Cover and Hart's.
pub fn one_nn(geometry: &Geometry<'_>) -> Graded {
    let (n, labels) = (geometry.sample.n(), geometry.sample.labels);
    let misses = (0..n).filter(|&i| labels[geometry.neighbours(i)[0] as usize] != labels[i]).count();
    bounded_by_one_nn(geometry, Estimator::OneNn, None, misses as f64 / n as f64)
}

/// The asymptotic 1-NN error from the `k` nearest samples, the sample itself among them: mean Σ_c
/// k_c (k − k_c) / (k (k−1)), the share of their pairs that differ in class (Devijver 1985;
/// FeeBee's `methods/onenn.py`). Varies less than [`one_nn`], which is k = 2, and has the same
/// bounds, but reaches farther.
///
/// # Errors
/// When k is below 2 or more than the kept neighbours and the sample itself.
pub fn devijver(geometry: &Geometry<'_>, k: usize) -> Result<Graded> {
    check_k(geometry, k.saturating_sub(1))?;
    let (n, labels) = (geometry.sample.n(), geometry.sample.labels);
    let differing = |i: usize| {
        let mut counts = vec![0; geometry.sample.classes()];
        counts[labels[i]] += 1;
        geometry.neighbours(i)[..k - 1].iter().for_each(|&j| counts[labels[j as usize]] += 1);
        counts.iter().map(|&c: &usize| c * (k - c)).sum::<usize>()
    };
    let differing: usize = parallel::map(n, differing).iter().sum();
    let r = differing as f64 / (n * k * (k - 1)) as f64;
    Ok(bounded_by_one_nn(geometry, Estimator::Devijver, Some(Chosen::Neighbours(k)), r))
}

/// An estimate `r` of the asymptotic 1-NN error, with the bounds that follow from it.
pub(super) fn bounded_by_one_nn(
    geometry: &Geometry<'_>,
    estimator: Estimator,
    chosen: Option<Chosen>,
    r: f64,
) -> Graded {
    let lower = Some(cover_hart(r, geometry.sample.classes()));
    Graded { lower, upper: Some(r), chosen, ..Graded::new(estimator, r, geometry.sample.n()) }
}

/// Leave-one-out error of the majority of k neighbours. The sample is cut in two halves (in turn
/// within each class); each is judged with the k of `ks` that errs least on the other, the smaller
/// of equals: so no sample has a say in its own k, and the error stays one of an honest decision,
/// above the Bayes error but for chance. Neighbours come from the whole sample. A tied vote goes to
/// the class whose nearest vote is nearest.
///
/// `upper` is the error itself. `lower` is that of FeeBee's `methods/knn.py`: of two classes
/// R_k / (1 + √(1/k)) for k > 2 and R_k / (1 + √(2/k)) for k = 2, with the smaller of both k; of
/// more classes, or k = 1, Cover and Hart's, valid for R_k where the vote errs no more than 1-NN.
///
/// # Errors
/// When `ks` is empty, or holds a 0 or more neighbours than are kept.
pub fn knn(geometry: &Geometry<'_>, ks: &[usize]) -> Result<Graded> {
    let mut ks = ks.to_vec();
    ks.sort_unstable();
    ks.dedup();
    ks.iter().try_for_each(|&k| check_k(geometry, k))?;
    let misses = misses_by_half(geometry, &ks);
    let best = |half: usize| (0..ks.len()).min_by_key(|&at| misses[1 - half][at]);
    let (Some(first), Some(second)) = (best(0), best(1)) else {
        return Err(Error::input("k-NN needs at least one k to choose from"));
    };
    let n = geometry.sample.n();
    let error = (misses[0][first] + misses[1][second]) as f64 / n as f64;
    let chosen = [ks[first], ks[second]];
    let lower = Some(knn_lower(error, chosen[0].min(chosen[1]), geometry.sample.classes()));
    let chosen = Some(Chosen::Halves(chosen));
    Ok(Graded { lower, upper: Some(error), chosen, ..Graded::new(Estimator::Knn, error, n) })
}

/// Lower end of the Bayes error given the asymptotic k-NN error.
fn knn_lower(r: f64, k: usize, classes: usize) -> f64 {
    match k {
        _ if classes > 2 || k == 1 => cover_hart(r, classes),
        2 => r / 2.0,
        _ => r / (1.0 + (k as f64).sqrt().recip()),
    }
}

/// Samples of each half that the vote of each k gets wrong.
fn misses_by_half(geometry: &Geometry<'_>, ks: &[usize]) -> [Vec<usize>; 2] {
    let (sample, halves) = (&geometry.sample, geometry.sample.halves());
    let missed = |i: usize| -> Vec<bool> {
        let votes: Vec<ClassId> = geometry.neighbours(i).iter().map(|&j| sample.labels[j as usize]).collect();
        ks.iter().map(|&k| majority(&votes[..k], sample.classes()) != Some(sample.labels[i])).collect()
    };
    let mut misses = [vec![0; ks.len()], vec![0; ks.len()]];
    for (missed, half) in parallel::map(sample.n(), missed).into_iter().zip(halves) {
        misses[half].iter_mut().zip(missed).for_each(|(misses, missed)| *misses += usize::from(missed));
    }
    misses
}

/// The most frequent class; of equals the one that votes first.
fn majority(votes: &[ClassId], classes: usize) -> Option<ClassId> {
    let mut counts = vec![0usize; classes];
    votes.iter().for_each(|&vote| counts[vote] += 1);
    let most = counts.iter().copied().max()?;
    votes.iter().copied().find(|&vote| counts[vote] == most)
}

fn check_k(geometry: &Geometry<'_>, k: usize) -> Result<()> {
    let (kept, n) = (geometry.kept, geometry.sample.n());
    if (1..=kept).contains(&k) {
        return Ok(());
    }
    Err(Error::input(format!("{k} neighbours cannot be had of {n} samples: 1 to {kept} are known of each")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::grade::Sample;

    #[test]
    fn bounds_meet_where_they_must() {
        for classes in [2usize, 3, 10] {
            let most = (classes as f64 - 1.0) / classes as f64;
            assert_eq!((cover_hart(0.0, classes), cover_hart(most, classes)), (0.0, most));
            assert_eq!(cover_hart(1.0, classes), most);
            // The other side, R = E(2 − K/(K−1) E), undone.
            let error = 0.3 * most;
            assert!((cover_hart(error * (2.0 - error / most), classes) - error).abs() < 1e-15);
        }
        assert!((knn_lower(0.3, 9, 2) - 0.225).abs() < 1e-15);
        assert!((knn_lower(0.3, 2, 2) - 0.15).abs() < 1e-15);
        assert_eq!(knn_lower(0.3, 9, 3), cover_hart(0.3, 3));
    }

    /// Seven samples on a line, of two classes.
    const LINE: [f32; 7] = [0.0, 1.0, 2.1, 3.3, 10.0, 11.0, 12.1];
    const SIDES: [usize; 7] = [0, 0, 1, 0, 1, 1, 1];

    #[test]
    fn a_line_by_hand() {
        let geometry = Geometry::new(Sample::new(&LINE, 1, &SIDES, 2).unwrap()).unwrap();
        // Nearest: 0→1, 1→0, 2.1→1 (wrong), 3.3→2.1 (wrong), 10→11, 11→10, 12.1→11.
        assert!((one_nn(&geometry).estimate - 2.0 / 7.0).abs() < 1e-15);
        // Majority of three: 0→{1, 2.1, 3.3} right, 1→{0, 2.1, 3.3} right, 2.1→{1, 3.3, 0} wrong,
        // 3.3→{2.1, 1, 0} right, 10→{11, 12.1, 3.3} right, and so the last two.
        let three = knn(&geometry, &[3]).unwrap();
        assert!((three.estimate - 1.0 / 7.0).abs() < 1e-15);
        assert_eq!(three.chosen, Some(Chosen::Halves([3, 3])));
        // k = 2 is 1-NN: one differing pair of two ordered ones.
        assert!((devijver(&geometry, 2).unwrap().estimate - 2.0 / 7.0).abs() < 1e-15);
        // k = 3: triples of 0, 1, 2.1 and 3.3 hold one stranger (2 of 3 pairs differ), others none.
        assert!((devijver(&geometry, 3).unwrap().estimate - 4.0 * 2.0 / 3.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn each_half_gets_the_k_of_the_other() {
        let geometry = Geometry::new(Sample::new(&LINE, 1, &SIDES, 2).unwrap()).unwrap();
        // Halves: first 0, 2.1, 3.3, 11; second 1, 10, 12.1. The first errs 2 times with k = 1,
        // once with k = 3; the second never with either, and so lends the first the smaller k.
        assert_eq!(geometry.sample.halves(), [0, 1, 0, 0, 1, 0, 1]);
        let chosen = knn(&geometry, &[3, 1, 3]).unwrap();
        assert_eq!(chosen.chosen, Some(Chosen::Halves([1, 3])));
        assert!((chosen.estimate - 2.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn more_neighbours_than_samples_are_refused() {
        let geometry = Geometry::new(Sample::new(&LINE, 1, &SIDES, 2).unwrap()).unwrap();
        for bad in [knn(&geometry, &[3, 7]), knn(&geometry, &[0]), devijver(&geometry, 8), devijver(&geometry, 1)] {
            let error = bad.unwrap_err().to_string();
            assert!(error.contains("1 to 6"), "{error}");
        }
        assert!(knn(&geometry, &[]).is_err());
        assert!(knn(&geometry, &[6]).is_ok() && devijver(&geometry, 7).is_ok());
    }

    #[test]
    fn tied_votes_go_to_the_nearest() {
        assert_eq!(majority(&[2, 1, 1, 2], 3), Some(2));
        assert_eq!(majority(&[2, 1, 1], 3), Some(1));
    }
}
