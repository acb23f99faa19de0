//! What the numbers of a plot, a table or a copied text of the open world are of.

use crate::figure::comment;
use crate::gui::session::Session;
use crate::oracle::world::{LabelLaw, Settings};
use crate::units::{Smoothing, Tau};

/// World, knobs where they are known, what else there is to say, and the program: lines under a figure, and as
/// [`comments`] above a table.
pub fn of_world(session: &Session, settings: Option<&Settings>, subject: &[(&str, String)]) -> Vec<(String, String)> {
    let world = session
        .oracle
        .iter()
        .flat_map(|oracle| [("world", oracle.name.clone()), ("weights SHA-256", oracle.weights_sha256.clone())]);
    let knobs = settings.into_iter().flat_map(|settings| {
        let knobs = [("τ", settings.tau.get().to_string()), ("T", settings.smoothing.get().to_string())];
        knobs.into_iter().chain(of_law(&settings.label_law()))
    });
    let program = [("program", format!("bayescope {}", env!("CARGO_PKG_VERSION")))];
    let subject = subject.iter().cloned();
    world.chain(knobs).chain(subject).chain(program).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Class prior and label noise.
pub fn of_law(law: &LabelLaw) -> Vec<(&'static str, String)> {
    let noise = law.label_noise.as_ref().map(|noise| ("label noise C", noise.describe()));
    std::iter::once(("class prior π", law.prior.describe())).chain(noise).collect()
}

/// The knobs of figures of the sampling process at τ: those of labels of this law, at T = 1.
pub fn sampling_process(tau: f64, law: Option<&LabelLaw>) -> Option<Settings> {
    let (LabelLaw { prior, label_noise }, tau) = (law?.clone(), Tau::new(tau).ok()?);
    Some(Settings { tau, smoothing: Smoothing::ONE, prior, label_noise })
}

/// The lines as comments of a table.
pub fn comments(lines: &[(String, String)]) -> String {
    lines.iter().map(|(name, value)| comment(&format!("{name}: {value}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::label_noise::LabelNoise;

    #[test]
    fn every_knob_is_named() {
        let session = Session::default();
        let noise = Some(LabelNoise::symmetric(0.25).unwrap());
        let settings = Settings { label_noise: noise, ..Settings::default_for(2) };
        let text = comments(&of_world(&session, Some(&settings), &[("image", "Sample 3".into())]));
        let known =
            ["# τ: 1", "# T: 1", "# class prior π: uniform", "# label noise C: symmetric:0.25", "# image: Sample 3"];
        assert_eq!(text.lines().take(5).collect::<Vec<_>>(), known);
        assert!(text.lines().nth(5).is_some_and(|line| line.starts_with("# program: bayescope")));
        let law = settings.label_law();
        assert_eq!(sampling_process(1.0, Some(&law)), Some(settings));
    }
}
