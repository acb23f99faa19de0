//! Each class by itself: a function of q(y|x) that says how often y is drawn, and the K of them
//! normalised (Zadrozny & Elkan 2002).

use crate::units::ClassId;

/// A function of a probability: linear between points, constant beyond the first and the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steps {
    /// Probabilities, rising.
    at: Vec<f64>,
    /// Shares of hits there.
    rate: Vec<f64>,
}

/// A function a class.
#[derive(Debug, Clone, PartialEq)]
pub struct OneVsRest {
    classes: Vec<Steps>,
}

impl OneVsRest {
    /// `fit` gets of one class the pairs (q, 1 where it was drawn and otherwise 0), by rising q.
    pub(super) fn fit(log_q: &[f64], labels: &[ClassId], classes: usize, fit: impl Fn(&[(f64, f64)]) -> Steps) -> Self {
        let of = |class: ClassId| {
            let q = log_q.iter().skip(class).step_by(classes).map(|log_q| log_q.exp());
            let hit = labels.iter().map(|&label| f64::from(u8::from(label == class)));
            let mut pairs: Vec<(f64, f64)> = q.zip(hit).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            fit(&pairs)
        };
        Self { classes: (0..classes).map(of).collect() }
    }

    /// Normalised, as logarithms; an image that every class disowns gets all of them alike.
    pub(super) fn log_probabilities(&self, log_q: &[f64]) -> Vec<f64> {
        let k = self.classes.len();
        let mut all = Vec::with_capacity(log_q.len());
        for row in log_q.chunks_exact(k) {
            let rates = self.classes.iter().zip(row).map(|(steps, log_q)| steps.value(log_q.exp()));
            let rates: Vec<f64> = rates.collect();
            let sum: f64 = rates.iter().sum();
            all.extend(rates.iter().map(|rate| if sum > 0.0 { (rate / sum).ln() } else { -(k as f64).ln() }));
        }
        all
    }
}

impl Steps {
    /// The rising function of least squares, by pooling neighbours that fall (Ayer et al. 1955);
    /// linear between the probabilities that were seen, as scikit-learn has it.
    pub(super) fn isotonic(pairs: &[(f64, f64)]) -> Self {
        // Probability, then number and sum of hits: equal probabilities count as one.
        let mut seen: Vec<(f64, [f64; 2])> = Vec::new();
        for &(q, hit) in pairs {
            match seen.last_mut().filter(|(at, _)| *at == q) {
                Some((_, [count, sum])) => (*count, *sum) = (*count + 1.0, *sum + hit),
                None => seen.push((q, [1.0, hit])),
            }
        }
        // Number and sum of hits, and how many probabilities: every block above the one before.
        let mut blocks: Vec<([f64; 2], usize)> = Vec::new();
        for (_, one) in &seen {
            let mut block = (*one, 1);
            while let Some(&([count, sum], points)) = blocks.last()
                && sum * block.0[0] >= block.0[1] * count
            {
                block = ([block.0[0] + count, block.0[1] + sum], block.1 + points);
                blocks.pop();
            }
            blocks.push(block);
        }
        let rate = blocks.iter().flat_map(|([count, sum], points)| std::iter::repeat_n(sum / count, *points));
        Self { rate: rate.collect(), at: seen.into_iter().map(|(q, _)| q).collect() }
    }

    /// The share of hits in each of up to `bins` bins of as many images; equal probabilities stay
    /// together, and a bin ends half way to the next probability.
    pub(super) fn histogram(pairs: &[(f64, f64)], bins: usize) -> Self {
        let (n, mut steps) = (pairs.len(), Self { at: Vec::new(), rate: Vec::new() });
        let mut first = 0;
        for bin in 1..=bins {
            let mut end = (bin * n).div_ceil(bins).max(first);
            while end > first && end < n && pairs[end].0 == pairs[end - 1].0 {
                end += 1;
            }
            if end == first {
                continue;
            }
            let rate = pairs[first..end].iter().map(|pair| pair.1).sum::<f64>() / (end - first) as f64;
            let edge = |at: usize| (pairs[at - 1].0 + pairs[at].0) / 2.0;
            let low = if first == 0 { pairs[0].0 } else { edge(first).next_up() };
            let high = if end == n { pairs[n - 1].0 } else { edge(end) };
            steps.at.extend([low, high]);
            steps.rate.extend([rate; 2]);
            first = end;
        }
        steps
    }

    /// The share of hits at a probability.
    pub(super) fn value(&self, q: f64) -> f64 {
        let above = self.at.partition_point(|&at| at < q);
        match (above.checked_sub(1), self.at.get(above)) {
            (None, _) => self.rate[0],
            (Some(below), None) => self.rate[below],
            (Some(below), Some(&high)) => {
                let low = self.at[below];
                let part = (q - low) / (high - low);
                self.rate[below] + part * (self.rate[above] - self.rate[below])
            }
        }
    }
}
