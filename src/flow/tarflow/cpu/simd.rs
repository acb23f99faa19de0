//! The widest registers this machine has (AVX-512, AVX2 with FMA, NEON, or none), chosen when the program runs, and memory
//! that is aligned for them. Loops over slices are written plainly, branch-free, and inlined into one function per
//! instruction set, where the compiler vectorises them.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use pulp::{Arch, Simd, WithSimd};

/// Runs a kernel with the best instructions of this machine, or with those that the environment variable `BAYESCOPE_SIMD`
/// names (`avx2`, `portable`), for measuring. All that `with_simd` calls must be `#[inline(always)]`.
pub fn vectorise<K: WithSimd>(kernel: K) -> K::Output {
    match asked() {
        Asked::Best => Arch::new().dispatch(kernel),
        Asked::Portable => Simd::vectorize(pulp::Scalar::new(), kernel),
        #[cfg(target_arch = "x86_64")]
        Asked::Avx2(set) => Simd::vectorize(set, kernel),
    }
}

#[derive(Clone, Copy)]
enum Asked {
    Best,
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

fn asked() -> Asked {
    static ASKED: OnceLock<Asked> = OnceLock::new();
    *ASKED.get_or_init(|| match std::env::var("BAYESCOPE_SIMD").as_deref() {
        Ok("portable") => Asked::Portable,
        #[cfg(target_arch = "x86_64")]
        Ok("avx2") => pulp::x86::V3::try_new().map_or(Asked::Best, Asked::Avx2),
        _ => Asked::Best,
    })
}

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
