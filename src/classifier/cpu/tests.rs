//! Gradients against differences of the loss, in f64; by burn's tensors they are checked in
//! [`super::super::micro_batch`].

use super::*;
use crate::kernels::transformer::Layer;

/// Numbers in ±½, the same for the same seed.
fn noise(seed: u64, n: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 * 2f64.powi(-53) - 0.5
    };
    (0..n).map(|_| next()).collect()
}

/// Parameters in the order in which a network asks for them.
struct Network<'a> {
    tape: &'a mut Tape<f64>,
    parameters: &'a mut Vec<Vec<f64>>,
    asked: usize,
}

impl Network<'_> {
    fn parameter(&mut self, n: usize) -> (u64, Vec<f64>) {
        if self.parameters.len() == self.asked {
            self.parameters.push(noise(self.asked as u64 + 10, n));
        }
        self.asked += 1;
        (self.asked as u64 - 1, self.parameters[self.asked - 1].clone())
    }

    fn map(&mut self, x: Maps, outputs: usize, geometry: Geometry) -> Maps {
        let places = geometry.kernel[0] * geometry.kernel[1];
        let (weight, values) = self.parameter(outputs * x.channels * places);
        let (bias, more) = self.parameter(outputs);
        let size = [outputs, x.channels];
        self.tape.map(x, Linear { weight, bias: Some(bias), size, numbers: Some((&values, &more)) }, geometry)
    }

    fn affine<R>(&mut self, c: usize, then: impl FnOnce(&mut Tape<f64>, Affine<'_, f64>) -> R) -> R {
        let ((gain_id, gain), (bias_id, bias)) = (self.parameter(c), self.parameter(c));
        then(self.tape, Affine { parameters: [gain_id, bias_id], gain: &gain, bias: &bias, epsilon: 1e-5 })
    }
}

const IMAGES: usize = 5;
const SIDES: [usize; 3] = [3, 7, 6];
const CLASSES: usize = 3;

fn geometry(side: usize, stride: usize, padding: usize) -> Geometry {
    Geometry { kernel: [side; 2], stride, padding: [padding; 2] }
}

/// Gathered and met places, strides, padding that no place leaves, windows that overlap, and a
/// shortcut.
fn convolutional(network: &mut Network<'_>, x: Maps) -> Maps {
    let h = network.map(x, 20, geometry(3, 1, 1));
    let h = network.affine(20, |tape, affine| tape.batch_norm(h, affine, After::Relu).0);
    let h = network.tape.max_pool(h, geometry(3, 2, 1));
    let g = network.map(h, 34, geometry(3, 2, 1));
    let g = network.affine(34, |tape, affine| tape.batch_norm(g, affine, After::Relu).0);
    let g = network.map(g, 37, geometry(5, 1, 2));
    let short = network.map(h, 37, geometry(1, 2, 0));
    let short = network.affine(37, |tape, affine| tape.batch_norm(short, affine, After::Nothing).0);
    let g = network.affine(37, |tape, affine| tape.batch_norm(g, affine, After::AddRelu(short)).0);
    let g = network.tape.add(g, short);
    let means = network.tape.means(g);
    network.map(means, CLASSES, Geometry::POINT)
}

/// ReLU alone, factors, and rows of all values.
fn flattened(network: &mut Network<'_>, x: Maps) -> Maps {
    let h = network.map(x, 18, geometry(3, 1, 0));
    let h = network.tape.relu(h);
    let h = network.tape.flatten(h);
    let factors: Vec<f32> = noise(2, h.images * h.channels).iter().map(|x| if *x < 0.0 { 0.0 } else { 2.0 }).collect();
    let h = network.tape.multiply(h, &factors);
    network.map(h, CLASSES, Geometry::POINT)
}

