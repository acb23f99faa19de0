//! The fill formula of the reference values: every array follows from its name and a seed, so that
//! reference networks need no weights in files.

use serde_json::Value;

use crate::error::{Error, Result};

fn fnv1a64(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// The first `n` numbers in [-1, 1) of an array called `name`: SplitMix64 from its FNV hash.
pub fn uniform(name: &str, seed: u64, n: usize) -> Vec<f64> {
    let mut state = fnv1a64(name) ^ seed;
    let next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        2.0 * ((z >> 40) as f64 / f64::from(1 << 24)) - 1.0
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// One filled array.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its values, row-major.
    pub values: Vec<f32>,
}

impl Filled {
    fn new(name: &str, seed: u64, shape: Vec<usize>, [base, scale]: [f64; 2], eye: bool) -> Self {
        let diagonal = |i: usize| if eye && i / shape[1] == i % shape[1] { 1.0 } else { 0.0 };
        let numbers = uniform(name, seed, shape.iter().product());
        // Product and sum on their own: no fused multiply-add.
        let values = numbers.iter().enumerate().map(|(i, u)| {
            let scaled = scale * u;
            (base + scaled + diagonal(i)) as f32
        });
        Self { name: name.to_owned(), values: values.collect(), shape }
    }

    /// An array described as an object: `{name, shape, base, scale}`.
    ///
    /// # Errors
    /// When it is described otherwise.
    pub fn described(entry: &Value, seed: u64) -> Result<Self> {
        let parts = (entry["name"].as_str(), shape(&entry["shape"]), entry["base"].as_f64(), entry["scale"].as_f64());
        match parts {
            (Some(name), Some(shape), Some(base), Some(scale)) => {
                Ok(Self::new(name, seed, shape, [base, scale], false))
            }
            _ => Err(Error::input(format!("no array is described by {entry}"))),
        }
    }

    /// An entry `[name, shape, base, scale]` or `[name, shape, base, scale, eye]` of a `params`
    /// table; `None` where base is null: such arrays are computed.
    pub fn parameter(entry: &Value, seed: u64) -> Option<Self> {
        let (name, shape) = (entry[0].as_str()?, shape(&entry[1])?);
        let eye = entry[4].as_bool().unwrap_or(false);
        Some(Self::new(name, seed, shape, [entry[2].as_f64()?, entry[3].as_f64()?], eye))
    }
}

fn shape(value: &Value) -> Option<Vec<usize>> {
    value.as_array()?.iter().map(|extent| extent.as_u64().map(|extent| extent as usize)).collect()
}
