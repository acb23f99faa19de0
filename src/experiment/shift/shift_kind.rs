//! What a setting shifts.

use serde::{Deserialize, Serialize};

use super::{BaseShift, ShiftSetting};

/// What is shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShiftKind {
    /// Nothing: what the others are held against.
    Baseline,
    /// The class prior.
    Prior,
    /// Pixels.
    Noise,
    /// The class prior and pixels.
    PriorAndNoise,
    /// The means of the base, in a random direction.
    Mean,
    /// The means of the base, from one class towards another.
    Towards,
    /// The base's spread, upwards.
    Wider,
    /// The base's spread, downwards.
    Narrower,
    /// The class prior and the base.
    PriorAndBase,
}

impl ShiftKind {
    /// What a setting shifts. The baseline's prior is none: BLC's (0.33, 0.33, 0.34) is in all
    /// balanced settings.
    pub(super) fn of(setting: &ShiftSetting, baseline: &ShiftSetting) -> Self {
        let prior = !setting.prior.is_empty() && setting.prior != baseline.prior;
        match (setting.base, setting.noise > 0.0) {
            (Some(_), _) if prior => Self::PriorAndBase,
            (Some(BaseShift::Mean { .. }), _) => Self::Mean,
            (Some(BaseShift::Towards { .. }), _) => Self::Towards,
            (Some(BaseShift::Wider { .. }), _) => Self::Wider,
            (Some(BaseShift::Narrower { .. }), _) => Self::Narrower,
            (None, true) if prior => Self::PriorAndNoise,
            (None, true) => Self::Noise,
            (None, false) if prior => Self::Prior,
            (None, false) => Self::Baseline,
        }
    }

    /// All of them with their labels, in the order of legends.
    const LABELS: [(Self, &str); 9] = [
        (Self::Baseline, "baseline"),
        (Self::Prior, "class prior"),
        (Self::Noise, "pixel noise"),
        (Self::PriorAndNoise, "class prior and pixel noise"),
        (Self::Mean, "base mean"),
        (Self::Towards, "base mean towards a class"),
        (Self::Wider, "wider base"),
        (Self::Narrower, "narrower base"),
        (Self::PriorAndBase, "class prior and base"),
    ];

    /// All of them, in the order of legends.
    pub(super) fn all() -> impl ExactSizeIterator<Item = Self> {
        Self::LABELS.into_iter().map(|(kind, _)| kind)
    }

    /// The label of this kind in figures, tables and forms.
    pub fn label(self) -> &'static str {
        Self::LABELS[self as usize].1
    }

    /// Number of its colour in every figure.
    pub(super) fn colour(self) -> usize {
        self as usize
    }
}
