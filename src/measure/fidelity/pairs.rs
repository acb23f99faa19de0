//! All pairs of two sets of features: inner products by blocks, exactly decided distances.
//!
//! ‖a‖² + ‖b‖² − 2a·b comes from a matrix product in f64 on features centred at the second set's
//! mean, 256 × 512 pairs at a time: memory is a few blocks, whatever n is. It is off by less than
//! `slack` = 4 (d + 8) ε (‖a‖² + ‖b‖²), about 1e-12 of the squared norms at d = 2,048. It only
//! sorts pairs out: what lies within `slack` of a bound, and every distance that is reported, is Σ
//! (a − b)² itself in f64. So duplicates are at exactly 0, equal distances are equal, and a copy of
//! an image lies on the same side of a bound as the image.

use nalgebra::{DMatrix, DMatrixView};

use super::features::{Features, Real};
use crate::parallel;

/// Rows of a block: converting a block's columns to f64 costs 1/256 of their product.
const ROWS: usize = 256;

/// Columns of a block.
const COLUMNS: usize = 512;

/// One pair of images.
pub(super) struct Pair<'a, A, B> {
    /// The image of the first set.
    pub i: usize,
    /// The image of the second.
    pub j: usize,
    near: f64,
    slack: f64,
    a: &'a [A],
    b: &'a [B],
}

impl<A: Real, B: Real> Pair<'_, A, B> {
    /// d² = Σ (a − b)².
    pub fn squared(&self) -> f64 {
        squared(self.a, self.b)
    }

    /// Returns whether d² ≤ `bound`.
    pub fn within(&self, bound: f64) -> bool {
        if (self.near - bound).abs() > self.slack { self.near < bound } else { self.squared() <= bound }
    }

    /// Returns whether d² < `bound` is possible.
    pub fn may_be_below(&self, bound: f64) -> bool {
        self.near - self.slack < bound
    }

    /// d, to a relative 1e-9 at least.
    pub fn distance(&self) -> f64 {
        if self.slack > 1e-9 * self.near { self.squared().sqrt() } else { self.near.sqrt() }
    }
}

/// Σ (a − b)²: the same for (a, b) and (b, a).
pub(super) fn squared<A: Real, B: Real>(a: &[A], b: &[B]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (&a, &b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            let difference = a.into() - b.into();
            *sum += difference * difference;
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(&a, &b)| (a.into() - b.into()).powi(2));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

/// Shows every row of `a` all pairs with `b`, in the order of `b`. `start` makes what is known of a
/// row, `visit` adds a pair to it. Rows come back in order; the number of threads changes no bit.
pub(super) fn scan<A: Real, B: Real, S: Send>(
    a: &Features<'_, A>,
    b: &Features<'_, B>,
    start: impl Fn(usize) -> S + Sync,
    visit: impl Fn(&mut S, &Pair<'_, A, B>) + Sync,
) -> Vec<S> {
    let centre = b.mean();
    let norms = |rows: &[f64]| rows.chunks_exact(centre.len()).map(|row| row.iter().map(|x| x * x).sum()).collect();
    let unit = 4.0 * (a.dim() + 8) as f64 * f64::EPSILON;
    panels(a, b, &centre, |first, rows, columns| {
        let row_norms: Vec<f64> = norms(rows);
        let mut states: Vec<S> = (first..first + row_norms.len()).map(&start).collect();
        columns(&mut |from, block, products| {
            let column_norms: Vec<f64> = norms(block);
            for (r, (state, products)) in states.iter_mut().zip(products.column_iter()).enumerate() {
                for (c, (&product, norm)) in products.iter().zip(&column_norms).enumerate() {
                    let (i, j, scale) = (first + r, from + c, row_norms[r] + norm);
                    let near = scale - 2.0 * product;
                    visit(state, &Pair { i, j, near, slack: unit * scale, a: a.row(i), b: b.row(j) });
                }
            }
        });
        states
    })
}

/// Σ over pairs of f(a·b / d), and Σ of f(a_i·b_i / d) over those with i = j.
pub(super) fn sums_of_products<A: Real, B: Real>(
    a: &Features<'_, A>,
    b: &Features<'_, B>,
    f: impl Fn(f64) -> f64 + Sync,
) -> (f64, f64) {
    let scale = (a.dim() as f64).recip();
    let per_panel = panels(a, b, &vec![0.0; a.dim()], |first, _, columns| {
        let mut sums = (0.0, 0.0);
        columns(&mut |from, _, products| {
            for (r, products) in products.column_iter().enumerate() {
                sums.0 += products.iter().map(|p| f(p * scale)).sum::<f64>();
                let own = (first + r).checked_sub(from).and_then(|c| products.get(c));
                sums.1 += own.map_or(0.0, |p| f(p * scale));
            }
        });
        vec![sums]
    });
    per_panel.iter().fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1))
}

