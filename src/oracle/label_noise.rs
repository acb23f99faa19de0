//! Label noise: labels y~ drawn from row y of a row-stochastic matrix C, whatever the image (theory §3).
//!
//! p~(·|x) = Cᵀ p(·|x) and π~ = Cᵀπ are exact. With posterior smoothing T ≠ 1 the world's labels follow p_T(·|x), and
//! C is applied to those: p~ = Cᵀ p_T.

mod written;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::written::Written;
use crate::error::{Error, Result};
use crate::oracle::posterior::{Posterior, Prior, draw};
use crate::stats::log_sum_exp;
use crate::units::ClassId;

/// How far a row written in decimals may be from adding up to 1; it is then normalised.
const NORMALISED: f64 = 1e-6;
/// Entries of a matrix that differ by no more are the same, rounded.
const ALIKE: f64 = 1e-12;
/// Probabilities whose logarithm is taken from the sum itself; smaller ones have lost digits.
const WHOLE: f64 = 1e-290;

/// A row-stochastic matrix C, [K, K]: C_yj is the probability that class y gets the label j.
///
/// Written as `symmetric:η`, `pair:η`, `by-class:η,η,…`, as the name of a file (`.csv`, `.json`), or as the matrix itself, `[[…],…]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct LabelNoise(Form);

#[derive(Debug, Clone, PartialEq)]
enum Form {
    /// With probability η any of the other labels, all alike.
    Symmetric(f64),
    /// With probability η the label of the next class, that of the first after the last.
    Pair(f64),
    /// With probability η_y any of the other labels, all alike.
    ByClass(Vec<f64>),
    /// Row by row, and its reach.
    Matrix(Vec<Vec<f64>>, f64),
    /// A matrix that was not read yet.
    File(PathBuf),
}

impl LabelNoise {
    /// With probability η any of the other labels.
    ///
    /// # Errors
    /// When η is no probability.
    pub fn symmetric(rate: f64) -> Result<Self> {
        probability(rate).map(|rate| Self(Form::Symmetric(rate)))
    }

    /// With probability η the label of the next class, that of the first after the last.
    ///
    /// # Errors
    /// When η is no probability.
    pub fn pair(rate: f64) -> Result<Self> {
        probability(rate).map(|rate| Self(Form::Pair(rate)))
    }

    /// With probability η_y any of the other labels, for each class y.
    ///
    /// # Errors
    /// When a rate is no probability.
    pub fn by_class(rates: Vec<f64>) -> Result<Self> {
        rates.iter().try_for_each(|rate| probability(*rate).map(drop))?;
        Ok(Self(Form::ByClass(rates)))
    }

    /// A matrix, row by row. Rows that add up to 1 within 1e-6 are normalised, and kept to the bit where they do up to
    /// rounding.
    ///
    /// # Errors
    /// Names the row that is too short or too long, has a number below 0, or does not add up to 1.
    pub fn matrix(mut rows: Vec<Vec<f64>>) -> Result<Self> {
        let classes = rows.len();
        for (class, row) in rows.iter_mut().enumerate() {
            let wrong = |why: String| Err(Error::input(format!("label noise: row {class} of the matrix {why}")));
            if row.len() != classes {
                return wrong(format!("has {} numbers, and there are {classes} rows", row.len()));
            }
            if let Some(bad) = row.iter().find(|p| !p.is_finite() || **p < 0.0) {
                return wrong(format!("holds {bad}: all must be probabilities ≥ 0"));
            }
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > NORMALISED {
                return wrong(format!("adds up to {sum}, not to 1: it is the law of the labels of class {class}"));
            }
            if (sum - 1.0).abs() > classes as f64 * f64::EPSILON {
                row.iter_mut().for_each(|p| *p /= sum);
            }
        }
        match classes {
            0 => Err(Error::input("label noise: the matrix has no row")),
            _ => {
                let reach = (0..classes).map(|label| widest(rows.iter().map(|row| row[label]))).fold(0.0, f64::max);
                Ok(Self(Form::Matrix(rows, reach)))
            }
        }
    }

    /// What the words say; a file is read.
    ///
    /// # Errors
    /// When they say nothing, or a file cannot be read or holds no such matrix.
    pub fn parse(text: &str) -> Result<Self> {
        Self::unread(text)?.relative_to(Path::new(""))
    }

    /// Whether it is the name of a file that is still to be read.
    pub fn is_unread(&self) -> bool {
        matches!(self.0, Form::File(_))
    }

