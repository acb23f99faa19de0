//! Memory aligned for the widest registers ([`crate::kernels`]).

use std::ops::{Deref, DerefMut};

/// Numbers that start on a cache line, so that no register-wide load crosses two.
#[derive(Debug, Default)]
pub struct Buffer<T> {
    data: Vec<T>,
    start: usize,
}

impl<T: Copy + Default> Buffer<T> {
    const LINE: usize = 64;

    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let mut data = vec![T::default(); len + Self::LINE / size_of::<T>()];
        let start = data.as_ptr().align_offset(Self::LINE).min(data.len() - len);
        data.truncate(start + len);
        Self { data, start }
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.data[self.start..]
    }
}

impl<T> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.data[self.start..]
    }
}
