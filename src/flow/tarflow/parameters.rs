//! Parameters of a TarFlow by name: from weights, to weights, and the random start.

use burn::tensor::Device;
use rand_distr::{Distribution, StandardNormal, Uniform};

use super::{Attention, Block, EXPANSION, Layer, Linear, Mlp, Norm, TarFlow, TarFlowConfig};
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::parameters::{self, Builder, check_arrays};
use crate::flow::weights::{HostTensor, Weights};
use crate::units::Seed;

/// Name of the class means of the base distribution.
pub const MEANS: &str = "means";

/// Causal masks, which the paper's code stores beside the parameters.
fn is_mask(name: &str) -> bool {
    name.ends_with(".attn_mask")
}

impl TarFlowConfig {
    /// Names, below the layer's own, and shapes of the linear maps of one layer.
    fn linear_maps(&self) -> [(&'static str, [usize; 2]); 4] {
        let (c, hidden) = (self.channels, EXPANSION * self.channels);
        [
            ("attention.qkv", [3 * c, c]),
            ("attention.proj", [c, c]),
            ("mlp.main.0", [hidden, c]),
            ("mlp.main.2", [c, hidden]),
        ]
    }

    /// Name and shape of every array of such a TarFlow.
    pub fn arrays(&self) -> Vec<(String, Vec<usize>)> {
        let (t, p) = (self.tokens(), self.token_dims());
        let mut all = vec![("var".to_owned(), vec![t, p])];
        if self.shared_map {
            all.push((MEANS.to_owned(), vec![self.classes, t, p]));
        }
        all.extend((0..self.blocks).flat_map(|block| self.block_arrays(block)));
        all
    }

    /// Name and shape of every array of one block, in the order in which its layers use them.
    pub fn block_arrays(&self, block: usize) -> Vec<(String, Vec<usize>)> {
        let (t, p, c) = (self.tokens(), self.token_dims(), self.channels);
        let mut all = vec![("pos_embed".to_owned(), vec![t, c])];
        if self.embeddings() > 0 {
            all.push(("class_embed".to_owned(), vec![self.classes, 1, c]));
        }
        let mut affine = |name: &str, weight: &[usize]| {
            all.push((format!("{name}.weight"), weight.to_vec()));
            all.push((format!("{name}.bias"), vec![weight[0]]));
        };
        affine("proj_in", &[c, p]);
        for layer in (0..self.layers).map(|l| format!("attn_blocks.{l}")) {
            let [qkv, proj, up, down] = self.linear_maps();
            let mut affine = |name: &str, weight: &[usize]| affine(&format!("{layer}.{name}"), weight);
            affine("attention.norm", &[c]);
            [qkv, proj].iter().for_each(|(name, shape)| affine(name, shape));
            affine("mlp.norm", &[c]);
            [up, down].iter().for_each(|(name, shape)| affine(name, shape));
        }
        affine("proj_out", &[self.outputs(), c]);
        all.into_iter().map(|(name, shape)| (format!("blocks.{block}.{name}"), shape)).collect()
    }

    /// Whether `weights` are those of such a TarFlow: every array with its shape, nothing else but
    /// masks, finite values, and a base distribution with variances above 0.
    ///
    /// # Errors
    /// A sentence that names the array.
    pub fn check(&self, weights: &Weights) -> Result<(), String> {
        check_arrays(weights, &self.arrays(), is_mask)?;
        let var = weights.0.get("var").map_or(&[][..], |var| &var.values);
        match var.iter().find(|v| **v <= 0.0) {
            Some(value) => Err(format!("array 'var' holds {value} where numbers > 0 are needed")),
            None => Ok(()),
        }
    }

    /// A random start as in the paper's code: linear maps as PyTorch starts them (uniform in
    /// ±1/√inputs), embeddings and class means N(0, 0.01²), the last map's weight 0. Its bias is 0
    /// here too, so that a fresh flow is the identity.
    pub fn initial_weights(&self, seed: Seed) -> Weights {
        let arrays = self.arrays().into_iter().map(|(name, shape)| {
            let tensor = initial(seed, &name, &shape, self.fan_in(&name));
            (name, tensor)
        });
        Weights(arrays.collect())
    }

    /// Inputs of the linear map an array belongs to, if it belongs to one that starts at random.
    fn fan_in(&self, name: &str) -> Option<usize> {
        if name.contains(".proj_in.") {
            return Some(self.token_dims());
        }
        let maps = self.linear_maps();
        maps.iter().find(|(map, _)| name.contains(&format!(".{map}."))).map(|(_, [_, inputs])| *inputs)
    }
}

fn initial(seed: Seed, name: &str, shape: &[usize], fan_in: Option<usize>) -> HostTensor {
    let mut rng = seed.split(name).rng(0);
    let n = shape.iter().product::<usize>();
    if let (Some(inputs), Ok(unit)) = (fan_in, Uniform::new(-1.0, 1.0)) {
        let bound = (inputs as f32).sqrt().recip();
        return HostTensor::new(shape, (0..n).map(|_| bound * unit.sample(&mut rng)).collect());
    }
    if name.ends_with("_embed") || name == MEANS {
        let mut noise = || -> f32 { StandardNormal.sample(&mut rng) };
        return HostTensor::new(shape, (0..n).map(|_| 0.01 * noise()).collect());
    }
    let one = name == "var" || name.ends_with("norm.weight");
    HostTensor::full(shape, if one { 1.0 } else { 0.0 })
}

/// The parts of a TarFlow from its named arrays.
trait Parts {
    fn norm(&mut self, prefix: &str, channels: usize) -> Result<Norm, String>;
    fn linear(&mut self, prefix: &str, shape: [usize; 2]) -> Result<Linear, String>;
    fn layer(&mut self, config: &TarFlowConfig, prefix: &str) -> Result<Layer, String>;
    fn block(&mut self, config: &TarFlowConfig, prefix: &str) -> Result<Block, String>;
}

impl Parts for Builder<'_> {
    fn norm(&mut self, prefix: &str, channels: usize) -> Result<Norm, String> {
        Ok(Norm {
            weight: self.tensor(&format!("{prefix}.weight"), [channels])?,
            bias: self.tensor(&format!("{prefix}.bias"), [channels])?,
        })
    }

