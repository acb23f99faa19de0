//! The few pieces of statistics that several rooms share: a mean and its error, Student's t, log Σ exp, and what may be added
//! by that which was not seen (the rule of three). Numbers in, numbers out; it imports nothing of this crate.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half the width of a 95 % interval of a normal variable, in standard deviations.
pub const Z95: f64 = 1.959_963_984_540_054;

/// Least doubt that counts: errors come from doubt of this size, however rare, and many images in less doubt do not show that
/// it was seen.
pub const DOUBT: f64 = 0.1;

/// So many images in doubt, or of whatever kind makes a mean, show their own scatter.
const ENOUGH: usize = 30;

/// Kinds of fewer images count together: the least doubt of so few may be a large one.
const FEW_OF_A_KIND: usize = 5;

/// From so many degrees of freedom on the search of statrs for Student's quantile is less exact than its expansion: with 10⁶
/// it is 1e-4 too low, and with 10⁸ it does not end.
const MANY: usize = 10_000;

/// The mean of independent `values` and its standard error s/√n. The error of fewer than two values is infinite: one says
/// nothing about its spread. The mean of none is 0.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}

/// Half the width of a 95 % interval of Student's t, in standard errors with so many degrees of freedom. Infinite
/// without any.
pub fn student_95(freedom: usize) -> f64 {
    if freedom >= MANY {
        // In powers of 1/ν (Abramowitz & Stegun 26.7.5): what is left out is below 1e-11 here.
        let (z, over) = (Z95, 1.0 / freedom as f64);
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        return z + over * ((z.powi(3) + z) / 4.0 + over * second);
    }
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// log Σ exp without overflow; −∞ for nothing, NaN for a NaN, otherwise +∞ if any is.
pub fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if max.is_infinite() {
        return terms.fold(max, |found, x| if x.is_nan() { x } else { found });
    }
    max + terms.map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// How many of these doubts count ([`DOUBT`]).
pub fn count_in_doubt(doubts: impl Iterator<Item = f64>) -> usize {
    doubts.filter(|doubt| *doubt > DOUBT).count()
}

/// Which of these doubts, each beside the kind of its image, are more than [`DOUBT`] above the least of their kind. Doubt that
/// all images of a kind have in common scatters as little as none, and says as little of what was not seen.
pub fn above_least(doubts: impl Iterator<Item = (usize, f64)> + Clone) -> impl Iterator<Item = usize> {
    let mut kinds: Vec<(usize, f64)> = Vec::new();
    for (kind, doubt) in doubts.clone() {
        kinds.resize(kinds.len().max(kind + 1), (0, f64::INFINITY));
        let (count, least) = kinds[kind];
        kinds[kind] = (count + 1, least.min(doubt));
    }
    let rare = kinds.iter().filter(|(count, _)| *count < FEW_OF_A_KIND);
    let least_of_rare = rare.fold(f64::INFINITY, |all, (_, least)| all.min(*least));
    let is_above = move |(kind, doubt): (usize, f64)| {
        let (count, least) = kinds[kind];
        doubt - if count < FEW_OF_A_KIND { least_of_rare } else { least } > DOUBT
    };
    doubts.enumerate().filter(move |(_, doubt)| is_above(*doubt)).map(|(i, _)| i)
}

/// How many of `n` images are of the rarer of two kinds where `count` are of one of them: nearly all of one kind hardly show the
/// other.
pub fn of_rarer_kind(count: usize, n: usize) -> usize {
    count.min(n.saturating_sub(count))
}

/// The share of images that may be of a kind that hardly any of `n` was `seen` to be of, by the rule of three: 3 of n images
/// can be of it and none of it be seen. 0 where enough were.
pub fn unseen(n: usize, seen: usize) -> f64 {
    if seen < ENOUGH { (3.0 / n.max(1) as f64).min(1.0) } else { 0.0 }
}

/// How far down and up a mean `value` in [least, most] goes where a share of its weight lies at either end of that range.
pub fn ends_of_share(value: f64, share: f64, [least, most]: [f64; 2]) -> [f64; 2] {
    [share * (value - least).max(0.0), share * (most - value).max(0.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_its_error_and_a_single_value_none() {
        // s² = 5/3 of 1, 2, 3, 4.
        let (mean, error) = mean_and_error(&[1.0, 2.0, 3.0, 4.0]);
        assert!((mean - 2.5).abs() < 1e-15 && (error - (5.0 / 12.0f64).sqrt()).abs() < 1e-15);
        assert_eq!(mean_and_error(&[2.0]), (2.0, f64::INFINITY));
        assert_eq!(mean_and_error(&[]), (0.0, f64::INFINITY));
        assert!((student_95(2) - 4.302_652_73).abs() < 1e-7 && student_95(0) == f64::INFINITY);
    }

    #[test]
    fn students_quantile_is_exact_with_any_degrees_of_freedom() {
        // By SciPy 1.17.
        let known = [
            (1000, 1.962_339_080_826_408),
            (9_999, 1.960_201_263_621_357),
            (10_000, 1.960_201_239_890_626),
            (100_000, 1.959_987_707_534_609),
            (1_000_000, 1.959_966_356_814_107),
            (10_000_000, 1.959_964_221_767_205),
            (100_000_000, 1.959_964_008_262_766),
        ];
        for (freedom, t) in known {
            assert!((student_95(freedom) - t).abs() < 1e-11, "{freedom}: {} {t}", student_95(freedom));
        }
        assert!(student_95(MANY - 1) > student_95(MANY) && student_95(MANY - 1) - student_95(MANY) < 3e-8);
    }

    #[test]
    fn a_sum_of_exponentials_knows_its_ends() {
        let of = |terms: &[f64]| log_sum_exp(terms.iter().copied());
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        assert!((of(&[1e4, 1e4 + 3f64.ln()]) - 1e4 - 4f64.ln()).abs() < 1e-11);
        assert_eq!([of(&[]), of(&[least; 2]), of(&[least, 0.0]), of(&[most, least])], [least, least, 0.0, most]);
        assert!(
            [&[f64::NAN][..], &[f64::NAN, 0.0], &[least, f64::NAN], &[most, f64::NAN]].iter().all(|t| of(t).is_nan())
        );
    }

    #[test]
    fn three_of_n_images_may_be_unseen_until_thirty_were_seen() {
        assert_eq!([unseen(100, 0), unseen(100, 29), unseen(100, 30), unseen(2, 0)], [0.03, 0.03, 0.0, 1.0]);
        assert_eq!(count_in_doubt([0.0, 0.1, 0.2, 0.9].into_iter()), 2);
        // Five of a kind are compared with each other, rarer ones with all rare ones.
        let common = [0.5, 0.55, 0.6, 0.62, 0.7].map(|doubt| (2, doubt));
        let doubts = || common.into_iter().chain([(0, 0.0), (1, 0.1), (3, 0.11)]);
        assert_eq!(above_least(doubts()).collect::<Vec<_>>(), [3, 4, 7]);
        assert_eq!([of_rarer_kind(3, 10), of_rarer_kind(9, 10), of_rarer_kind(0, 0)], [3, 1, 0]);
        assert_eq!(ends_of_share(0.25, 0.5, [0.0, 1.0]), [0.125, 0.375]);
    }
}
