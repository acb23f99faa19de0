//! A gradient and steps of training on the device compared with the same in 64 bits on the CPU, as
//! tests/classifier_reference/main.rs (`a_graphics_adapter_trains_as_the_cpu_does`) has them in 32.

use std::collections::BTreeMap;

use burn::tensor::Device;

use super::bounds::{KINKED, ROUNDED_KINKED, ROUNDED_SMOOTH, SMOOTH, Training};
use super::checks::Checks;
use super::filled::uniform;
use super::subject::{SEED, Subject};
use crate::classifier::{Architecture, Classifier, ClassifierConfig, Trainee, TrainingSpec};
use crate::data::ImageShape;
use crate::error::Result;
use crate::flow::Precision;
use crate::flow::weights::Weights;
use crate::oracle::precision::largest;
use crate::units::Seed;

const CLASSES: usize = 3;
const RATE: f64 = 1e-3;

/// What is trained, on how much, and how far it may be off.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    architecture: Architecture,
    images: usize,
    /// Of the images, pixels.
    side: usize,
    bounds: Training,
    /// Where tensor cores round factors.
    rounded: Training,
}

/// So many images that what ResNet-18's last stage normalises, one position of each, has statistics:
/// of four images the gradient's norm is 1e-4 off its value in 64 bits on every device, of sixteen
/// 1e-6.
pub const RESNET: Course =
    Course { architecture: Architecture::ResNet18, images: 16, side: 32, bounds: KINKED, rounded: ROUNDED_KINKED };
/// Normalises every token by itself, so few images do. Sixteen of 32 pixels have fifteen times the
/// tokens: SwiftShader took six minutes for one step.
pub const VIT: Course =
    Course { architecture: Architecture::VitSmall, images: 4, side: 16, bounds: SMOOTH, rounded: ROUNDED_SMOOTH };

/// The gradient of a network, and two steps of it.
pub fn steps(subject: &Subject, checks: &mut Checks, course: Course) -> Result<()> {
    let Course { architecture, images: n, side, bounds, rounded } = course;
    let shape = ImageShape { channels: 3, height: side, width: side };
    let images: Vec<f32> = (0..n * shape.dims()).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect();
    let told = |i: usize| i % CLASSES == (i / CLASSES) % CLASSES;
    let targets: Vec<f32> = (0..n * CLASSES).map(|i| f32::from(u8::from(told(i)))).collect();
    let config = ClassifierConfig { architecture, shape, classes: CLASSES, resize: None };
    let spec = TrainingSpec { shards: 1, ..TrainingSpec::default() };
    let (start, cpu) = (start(&config)?, Device::flex());
    let trainee = |weights, place| Trainee::from_weights(&config, &spec, weights, Seed(1), place);
    let mut here = trainee((subject.weights)(start.clone()), (&subject.chosen.device, Precision::F32))?;
    let mut exact = trainee(start, (&cpu, Precision::F64))?;
    let bounds = if subject.rounds() { rounded } else { bounds };
    checks.rounded(subject.rounds());
    let (found, expected) = (here.gradient(&images, &targets, 0)?, exact.gradient(&images, &targets, 0)?);
    checks.at_most(
        "gradient of step 1, of any array, relative to its length",
        farthest(&found, &expected),
        bounds.gradient,
    );
    for (step, (loss, norm)) in bounds.loss.into_iter().zip(bounds.norm).enumerate() {
        let (found, expected) = (here.step(&images, &targets, RATE, step)?, exact.step(&images, &targets, RATE, step)?);
        let name = |what: &str| format!("{what} of step {}", step + 1);
        checks.relative(&name("loss"), found.cross_entropy, expected.cross_entropy, loss);
        checks.relative(&name("gradient norm"), found.grad_norm, expected.grad_norm, norm);
    }
    Ok(())
}

/// The network's own start, but for matrices of zeros, such as a ViT's head: nothing before them would have
/// a gradient.
fn start(config: &ClassifierConfig) -> Result<Weights> {
    let mut weights =
        Classifier::new(config, Seed(1).split("weights"), &Device::flex(), Precision::F32)?.to_weights()?;
    for (name, array) in &mut weights.0 {
        if name.ends_with("weight") && array.values.iter().all(|value| *value == 0.0) {
            let numbers = uniform(name, SEED, array.values.len());
            array.values = numbers.into_iter().map(|value| (0.1 * value) as f32).collect();
        }
    }
    Ok(weights)
}

/// Arrays whose gradient is shorter than this share of the whole are measured by that: rounding of the
/// others reaches them.
const SHORT: f64 = 1e-4;

/// How far the gradient of any array is from the exact one, relative to its length: values in other
/// places, or errors that cancel in a norm, are seen, too. Infinite where arrays or values are missing.
fn farthest(found: &BTreeMap<String, Vec<f64>>, exact: &BTreeMap<String, Vec<f64>>) -> f64 {
    let length = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let shortest = SHORT * length(&mut exact.values().flatten().copied());
    let of = |(name, exact): (&String, &Vec<f64>)| match found.get(name) {
        Some(found) if found.len() == exact.len() => {
            let apart = length(&mut found.iter().zip(exact).map(|(a, b)| a - b));
            apart / length(&mut exact.iter().copied()).max(shortest)
        }
        _ => f64::INFINITY,
    };
    largest(exact.iter().map(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two arrays of a gradient, the second a hundredth as long, after `change` of the first.
    fn gradient(change: impl Fn(&mut Vec<f64>)) -> BTreeMap<String, Vec<f64>> {
        let mut first = uniform("first", SEED, 1000);
        change(&mut first);
        let second = uniform("second", SEED, 1000).iter().map(|v| 0.01 * v).collect();
        [("first".to_owned(), first), ("second".to_owned(), second)].into()
    }

    #[test]
    fn what_a_norm_does_not_see_is_seen_array_by_array() {
        let exact = gradient(|_| ());
        assert_eq!(farthest(&exact, &exact), 0.0);
        // Values in other places have the same norm.
        assert!(farthest(&gradient(|values| values.reverse()), &exact) > 1.0);
        // Each value off by a thousandth, to either side: a norm moves by a thousandth of that.
        let noise = uniform("noise", SEED, 1000);
        let off = gradient(|values| values.iter_mut().zip(&noise).for_each(|(v, e)| *v *= 1.0 + 1e-3 * e.signum()));
        let far = farthest(&off, &exact);
        assert!((far - 1e-3).abs() < 1e-6 && far > SMOOTH.gradient, "{far}");
        assert_eq!(farthest(&gradient(|values| values[7] = f64::NAN), &exact), f64::INFINITY);
        assert_eq!(farthest(&gradient(|values| values.truncate(7)), &exact), f64::INFINITY);
        assert_eq!(farthest(&BTreeMap::new(), &exact), f64::INFINITY);
    }
}
