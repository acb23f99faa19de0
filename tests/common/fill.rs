//! The fill formula of the reference values: every tensor follows from its name and a seed.

use serde_json::Value;

fn fnv1a64(name: &str) -> u64 {
    name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3))
}

/// The first `n` numbers in [-1, 1) of a tensor called `name`.
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

/// One filled tensor.
pub struct Filled {
    pub name: String,
    pub shape: Vec<usize>,
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

    /// A tensor described as an object: `{name, shape, base, scale}`.
    pub fn described(entry: &Value, seed: u64) -> Self {
        let name = entry["name"].as_str().unwrap();
        Self::new(name, seed, shape(&entry["shape"]), [&entry["base"], &entry["scale"]].map(number), false)
    }

    /// An entry `[name, shape, base, scale]` or `[name, shape, base, scale, eye]` of a `params` table; `None` where base is null.
    pub fn parameter(entry: &Value, seed: u64) -> Option<Self> {
        let name = entry[0].as_str().unwrap();
        entry[2].as_f64()?;
        let eye = entry.get(4).is_some_and(|eye| eye.as_bool().unwrap());
        Some(Self::new(name, seed, shape(&entry[1]), [&entry[2], &entry[3]].map(number), eye))
    }

    /// The values in f64.
    pub fn wide(&self) -> Vec<f64> {
        self.values.iter().map(|&v| f64::from(v)).collect()
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn shape(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap() as usize).collect()
}
