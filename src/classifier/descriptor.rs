//! What a network's file says of it beside its layers.

use burn::tensor::Tensor;

use super::compute::Layers;
use super::init::{InitResult, ParamBuilder};
use super::layers::{Linear, Pass};
use crate::data::ImageShape;

/// A network's names, and how its parameters are made.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor<N> {
    /// Name in files.
    pub name: &'static str,
    /// Name in papers.
    pub label: &'static str,
    /// State-dict name of the last linear map.
    pub head: &'static str,
    /// Sides of images that can enter.
    pub side: Side,
    /// For images of a shape and a number of classes.
    pub build: fn(&mut ParamBuilder<'_>, ImageShape, usize) -> InitResult<N>,
}

/// Sides of images that can enter a network.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    /// This one and larger ones.
    AtLeast(usize),
    /// Multiples of a patch.
    MultipleOf(usize),
}

/// A network up to its last linear map.
pub trait Backbone {
    /// What the last linear map reads of images x [N, C, H, W], by burn's tensors: [N, d].
    fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2>;

    /// The last linear map.
    fn head(&self) -> &Linear;

    /// [`Self::features`] by anything that computes [`Layers`]; `None` of networks with other
    /// layers.
    fn features_by<L: Layers>(&self, _x: L::Maps, _layers: &mut L) -> Option<L::Rows> {
        None
    }

    /// Tokens of an image, of networks in which no image depends on another.
    fn tokens(&self) -> Option<usize> {
        None
    }
}
