//! EBO's own eleven corpora.

use crate::units::Nats;

/// A row of EBO table 1 (arXiv:2106.03357), copied digit by digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The corpus, in EBO's words.
    pub corpus: &'static str,
    /// Another usual name of it; empty where there is none.
    also: &'static str,
    /// Number of classes.
    pub classes: usize,
    /// Number of images.
    pub samples: usize,
    /// Channels of its images: EBO pads all to 32×32 (§4.1).
    channels: usize,
    /// Test NLL. EBO names no unit; nats per image fit, see [`Published::bits_per_dim`].
    pub nll: Nats,
    /// Bayes error of EBO's Glow at τ = 1, a fraction.
    pub bayes_error: f64,
    /// Lowest published error of a classifier at the time, a fraction.
    pub sota_error: f64,
}

impl Published {
    /// The NLL in bits per dimension of 32×32 images, with EBO's numbers in nats per image.
    /// CIFAR-10 is then 3.49, beside 3.35 of the Glow paper (Kingma & Dhariwal 2018, table 2); as
    /// bits per image it would be 2.42, below every flow.
    pub fn bits_per_dim(&self) -> f64 {
        self.nll.0 / ((self.channels * 32 * 32) as f64 * std::f64::consts::LN_2)
    }

    /// Whether a known classifier errs less than EBO's Bayes error, which is then none of the
    /// corpus.
    pub fn is_refuted(&self) -> bool {
        self.sota_error < self.bayes_error
    }
}

const fn row(
    (corpus, also): (&'static str, &'static str),
    [classes, samples, channels]: [usize; 3],
    [nll, bayes_error, sota_error]: [f64; 3],
) -> Published {
    Published { corpus, also, classes, samples, channels, nll: Nats(nll), bayes_error, sota_error }
}

/// EBO table 1, in its order: by Bayes error.
pub const EBO_TABLE_1: [Published; 11] = [
    row(("MNIST", ""), [10, 60_000, 1], [8.00e2, 1.07e-4, 1.6e-3]),
    row(("EMNIST (digits)", ""), [10, 280_000, 1], [8.61e2, 1.21e-3, 5.7e-3]),
    row(("SVHN", ""), [10, 73_257, 3], [4.65e3, 7.58e-3, 9.9e-3]),
    row(("Kuzushiji-MNIST", "KMNIST"), [10, 60_000, 1], [1.37e3, 8.03e-3, 6.6e-3]),
    row(("CIFAR-10", ""), [10, 50_000, 3], [7.43e3, 2.46e-2, 3e-3]),
    row(("Fashion-MNIST", "FMNIST"), [10, 60_000, 1], [1.75e3, 3.36e-2, 3.09e-2]),
    row(("EMNIST (letters)", ""), [26, 145_600, 1], [9.15e2, 4.37e-2, 4.12e-2]),
    row(("CIFAR-100", ""), [100, 50_000, 3], [7.48e3, 4.59e-2, 3.92e-2]),
    row(("EMNIST (balanced)", ""), [47, 131_600, 1], [9.45e2, 9.47e-2, 8.95e-2]),
    row(("EMNIST (bymerge)", ""), [47, 814_255, 1], [8.53e2, 1.00e-1, 1.90e-1]),
    row(("EMNIST (byclass)", ""), [62, 814_255, 1], [8.76e2, 1.64e-1, 2.40e-1]),
];

/// A name without what people write in different ways: case, dashes, spaces, brackets.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// EBO's row for a corpus of that name, whatever its case and dashes.
pub fn published(name: &str) -> Option<&'static Published> {
    let wanted = plain(name);
    EBO_TABLE_1
        .iter()
        .find(|row| [row.corpus, row.also].iter().any(|known| !known.is_empty() && plain(known) == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as the paper prints it, blanks for its rules.
    const PRINTED: &str = "\
        MNIST             10  60,000  8.00e2 1.07e-4 1.6e-3
        EMNIST (digits)   10  280,000 8.61e2 1.21e-3 5.7e-3
        SVHN              10  73,257  4.65e3 7.58e-3 9.9e-3
        Kuzushiji-MNIST   10  60,000  1.37e3 8.03e-3 6.6e-3
        CIFAR-10          10  50,000  7.43e3 2.46e-2 3e-3
        Fashion-MNIST     10  60,000  1.75e3 3.36e-2 3.09e-2
        EMNIST (letters)  26  145,600 9.15e2 4.37e-2 4.12e-2
        CIFAR-100         100 50,000  7.48e3 4.59e-2 3.92e-2
        EMNIST (balanced) 47  131,600 9.45e2 9.47e-2 8.95e-2
        EMNIST (bymerge)  47  814,255 8.53e2 1.00e-1 1.90e-1
        EMNIST (byclass)  62  814,255 8.76e2 1.64e-1 2.40e-1";

    #[test]
    fn the_rows_are_those_of_the_paper() {
        assert_eq!(PRINTED.lines().count(), EBO_TABLE_1.len());
        for (line, row) in PRINTED.lines().zip(&EBO_TABLE_1) {
            let line = line.trim().replace(',', "");
            let rest = line.strip_prefix(row.corpus).unwrap();
            let numbers: Vec<f64> = rest.split_whitespace().map(|number| number.parse().unwrap()).collect();
            let ours = [row.classes as f64, row.samples as f64, row.nll.0, row.bayes_error, row.sota_error];
            assert_eq!(numbers, ours, "{line}");
        }
        assert!(EBO_TABLE_1.is_sorted_by(|a, b| a.bayes_error < b.bayes_error));
    }

    #[test]
    fn their_order_beside_the_best_classifiers_is_as_the_paper_says_in_nats() {
        // EBO §4.3: below an NLL of 1000 the ranking is exactly that of the best classifiers.
        let near = EBO_TABLE_1.iter().filter(|row| row.nll.0 < 1000.0);
        assert!(near.clone().is_sorted_by(|a, b| a.sota_error < b.sota_error));
        assert_eq!(near.count(), 6);
        let bits = |name| published(name).unwrap().bits_per_dim();
        assert!((bits("cifar10") - 3.489).abs() < 1e-3 && (bits("mnist") - 1.127).abs() < 1e-3);
    }

    #[test]
    fn corpora_are_known_by_any_spelling() {
        let found = |name| published(name).map(|row| row.corpus);
        for (name, corpus) in [
            ("cifar10", "CIFAR-10"),
            ("Cifar-100", "CIFAR-100"),
            ("fashion_mnist", "Fashion-MNIST"),
            ("emnist-letters", "EMNIST (letters)"),
            ("kmnist", "Kuzushiji-MNIST"),
        ] {
            assert_eq!(found(name), Some(corpus), "{name}");
        }
        assert_eq!([found("mnist (mine)"), found(""), found("-")], [None; 3]);
    }
}
