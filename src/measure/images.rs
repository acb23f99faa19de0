//! The figures of each image: what the exact posterior and the classifier say about it. Only here
//! all n·K probabilities are read; later steps need one row of figures per image.

use super::bootstrap::in_doubt;
use crate::error::{Error, Result};
use crate::parallel;
use crate::stats::{above_least, count_in_doubt, log_sum_exp, of_rarer_kind};
use crate::units::ClassId;

/// Largest deviation of a row's sum from 1. Rows stored as f32 or f16 are off by rounding and are
/// normalised; more than this is no probability.
const NORMALISATION: f64 = 1e-3;

/// Figures of single images, in the order they came; one entry per image in every field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PerImage {
    /// Number of classes K.
    pub classes: usize,
    /// Drawn label.
    pub label: Vec<ClassId>,
    /// Decision of the classifier, argmax_y q(y|x); the first of equals.
    pub decision: Vec<ClassId>,
    /// −Σ_y p log q, nats.
    pub cross_entropy: Vec<f64>,
    /// H(p) = −Σ_y p log p, nats.
    pub entropy: Vec<f64>,
    /// KL(p‖q) = Σ_y p (log p − log q), nats; rounding can leave it below 0 for q = p.
    pub kl: Vec<f64>,
    /// −log q(drawn label), nats.
    pub nll: Vec<f64>,
    /// max_y q(y|x).
    pub confidence: Vec<f64>,
    /// p(decision|x): the probability that the classifier is right.
    pub expected: Vec<f64>,
    /// max_y p(y|x): the probability that the Bayes decision is right.
    pub best: Vec<f64>,
    /// How far each is from one without doubt. Empty where it is not known how much of that is noise of labels.
    pub doubts: Vec<ImageDoubt>,
}

/// How far an image is from one without doubt, 0 to 1 each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImageDoubt {
    /// Its likeliest class.
    pub class: ClassId,
    /// From one that is certainly of its likeliest class; without label noise 1 − max p(y|x).
    pub of_class: f64,
    /// From one that is certainly of the class that the classifier decides for; without label noise 1 − p(decision|x).
    pub of_decision: f64,
}

/// How many of these images show what the Bayes error and A are made of: of those of one likeliest class, the ones in clearly
/// more doubt than the surest of them.
pub(super) fn in_doubt_of_class(doubts: impl Iterator<Item = ImageDoubt> + Clone) -> usize {
    above_least(doubts.map(|doubt| (doubt.class, doubt.of_class))).count()
}

/// How many of these decisions are in doubt.
pub(super) fn in_doubt_of_decision(doubts: impl Iterator<Item = ImageDoubt>) -> usize {
    count_in_doubt(doubts.map(|doubt| doubt.of_decision))
}

/// One image's figures.
#[derive(Default)]
struct Row {
    decision: ClassId,
    cross_entropy: f64,
    entropy: f64,
    kl: f64,
    nll: f64,
    confidence: f64,
    expected: f64,
    best: f64,
}

impl PerImage {
    /// No images yet, of `classes` classes.
    ///
    /// # Errors
    /// When there is no class.
    pub fn new(classes: usize) -> Result<Self> {
        if classes == 0 {
            return Err(Error::input("a classifier needs at least one class"));
        }
        Ok(Self { classes, ..Self::default() })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.label.len()
    }

    /// Returns whether there is no image.
    pub fn is_empty(&self) -> bool {
        self.label.is_empty()
    }

    /// Adds images, e.g. a batch: exact posteriors `p` [n, K] as f32 or f64, the classifier's
    /// `log_q` [n, K] (see [`super::log_softmax`]), drawn `labels` [n]. Rows that sum to 1 within
    /// 1e-3 are normalised. 0·log 0 = 0 on either side.
    ///
    /// # Errors
    /// When shapes do not match; when a row holds NaN, a negative or infinite number or does not
    /// add up to 1; when q = 0 where p > 0 or at the drawn label: the loss is infinite then, no
    /// mean exists, and the image is named. On an error nothing is added.
    pub fn extend<P: Copy + Into<f64> + Sync>(&mut self, p: &[P], log_q: &[f64], labels: &[ClassId]) -> Result<()> {
        let (n, classes) = (labels.len(), self.classes);
        if p.len() != n * classes || log_q.len() != n * classes {
            let (p, q) = (p.len(), log_q.len());
            return Err(Error::input(format!(
                "{n} labels of {classes} classes need {} probabilities, not {p} of the world and {q} of the classifier",
                n * classes
            )));
        }
        let rows = parallel::map(n, |i| {
            let of = i * classes..(i + 1) * classes;
            row(&p[of.clone()], &log_q[of], labels[i])
        });
        let rows = named(self.len(), rows)?;
        self.label.extend_from_slice(labels);
        for row in rows {
            self.push(row);
        }
        Ok(())
    }

