//! Feature vectors of a set of images, checked once.

use crate::error::{Error, Result};

/// A number that features come in: f32 as networks give them, or f64. All sums are f64.
pub trait Real: Copy + Into<f64> + Send + Sync {}

impl Real for f32 {}
impl Real for f64 {}

/// Features [n, d] of n images, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Features<'a, T> {
    values: &'a [T],
    dim: usize,
}

impl<'a, T: Real> Features<'a, T> {
    /// `values` [n, d], at least one row.
    ///
    /// # Errors
    /// When the values are no whole number of rows, or none, or not finite (with the image).
    pub fn new(values: &'a [T], dim: usize) -> Result<Self> {
        if dim == 0 || values.is_empty() || !values.len().is_multiple_of(dim) {
            return Err(Error::input(format!("{} numbers are no images of {dim} features each", values.len())));
        }
        if let Some(at) = values.iter().position(|&x| !x.into().is_finite()) {
            let (value, row, column): (f64, _, _) = (values[at].into(), at / dim, at % dim);
            return Err(Error::Numeric(format!("image {row}: its feature {column} is {value}, not a finite number")));
        }
        Ok(Self { values, dim })
    }

    /// Images n.
    pub fn n(&self) -> usize {
        self.values.len() / self.dim
    }

    /// Features d of an image.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The features of image `i`.
    pub fn row(&self, i: usize) -> &'a [T] {
        &self.values[i * self.dim..][..self.dim]
    }

    /// The features of these images, in this order, for [`Features::new`].
    pub fn gather(&self, images: &[usize]) -> Vec<T> {
        images.iter().flat_map(|&i| self.row(i).iter().copied()).collect()
    }

    /// Images `from .. from + count`, fewer at the end.
    pub(super) fn rows(&self, from: usize, count: usize) -> &'a [T] {
        &self.values[from * self.dim..(from + count).min(self.n()) * self.dim]
    }

    /// The same numbers, or an error that names both.
    pub(super) fn same_dim<U: Real>(&self, other: &Features<'_, U>) -> Result<()> {
        if self.dim == other.dim() {
            return Ok(());
        }
        Err(Error::input(format!(
            "features of {} and {} numbers cannot be compared: take both from the same layer of the same network",
            self.dim,
            other.dim()
        )))
    }

    /// Mean of every feature [d].
    pub(super) fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.dim];
        for row in self.values.chunks_exact(self.dim) {
            mean.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x.into());
        }
        let n = self.n() as f64;
        mean.iter_mut().for_each(|sum| *sum /= n);
        mean
    }
}

/// The images of each of `classes`, in order.
///
/// # Errors
/// When there are not as many labels as images, or a label is no class.
pub fn by_class(labels: &[usize], images: usize, classes: usize) -> Result<Vec<Vec<usize>>> {
    if labels.len() != images {
        return Err(Error::input(format!("{} labels for {images} images", labels.len())));
    }
    let mut members = vec![Vec::new(); classes];
    for (image, &label) in labels.iter().enumerate() {
        let class = members.get_mut(label);
        class
            .ok_or_else(|| Error::input(format!("image {image}: its label {label} is none of {classes} classes")))?
            .push(image);
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_table_of_features_is_named() {
        assert!(Features::new(&[1.0f32; 6], 4).is_err());
        assert!(Features::new(&[1.0f32; 6], 0).is_err());
        assert!(Features::<f64>::new(&[], 3).is_err());
        let error = Features::new(&[0.0, 1.0, f64::NAN, 2.0], 2).unwrap_err().to_string();
        assert!(error.contains("image 1: its feature 0"), "{error}");
        let (a, b) = (Features::new(&[1.0f32; 6], 3).unwrap(), Features::new(&[1.0f64; 6], 2).unwrap());
        assert!(a.same_dim(&b).unwrap_err().to_string().contains("3 and 2"));
        assert_eq!((a.n(), b.n(), b.mean()), (2, 3, vec![1.0, 1.0]));
    }

    #[test]
    fn images_are_sorted_by_class() {
        assert_eq!(by_class(&[1, 0, 1], 3, 3).unwrap(), vec![vec![1], vec![0, 2], vec![]]);
        assert!(by_class(&[0], 2, 1).is_err());
        assert!(by_class(&[0, 2], 2, 2).unwrap_err().to_string().contains("image 1"));
    }
}
