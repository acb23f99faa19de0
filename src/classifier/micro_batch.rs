//! Loss and gradients of a part of a batch, and answers: by burn's tensors, or on the CPU by our own
//! kernels, which the tests hold against each other.

use burn::module::{Module, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Device, Element, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::compute::{CpuLayers, Layers};
use super::cpu::Tape;
use super::descriptor::Backbone;
use super::layers::{Narrow, Pass};
use super::{Classifier, PASS, architecture::Network, resized};
use crate::data::ImageShape;
use crate::device::MatmulPrecision;
use crate::error::Result;
use crate::flow::parameters::to_host;
use crate::gradients::{Scale, gradients_of};
use crate::kernels::{Pool, Real};

/// Tokens that pass together where images do not depend on each other: what they leave behind stays
/// in the caches.
const TOKENS: usize = 1024;
/// Rows of such passes that run side by side. A constant, so that sums come out the same on any
/// number of cores; more would take the memory of as many gradients.
const STRANDS: usize = 2;

/// Values that a convolutional network's pass for answers may keep (256 MiB), and images that it takes at
/// least: fewer would make narrow products.
const MOST_VALUES: usize = 1 << 26;
const LEAST_IMAGES: usize = 8;

/// A part of a batch.
#[derive(Debug, Clone, Copy)]
pub struct MicroBatch<'a> {
    /// [N, C, H, W]
    pub images: &'a [f32],
    /// [N, K]
    pub targets: &'a [f32],
    /// What the loss is multiplied by before its gradient is taken: one over the images of the
    /// batch.
    pub share: f64,
}

/// What a part of a batch left behind.
pub struct MicroBatchGradients {
    /// Σ over images of −Σ_y t_y log q_y, nats.
    pub loss: f64,
    /// Gradients of its share.
    pub grads: GradientsParams,
    /// Running statistics after it.
    pub moved: Vec<(ParamId, Tensor<1>)>,
}

impl Classifier {
    /// Whether our own kernels train it.
    pub(super) fn trains_on_cpu(&self, products: MatmulPrecision) -> bool {
        let on_cpu = self.device().inner() == Device::flex() && self.dtype == DType::F32;
        on_cpu && products == MatmulPrecision::F32 && self.macs_per_image().is_some()
    }

