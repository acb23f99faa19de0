//! The list of cases, the quick ones first.

use super::checks::Checks;
use super::subject::Subject;
use super::{flows, reference, training, worlds};
use crate::error::Result;

/// One case.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Computes and compares.
    pub work: fn(&Subject, &mut Checks) -> Result<()>,
}

/// All cases, in the order in which they are carried out.
pub const CASES: &[Case] = &[
    Case { name: "glow-reference", work: reference::glow },
    Case { name: "tarflow-reference", work: reference::tarflow },
    Case { name: "convnet-logits", work: |subject, checks| reference::logits(subject, checks, reference::CONVNET) },
    Case { name: "resnet-logits", work: |subject, checks| reference::logits(subject, checks, reference::RESNET) },
    Case { name: "mobilenet-logits", work: |subject, checks| reference::logits(subject, checks, reference::MOBILENET) },
    Case { name: "swin-logits", work: |subject, checks| reference::logits(subject, checks, reference::SWIN) },
    Case { name: "resnet-training", work: |subject, checks| training::steps(subject, checks, training::RESNET) },
    Case { name: "vit-training", work: |subject, checks| training::steps(subject, checks, training::VIT) },
    Case { name: "glow", work: flows::glow },
    Case { name: "tarflow", work: flows::tarflow },
    Case { name: "shared-tarflow", work: flows::shared_tarflow },
    Case { name: "mnist", work: worlds::mnist },
    Case { name: "cells", work: worlds::cells },
    Case { name: "painting-mnist", work: worlds::painting_mnist },
    Case { name: "painting-tarflow", work: worlds::painting_tarflow },
];
