//! How the small kernels are written.

/// A function whose body is compiled for the widest registers of the machine ([`crate::kernels::vectorise`]), generic in the number
/// format `T` and in `S`, the registers. Not a function of a closure: that would be compiled on its own, without them.
macro_rules! kernel {
    ($(#[$meta:meta])* $name:ident<$t:ident, $s:ident>($($arg:ident: $ty:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        pub fn $name<'a, $t: crate::kernels::Real>($($arg: $ty),*) {
            struct Kernel<'a, $t> {
                $($arg: $ty,)*
                of: std::marker::PhantomData<&'a $t>,
            }
            impl<'a, $t: crate::kernels::Real> pulp::WithSimd for Kernel<'a, $t> {
                type Output = ();
                #[inline(always)]
                fn with_simd<$s: pulp::Simd>(self, _: $s) {
                    let Self { $($arg,)* of: _ } = self;
                    $body
                }
            }
            crate::kernels::vectorise(Kernel { $($arg,)* of: std::marker::PhantomData });
        }
    };
}
pub(super) use kernel;
