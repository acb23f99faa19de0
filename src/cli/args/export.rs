//! Arguments of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Compute, TargetArgs, WorldArgs, count};
use crate::export::Format;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Bundled name, oracle folder, or checkpoint file.
    pub oracle: String,
    /// Training images.
    #[arg(long, default_value_t = 60_000, value_parser = count, allow_negative_numbers = true)]
    pub train: usize,
    /// Test images.
    #[arg(long, default_value_t = 10_000, value_parser = count, allow_negative_numbers = true)]
    pub test: usize,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub world: WorldArgs,
    /// In which forms: npz (float32 arrays with exact posteriors), png16 (ImageFolder, 16 bits a value), parquet (Hugging Face `datasets`,
    /// 16 bits unless png alone stands beside it), png (8 bits a value, which lose the posterior in some worlds: `oracle depth`).
    #[arg(long, value_delimiter = ',', default_value = "npz", value_enum)]
    pub format: Vec<FormatArg>,
    /// Seed: the same seed on the same device gives the same bytes.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub compute: Compute,
    /// Folder of the dataset: a new one, or that of the same export, which then goes on.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Print the manifest as one JSON document.
    #[arg(long)]
    pub json: bool,
}

/// A form of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// `train.npz`, `test.npz`.
    Npz,
    /// `train/CLASS/000123.png`, 8 bits a value.
    Png,
    /// `png16/train/CLASS/000123.png`, 16 bits a value.
    Png16,
    /// `parquet/train.parquet`.
    Parquet,
}

impl From<FormatArg> for Format {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Npz => Self::Npz,
            FormatArg::Png => Self::Png,
            FormatArg::Png16 => Self::Png16,
            FormatArg::Parquet => Self::Parquet,
        }
    }
}
