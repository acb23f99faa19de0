//! What `--version` prints.

use std::sync::LazyLock;

/// Version, and the devices this build can compute on, as `--version` prints them.
pub static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (features: {})", env!("CARGO_PKG_VERSION"), features().join(", ")));

/// The parts of the program that were compiled in, by their names in `Cargo.toml`.
pub fn features() -> Vec<&'static str> {
    let all = [
        ("gui", cfg!(feature = "gui")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("cuda", cfg!(feature = "cuda")),
        ("onnx", cfg!(feature = "onnx")),
        ("remote", cfg!(feature = "remote")),
        ("lend", cfg!(feature = "lend")),
    ];
    all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
}