    fn linear(&mut self, prefix: &str, shape: [usize; 2]) -> Result<Linear, String> {
        Ok(Linear {
            weight: self.tensor(&format!("{prefix}.weight"), shape)?,
            bias: self.tensor(&format!("{prefix}.bias"), [shape[0]])?,
        })
    }

    fn layer(&mut self, config: &TarFlowConfig, prefix: &str) -> Result<Layer, String> {
        let c = config.channels;
        let [qkv, proj, up, down] = config.linear_maps().map(|(name, shape)| (format!("{prefix}.{name}"), shape));
        Ok(Layer {
            attention: Attention {
                norm: self.norm(&format!("{prefix}.attention.norm"), c)?,
                qkv: self.linear(&qkv.0, qkv.1)?,
                proj: self.linear(&proj.0, proj.1)?,
            },
            mlp: Mlp {
                norm: self.norm(&format!("{prefix}.mlp.norm"), c)?,
                up: self.linear(&up.0, up.1)?,
                down: self.linear(&down.0, down.1)?,
            },
        })
    }

    fn block(&mut self, config: &TarFlowConfig, prefix: &str) -> Result<Block, String> {
        let (t, p, c) = (config.tokens(), config.token_dims(), config.channels);
        let layers = (0..config.layers).map(|l| self.layer(config, &format!("{prefix}.attn_blocks.{l}")));
        let attn_blocks = layers.collect::<Result<_, _>>()?;
        let class_embed = match config.embeddings() {
            0 => None,
            classes => Some(self.tensor(&format!("{prefix}.class_embed"), [classes, 1, c])?),
        };
        Ok(Block {
            proj_in: self.linear(&format!("{prefix}.proj_in"), [c, p])?,
            pos_embed: self.tensor(&format!("{prefix}.pos_embed"), [t, c])?,
            class_embed,
            attn_blocks,
            proj_out: self.linear(&format!("{prefix}.proj_out"), [config.outputs(), c])?,
        })
    }
}

