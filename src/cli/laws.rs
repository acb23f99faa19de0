//! Scaling laws as text.

use crate::classifier::Labels;
use crate::experiment::Law;
use crate::measure::{Comparison, Forecast, PowerLaw, plain};

/// A law, its caveat, its forecast and how it did on held-out sizes, as lines.
pub(super) fn law_text(law: &Law) -> String {
    let told = if law.labels == Labels::Drawn { String::new() } else { format!(", {}", law.labels.label()) };
    let name = format!("{}{told}", law.architecture.label());
    let Some(fits) = &law.fits else {
        return format!("{name}: no law ({})\n", law.why_not.as_deref().unwrap_or("too little is finished"));
    };
    let mut text = fits_text(&name, fits);
    if let Some(training) = &law.training {
        text += &format!("  trained for {training}\n");
    }
    if let Some(caveat) = &fits.law().caveat {
        text += &format!("  {caveat}\n");
    }
    if let Some(forecast) = &law.forecast {
        let (Forecast::Reachable { sentence, .. }
        | Forecast::Unreachable { sentence, .. }
        | Forecast::NotIdentifiable { sentence }) = forecast;
        text += &format!("  KL ≤ {} nats: {sentence}\n", law.distance);
    }
    if let Some(held) = &law.hold_out {
        text += &format!("  {}\n", held.sentence);
    }
    text
}

/// A law and what it means, as lines.
pub(super) fn fits_text(name: &str, fits: &Comparison) -> String {
    let law = fits.law();
    let left_out = law.left_out().map_or(String::new(), |what| format!("  intervals: {what}\n"));
    format!("{name}: {}\n{left_out}  {}\n", curve(law), fits.sentence)
}

fn curve(law: &PowerLaw) -> String {
    let alpha = &law.alpha;
    let floor = law.floor.map_or(String::new(), |c| {
        format!(" + {} [{}, {}]", plain(c.value), plain(c.interval.low), plain(c.interval.high))
    });
    format!(
        "KL = {:.3}·N^−α{floor}, α = {:.3} [{:.3}, {:.3}], R² = {:.3}, {} runs of {} sizes and {} seeds",
        law.a.value,
        alpha.value,
        alpha.interval.low,
        alpha.interval.high,
        law.r_squared,
        law.n_points,
        law.n_sizes,
        law.n_seeds
    )
}
