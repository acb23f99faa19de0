//! The plain grid (BLC §4.1): how the epistemic part falls with N.

use serde::{Deserialize, Serialize};

use super::kind::{About, Kind};
use super::presets::preset;

pub(super) const ABOUT: About = About {
    name: "scaling",
    label: "Scaling",
    question: "How does what is left to learn shrink with more data, and how much data would be enough?",
    presets: &[preset!("scaling-quick"), preset!("scaling")],
};

/// The plain grid varies nothing of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScalingSpec {}

impl Kind for ScalingSpec {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn takes_data(&self) -> bool {
        true
    }

    fn has_laws(&self) -> bool {
        true
    }
}
