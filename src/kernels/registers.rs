//! The widest registers this machine has (AVX-512, AVX2 with FMA, NEON, or none), chosen when the
//! program runs.

use std::sync::OnceLock;

use pulp::{Arch, Simd, WithSimd};

/// Runs a kernel with the best instructions of this machine, or with those that the environment
/// variable `BAYESCOPE_SIMD` names (`avx2`, `portable`), for measuring. All that `with_simd` calls
/// must be `#[inline(always)]`.
pub fn vectorise<K: WithSimd>(kernel: K) -> K::Output {
    match asked() {
        Asked::Best => Arch::new().dispatch(kernel),
        Asked::Portable => Simd::vectorize(pulp::Scalar::new(), kernel),
        #[cfg(target_arch = "x86_64")]
        Asked::Avx2(set) => Simd::vectorize(set, kernel),
    }
}

/// Settled once: the same kernels from the first number to the last.
static ASKED: OnceLock<Asked> = OnceLock::new();

#[derive(Clone, Copy)]
enum Asked {
    Best,
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(pulp::x86::V3),
}

fn asked() -> Asked {
    *ASKED.get_or_init(|| match std::env::var("BAYESCOPE_SIMD").as_deref() {
        Ok("portable") => Asked::Portable,
        #[cfg(target_arch = "x86_64")]
        Ok("avx2") => pulp::x86::V3::try_new().map_or(Asked::Best, Asked::Avx2),
        _ => Asked::Best,
    })
}

/// Settles on the kernels without vector instructions, whatever `BAYESCOPE_SIMD` asks for: their
/// sums have one order on every processor. Before any kernel has run; later it changes nothing.
pub fn settle_on_portable() {
    ASKED.get_or_init(|| Asked::Portable);
}

/// What `BAYESCOPE_SIMD` asks for, where that is nothing this program knows.
pub fn unknown_request() -> Option<String> {
    let asked = std::env::var_os("BAYESCOPE_SIMD")?.to_string_lossy().into_owned();
    (!["", "avx2", "portable"].contains(&asked.as_str())).then_some(asked)
}

/// Bytes of the registers [`vectorise`] uses.
fn register_bytes() -> usize {
    struct Bytes;
    impl WithSimd for Bytes {
        type Output = usize;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            size_of::<S::f64s>()
        }
    }
    vectorise(Bytes)
}

/// The instruction set [`vectorise`] uses, in words.
pub fn instructions() -> &'static str {
    match (asked(), register_bytes()) {
        (Asked::Portable, _) => "no vector instructions asked for",
        (_, 64) => "AVX-512",
        (_, 32) => "AVX2 with FMA",
        (_, 16) => "128-bit vectors",
        _ => "no vector instructions",
    }
}

/// The instruction set [`vectorise`] uses, as records name it: numbers of different sets may differ
/// in their last bits.
pub fn instruction_set() -> &'static str {
    match register_bytes() {
        64 => "avx512",
        32 => "avx2",
        16 if cfg!(target_arch = "aarch64") => "neon",
        16 => "128-bit",
        _ => "portable",
    }
}
