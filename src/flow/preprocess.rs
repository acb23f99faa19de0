//! The ways of turning 8-bit pixels into world-space images, and back into pictures.

mod dequantise;
mod front;

use burn::tensor::Tensor;
use rand::distr::{Distribution, StandardUniform};
use rand_distr::StandardNormal;
use rayon::prelude::*;

use crate::data::HeldNoise;
use crate::error::{Error, Result};
use crate::units::{BitsPerDim, Nats};

pub use dequantise::Dequantisation;
pub use front::{BoundedLogit, Front};

/// How 8-bit pixels lie in a flow's world space, and which noise makes them real numbers (theory
/// §1).
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(tag = "noise", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Preprocessing {
    /// v = (pixel + u)/256 in [0, 1), u uniform: Glow (EBO).
    #[default]
    Uniform,
    /// 2v − 1 in [−1, 1), v as above: TarFlow trained with `--noise_type uniform`.
    UniformSymmetric,
    /// pixel/127.5 − 1 + N(0, std²): TarFlow (BLC App. B). The world holds noisy images.
    Gaussian {
        /// Standard deviation σ in units of x.
        std: f64,
    },
}

/// 1 − 2⁻¹⁶: added to 255 it is the last number below 256 in 32 bits.
const LAST_PLACE: f32 = 1.0 - 1.0 / 65536.0;
/// Noise beyond this is no noise of pixels, which fill [−1, 1].
const MOST_NOISE: f64 = 10.0;

impl Preprocessing {
    /// Whether pixels can be mapped in like that: 0 ≤ σ < 10. With σ = 0 the images of a world that
    /// others trained stay discrete; training refuses it ([`Self::validate_for_training`]).
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(self) -> Result<()> {
        match self {
            Self::Gaussian { std } if !(0.0..MOST_NOISE).contains(&std) => Err(Error::input(format!(
                "pixels.std, the σ of the Gaussian noise, must be a number from 0 to below {MOST_NOISE}, not {std}"
            ))),
            _ => Ok(()),
        }
    }

    /// [`Self::validate`] where a density is to be learned: of images without noise, which are
    /// discrete, it has no upper bound.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate_for_training(self) -> Result<()> {
        match self {
            Self::Gaussian { std: 0.0 } => Err(Error::input(
                "pixels.std, the σ of the Gaussian noise, must be above 0: the density of images that are whole levels has no upper \
                 bound",
            )),
            _ => self.validate(),
        }
    }

    /// It in a word without spaces, by which records tell worlds of the same weights apart.
    pub fn word(self) -> String {
        match self {
            Self::Uniform => "uniform".into(),
            Self::UniformSymmetric => "uniform-symmetric".into(),
            Self::Gaussian { std } => format!("gaussian-{std}"),
        }
    }

    /// Whether it is EBO's, which specs and files need not name.
    pub fn is_usual(&self) -> bool {
        *self == Self::Uniform
    }

    /// x of each 8-bit pixel. `first` is the running number of the first image, so that an image
    /// gets the same noise in whatever batch it comes. Of several draws it is the first.
    pub fn map_in(self, pixels: &[u8], dims: usize, first: usize, how: Dequantisation) -> Vec<f32> {
        let mut x = vec![0f32; pixels.len()];
        let images = x.par_chunks_mut(dims).zip(pixels.par_chunks(dims)).enumerate();
        images.for_each(|(i, (x, pixels))| {
            let mut rng = how.seed().map(|seed| seed.rng((first + i) as u64));
            for (x, &p) in x.iter_mut().zip(pixels) {
                *x = self.point(p, how, rng.as_mut());
            }
        });
        x
    }

    fn point(self, pixel: u8, how: Dequantisation, rng: Option<&mut rand_chacha::ChaCha8Rng>) -> f32 {
        if let Self::Gaussian { std } = self {
            if how == Dequantisation::Levels {
                return held(pixel, std, rng);
            }
            let noise = rng.map_or(0.0, |rng| StandardNormal.sample(rng));
            return (f64::from(pixel) / 127.5 - 1.0 + std * noise) as f32;
        }
        let u: f32 = rng.map_or(0.5, |rng| StandardUniform.sample(rng));
        self.within(pixel, u)
    }

    /// x of the place `u` in [0, 1) within the level of a uniformly dequantised pixel. Where 32 bits
    /// round it up to the next level, the last place below that all roundings keep.
    fn within(self, pixel: u8, u: f32) -> f32 {
        let at = |u: f32| {
            let v = (f32::from(pixel) + u) / 256.0;
            if self == Self::Uniform { v } else { 2.0 * v - 1.0 }
        };
        let x = at(u);
        if self.level(x) > f32::from(pixel) { at(LAST_PLACE) } else { x }
    }

    /// The level in which x lies, a whole number.
    fn level(self, x: f32) -> f32 {
        match self {
            Self::Uniform => (x * 256.0).floor(),
            Self::UniformSymmetric => ((x + 1.0) * 128.0).floor(),
            Self::Gaussian { .. } => ((x + 1.0) * 127.5).round(),
        }
    }

    /// The 8-bit pixel for the eye: clipped and quantised.
    pub fn pixel(self, x: f32) -> u8 {
        self.level(x).clamp(0.0, 255.0) as u8
    }

    /// [`Self::pixel`] of every value of a tensor, on its device, as whole numbers in f32.
    pub fn levels<const D: usize>(self, x: Tensor<D>) -> Tensor<D> {
        let level = match self {
            Self::Uniform => x * 256.0,
            Self::UniformSymmetric => (x + 1.0) * 128.0,
            // Half a level up: `round` away from zero, which no negative level outlives.
            Self::Gaussian { .. } => (x + 1.0) * 127.5 + 0.5,
        };
        level.floor().clamp(0.0, 255.0)
    }

    /// The noise that pictures of images of a world of these weights hold; nothing where it lies within a level.
    pub fn held_noise(self, weights_sha256: &str) -> Option<HeldNoise> {
        let Self::Gaussian { std } = self else { return None };
        (std > 0.0).then(|| HeldNoise { std, weights_sha256: weights_sha256.to_owned() })
    }

    /// The 8-bit picture of a world-space image.
    pub fn picture(self, x: &[f32]) -> Vec<u8> {
        x.iter().map(|&x| self.pixel(x)).collect()
    }

    /// Ends of the range that pixels fill in world space, apart from noise.
    pub fn range(self) -> [f32; 2] {
        match self {
            Self::Uniform => [0.0, 1.0],
            Self::UniformSymmetric | Self::Gaussian { .. } => [-1.0, 1.0],
        }
    }

    /// 8-bit levels in a unit of x.
    pub fn levels_per_unit(self) -> f64 {
        match self {
            Self::Uniform => 256.0,
            Self::UniformSymmetric => 128.0,
            Self::Gaussian { .. } => 127.5,
        }
    }

    /// −log p in the space of 8-bit pixels, nats, from log p(x) in world space.
    pub fn nll_of_pixels(self, log_p: Nats, dims: usize) -> Nats {
        Nats(dims as f64 * self.levels_per_unit().ln() - log_p.0)
    }

    /// The same in bits per dimension. Where the noise is Gaussian it is part of what is described.
    pub fn bits_per_dim(self, log_p: Nats, dims: usize) -> BitsPerDim {
        BitsPerDim(self.nll_of_pixels(log_p, dims).0 / (dims as f64 * std::f64::consts::LN_2))
    }

    /// The formula that maps pixels to x, for records and messages.
    pub fn describe(self) -> String {
        match self {
            Self::Uniform => "v = (pixel + u)/256 with u uniform, seeded for each image".into(),
            Self::UniformSymmetric => "x = 2v − 1, v = (pixel + u)/256 with u uniform, seeded for each image".into(),
            Self::Gaussian { std } => {
                format!("x = pixel/127.5 − 1 + N(0, {std}²), the noise seeded for each image: a world of noisy images")
            }
        }
    }
}