    fn push(&mut self, row: Row) {
        self.decision.push(row.decision);
        self.cross_entropy.push(row.cross_entropy);
        self.entropy.push(row.entropy);
        self.kl.push(row.kl);
        self.nll.push(row.nll);
        self.confidence.push(row.confidence);
        self.expected.push(row.expected);
        self.best.push(row.best);
    }

    /// Returns whether the decision on image `i` is its drawn label.
    pub fn hit(&self, i: usize) -> bool {
        self.decision[i] == self.label[i]
    }

    /// How many images show what the Bayes error and A are made of: those in doubt. And how many show what the error of the
    /// classifier is made of: the fewer of those whose decision is in doubt and of the others, for one that is nearly always
    /// wrong hardly shows where it is right. Where doubt is not known without the noise of labels, those in clearly more doubt
    /// than the surest image count.
    pub fn in_doubt(&self) -> [usize; 2] {
        let known = || self.doubts.iter().copied();
        let above = |right: &[f64]| in_doubt(right.iter().map(|p| 1.0 - p));
        let [of_class, of_decision] = if self.doubts.is_empty() {
            [above(&self.best), above(&self.expected)]
        } else {
            [in_doubt_of_class(known()), in_doubt_of_decision(known())]
        };
        [of_class, of_rarer_kind(of_decision, self.len())]
    }

    /// The `count` images with the largest KL(p‖q), largest first; of equals the earlier one.
    pub fn worst(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&a, &b| self.kl[b].total_cmp(&self.kl[a]));
        order.truncate(count);
        order
    }
}

/// Returns all figures, or the first refusal with its image; the first image is number `first`.
pub(super) fn named<T>(first: usize, rows: Vec<Result<T, String>>) -> Result<Vec<T>> {
    let named = |(i, row): (usize, Result<T, String>)| {
        row.map_err(|cause| Error::Numeric(format!("image {}: {cause}", first + i)))
    };
    rows.into_iter().enumerate().map(named).collect()
}

/// The figures of one image, or why there are none.
fn row<P: Copy + Into<f64>>(p: &[P], log_q: &[f64], label: ClassId) -> Result<Row, String> {
    let p_sum = posterior_sum(p)?;
    let log_q_sum = log_q_sum(log_q)?;
    let log_q = |y: usize| log_q[y] - log_q_sum;
    let mut row = Row::default();
    for (y, &p_y) in p.iter().enumerate() {
        let (p_y, log_q_y) = (p_y.into() / p_sum, log_q(y));
        if log_q_y > log_q(row.decision) {
            row.decision = y;
        }
        row.best = row.best.max(p_y);
        if p_y > 0.0 {
            if log_q_y == f64::NEG_INFINITY {
                return Err(infinite(y, &format!("where the exact posterior is {p_y:.3e}")));
            }
            let log_p_y = p_y.ln();
            row.cross_entropy -= p_y * log_q_y;
            row.entropy -= p_y * log_p_y;
            row.kl += p_y * (log_p_y - log_q_y);
        }
    }
    if label >= p.len() {
        return Err(format!("its label {label} is none of {} classes", p.len()));
    }
    row.nll = -log_q(label);
    if row.nll == f64::INFINITY {
        return Err(infinite(label, "and that is its label"));
    }
    row.confidence = log_q(row.decision).exp().min(1.0);
    row.expected = p[row.decision].into() / p_sum;
    Ok(row)
}

fn infinite(class: ClassId, whence: &str) -> String {
    format!(
        "the classifier gives class {class} probability 0 {whence}: the loss is infinite. Give logits or log-probabilities, not probabilities rounded to 0"
    )
}

/// Σ p of one image, checked.
pub(super) fn posterior_sum<P: Copy + Into<f64>>(p: &[P]) -> Result<f64, String> {
    if let Some((y, p)) = p.iter().map(|&p| p.into()).enumerate().find(|(_, p): &(usize, f64)| p.is_nan() || *p < 0.0) {
        return Err(format!("the exact posterior of class {y} is {p}"));
    }
    let sum: f64 = p.iter().map(|&p| p.into()).sum();
    if (sum - 1.0).abs() <= NORMALISATION {
        Ok(sum)
    } else {
        Err(format!("the exact posteriors add up to {sum}, not to 1"))
    }
}

