//! How kernels are written.

/// Defines a function whose body is compiled for the widest registers of the machine
/// ([`crate::kernels::vectorise`]). It is generic in the number format `T` and in the registers
/// `S`; a third name, where there is one, is the value of `S` that [`crate::kernels::Real`]'s
/// methods take. A closure would not do: it would be compiled on its own, without the instruction
/// set. The function is not inlined: its callers would be compiled with a copy of the kernel each.
macro_rules! kernel {
    (@output) => { () };
    (@output $out:ty) => { $out };
    ($(#[$meta:meta])* $vis:vis $name:ident<$t:ident, $s:ident $(, $simd:ident)?>
     ($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? $body:block) => {
        $(#[$meta])*
        #[inline(never)]
        $vis fn $name<'a, $t: crate::kernels::Real>($($arg: $ty),*) $(-> $out)? {
            struct Kernel<'a, $t> {
                $($arg: $ty,)*
                of: std::marker::PhantomData<&'a $t>,
            }
            impl<'a, $t: crate::kernels::Real> pulp::WithSimd for Kernel<'a, $t> {
                type Output = crate::kernels::kernel!(@output $($out)?);
                #[inline(always)]
                fn with_simd<$s: pulp::Simd>(self, registers: $s) -> Self::Output {
                    let _ = registers;
                    $(let $simd = registers;)?
                    let Self { $($arg,)* of: _ } = self;
                    $body
                }
            }
            crate::kernels::vectorise(Kernel { $($arg,)* of: std::marker::PhantomData })
        }
    };
}
pub(crate) use kernel;