    /// By burn's tensors, on any device. `network` is this one's, as the thread of this part has
    /// it.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn gradients(
        &self,
        network: &Network,
        batch: MicroBatch<'_>,
        products: MatmulPrecision,
        mut pass: Pass,
    ) -> Result<MicroBatchGradients> {
        let narrowed = match products.narrow() {
            Some(dtype) => network.clone().map(&mut Narrow { names: &self.names, dtype }),
            None => network.clone(),
        };
        let loss = Self { network: narrowed, ..self.clone() }.cross_entropy(batch.images, batch.targets, &mut pass);
        let measured = to_host(loss.clone())?;
        let scale = products.loss_scale();
        let mut grads = gradients_of(loss * (scale * batch.share), network);
        if scale != 1.0 {
            network.visit(&mut Scale { grads: &mut grads, factor: scale.recip() });
        }
        Ok(MicroBatchGradients { loss: measured[0], grads, moved: pass.moved })
    }

    /// Σ over images of −Σ_y t_y log q_y, [1].
    fn cross_entropy(&self, images: &[f32], targets: &[f32], pass: &mut Pass) -> Tensor<1> {
        let device = self.device();
        let k = self.config.classes;
        let logits = self.forward(self.upload(images, &device), pass);
        let targets: Tensor<2> =
            Tensor::from_data(TensorData::new(targets.to_vec(), [targets.len() / k, k]), (&device, self.dtype));
        -(log_softmax(logits, 1) * targets).sum()
    }

    /// By our own kernels, on the memory of earlier ones; `None` for a network they do not know.
    /// All parameters are of the format `T`.
    ///
    /// # Errors
    /// When images cannot be resized.
    pub(super) fn gradients_on_cpu<T: Real + Element>(
        &self,
        network: &Network,
        batch: MicroBatch<'_>,
        chance: &ChaCha8Rng,
        tapes: &Pool<Tape<T>>,
    ) -> Result<Option<MicroBatchGradients>> {
        let images = self.scaled(batch.images)?;
        let batch = MicroBatch { images: &images, ..batch };
        // On a thread of the pool: from outside, every division of work would first wake it and
        // then wait for it.
        Ok(rayon::scope(|_| self.strands(network, batch, chance, tapes)))
    }

    /// [`Self::gradients_on_cpu`] for images of the size that the network sees, in strands whose
    /// gradients are added in order.
    fn strands<T: Real + Element>(
        &self,
        network: &Network,
        batch: MicroBatch<'_>,
        chance: &ChaCha8Rng,
        tapes: &Pool<Tape<T>>,
    ) -> Option<MicroBatchGradients> {
        let (dims, k) = (self.config.input().dims(), self.config.classes);
        let n = batch.targets.len() / k;
        let together = network.tokens().map_or(n, |tokens| TOKENS / tokens).clamp(1, n.max(1));
        let passes: Vec<_> = batch.images.chunks(together * dims).zip(batch.targets.chunks(together * k)).collect();
        let strands = STRANDS.min(passes.len());
        let strand = |strand: usize| {
            let mut tape = tapes.take(|_| true, Tape::default);
            tape.begin();
            let (mut loss, mut moved) = (0.0, Vec::new());
            for (index, &(images, targets)) in passes.iter().enumerate().skip(strand).step_by(strands) {
                let batch = MicroBatch { images, targets, share: batch.share };
                let mut chance = chance.clone();
                // Every pass has chance of its own; the first that of the batch.
                chance.set_stream(chance.get_stream() | (index as u64) << 32);
                let more;
                (more, moved) = self.pass(network, batch, chance, &mut tape)?;
                loss += more;
            }
            Some((loss, moved, tape))
        };
        let done = (0..strands).into_par_iter().map(strand).collect::<Option<Vec<_>>>()?;
        let mut done = done.into_iter();
        let (mut loss, moved, mut tape) = done.next()?;
        for (more, _, mut other) in done {
            loss += more;
            tape.add_gradients(&mut other);
            tapes.give(other);
        }
        let grads = CpuLayers::gradients(&mut tape, network);
        tapes.give(tape);
        Some(MicroBatchGradients { loss, grads, moved })
    }

    /// The loss of images that pass together, whose gradients `tape` gathers, and the running
    /// statistics after them.
    fn pass<T: Real + Element>(
        &self,
        network: &Network,
        batch: MicroBatch<'_>,
        chance: ChaCha8Rng,
        tape: &mut Tape<T>,
    ) -> Option<(f64, Vec<(ParamId, Tensor<1>)>)> {
        let ImageShape { channels, height, width } = self.config.input();
        let mut layers = CpuLayers::training(tape, chance);
        let x = layers.tape.images(batch.images, [channels, height, width]);
        let features = network.features_by(x, &mut layers)?;
        let logits = layers.linear(network.head(), features);
        let moved = layers.moved;
        let (loss, slope) = tape.cross_entropy(logits, batch.targets, batch.share);
        tape.backward(logits, &slope);
        Some((loss, moved))
    }

    /// Logits [N, K] of images [N, C, H, W] by our own kernels; `None` for a network they do not know, and on
    /// another device.
    ///
    /// # Errors
    /// When images cannot be resized.
    pub(super) fn logits_on_cpu(&self, images: &[f32]) -> Result<Option<Vec<f64>>> {
        let on_cpu = self.device().inner() == Device::flex() && self.dtype == DType::F32;
        let Some(counted) = self.counted().filter(|_| on_cpu) else { return Ok(None) };
        let together = match self.network.tokens() {
            Some(tokens) => (TOKENS / tokens).max(1),
            None => PASS.min(MOST_VALUES / counted.values.max(1)),
        };
        if self.network.tokens().is_none() && together < LEAST_IMAGES {
            return Ok(None);
        }
        let images = self.scaled(images)?;
        Ok(rayon::scope(|_| self.answers(&images, together)))
    }

    /// [`Self::logits_on_cpu`] for images of the size that the network sees, so many at a time.
    fn answers(&self, images: &[f32], together: usize) -> Option<Vec<f64>> {
        let ImageShape { channels, height, width } = self.config.input();
        let mut tape = Tape::<f32>::of_answers();
        let mut answers = Vec::new();
        for images in images.chunks(together * channels * height * width) {
            let mut layers = CpuLayers::evaluation(&mut tape);
            let x = layers.tape.images(images, [channels, height, width]);
            let features = self.network.features_by(x, &mut layers)?;
            let logits = layers.linear(self.network.head(), features);
            answers.extend(tape.values(logits).iter().map(|logit| f64::from(*logit)));
            tape.forget();
        }
        Some(answers)
    }

    /// Images of the size that the network sees.
    fn scaled<'a>(&self, images: &'a [f32]) -> Result<std::borrow::Cow<'a, [f32]>> {
        let ImageShape { height, width, .. } = self.config.input();
        if (height, width) == (self.config.shape.height, self.config.shape.width) {
            return Ok(images.into());
        }
        let resized = resized(self.upload(images, &Device::flex()), [height, width]);
        Ok(to_host(resized)?.into_iter().map(|v| v as f32).collect::<Vec<f32>>().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{Architecture, ClassifierConfig};
    use crate::flow::Precision;
    use crate::flow::base::latents;
    use crate::gradients::on_host;
    use crate::units::Seed;
    use std::collections::BTreeMap;

    const K: usize = 3;
    const N: usize = 12;

    fn values(classifier: &Classifier, found: &MicroBatchGradients) -> BTreeMap<String, Vec<f64>> {
        let moved = found.moved.iter().map(|(id, moved)| (*id, to_host(moved.clone()).unwrap()));
        let all = on_host(&classifier.network, &found.grads).unwrap().into_iter().chain(moved);
        all.map(|(id, values)| (classifier.names[&id].clone(), values)).collect()
    }

    /// Largest difference of the gradient or the running statistics of any parameter, as a share of
    /// their length. (Not of single numbers: where rounding decides on which side of a ReLU a value
    /// lies, one of them moves by a whole image's part.)
    fn difference(a: &BTreeMap<String, Vec<f64>>, b: &BTreeMap<String, Vec<f64>>) -> f64 {
        assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
        let length = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
        let of = |name: &String| {
            let (a, b) = (&a[name], &b[name]);
            assert_eq!(a.len(), b.len(), "{name}");
            length(&mut a.iter().zip(b).map(|(a, b)| a - b)) / length(&mut b.iter().copied()).max(1e-6)
        };
        a.keys().map(of).fold(0.0, f64::max)
    }

    /// What two computations in f64 may differ by: images that were scaled come to our kernels in
    /// 32 bits.
    fn rounding(resize: Option<usize>) -> f64 {
        if resize.is_some() { 1e-7 } else { 1e-10 }
    }

    /// The same part of a batch by burn in f64 beside our kernels in f64, ours in f32, and burn in
    /// f32.
    fn compared(architecture: Architecture, side: usize, resize: Option<usize>) -> [f64; 3] {
        let shape = ImageShape { channels: 3, height: side, width: side };
        let config = ClassifierConfig { architecture, shape, classes: K, resize };
        let device = Device::flex().autodiff();
        // A ViT's head starts at 0, and then nothing before it has a gradient.
        let mut weights = Classifier::new(&config, Seed(5), &device, Precision::F32).unwrap().to_weights().unwrap();
        for (name, array) in weights.0.iter_mut().filter(|(name, _)| name.starts_with(architecture.head())) {
            let noise = latents(Seed(7).split(name), 0, 1, array.values.len());
            array.values = noise.iter().map(|x| 0.05 * x).collect();
        }
        let make = |precision| Classifier::from_weights(&config, weights.clone(), &device, precision).unwrap();
        let (wide, narrow) = (make(Precision::F64), make(Precision::F32));
        let images = latents(Seed(3), 0, N, shape.dims());
        let targets: Vec<f32> = (0..N).flat_map(|i| [[0.7, 0.2, 0.1], [0.0, 0.25, 0.75]][i % 2]).collect();
        let batch = MicroBatch { images: &images, targets: &targets, share: 0.25 };
        let chance = Seed(1).rng(0);
        let burns = |classifier: &Classifier| {
            classifier
                .gradients(&classifier.network, batch, MatmulPrecision::F32, Pass::training(chance.clone()))
                .unwrap()
        };
        let plain = burns(&wide);
        let (tapes64, tapes32) = (Pool::<Tape<f64>>::default(), Pool::<Tape<f32>>::default());
        let own64 = wide.gradients_on_cpu(&wide.network, batch, &chance, &tapes64).unwrap().unwrap();
        // Twice: the second time everything lies in memory that was used before.
        narrow.gradients_on_cpu(&narrow.network, batch, &chance, &tapes32).unwrap().unwrap();
        let own32 = narrow.gradients_on_cpu(&narrow.network, batch, &chance, &tapes32).unwrap().unwrap();
        assert!((own64.loss / plain.loss - 1.0).abs() < rounding(resize), "{} {}", own64.loss, plain.loss);
        let burns32 = burns(&narrow);
        let far = |found: &MicroBatchGradients| (found.loss / plain.loss - 1.0).abs();
        assert!(far(&own32) < 3.0 * far(&burns32) + 1e-4, "{} {} {}", own32.loss, burns32.loss, plain.loss);
        let expected = values(&wide, &plain);
        let found = [(&wide, &own64), (&narrow, &own32), (&narrow, &burns32)];
        found.map(|(classifier, found)| difference(&values(classifier, found), &expected))
    }

    #[test]
    fn our_kernels_give_the_gradients_of_burns() {
        // Maps of 8 × 8 down to 1 × 1 for the ResNets, and some of odd sides; 5 and 65 tokens.
        let cases = [
            (Architecture::ResNet18, 32, None),
            (Architecture::ResNet18, 33, None),
            (Architecture::ResNet50, 16, None),
            (Architecture::VitSmall, 8, None),
            (Architecture::VitSmall, 8, Some(32)),
            (Architecture::Linear, 5, None),
            (Architecture::Mlp500, 9, None),
            // With the same units dropped; a column and a row that no window of the pool reaches.
            (Architecture::Convnet, 13, None),
        ];
        for (architecture, side, resize) in cases {
            let [wide, narrow, burns] = compared(architecture, side, resize);
            assert!(wide < 10.0 * rounding(resize), "{architecture:?} {side}: f64 {wide:e}");
            assert!(narrow < 3.0 * burns + 1e-4, "{architecture:?} {side}: f32 {narrow:e}, burn's {burns:e}");
        }
    }

    #[test]
    fn our_kernels_give_the_answers_of_burns() {
        let shape = ImageShape { channels: 3, height: 12, width: 12 };
        // More than one pass of the Transformer, the last a short one.
        let images = latents(Seed(3), 0, 121, shape.dims());
        for architecture in [
            Architecture::Linear,
            Architecture::Mlp500,
            Architecture::Convnet,
            Architecture::ResNet18,
            Architecture::VitSmall,
        ] {
            let config = ClassifierConfig { architecture, shape, classes: K, resize: None };
            let drawn = Classifier::new(&config, Seed(5), &Device::flex(), Precision::F32).unwrap();
            // Running statistics of some batch, and a head that is not 0.
            let mut weights = drawn.to_weights().unwrap();
            for (name, array) in &mut weights.0 {
                let noise = latents(Seed(7).split(name), 0, 1, array.values.len());
                let more = if name.ends_with("running_var") { 0.3 } else { 0.02 };
                array.values.iter_mut().zip(noise).for_each(|(value, noise)| *value += more * noise.abs());
            }
            let make =
                |precision| Classifier::from_weights(&config, weights.clone(), &Device::flex(), precision).unwrap();
            let (wide, narrow) = (make(Precision::F64), make(Precision::F32));
            assert!(wide.logits_on_cpu(&images).unwrap().is_none());
            let (expected, found) =
                (wide.logits(&images, 50).unwrap(), narrow.logits_on_cpu(&images).unwrap().unwrap());
            let size = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
            let off = expected.iter().zip(&found).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            assert!(expected.len() == 121 * K && off < 1e-5 * size, "{architecture:?}: {off:e} of {size:e}");
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let shape = ImageShape { channels: 3, height: 32, width: 32 };
        // Three passes of 15 images of 65 tokens.
        let images = latents(Seed(3), 0, 40, shape.dims());
        let targets: Vec<f32> = (0..40 * K).map(|i| f32::from(i % K == 0)).collect();
        for architecture in [Architecture::ResNet18, Architecture::VitSmall, Architecture::Convnet] {
            let config = ClassifierConfig { architecture, shape, classes: K, resize: None };
            let classifier = Classifier::new(&config, Seed(5), &Device::flex().autodiff(), Precision::F32).unwrap();
            let batch = MicroBatch { images: &images, targets: &targets, share: 1.0 };
            let by = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let tapes = Pool::<Tape<f32>>::default();
                let found =
                    pool.install(|| classifier.gradients_on_cpu(&classifier.network, batch, &Seed(1).rng(0), &tapes));
                let found = found.unwrap().unwrap();
                (found.loss, values(&classifier, &found))
            };
            assert!(by(1) == by(3), "{architecture:?}");
        }
    }
}
