//! Moments of an optimizer that come from a file.

use burn::optim::{Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{Device, Tensor};

/// An optimizer whose moments are read into the host's memory, from where each goes to its parameter's device with the
/// next step. burn's reader places them on its default device: a graphics card, whether there is one or not.
#[derive(Debug, Clone)]
pub struct ReadOnHost<O>(pub O);

/// The moments of a parameter.
#[derive(Debug, Clone)]
pub struct HostState<S>(S);

impl<S: RecordState> RecordState for HostState<S> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.0.state_flatten(prefix, out);
    }

    fn state_unflatten(prefix: &str, source: &mut StateSource, _: &Device) -> Option<Self> {
        S::state_unflatten(prefix, source, &Device::flex()).map(Self)
    }
}

impl<O: Optimizer> Optimizer for ReadOnHost<O> {
    type State<const D: usize> = HostState<O::State<D>>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weight: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let (weight, state) = self.0.step(rate, weight, grad, state.map(|state| state.0));
        (weight, state.map(HostState))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        HostState(O::to_device(state.0, device))
    }
}
