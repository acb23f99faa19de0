//! What 32 bits may be off by: the limits of the test suite, which holds graphics adapters to them.

/// Largest errors that a flow may have on a device.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Of base-space values z, and of the noise that they stand for.
    pub z: f64,
    /// Of log p(x|y), nats.
    pub log_p: f64,
    /// Of a posterior probability.
    pub posterior: f64,
    /// Of values of an image.
    pub x: f64,
}

/// exp and erf of a graphics adapter may err by some units in the last place, all to one side: what
/// sums the errors of all dimensions up may be off by twice as much there.
pub fn of(adapter: bool, on_the_host: f64) -> f64 {
    if adapter { 2.0 * on_the_host } else { on_the_host }
}

/// tests/glow_reference/values.rs, `limits`.
pub fn glow(adapter: bool, dims: usize) -> Bounds {
    Bounds { z: 2e-5, log_p: of(adapter, if dims <= 64 { 2e-4 } else { 1e-3 }), posterior: 1e-5, x: 2e-6 }
}

/// tests/tarflow_reference/values.rs, `limits`; the posterior's is Glow's.
pub fn tarflow(adapter: bool, dims: usize) -> Bounds {
    Bounds { z: 1e-5, log_p: of(adapter, if dims <= 64 { 1e-4 } else { 2e-4 }), posterior: 1e-5, x: 3e-5 }
}

/// Of a world of a Glow that was trained. What saturates in its logit map has slopes that random
/// weights have not, and no test has a bound for either way through it: measured were 6.5e-4 in z
/// and 3e-6 in x on a CPU, 1.1e-4 and 1.3e-5 on software Vulkan (a level of 8 bits is 4e-3).
pub fn trained_glow() -> Bounds {
    Bounds { z: 3e-3, x: 5e-5, ..WORLD }
}

/// Of a world of a TarFlow that was trained: both ways as any TarFlow, but z of six blocks may be
/// off by three times what it may of the reference's two (measured on a CPU: 9e-6).
pub fn trained_tarflow(adapter: bool, dims: usize) -> Bounds {
    let Bounds { z, x, .. } = tarflow(adapter, dims);
    Bounds { z: of(adapter, 3.0 * z), x, ..WORLD }
}

/// Densities of a bundled world (tests/shared_device.rs), and its posteriors (tests/cli/world.rs,
/// tests/remote.rs).
const WORLD: Bounds = Bounds { z: f64::NAN, log_p: 5e-3, posterior: 1e-3, x: f64::NAN };

/// tests/classifier_reference/main.rs, `every_architecture_gives_torchvisions_logits`.
pub const LOGITS: f64 = 1e-5;

/// Of the largest logit, where tensor cores round the factors of convolutions and products to 11 bits
/// (TF32): such factors moved the logits of the ConvNet's reference by 1.0e-3. No card has been tried.
pub const ROUNDED_LOGITS: f64 = 1e-2;

/// Largest relative errors of training, of both steps.
#[derive(Debug, Clone, Copy)]
pub struct Training {
    /// Of the first gradient of any array, of its length.
    pub gradient: f64,
    /// Of the mean loss.
    pub loss: [f64; 2],
    /// Of the norm of the whole gradient.
    pub norm: [f64; 2],
}

/// Of networks without kinks. The first step sees the same weights; AdamW then divides gradients by
/// themselves, noise and all. Emulated in another program (JAX; every layer's output off by 5e-7 at
/// random), the first gradients of ViT-small are off by 1e-5, by 5e-3 where layers are off by 1e-3.
pub const SMOOTH: Training = Training { gradient: 1e-4, loss: [1e-5, 5e-3], norm: [1e-5, 5e-3] };

/// Of networks with ReLUs: where rounding decides on which side of one a value lies, all gradients
/// before it move, by up to 8e-3 in the same emulation (on the CPU, llvmpipe and SwiftShader by 1.1e-5).
/// Layers off by 1e-3 decide so many that the gradients of ResNet-18 are off by 0.3, by 0.1 where layers
/// are off by 1e-4.
pub const KINKED: Training = Training { gradient: 3e-2, ..SMOOTH };

/// The same where tensor cores round factors to 11 bits (TF32), forwards and backwards, emulated as above:
/// gradients of ViT-small were off by 2.4e-3, those of ResNet-18 by 0.17, its norms by 0.02 and 0.04, its
/// losses by 1e-3 and 1e-2. No card has been tried. Values in other places would be off by 1.4.
pub const ROUNDED_SMOOTH: Training = Training { gradient: 2e-2, loss: [1e-2, 5e-2], norm: [1e-2, 5e-2] };
/// See [`ROUNDED_SMOOTH`].
pub const ROUNDED_KINKED: Training = Training { gradient: 0.5, loss: [1e-2, 5e-2], norm: [5e-2, 0.2] };
