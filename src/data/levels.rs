//! Pictures of real-valued images: an affine map between a range of values and whole levels.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Fewest and most bits of a level.
pub const BITS: std::ops::RangeInclusive<u32> = 1..=16;

/// x = low + (high − low)·level/(2^bits − 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// Bits of a level.
    pub bits: u32,
    /// x of level 0: a 32-bit number in 64 bits, so that files hold all its digits.
    pub low: f64,
    /// x of the largest level.
    pub high: f64,
}

impl Levels {
    /// Levels of so many bits over a range of values.
    ///
    /// # Errors
    /// When the range is empty or not finite, or the number of bits is not 1 to 16.
    pub fn new(bits: u32, [low, high]: [f32; 2]) -> Result<Self> {
        if !BITS.contains(&bits) {
            return Err(Error::input(format!("pictures have 1 to 16 bits a value, not {bits}")));
        }
        if !(low < high && low.is_finite() && high.is_finite()) {
            return Err(Error::Numeric(format!("no picture can be made of values between {low} and {high}")));
        }
        Ok(Self { bits, low: low.into(), high: high.into() })
    }

    /// The largest level, 2^bits − 1.
    pub fn most(self) -> u16 {
        (u32::from(u16::MAX) >> (16 - self.bits)) as u16
    }

    /// Distance of two levels in x.
    pub fn step(self) -> f64 {
        (self.high - self.low) / f64::from(self.most())
    }

    /// The nearest level of a value; the end of the range of values beyond it.
    pub fn level(self, x: f32) -> u16 {
        let level = ((f64::from(x) - self.low) / self.step()).round();
        level.clamp(0.0, f64::from(self.most())) as u16
    }

    /// The value of a level. The ends of the range come back as they are.
    pub fn value(self, level: u16) -> f32 {
        if level >= self.most() {
            return self.high as f32;
        }
        (self.low + self.step() * f64::from(level)) as f32
    }

    /// The map from levels to x, in words.
    pub fn formula(self) -> String {
        let Self { low, high, .. } = self;
        format!("x = {low} + ({high} − {low})·level/{}", self.most())
    }
}

/// The smallest range that holds all values; of no values, an empty one.
pub fn range_of(values: &[f32]) -> [f32; 2] {
    values.iter().fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], &x| [low.min(x), high.max(x)])
}

/// The smallest range that holds two ranges.
pub fn union_range([a, b]: [f32; 2], [c, d]: [f32; 2]) -> [f32; 2] {
    [a.min(c), b.max(d)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_to_half_a_level_and_the_ends_exactly() {
        for bits in [1, 4, 8, 16] {
            let levels = Levels::new(bits, [-1.3, 1.7]).unwrap();
            for i in 0..=1000 {
                let x = -1.3 + 3.0 * i as f32 / 1000.0;
                let back = levels.value(levels.level(x));
                assert!(f64::from((back - x).abs()) <= 0.5 * levels.step() + 1e-6, "{bits} bits: {x} {back}");
            }
            assert_eq!([levels.value(0), levels.value(levels.most())], [-1.3, 1.7]);
            assert_eq!(levels.most(), ((1u32 << bits) - 1) as u16);
            // Every level is its own.
            assert!((0..=levels.most()).step_by(37).all(|level| levels.level(levels.value(level)) == level));
        }
    }

    #[test]
    fn impossible_pictures_are_refused() {
        assert!(Levels::new(17, [0.0, 1.0]).is_err() && Levels::new(0, [0.0, 1.0]).is_err());
        assert!(Levels::new(8, range_of(&[])).is_err() && Levels::new(8, [1.0, 1.0]).is_err());
        assert!(Levels::new(8, [0.0, f32::INFINITY]).is_err());
        assert_eq!(union_range(range_of(&[0.5, -2.0]), range_of(&[])), [-2.0, 0.5]);
    }
}
