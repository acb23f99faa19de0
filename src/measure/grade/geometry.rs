//! Shared by the estimators: distances, nearest neighbours, minimum spanning tree.

use super::distances::Distances;
use super::sample::Sample;
use crate::error::Result;
use crate::parallel;

/// Nearest neighbours kept of each sample, or all others where there are fewer.
pub const KEPT: usize = 64;

/// An edge of the spanning tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// One end.
    pub a: usize,
    /// The other.
    pub b: usize,
    /// Squared Euclidean length.
    pub squared: f32,
}

/// A sample with its geometry, in 4 N² bytes and a little more.
#[derive(Debug)]
pub struct Geometry<'a> {
    /// The sample itself.
    pub(super) sample: Sample<'a>,
    distances: Distances,
    /// [N, kept], nearest first.
    neighbours: Vec<u32>,
    /// Neighbours known of each sample: [`KEPT`], or N − 1 where that is less.
    pub(super) kept: usize,
    /// The N − 1 edges of the minimum spanning tree. Where distances tie there are several such
    /// trees, of which the order of the samples picks one.
    pub(super) tree: Vec<Edge>,
}

impl<'a> Geometry<'a> {
    /// O(N² D) for the distances, O(N²) for the rest. The same on any number of threads.
    ///
    /// # Errors
    /// When distances overflow 32 bits.
    pub fn new(sample: Sample<'a>) -> Result<Self> {
        let distances = Distances::new(&sample)?;
        let kept = KEPT.min(sample.n() - 1);
        let neighbours = nearest(&distances, sample.n(), kept);
        let tree = spanning_tree(&distances, sample.n());
        Ok(Self { sample, distances, neighbours, kept, tree })
    }

    /// Sample `i`'s neighbours without itself, nearest first, of equals the earlier first.
    pub fn neighbours(&self, i: usize) -> &[u32] {
        &self.neighbours[i * self.kept..][..self.kept]
    }

    /// Squared distances of sample `i` to all N.
    pub(super) fn squared(&self, i: usize) -> &[f32] {
        self.distances.row(i)
    }
}

/// The `kept` nearest of each sample.
fn nearest(distances: &Distances, n: usize, kept: usize) -> Vec<u32> {
    let one = |i: usize| {
        let mut list: Vec<(f32, u32)> = Vec::with_capacity(kept);
        for (j, &d) in distances.row(i).iter().enumerate() {
            // Almost all are farther than the last of the list: one comparison each.
            if j == i || (list.len() == kept && list.last().is_some_and(|last| d >= last.0)) {
                continue;
            }
            list.truncate(kept - 1);
            let at = list.partition_point(|near| near.0 <= d);
            list.insert(at, (d, j as u32));
        }
        list.into_iter().map(|near| near.1).collect()
    };
    parallel::flat_map(n, one)
}

/// Prim's algorithm on the whole table (Prim 1957), O(N²).
fn spanning_tree(distances: &Distances, n: usize) -> Vec<Edge> {
    // Samples outside the tree with their shortest edge into it.
    let mut outside: Vec<Edge> =
        distances.row(0).iter().enumerate().skip(1).map(|(b, &squared)| Edge { a: 0, b, squared }).collect();
    let mut tree = Vec::with_capacity(n - 1);
    while let Some(at) = shortest(&outside) {
        let edge = outside.swap_remove(at);
        let row = distances.row(edge.b);
        for other in &mut outside {
            if row[other.b] < other.squared {
                *other = Edge { a: edge.b, b: other.b, squared: row[other.b] };
            }
        }
        tree.push(edge);
    }
    tree
}

/// The shortest edge; the first of equals.
fn shortest(edges: &[Edge]) -> Option<usize> {
    edges.iter().enumerate().min_by(|x, y| x.1.squared.total_cmp(&y.1.squared)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    /// Lengths of Kruskal's tree over all pairs, sorted.
    fn kruskal(geometry: &Geometry<'_>) -> Vec<f32> {
        let n = geometry.sample.n();
        let mut edges: Vec<(f32, usize, usize)> = Vec::new();
        for i in 0..n {
            edges.extend((0..i).map(|j| (geometry.squared(i)[j], i, j)));
        }
        edges.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut part: Vec<usize> = (0..n).collect();
        let mut lengths = Vec::new();
        for (d, i, j) in edges {
            let (from, to) = (part[i], part[j]);
            if from != to {
                part.iter_mut().filter(|p| **p == from).for_each(|p| *p = to);
                lengths.push(d);
            }
        }
        lengths
    }

    fn is_spanning(n: usize, tree: &[Edge]) -> bool {
        let mut part: Vec<usize> = (0..n).collect();
        for edge in tree {
            let (from, to) = (part[edge.a], part[edge.b]);
            part.iter_mut().filter(|p| **p == from).for_each(|p| *p = to);
        }
        tree.len() == n - 1 && part.iter().all(|&p| p == part[0])
    }

    #[test]
    fn the_tree_is_kruskals_also_with_ties_and_duplicates() {
        let random = normal(Seed(4), 90 * 3);
        // A lattice has nothing but ties; rounding to it makes duplicates.
        let lattice: Vec<f32> = random.iter().map(|x| x.round()).collect();
        for features in [random, lattice, vec![0.5; 270]] {
            let labels = [0, 1].repeat(45);
            let geometry = Geometry::new(Sample::new(&features, 3, &labels, 2).unwrap()).unwrap();
            let mut lengths: Vec<f32> = geometry.tree.iter().map(|e| e.squared).collect();
            lengths.sort_by(f32::total_cmp);
            assert_eq!(lengths, kruskal(&geometry));
            assert!(is_spanning(90, &geometry.tree));
            assert!(geometry.tree.iter().all(|e| geometry.squared(e.a)[e.b] == e.squared));
        }
    }

    #[test]
    fn neighbours_are_those_of_a_full_sort() {
        let features: Vec<f32> = normal(Seed(5), 200 * 2).iter().map(|x| (x * 4.0).round()).collect();
        let labels = [0, 1].repeat(100);
        let geometry = Geometry::new(Sample::new(&features, 2, &labels, 2).unwrap()).unwrap();
        assert_eq!(geometry.kept, KEPT);
        for i in 0..200 {
            let mut order: Vec<u32> = (0..200).filter(|&j| j as usize != i).collect();
            order.sort_by(|&a, &b| geometry.squared(i)[a as usize].total_cmp(&geometry.squared(i)[b as usize]));
            assert_eq!(geometry.neighbours(i), &order[..KEPT]);
        }
        let few = Geometry::new(Sample::new(&features[..10], 2, &labels[..5], 2).unwrap()).unwrap();
        assert_eq!((few.kept, few.neighbours(4).len()), (4, 4));
    }
}
