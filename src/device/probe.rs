//! Whether a device computes: operations that a broken driver gets wrong, against the host in f64.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::full_precision_matmul;
use super::guard::guarded;
use super::read::to_host;
use crate::error::{Error, Result};

// Sides of the product: larger than the tiles of burn's kernels, and no multiple of them.
const ROWS: usize = 80;
const INNER: usize = 70;
const COLUMNS: usize = 72;

/// Tries a device with a product of matrices, a sum, an exponential, a logarithm and a gathering by
/// index.
///
/// # Errors
/// Says which of them was wrong, and by how much; when the driver fails.
pub fn probe(device: &Device) -> Result<()> {
    guarded(device, || {
        let [a, b] = [numbers(ROWS * INNER, 1), numbers(INNER * COLUMNS, 2)];
        let [left, right] = [(&a, [ROWS, INNER]), (&b, [INNER, COLUMNS])]
            .map(|(values, shape)| Tensor::<2>::from_data(TensorData::new(values.clone(), shape), device));
        compare(
            "a product of matrices",
            &to_host(full_precision_matmul::matmul(left.clone(), right))?,
            &product(&a, &b),
        )?;
        let rows: Vec<Expected> = a.chunks(INNER).map(|row| sum(row.iter().map(|v| f64::from(*v)))).collect();
        compare("a sum", &to_host(left.clone().sum_dim(1))?, &rows)?;
        let exps: Vec<f64> = a.iter().map(|v| f64::from(*v).exp()).collect();
        let about = |value: &f64| Expected { value: *value, scale: 1.0 + value.abs() };
        compare("an exponential", &to_host(left.clone().exp())?, &exps.iter().map(about).collect::<Vec<_>>())?;
        let logs: Vec<Expected> = a.iter().map(|v| about(&(f64::from(*v).abs() + 0.5).ln())).collect();
        compare("a logarithm", &to_host((left.clone().abs() + 0.5).log())?, &logs)?;
        let places: Vec<usize> = (0..ROWS).map(|row| row * 37 % INNER).collect();
        let at = TensorData::new(places.iter().map(|place| *place as i64).collect::<Vec<_>>(), [ROWS, 1]);
        let gathered = to_host(left.gather(1, Tensor::<2, Int>::from_data(at, device)))?;
        let expected = places.iter().enumerate().map(|(row, place)| f64::from(a[row * INNER + place]));
        compare("a gathering by index", &gathered, &expected.map(|v| about(&v)).collect::<Vec<_>>())
    })
}

/// A value and the size of what it was computed from.
struct Expected {
    value: f64,
    scale: f64,
}

fn sum(terms: impl Iterator<Item = f64> + Clone) -> Expected {
    Expected { value: terms.clone().sum(), scale: terms.map(f64::abs).sum() }
}

/// Numbers between −4 and 4 without a pattern that a wrong stride would keep.
pub fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        // The constants of Numerical Recipes' linear congruential generator.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 21) as f32 - 4.0
    };
    (0..n).map(|_| next()).collect()
}

fn product(a: &[f32], b: &[f32]) -> Vec<Expected> {
    let entry = |row: usize, column: usize| {
        sum((0..INNER).map(move |k| f64::from(a[row * INNER + k]) * f64::from(b[k * COLUMNS + column])))
    };
    (0..ROWS)
        .flat_map(|row| (0..COLUMNS).map(move |column| (row, column)))
        .map(|(row, column)| entry(row, column))
        .collect()
}

/// Share of the scale that 32 bits may be off by: WGSL allows exponentials a dozen units in the
/// last place, others less.
const TOLERANCE: f64 = 1e-5;

fn compare(what: &str, found: &[f64], expected: &[Expected]) -> Result<()> {
    if found.len() != expected.len() {
        return Err(Error::Device(format!("{what} gave {} numbers, not {}", found.len(), expected.len())));
    }
    let wrong = |(found, e): &(&f64, &Expected)| found.is_nan() || (*found - e.value).abs() > TOLERANCE * e.scale;
    let mut pairs = found.iter().zip(expected).filter(wrong);
    match pairs.next() {
        None => Ok(()),
        Some((first, expected)) => Err(Error::Device(format!(
            "its driver computes wrongly: {what} gave {first} where {} is right, and {} more of {} numbers are off",
            expected.value,
            pairs.count(),
            found.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_passes() {
        probe(&Device::flex()).unwrap();
    }

    #[test]
    fn a_wrong_number_is_named_with_what_is_right() {
        let expected = || vec![Expected { value: 2.0, scale: 2.0 }, Expected { value: -1.0, scale: 1.0 }];
        assert!(compare("a sum", &[2.0, -1.000_001], &expected()).is_ok());
        let told = |found: &[f64]| compare("a sum", found, &expected()).unwrap_err().to_string();
        let text = told(&[2.0, -1.5]);
        assert!(text.contains("a sum gave -1.5 where -1 is right"), "{text}");
        assert!(told(&[f64::NAN, -1.0]).contains("NaN"));
        assert!(told(&[2.0]).contains("1 numbers, not 2"));
    }
}
