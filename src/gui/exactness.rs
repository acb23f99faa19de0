//! What "exact" means of a posterior: the law it follows, and the precision that was measured.

use super::format;
use super::session::Session;
use crate::flow::Architecture;
use crate::oracle::label_noise::LabelNoise;

/// The law of the p(y|x) that is shown: of the label, where C draws that from the class.
fn law(noise: Option<&LabelNoise>) -> &'static str {
    match noise {
        None => "p(y|x) ∝ (π_y p(x|y))^(1/T)",
        Some(_) => {
            "p(y|x) = Σ_c p(c|x) C_cy of the label y, which the label noise C draws from the class c, with \
             p(c|x) ∝ (π_c p(x|c))^(1/T),"
        }
    }
}

/// Of a sample or an image from outside.
pub fn of_image(session: &Session, noise: Option<&LabelNoise>) -> String {
    let which = match session.oracle.as_ref().map(|info| &info.architecture) {
        Some(Architecture::TarFlow(_)) => "It is the posterior of x itself, as it is stored.",
        _ => "A sample's is that of the image before x was rounded to 32 bits.",
    };
    let law = law(noise);
    let formula = format!("{law} of the float image, by the flow's own change of variables: exact for this world.");
    let text = format!("{formula} Computed in f32, sums over dimensions in f64. {which}");
    match &session.precision {
        Some(report) => format!(
            "{text} On {} samples at most {} away in probability and {} nats in log p(x|y) from the same in f64.",
            report.images,
            format::sig4(report.max_posterior_error),
            format::sig4(report.max_log_likelihood_error)
        ),
        None => text,
    }
}

/// Of the images of a walk.
pub fn of_walk(session: &Session, noise: Option<&LabelNoise>) -> String {
    let text = format!(
        "{} of each float tensor on the path itself, just as it would be saved, by the flow's own change of variables: \
         exact for this world. Computed in f32, sums over dimensions in f64.",
        law(noise)
    );
    match &session.precision {
        Some(report) => format!(
            "{text} On {} samples at most {} away in probability from the same in f64.",
            report.images,
            format::sig4(report.max_posterior_error)
        ),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn under_label_noise_the_law_is_that_of_the_label() {
        let (session, noise) = (Session::default(), LabelNoise::symmetric(0.2).unwrap());
        for text in [of_image(&session, Some(&noise)), of_walk(&session, Some(&noise))] {
            assert!(text.starts_with("p(y|x) = Σ_c p(c|x) C_cy"), "{text}");
        }
        for text in [of_image(&session, None), of_walk(&session, None)] {
            assert!(text.starts_with("p(y|x) ∝ (π_y p(x|y))^(1/T)") && !text.contains("noise"), "{text}");
        }
    }
}
