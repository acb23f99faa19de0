//! Oracles and worlds: frozen flows on disk, what can be asked of them, and how they are trained.

pub mod evaluate;
pub mod folder;
pub mod library;
pub mod posterior;
pub mod train;
pub mod world;
