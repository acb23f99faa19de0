//! The tasks of `bench`.

use clap::Subcommand;

use super::{DeviceArg, Runs, count};

/// What `bench` can measure alone.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchTask {
    /// Time to a given relative error of the Bayes error, one thread.
    BayesError {
        #[command(flatten)]
        runs: Runs,
    },
    /// Sampling of a TarFlow: without cache, token by token, by GS-Jacobi, and as `auto` chooses.
    Sampling {
        /// Bundled name, oracle folder, or checkpoint file.
        #[arg(default_value = "cells")]
        oracle: String,
        /// Images sampled together.
        #[arg(long, default_value_t = 16, value_parser = count, allow_negative_numbers = true)]
        images: usize,
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        runs: Runs,
    },
    /// Pictures from a network's tensor into a texture: painted in place, and over the host. Needs a graphics adapter.
    #[cfg(all(feature = "gui", feature = "wgpu"))]
    Paint {
        /// Bundled name, oracle folder, or checkpoint file.
        #[arg(default_value = "mnist")]
        oracle: String,
        /// The adapter, as `doctor` lists it.
        #[arg(long, default_value = "wgpu")]
        device: crate::device::DeviceChoice,
        #[command(flatten)]
        runs: Runs,
    },
    /// Training steps of classifiers: forward, backward and AdamW.
    Train {
        /// Networks, by their names in specs.
        #[arg(long, value_delimiter = ',', default_value = "resnet-18,vit-small")]
        architectures: Vec<String>,
        /// Side of the images, of three channels.
        #[arg(long, default_value_t = 32)]
        side: usize,
        /// Images in a step.
        #[arg(long, default_value_t = 128)]
        batch: usize,
        /// Pieces of a step side by side. Our own kernels divide a whole batch among the cores; burn's, which the
        /// other networks take, gain by as many pieces as there are cores.
        #[arg(long, default_value_t = 1)]
        shards: usize,
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        runs: Runs,
    },
    /// Training steps of worlds: noise of the pixels, forward, backward, AdamW and the average of the weights.
    TrainOracle {
        /// Bundled names, oracle folders, or checkpoint files.
        #[arg(value_delimiter = ',', default_value = "mnist,cells")]
        oracles: Vec<String>,
        /// Images in a step.
        #[arg(long, default_value_t = 64)]
        batch: usize,
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        runs: Runs,
    },
    /// Log-likelihoods of 64 images under every class of a world, and samples.
    Posterior {
        /// Bundled name, oracle folder, or checkpoint file.
        #[arg(default_value = "cells")]
        oracle: String,
        #[command(flatten)]
        device: DeviceArg,
        #[command(flatten)]
        runs: Runs,
    },
}
