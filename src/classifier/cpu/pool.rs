//! Pooling of neighbouring positions, and means of all.

use rayon::prelude::*;

use super::map::readers;
use super::{Geometry, Maps, Tape};
use crate::kernels::{Real, kernel};

kernel! {
    /// Larger values and where they come from take the place of smaller ones; of equals the first
    /// stays, and NaN is larger than any, as in PyTorch.
    larger<T, S>(x: &'a [T], place: u8, most: &'a mut [T], from: &'a mut [u8]) {
        for ((most, from), x) in most.iter_mut().zip(from).zip(x) {
            let more = *x > *most || (*x).is_nan();
            *most = if more { *x } else { *most };
            *from = if more { place } else { *from };
        }
    }
}

kernel! {
    /// Adds the gradient of those values that come from a place.
    chosen<T, S>(slope: &'a [T], from: &'a [u8], place: u8, into: &'a mut [T]) {
        for ((into, from), slope) in into.iter_mut().zip(from).zip(slope) {
            *into += if *from == place { *slope } else { T::ZERO };
        }
    }
}

kernel! {
    scaled<T, S>(x: &'a [T], factor: T, out: &'a mut [T]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out += *x * factor;
        }
    }
}

impl<T: Real> Tape<T> {
    /// Maxima of windows of at most 16 by 16 pixels.
    pub fn max_pool(&mut self, x: Maps, geometry: Geometry) -> Maps {
        let side = geometry.out(x.side);
        let sources = geometry.sources(x.side);
        let readers = readers(&sources, x.side);
        let (block, value) = (x.images * x.channels, self.value(x));
        let like = Maps { side, ..x };
        let mut out = self.take(like.len());
        let mut from = vec![0u8; like.len()];
        let positions = out.par_chunks_mut(block.max(1)).zip(from.par_chunks_mut(block.max(1))).zip(&sources);
        positions.for_each(|((out, from), sources)| {
            out.fill(T::LEAST);
            for &(place, source) in sources {
                larger(&value[source * block..][..block], place as u8, out, from);
            }
        });
        drop(value);
        let out = self.push(out, like);
        self.record(out, move |tape, slope| {
            let mut into = tape.zeros(x.len());
            into.par_chunks_mut(block.max(1)).zip(&readers).for_each(|(into, readers)| {
                for &(place, position) in readers {
                    let (slope, from) = (&slope[position * block..][..block], &from[position * block..][..block]);
                    chosen(slope, from, place as u8, into);
                }
            });
            tape.give(slope);
            tape.add_slope(x, into);
        });
        out
    }

    /// Means over all positions: maps of one pixel.
    pub fn means(&mut self, x: Maps) -> Maps {
        let (block, positions) = (x.images * x.channels, x.side[0] * x.side[1]);
        let factor = T::of((positions as f64).recip());
        let mut out = self.zeros(block);
        self.value(x).chunks_exact(block.max(1)).for_each(|x| scaled(x, factor, &mut out));
        let out = self.push(out, Maps { side: [1; 2], ..x });
        self.record(out, move |tape, slope| {
            let mut into = tape.zeros(x.len());
            into.chunks_exact_mut(block.max(1)).for_each(|into| scaled(&slope, factor, into));
            tape.give(slope);
            tape.add_slope(x, into);
        });
        out
    }
}
