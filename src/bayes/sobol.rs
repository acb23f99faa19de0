//! Randomised Sobol' points: Joe and Kuo's direction numbers in 52 bits, a random linear (Matoušek)
//! scramble per replicate and dimension, and an independent digital shift per replicate and stream.
//! A stream's first 2^m points are a scrambled net for every m, so estimates can be refined.

use std::sync::OnceLock;

use rand::Rng;
use sobol::params::JoeKuoD6;
use sobol::{Sobol, SobolParams};

use super::simd::{BLOCK, Block};
use crate::units::Seed;

/// Bits of a point: what a double in [1, 2) holds.
const BITS: usize = 52;
/// Direction numbers kept: 2^30 points a stream.
const COLUMNS: usize = 30;
/// log₂ of [`BLOCK`].
const LOW: usize = BLOCK.ilog2() as usize;

/// Points of a stream that differ.
pub const MOST_POINTS: u64 = 1 << COLUMNS;

/// Dimensions with direction numbers; beyond, points are pseudo-random.
pub const MAX_DIMS: usize = 1000;

/// Joe and Kuo's direction numbers, [dims][column], most significant bit first.
fn directions() -> &'static [Vec<u64>] {
    static TABLE: OnceLock<Vec<Vec<u64>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let parameters = JoeKuoD6::standard();
        let dims = parameters.max_dims().min(MAX_DIMS);
        Sobol::<u64>::init_direction_vals::<u32>(dims, COLUMNS, &parameters)
    })
}

/// The generator of one replicate.
pub struct Scramble {
    seed: Seed,
    replicate: u64,
    /// Scrambled direction numbers of the block number's bits, [dims][COLUMNS − LOW].
    high: Vec<[u64; COLUMNS - LOW]>,
    /// Points of the first block, [dims][BLOCK].
    low: Vec<[u64; BLOCK]>,
}

impl Scramble {
    /// Replicate `replicate` under `seed`, with points of up to `dims` dimensions.
    pub fn new(seed: Seed, replicate: u64, dims: usize) -> Self {
        let table = directions();
        let dims = dims.min(table.len());
        let (mut high, mut low) = (Vec::with_capacity(dims), Vec::with_capacity(dims));
        for (dim, columns) in table.iter().enumerate().take(dims) {
            let mut rng = seed.rng(replicate << 16 | dim as u64);
            // Row i of the scramble: bit i itself and random bits above it.
            let rows: [u64; BITS] = std::array::from_fn(|i| {
                let above = !(u64::MAX >> i);
                (rng.next_u64() & above) | (1 << (63 - i))
            });
            let scrambled: Vec<u64> = columns.iter().map(|&column| scramble(&rows, column)).collect();
            low.push(std::array::from_fn(|point| {
                (0..LOW).filter(|bit| point >> bit & 1 == 1).fold(0, |x, bit| x ^ scrambled[bit])
            }));
            high.push(std::array::from_fn(|i| scrambled[LOW + i]));
        }
        Self { seed, replicate, high, low }
    }

    /// Coordinate `dim` of the points `64·block …` of a stream, each inside (0, 1).
    #[inline(always)]
    pub fn block(&self, stream: u64, block: u64, dim: usize, points: &mut Block) {
        self.part(stream, block * BLOCK as u64, dim, points);
    }

    /// Coordinate `dim` of the points `first …` of a stream, which lie in one block of 64.
    #[inline(always)]
    pub fn part(&self, stream: u64, first: u64, dim: usize, points: &mut [f64]) {
        let (block, inside) = (first / BLOCK as u64, first as usize % BLOCK);
        let Some(low) = self.low.get(dim) else {
            return self.pseudo_random(stream, first, dim, points);
        };
        let base = self.base(stream, block, dim);
        for (x, low) in points.iter_mut().zip(&low[inside..]) {
            *x = unit(base ^ low);
        }
    }