    /// The same, a file's matrix read from the file, whose name starts at `folder`.
    ///
    /// # Errors
    /// Names the file, and what is wrong in it.
    pub fn relative_to(self, folder: &Path) -> Result<Self> {
        match self.0 {
            Form::File(path) => written::read(&folder.join(path)),
            _ => Ok(self),
        }
    }

    /// Whether it fits a world of so many classes.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn check(&self, classes: usize) -> Result<()> {
        let given = match &self.0 {
            Form::Symmetric(_) | Form::Pair(_) => classes,
            Form::ByClass(rates) => rates.len(),
            Form::Matrix(rows, _) => rows.len(),
            Form::File(path) => {
                return Err(Error::file(path, "this matrix of label noise was not read: name it in a spec's file"));
            }
        };
        if classes < 2 {
            return Err(Error::input("label noise needs two classes at least"));
        }
        if given == classes {
            return Ok(());
        }
        Err(Error::input(format!("the label noise is of {given} classes, this world has {classes}")))
    }

    /// Whether every label stays as it is.
    pub fn is_none(&self) -> bool {
        let identity = |(y, row): (usize, &Vec<f64>)| row.iter().enumerate().all(|(j, p)| (j == y) == (*p != 0.0));
        match &self.0 {
            Form::Symmetric(rate) | Form::Pair(rate) => *rate == 0.0,
            Form::ByClass(rates) => rates.iter().all(|rate| *rate == 0.0),
            Form::Matrix(rows, _) => rows.iter().enumerate().all(identity),
            Form::File(_) => false,
        }
    }

    /// η, where every class keeps its label with probability 1 − η and has any other with η/(K − 1).
    pub fn symmetric_rate(&self, classes: usize) -> Option<f64> {
        match &self.0 {
            Form::Symmetric(rate) => Some(*rate),
            Form::File(_) => None,
            _ if classes < 2 => None,
            _ => {
                let (kept, other) = (self.probability(0, 0, classes), self.probability(0, 1, classes));
                let wanted = |y: usize, j: usize| if y == j { kept } else { other };
                let mut all = (0..classes).flat_map(|y| (0..classes).map(move |j| (y, j)));
                let alike = |(y, j): (usize, usize)| (self.probability(y, j, classes) - wanted(y, j)).abs() <= ALIKE;
                all.all(alike).then_some(other * (classes as f64 - 1.0))
            }
        }
    }

    /// C_yj, of K classes.
    pub fn probability(&self, class: ClassId, label: ClassId, classes: usize) -> f64 {
        let spread = |rate: f64| if class == label { 1.0 - rate } else { rate / (classes as f64 - 1.0) };
        match &self.0 {
            Form::Symmetric(rate) => spread(*rate),
            Form::ByClass(rates) => spread(rates[class]),
            Form::Pair(rate) if class == label => 1.0 - rate,
            Form::Pair(rate) if (class + 1) % classes == label => *rate,
            Form::Matrix(rows, _) => rows[class][label],
            Form::Pair(_) | Form::File(_) => 0.0,
        }
    }

    /// C_y·, [K].
    pub fn row(&self, class: ClassId, classes: usize) -> Vec<f64> {
        (0..classes).map(|label| self.probability(class, label, classes)).collect()
    }

    /// The label that the uniform number `u` in [0, 1) draws for a class.
    pub fn draw(&self, class: ClassId, classes: usize, u: f64) -> ClassId {
        draw(&self.row(class, classes), u)
    }

    /// Cᵀp, [K], of a distribution p over the classes.
    pub fn labels(&self, p: &[f64]) -> Vec<f64> {
        let classes = p.len();
        let spread = |rate: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let flipped: Vec<f64> = p.iter().enumerate().map(|(y, p)| rate(y) * p).collect();
            // Sums of those after j and before it: the sum of all less one would lose the digits of small ones.
            let mut after: Vec<f64> = vec![0.0; classes];
            (1..classes).rev().for_each(|j| after[j - 1] = after[j] + flipped[j]);
            let mut before = 0.0;
            let of = |j: usize| {
                let others = before + after[j];
                before += flipped[j];
                (1.0 - rate(j)) * p[j] + others / (classes as f64 - 1.0)
            };
            (0..classes).map(of).collect()
        };
        match &self.0 {
            Form::Symmetric(rate) => spread(&|_| *rate),
            Form::ByClass(rates) => spread(&|class| rates[class]),
            Form::Pair(rate) => {
                (0..classes).map(|j| (1.0 - rate) * p[j] + rate * p[(j + classes - 1) % classes]).collect()
            }
            Form::Matrix(rows, _) => {
                let mut all = vec![0.0; classes];
                for (p, row) in p.iter().zip(rows) {
                    all.iter_mut().zip(row).for_each(|(sum, c)| *sum += p * c);
                }
                all
            }
            Form::File(_) => p.to_vec(),
        }
    }

    /// The posterior of the noisy label, p~(·|x) = Cᵀ p(·|x), from that of the class; likelihoods stay those of classes.
    pub fn posterior(&self, of_class: Posterior) -> Posterior {
        if self.is_none() {
            return of_class;
        }
        let probabilities = self.labels(&of_class.probabilities);
        let log = |(label, p): (usize, &f64)| {
            if *p >= WHOLE { p.ln() } else { self.log_label(&of_class.log_probabilities, label) }
        };
        let logs = probabilities.iter().enumerate().map(log).collect();
        Posterior::of_probabilities(of_class.log_likelihood, of_class.log_px, logs, probabilities)
    }

    /// log p~_j, where its terms may be too small for 64 bits.
    fn log_label(&self, log_p: &[f64], label: ClassId) -> f64 {
        let classes = log_p.len();
        let terms = log_p.iter().enumerate().filter_map(|(class, log_p)| {
            let c = self.probability(class, label, classes);
            (c > 0.0).then(|| log_p + c.ln())
        });
        log_sum_exp(terms)
    }

    /// Σ_y p_y (1 − max_j C_yj): the error of who knows the class, for classes of law p. No Bayes error of noisy labels
    /// is smaller.
    pub fn floor(&self, p: &[f64]) -> f64 {
        let classes = p.len();
        let likeliest = |class| self.row(class, classes).into_iter().fold(0.0, f64::max);
        p.iter().enumerate().map(|(class, p)| p * (1.0 - likeliest(class))).sum()
    }

    /// The most that another class changes the probability of a label: max_j (max_y C_yj − min_y C_yj), of K ≥ 2 classes.
    pub fn reach(&self, classes: usize) -> f64 {
        let others = classes as f64 - 1.0;
        match &self.0 {
            Form::Symmetric(rate) => (1.0 - rate - rate / others).abs(),
            Form::Pair(rate) if classes == 2 => (1.0 - 2.0 * rate).abs(),
            Form::Pair(rate) => rate.max(1.0 - rate),
            Form::ByClass(rates) => {
                let mut sorted = rates.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                let (&[least, next, ..], &[.., before, most]) = (sorted.as_slice(), sorted.as_slice()) else {
                    return 1.0;
                };
                // The first of those of other classes is the second of all where the first is the class's own.
                let first = |own: f64, [first, second]: [f64; 2]| if first == own { second } else { first };
                let column = |own: &f64| {
                    let ends = [first(*own, [least, next]), first(*own, [most, before])];
                    widest([1.0 - own, ends[0] / others, ends[1] / others].into_iter())
                };
                rates.iter().map(column).fold(0.0, f64::max)
            }
            Form::Matrix(_, reach) => *reach,
            Form::File(_) => 1.0,
        }
    }

    /// How far an image is from one that is certainly of the class `decision`, as far as labels tell: the largest change of a
    /// label's probability since there, as a share of [`Self::reach`]; 0 where labels say nothing of classes. Under symmetric
    /// noise this is 1 − p(decision) of the class.
    pub fn doubt(&self, decision: ClassId, of_label: &[f64]) -> f64 {
        let classes = of_label.len();
        let change = |(label, p): (usize, &f64)| (p - self.probability(decision, label, classes)).abs();
        share_of(self.reach(classes), of_label.iter().enumerate().map(change).fold(0.0, f64::max))
    }

    /// π~ = Cᵀπ.
    pub fn prior(&self, prior: &Prior) -> Vec<f64> {
        self.labels(prior.probabilities())
    }

    /// In words: as it is written.
    pub fn describe(&self) -> String {
        match Written::from(self.clone()) {
            Written::Words(words) => words,
            Written::Matrix(rows) => format!("{rows:?}"),
        }
    }
}

/// A change as a share of a reach; 0 where there is none.
pub fn share_of(reach: f64, change: f64) -> f64 {
    if reach > ALIKE { change / reach } else { 0.0 }
}

/// The largest of some numbers less the smallest.
fn widest(all: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)));
    most - least
}

fn probability(rate: f64) -> Result<f64> {
    match (0.0..=1.0).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::input(format!("label noise: {rate} is no probability between 0 and 1"))),
    }
}

#[cfg(test)]
mod tests;
