//! The nearest neighbours of images in another set or their own, by Euclidean feature distance.

use super::features::{Features, Real};
use super::pairs::{Pair, scan};
use crate::error::{Error, Result};

/// The k nearest of every image, nearest first; of equally near ones the earlier first. Distances
/// are exact to f64 rounding, and 0 for duplicates.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbours {
    k: usize,
    /// [n, k]: squared distance and index.
    found: Vec<(f64, usize)>,
}

impl Neighbours {
    /// Of every image of `queries` [n, d] in `references` [m, d].
    ///
    /// # Errors
    /// When the numbers of features differ, or k is not from 1 to m.
    pub fn of<A: Real, B: Real>(queries: &Features<'_, A>, references: &Features<'_, B>, k: usize) -> Result<Self> {
        queries.same_dim(references)?;
        check(k, references.n())?;
        Ok(Self::collect(queries, references, k, |_| true))
    }

    /// Of every image among the others of the same set.
    ///
    /// # Errors
    /// When k is not from 1 to n − 1.
    pub fn within<T: Real>(set: &Features<'_, T>, k: usize) -> Result<Self> {
        check(k, set.n() - 1)?;
        Ok(Self::collect(set, set, k, |pair| pair.i != pair.j))
    }

    fn collect<A: Real, B: Real>(
        a: &Features<'_, A>,
        b: &Features<'_, B>,
        k: usize,
        counts: impl Fn(&Pair<'_, A, B>) -> bool + Sync,
    ) -> Self {
        let visit = |list: &mut Vec<(f64, usize)>, pair: &Pair<'_, A, B>| {
            // Almost all are farther than the last of the list: one comparison each.
            let full = list.len() == k;
            if full && !list.last().is_some_and(|last| pair.may_be_below(last.0)) || !counts(pair) {
                return;
            }
            let squared = pair.squared();
            let at = list.partition_point(|near| near.0 <= squared);
            if at < k {
                list.truncate(k - 1);
                list.insert(at, (squared, pair.j));
            }
        };
        Self { k, found: scan(a, b, |_| Vec::with_capacity(k), visit).concat() }
    }

    /// Neighbours k of each image.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Images n.
    pub fn n(&self) -> usize {
        self.found.len() / self.k
    }

    /// Distances and indices of image `i`'s neighbours [k], nearest first.
    pub fn list(&self, i: usize) -> impl ExactSizeIterator<Item = (f64, usize)> + '_ {
        self.found[i * self.k..][..self.k].iter().map(|&(squared, j)| (squared.sqrt(), j))
    }

    /// Distance of every image to its nearest neighbour [n].
    pub fn nearest(&self) -> Vec<f64> {
        self.found.chunks_exact(self.k).map(|list| list[0].0.sqrt()).collect()
    }

    /// Distance of every image to its k-th neighbour [n].
    pub fn farthest(&self) -> Vec<f64> {
        self.squared_radii().map(f64::sqrt).collect()
    }

    /// Squared distance of every image to its k-th neighbour.
    pub(super) fn squared_radii(&self) -> impl Iterator<Item = f64> + '_ {
        self.found.chunks_exact(self.k).map(|list| list[self.k - 1].0)
    }
}

fn check(k: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&k) {
        return Ok(());
    }
    Err(Error::input(format!("{k} nearest neighbours cannot be had: there are {most} images to choose from")))
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn neighbours_are_those_of_a_full_sort_also_with_ties() {
        // Rounded to a lattice: little but ties and duplicates.
        for round in [1000.0, 1.0] {
            let lattice = |seed, n: usize| -> Vec<f32> {
                normal(Seed(seed), n * 3).iter().map(|x| ((x * round).round() / round) as f32).collect()
            };
            let (a, b) = (lattice(1, 310), lattice(2, 620));
            let (a, b) = (Features::new(&a, 3).unwrap(), Features::new(&b, 3).unwrap());
            let (across, own) = (Neighbours::of(&a, &b, 7).unwrap(), Neighbours::within(&a, 4).unwrap());
            let distance = |x: &[f32], y: &[f32]| {
                x.iter().zip(y).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>().sqrt()
            };
            for i in 0..a.n() {
                let sorted = |others: &Features<'_, f32>, skip: Option<usize>| {
                    let mut all: Vec<(f64, usize)> = (0..others.n())
                        .filter(|&j| Some(j) != skip)
                        .map(|j| (distance(a.row(i), others.row(j)), j))
                        .collect();
                    all.sort_by(|x, y| x.0.total_cmp(&y.0));
                    all
                };
                assert_eq!(across.list(i).collect::<Vec<_>>(), sorted(&b, None)[..7]);
                assert_eq!(own.list(i).collect::<Vec<_>>(), sorted(&a, Some(i))[..4]);
            }
            assert_eq!((across.n(), across.k(), own.n()), (310, 7, 310));
        }
    }

    #[test]
    fn a_copy_is_at_zero_and_comes_first() {
        // Far from the origin, where ‖a‖² + ‖b‖² − 2a·b loses what is small.
        let train: Vec<f32> = normal(Seed(5), 50 * 64).iter().map(|x| 1e3 + *x as f32).collect();
        let mut queries: Vec<f32> = normal(Seed(6), 3 * 64).iter().map(|x| 1e3 + *x as f32).collect();
        queries[64..128].copy_from_slice(&train[20 * 64..21 * 64]);
        let found =
            Neighbours::of(&Features::new(&queries, 64).unwrap(), &Features::new(&train, 64).unwrap(), 1).unwrap();
        assert_eq!(found.list(1).collect::<Vec<_>>(), [(0.0, 20)]);
        assert!(found.n() == 3 && found.nearest()[0] > 0.0 && found.nearest()[2] > 0.0);
        assert_eq!(found.nearest(), found.farthest());
    }

    #[test]
    fn more_neighbours_than_images_are_refused() {
        let set = Features::new(&[1.0, 2.0, 3.0], 1).unwrap();
        assert!(Neighbours::within(&set, 3).is_err() && Neighbours::of(&set, &set, 0).is_err());
        let error = Neighbours::of(&set, &set, 4).unwrap_err().to_string();
        assert!(error.contains("there are 3 images"), "{error}");
    }
}
