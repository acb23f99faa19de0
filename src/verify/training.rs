//! Steps of training on the device compared with the same steps in 64 bits on the CPU, as
//! tests/classifier_reference/main.rs (`a_graphics_adapter_trains_as_the_cpu_does`) has them in 32.

use super::checks::Checks;
use super::subject::Subject;
use crate::classifier::{Architecture, ClassifierConfig, Trainee, TrainingSpec};
use crate::data::ImageShape;
use crate::error::Result;
use crate::units::Seed;

const CLASSES: usize = 3;

/// What is trained, and on how much.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    architecture: Architecture,
    images: usize,
    /// Of the images, pixels.
    side: usize,
}

/// So many images that what ResNet-18's last stage normalises, one position of each, has statistics:
/// of four images the gradient's norm is 1e-4 off its value in 64 bits on every device, of sixteen
/// 1e-6.
pub const RESNET: Course = Course { architecture: Architecture::ResNet18, images: 16, side: 32 };
/// Normalises every token by itself, so few images do. Sixteen of 32 pixels have fifteen times the
/// tokens: SwiftShader took six minutes for one step.
pub const VIT: Course = Course { architecture: Architecture::VitSmall, images: 4, side: 16 };

/// The first step sees the same weights. AdamW then divides gradients by themselves, noise and all.
const BOUNDS: [f64; 2] = [1e-5, 5e-3];
const RATE: f64 = 1e-3;

/// Two steps of a network.
pub fn steps(subject: &Subject, checks: &mut Checks, Course { architecture, images: n, side }: Course) -> Result<()> {
    let shape = ImageShape { channels: 3, height: side, width: side };
    let images: Vec<f32> = (0..n * shape.dims()).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect();
    let told = |i: usize| i % CLASSES == (i / CLASSES) % CLASSES;
    let targets: Vec<f32> = (0..n * CLASSES).map(|i| f32::from(u8::from(told(i)))).collect();
    let config = ClassifierConfig { architecture, shape, classes: CLASSES, resize: None };
    let spec = TrainingSpec { shards: 1, ..TrainingSpec::default() };
    let mut here = Trainee::new(&config, &spec, Seed(1), &subject.chosen.device)?;
    let mut exact = Trainee::in_64_bits(&config, &spec, Seed(1))?;
    for (step, bound) in BOUNDS.into_iter().enumerate() {
        let (found, expected) = (here.step(&images, &targets, RATE, step)?, exact.step(&images, &targets, RATE, step)?);
        let name = |what: &str| format!("{what} of step {}", step + 1);
        checks.relative(&name("loss"), found.cross_entropy, expected.cross_entropy, bound);
        checks.relative(&name("gradient norm"), found.grad_norm, expected.grad_norm, bound);
    }
    Ok(())
}
