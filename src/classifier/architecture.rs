//! The networks by name.

use serde::{Deserialize, Serialize};

use super::vit::VitConfig;
use crate::error::{Error, Result};

/// A network of the zoo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Architecture {
    /// Multinomial logistic regression.
    Linear,
    /// One hidden layer of 500 units.
    Mlp500,
    /// PyTorch's MNIST example.
    Convnet,
    /// AlexNet.
    AlexNet,
    /// ResNet-18.
    ResNet18,
    /// ResNet-50.
    ResNet50,
    /// Wide ResNet 28-10.
    WideResNet,
    /// MobileNetV3-Large.
    MobileNet,
    /// ConvNeXt-Tiny.
    ConvNext,
    /// A small Vision Transformer of patches of 4.
    VitSmall,
    /// ViT-B/16.
    VitB16,
    /// Swin-T.
    SwinT,
}

impl Architecture {
    /// All of them, small ones first.
    pub const ALL: [Self; 12] = [
        Self::Linear,
        Self::Mlp500,
        Self::Convnet,
        Self::AlexNet,
        Self::ResNet18,
        Self::ResNet50,
        Self::WideResNet,
        Self::MobileNet,
        Self::ConvNext,
        Self::VitSmall,
        Self::VitB16,
        Self::SwinT,
    ];

    /// Its name in files, as serde writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Mlp500 => "mlp-500",
            Self::Convnet => "convnet",
            Self::AlexNet => "alexnet",
            Self::ResNet18 => "resnet-18",
            Self::ResNet50 => "resnet-50",
            Self::WideResNet => "wrn-28-10",
            Self::MobileNet => "mobilenet-v3-large",
            Self::ConvNext => "convnext-tiny",
            Self::VitSmall => "vit-small",
            Self::VitB16 => "vit-b-16",
            Self::SwinT => "swin-t",
        }
    }

    /// Its name in papers.
    pub fn label(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Mlp500 => "MLP-500",
            Self::Convnet => "ConvNet",
            Self::AlexNet => "AlexNet",
            Self::ResNet18 => "ResNet-18",
            Self::ResNet50 => "ResNet-50",
            Self::WideResNet => "WRN-28-10",
            Self::MobileNet => "MobileNetV3-Large",
            Self::ConvNext => "ConvNeXt-Tiny",
            Self::VitSmall => "ViT-small",
            Self::VitB16 => "ViT-B/16",
            Self::SwinT => "Swin-T",
        }
    }

    /// State-dict name of its last linear map.
    pub(super) fn head(self) -> &'static str {
        match self {
            Self::Mlp500 | Self::Convnet => "fc2",
            Self::AlexNet => "classifier.6",
            Self::Linear | Self::ResNet18 | Self::ResNet50 | Self::WideResNet => "fc",
            Self::MobileNet => "classifier.3",
            Self::ConvNext => "classifier.2",
            Self::VitSmall | Self::VitB16 => "heads.head",
            Self::SwinT => "head",
        }
    }

    /// Side of a Vision Transformer's patches.
    pub(super) fn patch(self) -> Option<usize> {
        match self {
            Self::VitB16 => Some(VitConfig::B_16.patch),
            Self::VitSmall => Some(VitConfig::SMALL.patch),
            _ => None,
        }
    }

    /// Whether images of a side can enter.
    ///
    /// # Errors
    /// Says what is needed.
    pub(super) fn check_side(self, side: usize) -> Result<(), String> {
        if let Some(patch) = self.patch() {
            return match side.is_multiple_of(patch) && side > 0 {
                true => Ok(()),
                false => Err(format!("sides that are multiples of {patch}")),
            };
        }
        let at_least = |least: usize| match side >= least {
            true => Ok(()),
            false => Err(format!("sides of at least {least}")),
        };
        match self {
            Self::AlexNet => at_least(63),
            Self::ConvNext => at_least(32),
            Self::Convnet => at_least(6),
            Self::SwinT | Self::WideResNet => at_least(4),
            _ => at_least(1),
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
