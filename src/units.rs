//! Quantities with their units, and the one source of randomness.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A log-density or an information content in nats (natural logarithm), summed over all dimensions
/// of one image.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nats(pub f64);

/// Bits per dimension, in the space of 8-bit pixels. For display only.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BitsPerDim(pub f64);

/// Base temperature τ: the covariance of the base distribution is multiplied by τ² (EBO eq. 14). τ
/// = 0 is allowed for sampling (every sample is its class mean) but has no density. Between 0 and
/// 10⁻¹⁰⁰ lies none: τ² would be 0 in 64 bits, and every density with it.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Tau(f64);

impl Tau {
    /// The temperature the flow was trained at.
    pub const ONE: Self = Self(1.0);
    /// The smallest one above 0.
    const LEAST: f64 = 1e-100;

    /// Checks that τ is finite and not negative, and not so small that its square is 0.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn new(tau: f64) -> Result<Self> {
        if !tau.is_finite() || tau < 0.0 {
            return Err(Error::input(format!("base temperature τ must be a number ≥ 0, not {tau}")));
        }
        if tau > 0.0 && tau < Self::LEAST {
            let least = Self::LEAST;
            return Err(Error::input(format!("base temperature τ must be 0 or at least {least:e}, not {tau:e}")));
        }
        Ok(Self(tau))
    }

    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Tau {
    type Error = Error;
    fn try_from(tau: f64) -> Result<Self> {
        Self::new(tau)
    }
}

impl From<Tau> for f64 {
    fn from(tau: Tau) -> f64 {
        tau.0
    }
}

/// Posterior smoothing T: p_T(y|x) ∝ (π_y p(x|y))^(1/T) (BLC App. F). Not the base temperature.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Smoothing(f64);

impl Smoothing {
    /// The posterior of the sampling process itself.
    pub const ONE: Self = Self(1.0);

    /// The smoothing T.
    ///
    /// # Errors
    /// When T is not finite, or not above 0.
    pub fn new(smoothing: f64) -> Result<Self> {
        if smoothing.is_finite() && smoothing > 0.0 {
            Ok(Self(smoothing))
        } else {
            Err(Error::input(format!("posterior smoothing T must be a number > 0, not {smoothing}")))
        }
    }

    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Smoothing {
    type Error = Error;
    fn try_from(smoothing: f64) -> Result<Self> {
        Self::new(smoothing)
    }
}

impl From<Smoothing> for f64 {
    fn from(smoothing: Smoothing) -> f64 {
        smoothing.0
    }
}

/// A fraction as people write it: `0.05`, `5%`, `5 %`.
///
/// # Errors
/// When the text is no number.
pub fn parse_fraction(text: &str) -> Result<f64> {
    let trimmed = text.trim();
    let value = match trimmed.strip_suffix('%') {
        // 57 · 0.01 is not 0.57, and another τ has it for its Bayes error.
        Some(percents) => shifted(percents.trim_end(), -2),
        None => trimmed.parse().ok(),
    };
    value.filter(|value: &f64| value.is_finite()).ok_or_else(|| {
        Error::input(format!("{text:?} is neither a fraction such as 0.05 nor a percentage such as 5 %"))
    })
}

/// A fraction in per cent, as people write it: of 0.07 it is 7, where 100 · 0.07 is not.
pub fn percent(fraction: f64) -> f64 {
    shifted(&format!("{fraction:e}"), 2).unwrap_or(100.0 * fraction)
}

/// A written number times 10^`places`, by its digits.
fn shifted(number: &str, places: i32) -> Option<f64> {
    let (digits, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent = exponent.parse::<i32>().ok()?.checked_add(places)?;
    format!("{digits}e{exponent}").parse().ok()
}

/// Index of a class, 0-based, into the class names of its world or dataset.
pub type ClassId = usize;

/// One seed per experiment, split by name per purpose. Counter-based: image `i` of a purpose has
/// the same random numbers however the images are batched, and on whatever device the rest is
/// computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of one purpose of this experiment, e.g. `seed.split("latents")`.
    #[must_use]
    pub fn split(self, purpose: &str) -> Self {
        use sha2::{Digest, Sha256};
        let digest = Sha256::new().chain_update(self.0.to_le_bytes()).chain_update(purpose.as_bytes()).finalize();
        let mut head = [0u8; 8];
        head.copy_from_slice(&digest[..8]);
        Self(u64::from_le_bytes(head))
    }

    /// The generator of item `index` of this purpose (ChaCha8, the index being the stream number).
    #[must_use]
    pub fn rng(self, index: u64) -> rand_chacha::ChaCha8Rng {
        use rand_chacha::rand_core::SeedableRng;
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(self.0);
        rng.set_stream(index);
        rng
    }
}

/// So many of a noun whose plural ends in s.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// So many images, in words.
pub fn images(n: usize) -> String {
    counted(n, "image")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn seeds_split_by_name_and_by_item() {
        let seed = Seed(1);
        assert_eq!(seed.split("labels"), seed.split("labels"));
        assert_ne!(seed.split("labels"), seed.split("latents"));
        let draw = |i| seed.rng(i).next_u64();
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }

    #[test]
    fn fractions_are_read_as_people_write_them() {
        for text in ["0.05", "5%", "5 %", " 5.0 % ", "5e-2"] {
            assert_eq!(parse_fraction(text).unwrap(), 0.05, "{text}");
        }
        for tenthousandths in 1..10_000 {
            let (whole, cents) = (tenthousandths / 100, tenthousandths % 100);
            let (percents, fraction) = (format!("{whole}.{cents:02}"), format!("0.{tenthousandths:04}"));
            let read = parse_fraction(&fraction).unwrap();
            assert_eq!(parse_fraction(&format!("{percents} %")).unwrap(), read, "{percents}");
            assert_eq!(percent(read), percents.parse::<f64>().unwrap(), "{percents}");
        }
        assert_eq!(parse_fraction("5.7e1%").unwrap(), 0.57);
        for text in ["", "%", "five", "inf", "inf%", "nan%", "5e%", "0,05"] {
            assert!(parse_fraction(text).is_err(), "{text}");
        }
    }

    #[test]
    fn temperatures_refuse_what_is_no_temperature() {
        assert!(Tau::new(0.0).is_ok() && Tau::new(1e-100).is_ok());
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Tau::new(bad).is_err());
            assert!(Smoothing::new(bad).is_err());
        }
        for nothing in [1e-200, 1e-101, f64::MIN_POSITIVE] {
            assert!(Tau::new(nothing).unwrap_err().to_string().contains("1e-100"));
        }
        assert!(Smoothing::new(0.0).is_err());
    }
}
