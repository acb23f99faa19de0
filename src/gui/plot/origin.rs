//! What the numbers of a plot, a table or a copied text of the open world are of.

use crate::figure::comment;
use crate::gui::session::Session;
use crate::oracle::posterior::Prior;
use crate::oracle::world::{LabelLaw, Settings};
use crate::units::Tau;

/// World, knobs where they are known, what else there is to say, and the program: lines under a figure, and as
/// [`comments`] above a table.
pub fn of_world(session: &Session, settings: Option<&Settings>, subject: &[(&str, String)]) -> Vec<(String, String)> {
    let world = session
        .oracle
        .iter()
        .flat_map(|oracle| [("world", oracle.name.clone()), ("weights SHA-256", oracle.weights_sha256.clone())]);
    let knobs = settings.into_iter().flat_map(|settings| {
        std::iter::once(("τ", settings.tau.get().to_string())).chain(of_law(&settings.label_law()))
    });
    let program = [("program", format!("bayescope {}", env!("CARGO_PKG_VERSION")))];
    let subject = subject.iter().cloned();
    world.chain(knobs).chain(subject).chain(program).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Smoothing, class prior and label noise.
pub fn of_law(law: &LabelLaw) -> Vec<(&'static str, String)> {
    let noise = law.label_noise.as_ref().map(|noise| ("label noise C", noise.describe()));
    let known = [("T", law.smoothing.get().to_string()), ("class prior π", law.prior.describe())];
    known.into_iter().chain(noise).collect()
}

/// The knobs of figures at τ of labels of this law.
pub fn knobs_of(tau: f64, law: Option<&LabelLaw>) -> Option<Settings> {
    let (LabelLaw { prior, smoothing, label_noise }, tau) = (law?.clone(), Tau::new(tau).ok()?);
    Some(Settings { tau, smoothing, prior, label_noise })
}

/// What of the law of labels that figures are of is another by now, as it was; none where nothing is.
pub fn of_before(then: &LabelLaw, now: &LabelLaw) -> Option<String> {
    let smoothing = (then.smoothing != now.smoothing).then(|| format!("T = {}", then.smoothing.get()));
    let prior = (then.prior != now.prior).then(|| match then.prior == Prior::uniform(then.prior.classes()) {
        true => "the uniform class prior".to_owned(),
        false => "another class prior".to_owned(),
    });
    let noise = (then.label_noise != now.label_noise).then(|| match &then.label_noise {
        Some(noise) => format!("label noise {}", noise.describe()),
        None => "no label noise".to_owned(),
    });
    let moved: Vec<String> = [smoothing, prior, noise].into_iter().flatten().collect();
    (!moved.is_empty()).then(|| moved.join(", "))
}

/// The lines as comments of a table.
pub fn comments(lines: &[(String, String)]) -> String {
    lines.iter().map(|(name, value)| comment(&format!("{name}: {value}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::label_noise::LabelNoise;
    use crate::units::Smoothing;

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
        assert_eq!(knobs_of(1.0, Some(&law)), Some(settings));
    }

    #[test]
    fn what_figures_are_of_is_named_where_it_has_moved() {
        let now = Settings::default_for(2).label_law();
        assert_eq!(of_before(&now, &now), None);
        let noise = Some(LabelNoise::symmetric(0.25).unwrap());
        let (smoothing, prior) = (Smoothing::new(2.0).unwrap(), Prior::new(&[0.9, 0.1]).unwrap());
        let then = LabelLaw { smoothing, prior, label_noise: noise };
        let said = "T = 2, another class prior, label noise symmetric:0.25";
        assert_eq!(of_before(&then, &now).as_deref(), Some(said));
        assert_eq!(of_before(&now, &then).as_deref(), Some("T = 1, the uniform class prior, no label noise"));
    }
}
