//! Parameters of a burn module by their state-dict names: from named weights and back. Names are
//! those of the public checkpoints, so that theirs open here and ours open there.

use burn::module::{Module, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::Precision;
pub use crate::device::to_host;
use crate::error::Result;
use crate::flow::weights::{HostTensor, Weights};
use crate::units::Seed;

impl Precision {
    /// burn's name for it.
    pub fn dtype(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F64 => DType::F64,
        }
    }
}

/// Builds parameters on a device from named arrays, which it uses up.
pub struct Builder<'a> {
    weights: Weights,
    device: &'a Device,
    dtype: DType,
}

impl<'a> Builder<'a> {
    /// From the arrays of one module.
    pub fn new(weights: Weights, device: &'a Device, precision: Precision) -> Self {
        Self { weights, device, dtype: precision.dtype() }
    }

    /// A parameter, trained where the device differentiates.
    ///
    /// # Errors
    /// A sentence that names the array.
    pub fn tensor<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Param<Tensor<D>>, String> {
        let tensor = self.upload(name, shape)?;
        let tensor = if self.device.is_autodiff() { tensor.require_grad() } else { tensor };
        // Identified by name, so that an optimizer's saved state finds its parameter again in
        // another process.
        Ok(Param::initialized(param_id(name), tensor))
    }

    /// A number that is measured or given, never trained.
    ///
    /// # Errors
    /// A sentence that names the array.
    pub fn constant<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Param<Tensor<D>>, String> {
        Ok(Param::initialized(param_id(name), self.upload(name, shape)?))
    }

    fn upload<const D: usize>(&mut self, name: &str, shape: [usize; D]) -> Result<Tensor<D>, String> {
        let values = self.weights.take(name, &shape)?;
        Ok(Tensor::from_data(TensorData::new(values, shape), (self.device, self.dtype)))
    }
}

/// The identity of a parameter: the first 8 bytes of the hash of its name.
pub fn param_id(name: &str) -> ParamId {
    ParamId::from(Seed(0).split(name).0)
}

/// All parameters of a module on the host, named by `name` from their path of fields.
///
/// # Errors
/// When the device cannot deliver them.
pub fn to_weights(module: &impl Module, name: fn(&[String]) -> String) -> Result<Weights> {
    to_weights_by(module, &|path, _| name(path))
}

/// All parameters of a module on the host, named by their path of fields or their identity.
///
/// # Errors
/// When the device cannot deliver them.
pub fn to_weights_by(module: &impl Module, name: &dyn Fn(&[String], ParamId) -> String) -> Result<Weights> {
    let mut collector = Collector { path: Vec::new(), name, weights: Ok(Weights::default()) };
    module.visit(&mut collector);
    collector.weights
}

/// Gradients computed elsewhere, given by state-dict name, as an optimizer of `module` takes them.
/// Arrays that `module` lacks or has in another shape are left out.
pub fn to_gradients(module: &impl Module, name: fn(&[String]) -> String, gradients: &Weights) -> GradientsParams {
    add_gradients(module, name, gradients, GradientsParams::new())
}

/// The same beside gradients of other parameters that are `found` already.
pub fn add_gradients(
    module: &impl Module,
    name: fn(&[String]) -> String,
    gradients: &Weights,
    found: GradientsParams,
) -> GradientsParams {
    let mut register = Register { path: Vec::new(), name, gradients, found };
    module.visit(&mut register);
    register.found
}

struct Register<'a> {
    path: Vec<String>,
    name: fn(&[String]) -> String,
    gradients: &'a Weights,
    found: GradientsParams,
}

impl ModuleVisitor for Register<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.0.get(&(self.name)(&self.path)) else { return };
        let tensor = param.val().inner();
        if gradient.shape == tensor.dims() {
            let data = TensorData::new(gradient.values.clone(), tensor.dims());
            self.found.register(param.id, Tensor::<D>::from_data(data, (&tensor.device(), tensor.dtype())));
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

struct Collector<'a> {
    path: Vec<String>,
    name: &'a dyn Fn(&[String], ParamId) -> String,
    weights: Result<Weights>,
}

impl ModuleVisitor for Collector<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Ok(weights) = &mut self.weights else { return };
        let tensor = param.val();
        let shape = tensor.dims().to_vec();
        match to_host(tensor) {
            Ok(values) => {
                let values = values.into_iter().map(|v| v as f32).collect();
                weights.0.insert((self.name)(&self.path, param.id), HostTensor::new(shape, values));
            }
            Err(error) => self.weights = Err(error),
        }
    }

    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
}

/// Whether `weights` are exactly the `arrays` (name and shape), `ignored` names apart, all of
/// finite numbers.
///
/// # Errors
/// A sentence that names the array.
pub fn check_arrays(
    weights: &Weights,
    arrays: &[(String, Vec<usize>)],
    ignored: impl Fn(&str) -> bool,
) -> Result<(), String> {
    for (name, needed) in arrays {
        match weights.0.get(name) {
            None => return Err(format!("array '{name}' is missing")),
            Some(array) if array.shape != *needed => {
                return Err(format!("array '{name}' has shape {:?}, not {needed:?}", array.shape));
            }
            Some(array) => {
                if let Some(value) = array.values.iter().find(|v| !v.is_finite()) {
                    return Err(format!("array '{name}' holds {value} where finite numbers are needed"));
                }
            }
        }
    }
    let known: std::collections::HashSet<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
    match weights.0.keys().find(|name| !known.contains(name.as_str()) && !ignored(name)) {
        Some(name) => Err(format!("array '{name}' has no place in it")),
        None => Ok(()),
    }
}