impl TarFlow {
    /// A TarFlow on `device` from named arrays, which must be exactly its own
    /// ([`TarFlowConfig::check`]).
    ///
    /// # Errors
    /// Names the array.
    pub fn from_weights(
        config: &TarFlowConfig,
        weights: Weights,
        device: &Device,
        precision: Precision,
    ) -> Result<Self> {
        let misfit = |e: String| Error::input(format!("weights do not fit this TarFlow: {e}"));
        config.validate()?;
        config.check(&weights).map_err(misfit)?;
        let mut builder = Builder::new(weights, device, precision);
        let blocks = (0..config.blocks).map(|b| builder.block(config, &format!("blocks.{b}")));
        let blocks = blocks.collect::<Result<_, _>>().map_err(misfit)?;
        let (t, p) = (config.tokens(), config.token_dims());
        let means = config.shared_map.then(|| builder.tensor(MEANS, [config.classes, t, p])).transpose();
        let means = means.map_err(misfit)?;
        let var = builder.constant("var", [t, p]).map_err(misfit)?;
        Ok(Self { var, means, blocks })
    }

    /// All parameters by name, on the host.
    ///
    /// # Errors
    /// When the device cannot deliver them.
    pub fn to_weights(&self) -> Result<Weights> {
        parameters::to_weights(self, Self::state_name)
    }

    /// State-dict name of the parameter at a path of fields: the linear maps of an MLP have numbers
    /// there.
    pub fn state_name(path: &[String]) -> String {
        path.join(".").replace(".mlp.up.", ".mlp.main.0.").replace(".mlp.down.", ".mlp.main.2.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;

    const CONFIG: TarFlowConfig = TarFlowConfig {
        shape: ImageShape { channels: 3, height: 4, width: 4 },
        classes: 2,
        patch: 2,
        channels: 64,
        blocks: 2,
        layers: 2,
        volume_preserving: false,
        shared_map: false,
    };

    #[test]
    fn a_random_start_has_its_arrays_and_comes_back_from_the_device() {
        for config in [CONFIG, TarFlowConfig { classes: 0, volume_preserving: true, ..CONFIG }] {
            let weights = config.initial_weights(Seed(1));
            config.check(&weights).unwrap();
            let flow = TarFlow::from_weights(&config, weights.clone(), &Device::flex(), Precision::F32).unwrap();
            assert_eq!(flow.to_weights().unwrap(), weights);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refusal = |change: &dyn Fn(&mut Weights)| {
            let mut weights = CONFIG.initial_weights(Seed(1));
            change(&mut weights);
            CONFIG.check(&weights).unwrap_err()
        };
        let mask = |w: &mut Weights| drop(w.0.insert("blocks.0.attn_mask".into(), HostTensor::full([4, 4], 1.0)));
        let mut with_mask = CONFIG.initial_weights(Seed(1));
        mask(&mut with_mask);
        CONFIG.check(&with_mask).unwrap();
        assert!(refusal(&|w| drop(w.0.remove("blocks.1.pos_embed"))).contains("'blocks.1.pos_embed' is missing"));
        assert!(refusal(&|w| drop(w.0.insert("extra".into(), HostTensor::full([1], 0.0)))).contains("'extra'"));
        assert!(refusal(&|w| w.0.get_mut("var").unwrap().values[0] = 0.0).contains("'var' holds 0"));
    }
}
