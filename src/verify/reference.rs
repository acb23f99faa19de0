//! Flows and classifiers of the test suite's references (tests/reference): numbers that the papers'
//! own code and torchvision computed in 64 bits. These show a CPU that computes wrongly, too.

use serde_json::Value;

use super::bounds::{self, LOGITS, ROUNDED_LOGITS};
use super::checks::Checks;
use super::filled::Filled;
use super::flows::wide;
use super::subject::Subject;
use crate::classifier::{Architecture as Network, Classifier, ClassifierConfig, Pass};
use crate::data::ImageShape;
use crate::device::to_host;
use crate::error::{Error, Result};
use crate::events::silent;
use crate::flow::import::checkpoint_from_bytes;
use crate::flow::preprocess::Preprocessing;
use crate::flow::sampling::{Guess, Strategy};
use crate::flow::tarflow::TarFlowConfig;
use crate::flow::weights::{HostTensor, Weights};
use crate::flow::{Architecture, Flow, Precision, Scores};
use crate::oracle::posterior::{Posterior, Prior};
use crate::units::{Smoothing, Tau};

const GLOW: &[u8] = include_bytes!("../../tests/reference/glow/config1.json");
const GLOW_WEIGHTS: &[u8] = include_bytes!("../../tests/reference/glow/config1.safetensors");
const TARFLOW: &[u8] = include_bytes!("../../tests/reference/tarflow/config1.json");

/// A classifier of torchvision's, its weights by the formula.
pub type Reference = (&'static [u8], Network);

/// Convolutions without padding, max-pooling.
pub const CONVNET: Reference =
    (include_bytes!("../../tests/reference/classifiers/mnist_convnet.json"), Network::Convnet);
/// Strided convolutions and batch normalisation.
pub const RESNET: Reference = (include_bytes!("../../tests/reference/classifiers/resnet18.json"), Network::ResNet18);
/// Depthwise convolutions, hard swish, squeeze and excitation.
pub const MOBILENET: Reference =
    (include_bytes!("../../tests/reference/classifiers/mobilenet_v3_large.json"), Network::MobileNet);
/// Attention in windows that shift, layer normalisation, GELU.
pub const SWIN: Reference = (include_bytes!("../../tests/reference/classifiers/swin_t.json"), Network::SwinT);

/// One file of the reference.
struct Golden {
    json: Value,
    seed: u64,
}

impl Golden {
    fn read(text: &[u8]) -> Result<Self> {
        let json: Value = serde_json::from_slice(text).map_err(|e| Error::input(format!("a reference: {e}")))?;
        let seed = json["seed"].as_u64().unwrap_or_default();
        Ok(Self { json, seed })
    }

    /// Numbers under `key/key/…`.
    fn numbers(&self, path: &str) -> Vec<f64> {
        numbers(path.split('/').fold(&self.json, |value, key| &value[key]))
    }

    /// A whole number under `key/key/…`.
    fn whole(&self, key: &str) -> usize {
        self.numbers(key).first().map_or(0, |number| *number as usize)
    }

    fn filled(&self, key: &str) -> Result<Filled> {
        Filled::described(&self.json[key], self.seed)
    }

    /// The arrays of its table of parameters.
    fn weights(&self) -> Weights {
        let table = self.json["params"].as_array().map(Vec::as_slice).unwrap_or_default();
        let filled = table.iter().filter_map(|entry| Filled::parameter(entry, self.seed));
        Weights(filled.map(|f| (f.name, HostTensor::new(f.shape, f.values))).collect())
    }
}

/// The numbers of a nested list, or of `{shape, data}`.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Object(array) => array.get("data").map(numbers).unwrap_or_default(),
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => number.as_f64().into_iter().collect(),
    }
}

/// log p(x|y) and p(y|x) of every image.
pub fn densities(scores: &Scores, tau: Tau) -> (Vec<f64>, Vec<f64>) {
    let prior = Prior::uniform(scores.classes);
    let posterior = |i| Posterior::new(scores.log_likelihoods(i, tau), &prior, Smoothing::ONE);
    let all: Vec<Posterior> = (0..scores.len()).map(posterior).collect();
    let gather = |part: fn(&Posterior) -> &[f64]| all.iter().flat_map(part).copied().collect();
    (gather(|p| &p.log_likelihood), gather(|p| &p.probabilities))
}

/// EBO's conditional Glow, as tests/glow_reference/values.rs has it.
pub fn glow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let golden = Golden::read(GLOW)?;
    let checkpoint = checkpoint_from_bytes("tests/reference/glow/config1.safetensors".as_ref(), GLOW_WEIGHTS)?;
    let flow = subject.flow(&checkpoint.inferred.architecture, checkpoint.weights, Preprocessing::Uniform)?;
    let shared = flow.latent_space().ok_or_else(|| Error::input("a Glow has a latent space"))?;
    let (levels, noise) = (golden.filled("input")?.values, golden.filled("dequant")?.values);
    let x: Vec<f64> = wide(&levels).iter().zip(wide(&noise)).map(|(x, u)| (255.0 * x + u) / 256.0).collect();
    let mapped = shared.encode_base(&x)?;
    let bounds = bounds::glow(subject.is_adapter(), flow.shape().dims());
    checks.within("z", &mapped.images, &golden.numbers("z"), bounds.z);
    let scores = flow.score(&x.iter().map(|v| *v as f32).collect::<Vec<f32>>())?;
    for name in ["1.0", "0.7"] {
        let (log_p, posterior) = densities(&scores, Tau::new(name.parse().unwrap_or(f64::NAN))?);
        for (what, found, key, bound) in
            [("log p(x|y)", &log_p, "logp", bounds.log_p), ("p(y|x)", &posterior, "posterior", bounds.posterior)]
        {
            let expected = golden.numbers(&format!("tau/{name}/{key}"));
            checks.within(&format!("{what}, τ = {name}"), found, &expected, bound);
        }
    }
    let classes: Vec<usize> = golden.numbers("sample_classes").iter().map(|class| *class as usize).collect();
    let made = flow.decode(&golden.filled("z_input")?.values, &classes, Tau::ONE, &mut silent())?;
    // The reference stores p = σ(y) and calls it the image; a world undoes its bounds, too.
    let reach = f64::from(0.9f32);
    let p: Vec<f64> = made.x.iter().map(|v| ((2.0 * f64::from(*v) - 1.0) * reach + 1.0) / 2.0).collect();
    checks.within("x of z", &p, &golden.numbers("reverse/1.0/image"), bounds.x);
    Ok(())
}

