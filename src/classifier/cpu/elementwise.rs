//! What happens to every number alone.

use rayon::prelude::*;

use super::{Maps, Tape};
use crate::kernels::{Real, kernel};

/// Numbers that one thread moves at a time.
pub const PIECE: usize = 1 << 14;

kernel! {
    add_piece<T, S>(sum: &'a mut [T], more: &'a [T]) {
        for (sum, more) in sum.iter_mut().zip(more) {
            *sum += *more;
        }
    }
}

kernel! {
    /// out = a + b.
    pub sum_of<T, S>(a: &'a [T], b: &'a [T], out: &'a mut [T]) {
        for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *out = *a + *b;
        }
    }
}

kernel! {
    /// max(x, 0); NaN stays NaN.
    rectified<T, S>(x: &'a [T], out: &'a mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = if *x <= T::ZERO { T::ZERO } else { *x };
        }
    }
}

kernel! {
    /// Where a ReLU gave 0, no gradient passes.
    pub masked<T, S>(out: &'a [T], slope: &'a mut [T]) {
        for (slope, out) in slope.iter_mut().zip(out) {
            *slope = if *out <= T::ZERO { T::ZERO } else { *slope };
        }
    }
}

kernel! {
    times<T, S>(x: &'a mut [T], factors: &'a [T]) {
        for (x, factor) in x.iter_mut().zip(factors) {
            *x = *x * *factor;
        }
    }
}

/// `sum` += `more`.
pub fn add<T: Real>(sum: &mut [T], more: &[T]) {
    sum.par_chunks_mut(PIECE).zip(more.par_chunks(PIECE)).for_each(|(sum, more)| add_piece(sum, more));
}

impl<T: Real> Tape<T> {
    /// max(x, 0). NaN stays NaN, as in burn and PyTorch: a network that diverges shows it.
    pub fn relu(&mut self, x: Maps) -> Maps {
        let mut out = self.take(x.len());
        let value = self.value(x);
        out.par_chunks_mut(PIECE).zip(value.par_chunks(PIECE)).for_each(|(out, x)| rectified(x, out));
        let out = self.push(out, x);
        self.record(out, move |tape, mut slope| {
            let value = tape.value(out);
            slope.par_chunks_mut(PIECE).zip(value.par_chunks(PIECE)).for_each(|(slope, out)| masked(out, slope));
            tape.add_slope(x, slope);
        });
        out
    }

    /// Every number times its own factor.
    pub fn multiply(&mut self, x: Maps, factors: &[f32]) -> Maps {
        let factors: Vec<T> = factors.iter().map(|factor| T::of(f64::from(*factor))).collect();
        let mut out = self.take(x.len());
        out.copy_from_slice(&self.value(x));
        times(&mut out, &factors);
        let out = self.push(out, x);
        self.record(out, move |tape, mut slope| {
            times(&mut slope, &factors);
            tape.add_slope(x, slope);
        });
        out
    }

    /// All values of an image in one row, channel by channel: maps of one position.
    pub fn flatten(&mut self, x: Maps) -> Maps {
        let (positions, n, c) = (x.side[0] * x.side[1], x.images, x.channels);
        let mut out = self.take(x.len());
        let value = self.value(x);
        let rows = out.par_chunks_mut((positions * c).max(1)).enumerate();
        rows.for_each(|(image, row)| {
            for position in 0..positions {
                let from = &value[(position * n + image) * c..][..c];
                row[position..].iter_mut().step_by(positions).zip(from).for_each(|(to, from)| *to = *from);
            }
        });
        let out = self.push(out, Maps { side: [1; 2], channels: positions * c, ..x });
        self.record(out, move |tape, slope| {
            if !x.slopes {
                return tape.give(slope);
            }
            let mut into = tape.take(x.len());
            into.par_chunks_mut((n * c).max(1)).enumerate().for_each(|(position, into)| {
                for (into, row) in into.chunks_exact_mut(c).zip(slope.chunks_exact(positions * c)) {
                    into.iter_mut().zip(row[position..].iter().step_by(positions)).for_each(|(to, from)| *to = *from);
                }
            });
            tape.give(slope);
            tape.add_slope(x, into);
        });
        out
    }

    /// a + b.
    pub fn add(&mut self, a: Maps, b: Maps) -> Maps {
        let mut out = self.take(a.len());
        let (left, right) = (self.value(a), self.value(b));
        let pieces = out.par_chunks_mut(PIECE).zip(left.par_chunks(PIECE).zip(right.par_chunks(PIECE)));
        pieces.for_each(|(out, (a, b))| sum_of(a, b, out));
        let out = self.push(out, Maps { slopes: a.slopes || b.slopes, ..a });
        self.record(out, move |tape, slope| {
            let mut copy = tape.take(slope.len());
            copy.copy_from_slice(&slope);
            tape.add_slope(a, copy);
            tape.add_slope(b, slope);
        });
        out
    }
}