/// What a panel gets of a block: first column, columns in f64 [c, d], products [c, rows].
type Block<'a> = dyn FnMut(usize, &[f64], &DMatrix<f64>) + 'a;

/// Panels of rows of `a` side by side; each gets its first row, its rows less `centre` [r, d] and a
/// function that runs through the blocks of `b`.
fn panels<A: Real, B: Real, S: Send>(
    a: &Features<'_, A>,
    b: &Features<'_, B>,
    centre: &[f64],
    panel: impl Fn(usize, &[f64], &dyn Fn(&mut Block<'_>)) -> Vec<S> + Sync,
) -> Vec<S> {
    let dim = centre.len();
    let one = |at: usize| {
        let first = at * ROWS;
        let rows = centred(a.rows(first, ROWS), centre);
        let columns = |seen: &mut Block<'_>| {
            let by_row = DMatrixView::from_slice(&rows, dim, rows.len() / dim);
            for from in (0..b.n()).step_by(COLUMNS) {
                let block = centred(b.rows(from, COLUMNS), centre);
                // Column order: nalgebra 0.35 multiplies small views with a row stride out of
                // bounds.
                let by_column = DMatrix::from_row_slice(block.len() / dim, dim, &block);
                let mut products = DMatrix::zeros(by_column.nrows(), by_row.ncols());
                products.gemm(1.0, &by_column, &by_row, 0.0);
                seen(from, &block, &products);
            }
        };
        panel(first, &rows, &columns)
    };
    parallel::flat_map(a.n().div_ceil(ROWS), one)
}

/// Rows in f64, less the centre.
pub(super) fn centred<T: Real>(rows: &[T], centre: &[f64]) -> Vec<f64> {
    rows.chunks_exact(centre.len()).flat_map(|row| row.iter().zip(centre).map(|(&x, c)| x.into() - c)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::normal;
    use super::*;
    use crate::units::Seed;

    #[test]
    fn every_pair_is_seen_once_in_order_and_at_its_distance() {
        for (n, m, dim) in [(1, 1, 1), (300, 7, 5), (5, 1100, 17), (2, 3, 2048)] {
            let (a, b) = (normal(Seed(1), n * dim), normal(Seed(2), m * dim));
            let narrow: Vec<f32> = a.iter().map(|&x| 100.0 + x as f32).collect();
            let shifted: Vec<f64> = b.iter().map(|x| x + 100.0).collect();
            let (a, b) = (Features::new(&narrow, dim).unwrap(), Features::new(&shifted, dim).unwrap());
            let rows = scan(
                &a,
                &b,
                |i| vec![i as f64],
                |row: &mut Vec<f64>, pair| {
                    let exact: f64 =
                        a.row(pair.i).iter().zip(b.row(pair.j)).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
                    assert!((pair.squared() - exact).abs() <= 1e-13 * exact, "{} {exact}", pair.squared());
                    assert!((pair.near - exact).abs() <= 0.1 * pair.slack, "{} {exact} {}", pair.near, pair.slack);
                    assert!(pair.slack <= 1e-10 * exact.max(1.0));
                    assert!((pair.distance() - exact.sqrt()).abs() <= 1e-9 * exact.sqrt());
                    assert!(pair.within(pair.squared()) && !pair.within(pair.squared().next_down()));
                    assert!(pair.may_be_below(pair.squared()) && !pair.may_be_below(pair.squared() * 0.99 - 1e-6));
                    row.push(pair.j as f64);
                },
            );
            assert_eq!(rows.len(), n);
            for (i, row) in rows.iter().enumerate() {
                let expected: Vec<f64> = std::iter::once(i).chain(0..m).map(|x| x as f64).collect();
                assert_eq!(*row, expected);
            }
        }
    }

    #[test]
    fn products_are_summed_with_and_without_their_diagonal() {
        let (n, dim) = (700, 3);
        let values = normal(Seed(3), n * dim);
        let set = Features::new(&values, dim).unwrap();
        let (all, own) = sums_of_products(&set, &set, |x| x * x);
        let product = |i: usize, j: usize| set.row(i).iter().zip(set.row(j)).map(|(a, b)| a * b).sum::<f64>() / 3.0;
        let expected: f64 = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| product(i, j).powi(2)).sum();
        let diagonal: f64 = (0..n).map(|i| product(i, i).powi(2)).sum();
        assert!((all / expected - 1.0).abs() < 1e-12 && (own / diagonal - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let values = normal(Seed(4), 900 * 9);
        let set = Features::new(&values, 9).unwrap();
        let sums = || scan(&set, &set, |_| 0.0, |sum, pair| *sum += pair.distance());
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(one.install(sums), sums());
    }
}
