//! What every flow must satisfy, whatever its weights: one suite for any [`bayescope::flow::Flow`], and the calculus of Glow.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
mod density;
mod gradients;
mod jacobian;
mod narrow;
mod shared;
mod shifts;
mod suite;
mod tarflow;
