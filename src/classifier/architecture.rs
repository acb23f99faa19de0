//! The networks by name.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::compute::Layers;
use super::descriptor::{Backbone, Side};
use super::init::{InitResult, ParamBuilder};
use super::layers::{Linear, Pass};
use crate::data::ImageShape;
use crate::error::{Error, Result};

/// Makes the enums of networks and what they have in common from a list of them: variant, module,
/// type and descriptor.
macro_rules! networks {
    ($($(#[$doc:meta])* $variant:ident: $module:ident $network:ident $descriptor:ident;)*) => {
        /// A network of the zoo.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum Architecture {
            $($(#[$doc])* $variant,)*
        }

        impl Architecture {
            /// All of them, small ones first.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// Its name in files, as serde writes it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => super::$module::$descriptor.name,)* }
            }

            /// Its name in papers.
            pub fn label(self) -> &'static str {
                match self { $(Self::$variant => super::$module::$descriptor.label,)* }
            }

            /// State-dict name of its last linear map.
            pub(super) fn head(self) -> &'static str {
                match self { $(Self::$variant => super::$module::$descriptor.head,)* }
            }

            fn side(self) -> Side {
                match self { $(Self::$variant => super::$module::$descriptor.side,)* }
            }
        }

        /// The parameters of one of the networks.
        #[derive(Module, Debug)]
        #[expect(clippy::large_enum_variant, reason = "a classifier is one of them; there are no arrays of them")]
        pub(super) enum Network {
            $($variant(super::$module::$network),)*
        }

        impl Network {
            /// For images of a shape.
            pub(super) fn build(
                architecture: Architecture,
                builder: &mut ParamBuilder<'_>,
                shape: ImageShape,
                classes: usize,
            ) -> InitResult<Self> {
                Ok(match architecture {
                    $(Architecture::$variant => {
                        Self::$variant((super::$module::$descriptor.build)(builder, shape, classes)?)
                    })*
                })
            }
        }

        impl Backbone for Network {
            fn features(&self, x: Tensor<4>, pass: &mut Pass) -> Tensor<2> {
                match self { $(Self::$variant(network) => Backbone::features(network, x, pass),)* }
            }

            fn head(&self) -> &Linear {
                match self { $(Self::$variant(network) => network.head(),)* }
            }

            fn features_by<L: Layers>(&self, x: L::Maps, layers: &mut L) -> Option<L::Rows> {
                match self { $(Self::$variant(network) => network.features_by(x, layers),)* }
            }

            fn tokens(&self) -> Option<usize> {
                match self { $(Self::$variant(network) => network.tokens(),)* }
            }
        }
    };
}

networks! {
    /// Multinomial logistic regression.
    Linear: linear LinearClassifier LINEAR;
    /// One hidden layer of 500 units.
    Mlp500: mlp Mlp MLP_500;
    /// PyTorch's MNIST example.
    Convnet: mnist_convnet ConvNet CONVNET;
    /// AlexNet.
    AlexNet: alexnet AlexNet ALEXNET;
    /// ResNet-18.
    ResNet18: resnet ResNet RESNET_18;
    /// ResNet-50.
    ResNet50: resnet ResNet RESNET_50;
    /// Wide ResNet 28-10.
    WideResNet: wide_resnet WideResNet WRN_28_10;
    /// MobileNetV3-Large.
    MobileNet: mobilenet MobileNet MOBILENET_V3;
    /// ConvNeXt-Tiny.
    ConvNext: convnext ConvNext CONVNEXT_TINY;
    /// A small Vision Transformer of patches of 4.
    VitSmall: vit VisionTransformer VIT_SMALL;
    /// ViT-B/16.
    VitB16: vit VisionTransformer VIT_B_16;
    /// Swin-T.
    SwinT: swin Swin SWIN_T;
}

impl Architecture {
    /// Side of a Vision Transformer's patches.
    pub(super) fn patch(self) -> Option<usize> {
        match self.side() {
            Side::MultipleOf(patch) => Some(patch),
            Side::AtLeast(_) => None,
        }
    }

    /// Whether images of a side can enter.
    ///
    /// # Errors
    /// Says what is needed.
    pub(super) fn check_side(self, side: usize) -> Result<(), String> {
        match self.side() {
            Side::MultipleOf(patch) if !side.is_multiple_of(patch) || side == 0 => {
                Err(format!("sides that are multiples of {patch}"))
            }
            Side::AtLeast(least) if side < least => Err(format!("sides of at least {least}")),
            _ => Ok(()),
        }
    }
}

impl From<Architecture> for &'static str {
    fn from(architecture: Architecture) -> Self {
        architecture.name()
    }
}

impl TryFrom<String> for Architecture {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::ALL.into_iter().find(|architecture| architecture.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|architecture| architecture.name()).collect();
            Error::input(format!("there is no architecture {name:?}; there are {}", known.join(", ")))
        })
    }
}