/// A Transformer of two layers of two heads over the 3 × 3 patches of an image.
fn transformer(network: &mut Network<'_>, x: Maps) -> Maps {
    const C: usize = 128;
    let patches = network.map(x, C, Geometry { kernel: [2; 2], stride: 2, padding: [0; 2] });
    let ((class_id, class), (id, positions)) = (network.parameter(C), network.parameter(10 * C));
    let embedding = Embedding { parameters: [class_id, id], class: &class, positions: &positions };
    let x = network.tape.embed(patches, embedding);
    let layer = |network: &mut Network<'_>, x: Maps, last: bool| {
        let arrays = Layer::<f64>::shapes([C, 90]).map(|shape| network.parameter(shape.iter().product()));
        let numbers = arrays.each_ref().map(|(_, values)| &values[..]);
        let ids = arrays.each_ref().map(|(id, _)| *id);
        let layer = LayerParameters { ids, numbers: Some(numbers), epsilon: 1e-5 };
        if last { network.tape.transformer_first(x, 10, layer) } else { network.tape.transformer(x, 10, layer) }
    };
    let x = layer(network, x, false);
    let first = layer(network, x, true);
    let first = network.affine(C, |tape, affine| tape.layer_norm(first, affine));
    network.map(first, CLASSES, Geometry::POINT)
}

type Body = fn(&mut Network<'_>, Maps) -> Maps;

/// The loss, and whether the gradients of the logits go back.
fn loss(tape: &mut Tape<f64>, parameters: &mut Vec<Vec<f64>>, body: Body, back: bool) -> f64 {
    let images: Vec<f32> = noise(1, IMAGES * SIDES.iter().product::<usize>()).iter().map(|x| 4.0 * *x as f32).collect();
    let targets: Vec<f32> = (0..IMAGES).flat_map(|i| [[0.7, 0.2, 0.1], [0.0, 0.25, 0.75]][i % 2]).collect();
    tape.begin();
    let x = tape.images(&images, SIDES);
    let logits = body(&mut Network { tape: &mut *tape, parameters, asked: 0 }, x);
    let (loss, slope) = tape.cross_entropy(logits, &targets, 1.0);
    if back {
        tape.backward(logits, &slope);
    }
    loss
}

#[test]
fn nan_in_an_image_reaches_its_answer_and_no_other() {
    let small = |network: &mut Network<'_>, x: Maps| {
        let h = network.map(x, 18, geometry(3, 1, 0));
        let h = network.tape.relu(h);
        let h = network.tape.max_pool(h, geometry(2, 2, 0));
        let h = network.tape.flatten(h);
        network.map(h, CLASSES, Geometry::POINT)
    };
    let dims: usize = SIDES.iter().product();
    let mut images: Vec<f32> = noise(1, IMAGES * dims).iter().map(|x| *x as f32).collect();
    // Denormal numbers are numbers.
    images[..dims].fill(1e-42);
    images[2 * dims + dims / 2] = f32::NAN;
    let (mut tape, mut parameters) = (Tape::default(), Vec::new());
    let x = tape.images(&images, SIDES);
    let logits = small(&mut Network { tape: &mut tape, parameters: &mut parameters, asked: 0 }, x);
    for (image, logits) in tape.values(logits).chunks(CLASSES).enumerate() {
        assert!(logits.iter().all(|logit| logit.is_nan() == (image == 2)), "{image}: {logits:?}");
    }
}

#[test]
fn gradients_are_slopes_of_the_loss() {
    for body in [convolutional as Body, flattened, transformer] {
        let (mut tape, mut parameters) = (Tape::default(), Vec::new());
        loss(&mut tape, &mut parameters, body, true);
        let gradients: Vec<Vec<f64>> = (0..parameters.len()).map(|id| tape.gradient(id as u64).unwrap()).collect();
        for (id, gradient) in gradients.iter().enumerate() {
            let way = noise(id as u64 + 1000, gradient.len());
            let mut moved = |step: f64| {
                let mut other = parameters.clone();
                other[id].iter_mut().zip(&way).for_each(|(x, way)| *x += step * way);
                loss(&mut tape, &mut other, body, false)
            };
            let step = 1e-5;
            let expected = (moved(step) - moved(-step)) / (2.0 * step);
            let found: f64 = gradient.iter().zip(&way).map(|(g, way)| g * way).sum();
            assert!((found - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{id}: {found} {expected}");
        }
    }
}