/// x of a pixel that holds Gaussian noise already: within half a level of it. Noise beyond black or white was cut off from it,
/// and is drawn anew.
fn held(pixel: u8, std: f64, rng: Option<&mut rand_chacha::ChaCha8Rng>) -> f32 {
    let (noise, place): (f64, f64) =
        rng.map_or((0.0, 0.5), |rng| (StandardNormal.sample(rng), StandardUniform.sample(rng)));
    let within = f64::from(pixel) / 127.5 - 1.0;
    let off = match pixel {
        0 => -std * noise.abs(),
        u8::MAX => std * noise.abs(),
        // Short of the ends, which round to the levels beside it.
        _ => (place - 0.5) * 0.999 / 127.5,
    };
    (within + off) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn noise_does_not_depend_on_the_batch() {
        let pixels: Vec<u8> = (0..=255).collect();
        let seeded = Dequantisation::Seeded(Seed(3));
        for how in [Preprocessing::Uniform, Preprocessing::UniformSymmetric, Preprocessing::Gaussian { std: 0.05 }] {
            let whole = how.map_in(&pixels, 64, 0, seeded);
            assert_eq!(whole[128..192], how.map_in(&pixels[128..192], 64, 2, seeded)[..]);
            let middles = how.map_in(&pixels, 64, 0, Dequantisation::MidPoint);
            assert_eq!(how.picture(&middles), pixels);
            // The range is that of the pixels, to half a level.
            let [low, high] = how.range();
            assert!((middles[0] - low).abs() < 0.005 && (middles[255] - high).abs() < 0.005);
        }
        let uniform = Preprocessing::Uniform.map_in(&pixels, 64, 0, seeded);
        assert_eq!(Preprocessing::Uniform.picture(&uniform), pixels);
        assert_eq!(
            Preprocessing::Uniform.map_in(&[0, 255], 2, 0, Dequantisation::MidPoint),
            [0.5 / 256.0, 255.5 / 256.0]
        );
    }

    #[test]
    fn no_place_in_a_level_is_rounded_into_the_next() {
        // StandardUniform draws multiples of 2⁻²⁴ below 1.
        let places = (0..1 << 12).map(|i| 1.0 - (i + 1) as f32 / 16_777_216.0).chain([0.0, 0.5, LAST_PLACE]);
        for u in places {
            for p in 0..=255u8 {
                let v = Preprocessing::Uniform.within(p, u);
                let exact = (f64::from(p) + f64::from(u)) / 256.0;
                assert!((f64::from(p)..f64::from(p) + 1.0).contains(&(f64::from(v) * 256.0)), "{p} + {u} → {v}");
                assert!((f64::from(v) - exact).abs() < 1.0 / (256.0 * 65_536.0), "{p} + {u} → {v}");
                let x = Preprocessing::UniformSymmetric.within(p, u);
                assert!(
                    (-1.0..1.0).contains(&x) && Preprocessing::UniformSymmetric.level(x) == f32::from(p),
                    "{p} {u}"
                );
            }
        }
    }

    #[test]
    fn noise_that_is_none_is_refused_by_its_field() {
        for std in [f64::NAN, f64::INFINITY, 1e30, 10.0, -0.1] {
            let why = Preprocessing::Gaussian { std }.validate().unwrap_err().to_string();
            assert!(why.contains("pixels.std") && why.contains(&std.to_string()), "{why}");
        }
        let none = Preprocessing::Gaussian { std: 0.0 };
        none.validate().unwrap();
        assert!(none.validate_for_training().unwrap_err().to_string().contains("pixels.std"));
        Preprocessing::Gaussian { std: 0.05 }.validate_for_training().unwrap();
    }

    #[test]
    fn gaussian_noise_has_its_standard_deviation() {
        let how = Preprocessing::Gaussian { std: 0.07 };
        let x = how.map_in(&vec![51; 40_000], 400, 0, Dequantisation::Seeded(Seed(1)));
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / 4e4;
        let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / 4e4;
        assert!((mean + 0.6).abs() < 5.0 * 0.07 / 200.0, "{mean}");
        assert!((variance.sqrt() / 0.07 - 1.0).abs() < 0.02, "{variance}");
    }

    #[test]
    fn a_picture_of_a_noisy_image_gets_no_second_noise() {
        let how = Preprocessing::Gaussian { std: 0.05 };
        // Images of the world: of black, grey and white under its noise.
        let clean = [vec![0; 20_000], vec![100; 20_000], vec![255; 20_000]].concat();
        let x = how.map_in(&clean, 400, 0, Dequantisation::Seeded(Seed(1)));
        let pixels = how.picture(&x);
        let again = how.map_in(&pixels, 400, 0, Dequantisation::Levels);
        assert_eq!(how.picture(&again), pixels);
        let mut kept = pixels.iter().zip(x.iter().zip(&again)).filter(|(pixel, _)| !matches!(pixel, 0 | 255));
        assert!(kept.clone().count() > 30_000 && kept.all(|(_, (x, y))| (x - y).abs() <= 1.0 / 127.5));
        let spread = |x: &[f32], middle: f64| {
            let squares = x.iter().map(|&x| (f64::from(x) - middle).powi(2)).sum::<f64>();
            (squares / x.len() as f64).sqrt()
        };
        let grey = 100.0 / 127.5 - 1.0;
        for (third, middle) in [-1.0, grey, 1.0].into_iter().enumerate() {
            let found = spread(&again[third * 20_000..(third + 1) * 20_000], middle) / 0.05;
            assert!((found - 1.0).abs() < 0.04, "{third}: {found}");
        }
        // At other readings black is too bright without its noise, and grey has more than the world's.
        let twice = how.map_in(&pixels, 400, 0, Dequantisation::default());
        assert!(spread(&twice[20_000..40_000], grey) > 1.3 * 0.05);
        assert!(spread(&how.map_in(&pixels[..20_000], 400, 0, Dequantisation::MidPoint), -1.0) < 0.8 * 0.05);
        // Where noise is within a level, it is the usual one.
        let uniform = |how| Preprocessing::Uniform.map_in(&pixels, 400, 0, how);
        assert_eq!(uniform(Dequantisation::Levels), uniform(Dequantisation::default()));
    }

    #[test]
    fn pictures_are_clipped_and_undo_the_dequantisation() {
        assert_eq!(Preprocessing::Uniform.picture(&[-0.1, 0.5 / 256.0, 200.99 / 256.0, 1.2]), [0, 0, 200, 255]);
        assert_eq!(Preprocessing::Gaussian { std: 0.1 }.picture(&[-1.3, -1.0, 0.0, 1.0, 2.0]), [0, 0, 128, 255, 255]);
    }

    #[test]
    fn a_uniform_density_costs_eight_bits_a_pixel() {
        // log p = −D log(length of the interval) says nothing about the 256 values: 8 bits a
        // dimension.
        let bits = |how: Preprocessing, log_p| how.bits_per_dim(Nats(log_p), 1024).0;
        assert!((bits(Preprocessing::Uniform, 0.0) - 8.0).abs() < 1e-12);
        assert!((bits(Preprocessing::UniformSymmetric, -1024.0 * 2f64.ln()) - 8.0).abs() < 1e-12);
    }
}