/// Apple's TarFlow, as tests/tarflow_reference/values.rs has it.
pub fn tarflow(subject: &Subject, checks: &mut Checks) -> Result<()> {
    let golden = Golden::read(TARFLOW)?;
    let side = golden.whole("model/img_size");
    let config = TarFlowConfig {
        shape: ImageShape { channels: golden.whole("model/in_channels"), height: side, width: side },
        classes: golden.whole("model/num_classes"),
        patch: golden.whole("model/patch_size"),
        channels: golden.whole("model/channels"),
        blocks: golden.whole("model/num_blocks"),
        layers: golden.whole("model/layers_per_block"),
        volume_preserving: false,
        shared_map: false,
    };
    let pixels = Preprocessing::Gaussian { std: 0.05 };
    let flow = subject.flow(&Architecture::TarFlow(config), golden.weights(), pixels)?;
    let bounds = bounds::tarflow(subject.is_adapter(), config.shape.dims());
    let x = golden.filled("input")?.values;
    let n = x.len() / config.shape.dims();
    // Its base has variance 1: z is the noise.
    let z = flow.noise(&x, &vec![1; n], Tau::ONE)?;
    checks.within("z", &z, &config.unpatchify(&golden.numbers("forward/1/z")), bounds.z);
    let (log_p, posterior) = densities(&flow.score(&x)?, Tau::ONE);
    let by_class: Vec<Vec<f64>> =
        (0..config.classes).map(|class| golden.numbers(&format!("forward/{class}/logp_var"))).collect();
    let expected = (0..n).flat_map(|i| by_class.iter().filter_map(move |of| of.get(i).copied()));
    checks.within("log p(x|y)", &log_p, &expected.collect::<Vec<f64>>(), bounds.log_p);
    checks.within("p(y|x)", &posterior, &golden.numbers("posterior"), bounds.posterior);
    let noise = config.unpatchify(&golden.filled("z_input")?.values);
    let classes: Vec<usize> = golden.numbers("reverse/plain/y").iter().map(|class| *class as usize).collect();
    sampled(flow.as_ref(), checks, (&noise, &classes), &golden.numbers("reverse/plain/x"), bounds.x)
}

/// Every way of inverting the blocks of a flow that has a choice, and the image it is to end in.
pub fn sampled(
    flow: &dyn Flow,
    checks: &mut Checks,
    (noise, classes): (&[f32], &[usize]),
    expected: &[f64],
    bound: f64,
) -> Result<()> {
    // As in tests/tarflow_reference/values.rs.
    let jacobi = |modules, guess| Strategy::Jacobi { modules, guess, tolerance: 1e-7 };
    let ways =
        [("token by token", Strategy::Loop), ("Jacobi", jacobi(1, Guess::Z)), ("GS-Jacobi", jacobi(4, Guess::Zero))];
    let blocks = flow.block_inversion().ok_or_else(|| Error::input("a TarFlow is inverted block after block"))?;
    let number = blocks.strategies().len();
    for (name, way) in ways {
        blocks.set_strategies(vec![way; number]);
        let made = flow.decode(noise, classes, Tau::ONE, &mut silent())?.x;
        checks.within(&format!("x of z, {name}"), &wide(&made), expected, bound);
    }
    Ok(())
}

/// Logits of a classifier, as tests/classifier_reference has them.
pub fn logits(subject: &Subject, checks: &mut Checks, (text, architecture): Reference) -> Result<()> {
    let golden = Golden::read(text)?;
    let images = golden.filled("input")?;
    let [_, channels, height, width] = images.shape[..] else {
        return Err(Error::input("a reference has images of four dimensions"));
    };
    let config = ClassifierConfig {
        architecture,
        shape: ImageShape { channels, height, width },
        classes: golden.whole("num_classes"),
        resize: None,
    };
    let (weights, device) = ((subject.weights)(golden.weights()), &subject.chosen.device);
    let network = Classifier::from_weights(&config, weights, device, Precision::F32)?;
    let found = to_host(network.forward(network.upload(&images.values, device), &mut Pass::evaluation()))?;
    let expected = golden.numbers("logits");
    if subject.rounds() {
        checks.rounded(true);
        checks.within_scale("logits", &found, &expected, ROUNDED_LOGITS);
    } else {
        checks.within("logits", &found, &expected, bounds::of(subject.is_adapter(), LOGITS));
    }
    Ok(())
}