    /// The bits that all points of a block have in common.
    fn base(&self, stream: u64, block: u64, dim: usize) -> u64 {
        // All ones where the bit is set.
        let columns =
            self.high[dim].iter().enumerate().map(|(bit, column)| column & 0u64.wrapping_sub(block >> bit & 1));
        columns.fold(self.shift(stream, dim), |base, column| base ^ column)
    }

    fn shift(&self, stream: u64, dim: usize) -> u64 {
        mix(self.seed.0 ^ mix(self.replicate << 40 ^ stream << 12 ^ dim as u64)) >> 12
    }

    /// The same where direction numbers end.
    #[cold]
    fn pseudo_random(&self, stream: u64, first: u64, dim: usize, points: &mut [f64]) {
        let (block, inside) = (first / BLOCK as u64, first % BLOCK as u64);
        let from = self.shift(stream, dim) ^ mix(block ^ 0x5151);
        for (i, x) in points.iter_mut().enumerate() {
            *x = unit(mix(from.wrapping_add(inside + i as u64)) >> 12);
        }
    }
}

/// (bits + ½)/2⁵², without a conversion, which vectors of 64-bit integers lack before AVX-512.
#[inline(always)]
fn unit(bits: u64) -> f64 {
    f64::from_bits(bits | 0x3FF0_0000_0000_0000) - (1.0 - f64::EPSILON / 2.0)
}

/// Parity of each row's bits that the column has, as the low 52 bits.
fn scramble(rows: &[u64; BITS], column: u64) -> u64 {
    rows.iter().fold(0, |out, row| out << 1 | u64::from((row & column).count_ones() & 1))
}

/// SplitMix64's finaliser: every bit of the result depends on every bit of x.
#[inline(always)]
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(scramble: &Scramble, stream: u64, blocks: u64, dim: usize) -> Vec<f64> {
        let mut points = [0.0; BLOCK];
        (0..blocks)
            .flat_map(|block| {
                scramble.block(stream, block, dim, &mut points);
                points
            })
            .collect()
    }

    #[test]
    fn every_power_of_two_of_points_fills_every_interval_once() {
        let scramble = Scramble::new(Seed(3), 5, 40);
        for dim in [0, 1, 7, 39] {
            let points = stream(&scramble, 9, 16, dim);
            for n in [64, 256, 1024] {
                let mut filled = vec![0; n];
                points[..n].iter().for_each(|u| filled[(u * n as f64) as usize] += 1);
                assert!(filled.iter().all(|&count| count == 1), "dimension {dim}, {n} points");
            }
        }
    }

    #[test]
    fn pairs_of_the_first_dimensions_are_nets() {
        // Dimensions 1 and 2 form a (0, m, 2)-net: every elementary box of 1/1024 has one point.
        let scramble = Scramble::new(Seed(1), 0, 2);
        let (x, y) = (stream(&scramble, 0, 16, 0), stream(&scramble, 0, 16, 1));
        for wide in 0..=10 {
            let (columns, rows) = (1 << wide, 1 << (10 - wide));
            let mut filled = vec![0; 1024];
            for (x, y) in x.iter().zip(&y) {
                filled[(x * f64::from(columns)) as usize * rows as usize + (y * f64::from(rows)) as usize] += 1;
            }
            assert!(filled.iter().all(|&count| count == 1), "{columns} × {rows}");
        }
    }

    #[test]
    fn replicates_and_streams_differ_and_repeat() {
        let one = Scramble::new(Seed(1), 0, 3);
        assert_eq!(stream(&one, 4, 1, 2), stream(&Scramble::new(Seed(1), 0, 5), 4, 1, 2));
        for other in [Scramble::new(Seed(2), 0, 3), Scramble::new(Seed(1), 1, 3)] {
            assert_ne!(stream(&one, 4, 1, 2), stream(&other, 4, 1, 2));
        }
        assert_ne!(stream(&one, 4, 1, 2), stream(&one, 5, 1, 2));
    }

    #[test]
    fn dimensions_beyond_the_table_are_uniform_too() {
        let scramble = Scramble::new(Seed(1), 0, 2000);
        let points = stream(&scramble, 0, 256, 1500);
        let mean = points.iter().sum::<f64>() / points.len() as f64;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
