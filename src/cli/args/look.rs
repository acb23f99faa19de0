//! Looks that leave the world, as arguments of `sample`.

use clap::{Args, ValueEnum};

use crate::flow::sampling::{Guidance, Guided, SamplerOptions};

/// How pictures are made where they need not be samples of the world. Pictures only: they have no posterior.
#[derive(Debug, Args)]
pub struct LookArgs {
    /// TarFlows only: strength g of classifier-free guidance; the pictures leave the world.
    #[arg(long, value_name = "G")]
    pub guidance: Option<f64>,
    /// What guidance moves: the log-scale a, the shift b, or both.
    #[arg(long, value_enum, default_value = "ab", requires = "guidance")]
    pub guide: Guide,
    /// Guidance grows along the patches of a block.
    #[arg(long, requires = "guidance")]
    pub annealed: bool,
    /// Softmax temperature of the attention in guidance's pass without a class.
    #[arg(long, value_name = "T", default_value_t = 1.0, requires = "guidance")]
    pub attention_temperature: f64,
    /// TarFlows only: one step of Tweedie's denoising; the pictures leave the world.
    #[arg(long)]
    pub denoise: bool,
}

/// [`Guided`] for clap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Guide {
    /// The log-scale a.
    A,
    /// The shift b.
    B,
    /// Both.
    Ab,
}

impl LookArgs {
    /// The look, if there is one.
    pub fn look(&self) -> Option<SamplerOptions> {
        let what = match self.guide {
            Guide::A => Guided::A,
            Guide::B => Guided::B,
            Guide::Ab => Guided::Ab,
        };
        let (annealed, attention_temperature) = (self.annealed, self.attention_temperature);
        let strong = self.guidance.filter(|scale| *scale != 0.0);
        let guidance = strong.map(|scale| Guidance { scale, what, annealed, attention_temperature });
        (guidance.is_some() || self.denoise).then_some(SamplerOptions { guidance, denoise: self.denoise })
    }
}
