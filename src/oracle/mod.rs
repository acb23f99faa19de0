//! Oracles and worlds: frozen flows on disk, what can be asked of them, and how they are trained.
//!
//! | file | what |
//! |---|---|
//! | `world` | samples, densities and posteriors at given knobs |
//! | `posterior`, `label_noise`, `running`, `rounding` | the exact posterior; that of labels drawn by a matrix; while classes are still missing; what rounding x to 32 bits does to it |
//! | `evidence`, `walk`, `what_if`, `look`, `classify`, `pictures` | what is asked of single images: maps, walks to the boundary and grids between images, the same latent under every class, pictures for the eye, images from outside, and how pictures of any size become images of a world |
//! | `noises` | whether pictures hold a world's noise already |
//! | `info`, `folder`, `library`, `provenance` | what is known about an oracle, oracles on disk, those that come with the program, the record beside every file |
//! | `numbering` | which image an error is about |
//! | `cells` | densities averaged over the cells of 8-bit pixels |
//! | `train`, `evaluate` | training a flow; how well it describes real images |
//! | `scale`, `export`, `latents` | posteriors of very many images, resumable; samples on their way to a file; images of given latents likewise |
//! | `strategies`, `precision`, `bench` | how blocks are inverted fastest; 32 bits beside 64; how fast a world answers |

pub mod bench;
pub mod cells;
pub mod classify;
pub mod evaluate;
pub mod evidence;
pub mod export;
pub mod folder;
mod info;
pub mod label_noise;
pub mod latents;
pub mod library;
pub mod look;
pub mod noises;
pub mod numbering;
pub mod pictures;
pub mod posterior;
pub mod precision;
pub mod provenance;
pub mod rounding;
pub mod running;
pub mod scale;
pub mod strategies;
#[cfg(test)]
mod tests;
pub mod train;
pub mod walk;
pub mod what_if;
pub mod world;