/// log Σ q of one image, checked.
pub(super) fn log_q_sum(log_q: &[f64]) -> Result<f64, String> {
    if let Some((y, value)) = log_q.iter().enumerate().find(|(_, x)| x.is_nan() || **x == f64::INFINITY) {
        return Err(format!("the classifier's log-probability of class {y} is {value}"));
    }
    let log_sum = log_sum_exp(log_q.iter().copied());
    if log_sum.abs() <= NORMALISATION {
        Ok(log_sum)
    } else {
        Err(format!(
            "the classifier's probabilities add up to {}, not to 1 (logits need log_softmax first)",
            log_sum.exp()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(p: &[f64], q: &[f64], labels: &[usize], classes: usize) -> Result<PerImage> {
        let log_q: Vec<f64> = q.iter().map(|q| q.ln()).collect();
        let mut images = PerImage::new(classes)?;
        images.extend(p, &log_q, labels)?;
        Ok(images)
    }

    #[test]
    fn two_classes_by_hand() {
        let images = images(&[0.75, 0.25], &[0.5, 0.5], &[1], 2).unwrap();
        let ln = f64::ln;
        assert!((images.cross_entropy[0] - ln(2.0)).abs() < 1e-15);
        assert!((images.entropy[0] - (2.0 * ln(2.0) - 0.75 * ln(3.0))).abs() < 1e-15);
        assert!((images.kl[0] - (0.75 * ln(3.0) - ln(2.0))).abs() < 1e-15);
        assert!((images.nll[0] - ln(2.0)).abs() < 1e-15);
        assert_eq!((images.decision[0], images.expected[0], images.best[0]), (0, 0.75, 0.75));
        assert!(!images.hit(0));
    }

    #[test]
    fn zero_times_log_zero_is_zero_on_both_sides() {
        let images = images(&[1.0, 0.0, 0.0], &[1.0, 0.0, 0.0], &[0], 3).unwrap();
        assert_eq!((images.cross_entropy[0], images.entropy[0], images.kl[0], images.nll[0]), (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn refusals_name_the_image_and_add_nothing() {
        let fine = [0.5, 0.5];
        let cases: [([f64; 2], [f64; 2], usize, &str); 8] = [
            ([0.5, 0.5], [1.0, 0.0], 0, "class 1 probability 0"),
            ([1.0, 0.0], [1.0, 0.0], 1, "and that is its label"),
            ([f64::NAN, 0.5], fine, 0, "posterior of class 0 is NaN"),
            ([1.5, -0.5], fine, 0, "posterior of class 1 is -0.5"),
            ([0.5, 0.4], fine, 0, "add up to 0.9"),
            (fine, [f64::NAN, 0.5], 0, "log-probability of class 0 is NaN"),
            (fine, [0.0, 0.0], 0, "add up to 0"),
            (fine, fine, 2, "label 2"),
        ];
        for (p, q, label, cause) in cases {
            let mut images = images(&fine, &fine, &[0], 2).unwrap();
            let log_q: Vec<f64> = fine.iter().chain(&q).map(|q| q.ln()).collect();
            let error = images.extend(&[fine, p].concat(), &log_q, &[0, label]).unwrap_err().to_string();
            assert!(error.contains("image 2:") && error.contains(cause), "{error}");
            assert_eq!(images.len(), 1);
        }
        let infinite = PerImage::new(2).unwrap().extend(&[f64::INFINITY, 0.0], &[0.0, 0.0], &[0]);
        assert!(infinite.unwrap_err().to_string().contains("image 0"));
    }

    #[test]
    fn shapes_must_match() {
        assert!(images(&[0.5, 0.5, 1.0], &[0.5, 0.5], &[0], 2).is_err());
        assert!(images(&[0.5, 0.5], &[0.5, 0.5], &[0, 1], 2).is_err());
        assert!(PerImage::new(0).is_err());
    }

    #[test]
    fn batches_and_stored_floats_do_not_matter() {
        let p = [0.7f64, 0.2, 0.1, 0.1, 0.8, 0.1];
        let q = [0.6, 0.3, 0.1, 0.3, 0.3, 0.4];
        let whole = images(&p, &q, &[0, 1], 3).unwrap();
        let log_q: Vec<f64> = q.iter().map(|q: &f64| q.ln()).collect();
        let mut parts = PerImage::new(3).unwrap();
        parts.extend(&p[..3], &log_q[..3], &[0]).unwrap();
        parts.extend(&p[3..], &log_q[3..], &[1]).unwrap();
        assert_eq!(whole, parts);
        let mut stored = PerImage::new(3).unwrap();
        stored.extend(&p.map(|p| p as f32), &log_q, &[0, 1]).unwrap();
        for (a, b) in whole.kl.iter().zip(&stored.kl) {
            assert!((a - b).abs() < 1e-6);
        }
        assert_eq!(whole.worst(5), [1, 0]);
        assert_eq!(whole.worst(1), [1]);
    }
}
