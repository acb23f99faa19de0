//! Oracles and worlds: frozen flows on disk, what can be asked of them, and how they are trained.

pub mod bench;
pub mod classify;
pub mod evaluate;
pub mod evidence;
pub mod export;
pub mod folder;
pub mod library;
pub mod look;
pub mod posterior;
pub mod precision;
pub mod provenance;
pub mod rounding;
pub mod running;
pub mod scale;
pub mod strategies;
pub mod train;
pub mod walk;
pub mod world;
