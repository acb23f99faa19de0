//! A frozen TarFlow: its passes and its base distribution.

use burn::tensor::Device;

use super::cpu::CpuTarFlow;
use super::engine::Engine;
use super::plan::output_norms;
use super::{TarFlowConfig, TensorTarFlow};
use crate::device::MatmulPrecision;
use crate::error::{Error, Result};
use crate::flow::Precision;
use crate::flow::weights::Weights;

/// One TarFlow and its base distribution.
pub struct Map {
    /// What computes its passes.
    pub engine: Box<dyn Engine>,
    /// Variance of the base distribution at τ = 1, [T, P].
    pub var: Vec<f64>,
    /// ½ Σ_d log(2π var_d), nats.
    pub log_norm: f64,
    /// Spectral norms of the halves of every block's last linear map.
    pub output_norms: Vec<[f64; 2]>,
}

/// What computes best on a device: our own kernels on the CPU, burn elsewhere.
fn engine(config: &TarFlowConfig, weights: Weights, device: &Device, precision: Precision) -> Result<Box<dyn Engine>> {
    if *device != Device::flex() {
        return Ok(Box::new(TensorTarFlow::new(config, weights, device, precision)?));
    }
    Ok(match precision {
        Precision::F32 => Box::new(CpuTarFlow::<f32>::new(config, weights).map_err(misfit)?),
        Precision::F64 => Box::new(CpuTarFlow::<f64>::new(config, weights).map_err(misfit)?),
    })
}

fn misfit(cause: String) -> Error {
    Error::input(format!("weights do not fit this TarFlow: {cause}"))
}

impl Map {
    /// From named arrays, on a device.
    ///
    /// # Errors
    /// When such a flow cannot exist, or an array is missing or misshapen.
    pub fn new(config: &TarFlowConfig, weights: Weights, device: &Device, precision: Precision) -> Result<Self> {
        // First of all: what follows takes shapes and values at their word.
        config.validate()?;
        config.check(&weights).map_err(misfit)?;
        let var = weights.0.get("var").map(|var| &var.values[..]).unwrap_or_default();
        let var: Vec<f64> = var.iter().map(|&v| f64::from(v)).collect();
        let log_norm = var.iter().map(|v| 0.5 * (2.0 * std::f64::consts::PI * v).ln()).sum();
        let output_norms = (0..config.blocks).map(|block| output_norms(config, &weights, block)).collect();
        Ok(Self { engine: engine(config, weights, device, precision)?, var, log_norm, output_norms })
    }

    /// The same map with its matrix products in another format, to draw images.
    ///
    /// # Errors
    /// As [`Engine::narrowed`].
    pub fn narrowed(&self, products: MatmulPrecision) -> Result<Self> {
        let engine = self.engine.narrowed(products)?;
        Ok(Self { engine, var: self.var.clone(), log_norm: self.log_norm, output_norms: self.output_norms.clone() })
    }
}
