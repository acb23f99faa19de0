//! Which feature network a file of weights holds: told by names and shapes, before any array is
//! read.

use std::collections::BTreeMap;

use super::inception::{FEATURES, Port};
use crate::classifier::Architecture;

/// Shapes by name.
pub type Shapes = BTreeMap<String, Vec<usize>>;

/// A network and its number of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Inception-v3.
    Inception(Port),
    /// torchvision's ResNet-18 or ResNet-50.
    ResNet(Architecture, usize),
}

/// What can be opened, at the end of a refusal.
const WAY_OUT: &str = "needed are the weights of Inception-v3 by pytorch-fid (pt_inception-2015-12-05-6726825d.pth) or by \
                       torchvision (inception_v3_google-0cc3c7bd.pth), or of torchvision's ResNet-18 or ResNet-50";

/// The network of the FID, with whose features pytorch-fid and torchmetrics make statistics.
pub const FID_NETWORK: &str = "Inception-v3 of pytorch-fid";
/// SHA-256 of the file of its weights, `pt_inception-2015-12-05-6726825d.pth`.
pub const FID_WEIGHTS: &str = "6726825d0af5f729cebd5821db510b11b1cfad8faad88a03f1befd49fb9129b2";

/// Where an Inception-v3 of torchvision has its second classifier.
pub const AUXILIARY: &str = "AuxLogits.";

impl Layout {
    /// By names and shapes.
    ///
    /// # Errors
    /// A sentence that says what was found and what is needed.
    pub fn infer(shapes: &Shapes) -> Result<Self, String> {
        let found = if shapes.contains_key("Conv2d_1a_3x3.conv.weight") {
            inception(shapes)
        } else if shapes.contains_key("layer1.0.conv1.weight") {
            resnet(shapes)
        } else {
            Err("its arrays are not those of a feature network that is known here".into())
        };
        found.map_err(|cause| format!("{cause}; {WAY_OUT}"))
    }

    /// Network and package, such as "Inception-v3 of torchvision".
    pub fn label(self) -> String {
        match self {
            Self::Inception(Port::PytorchFid) => FID_NETWORK.into(),
            Self::Inception(Port::Torchvision) => "Inception-v3 of torchvision".into(),
            Self::ResNet(architecture, _) => format!("{} of torchvision", architecture.label()),
        }
    }
}

/// The two ports differ in their classes and in the second classifier, and must agree in both:
/// other files with these names want their images scaled in other ways.
fn inception(shapes: &Shapes) -> Result<Layout, String> {
    let auxiliary = shapes.keys().any(|name| name.starts_with(AUXILIARY));
    let is =
        |head: &[usize], port: Port| head == [port.classes(), FEATURES] && auxiliary == (port == Port::Torchvision);
    let head = shapes.get("fc.weight");
    match [Port::PytorchFid, Port::Torchvision].into_iter().find(|&port| head.is_some_and(|head| is(head, port))) {
        Some(port) => Ok(Layout::Inception(port)),
        None => {
            let head = head.map_or("no 'fc.weight'".into(), |shape| format!("'fc.weight' of shape {shape:?}"));
            let with = if auxiliary { "with" } else { "without" };
            Err(format!(
                "an Inception-v3 that has {head}, {with} 'AuxLogits', is neither of the two that are known here"
            ))
        }
    }
}

fn resnet(shapes: &Shapes) -> Result<Layout, String> {
    let blocks = |stage: usize| {
        let present = |b: &usize| shapes.contains_key(&format!("layer{stage}.{b}.conv1.weight"));
        (0..).take_while(present).count()
    };
    let blocks: Vec<usize> = (1..=4).map(blocks).collect();
    let bottleneck = shapes.contains_key("layer1.0.conv3.weight");
    let architecture = match (blocks.as_slice(), bottleneck) {
        ([2, 2, 2, 2], false) => Architecture::ResNet18,
        ([3, 4, 6, 3], true) => Architecture::ResNet50,
        _ => {
            let kind = if bottleneck { "bottlenecks" } else { "blocks" };
            return Err(format!("a ResNet of {blocks:?} {kind} is neither ResNet-18 nor ResNet-50"));
        }
    };
    match shapes.get("fc.weight").map(Vec::as_slice) {
        Some([classes, _]) => Ok(Layout::ResNet(architecture, *classes)),
        _ => Err(format!("{} without its last linear map 'fc.weight'", architecture.label())),
    }
}
