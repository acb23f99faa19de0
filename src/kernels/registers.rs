//! The widest registers this machine has (AVX-512, AVX2 with FMA, NEON, or none), chosen when the program runs.

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

/// What `BAYESCOPE_SIMD` asks for, where that is nothing this program knows.
pub fn unknown_request() -> Option<String> {
    let asked = std::env::var_os("BAYESCOPE_SIMD")?.to_string_lossy().into_owned();
    (!["", "avx2", "portable"].contains(&asked.as_str())).then_some(asked)
}

/// The instruction set [`vectorise`] uses, in words.
pub fn instructions() -> &'static str {
    struct Name;
    impl WithSimd for Name {
        type Output = &'static str;
        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> &'static str {
            match size_of::<S::f64s>() {
                64 => "AVX-512",
                32 => "AVX2 with FMA",
                16 => "128-bit vectors",
                _ => "no vector instructions",
            }
        }
    }
    match asked() {
        Asked::Portable => "no vector instructions asked for",
        _ => vectorise(Name),
    }
}
