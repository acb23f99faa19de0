//! The inspected image: its tile, the knobs its figures are of, and both as text.

use super::plot::{comments, of_world};
use super::prefs::Prefs;
use super::selection::Source;
use super::session::Session;
use super::session::gallery::Slot;
use super::session::references::Held;
use super::typicality;
use super::view::View;
use crate::data::ImageShape;
use crate::oracle::world::Settings;
use crate::units::Seed;
use crate::worker::protocol::{Inspection, Subject, Tile};

/// The image under the cursor as it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Inspected<'a> {
    /// Which images it is of.
    source: Source,
    /// Its running number.
    pub index: usize,
    /// Tells whether its texture is out of date.
    pub stamp: u64,
    /// Shape of its picture.
    pub shape: ImageShape,
    /// Its picture and figures.
    pub tile: &'a Tile,
    /// The knobs those are of, which may have moved since; none where they are not known any more.
    pub settings: Option<&'a Settings>,
    /// The seed it was drawn with, of a sample whose request is known.
    seed: Option<Seed>,
}

impl Inspected<'_> {
    /// The samples its log p(x) is held against: those of its own knobs. They are drawn at the knobs of the window, so that
    /// a sample of others waits for its figures of now; none where its knobs are not known.
    pub fn held<'a>(&self, session: &'a Session, now: &Settings) -> Option<Held<'a>> {
        let settings = self.settings?;
        let stale = (settings.tau, &settings.prior) != (now.tau, &now.prior);
        Some(match self.source {
            Source::World if stale => Held::Coming,
            _ => session.references.at(settings),
        })
    }

    /// Returns whether it is a sample of these knobs.
    pub fn is_of(&self, settings: &Settings, seed: Seed) -> bool {
        self.settings == Some(settings) && self.seed == Some(seed)
    }

    /// What its figures are of: world, knobs, image, and whether the knobs have moved since.
    pub fn origin(&self, session: &Session, now: &Settings) -> Vec<(String, String)> {
        let mut image = name(session, self.source, self.index);
        if let Some(Seed(seed)) = self.seed {
            image += &format!(" (seed {seed})");
        }
        let mut subject = vec![("image", image)];
        if self.settings.is_some_and(|settings| settings != now) {
            subject.push(("note", "of the knobs before: those of the window have moved since".to_owned()));
        }
        of_world(session, self.settings, &subject)
    }
}

/// Returns the inspected image: the gallery's where it answers the newest request, otherwise
/// the newer of both. A slow gallery follows the knobs later than the inspector.
pub fn inspected<'a>(session: &'a Session, prefs: &Prefs, view: &View) -> Option<Inspected<'a>> {
    let index = view.cursor?;
    let gallery = view.gallery(session)?;
    let inspection = view.subject(session, prefs).and_then(|subject| session.inspection_of(&subject));
    let outside = view.source == Source::Outside;
    if !outside && gallery.cannot_be_made(index) {
        return None;
    }
    let newer = |slot: &Slot| {
        // While τ moves no gallery is asked for: what is there is of the τ before.
        let answers = !outside && gallery.asks_for(prefs.tau) && gallery.answers(&[index]);
        inspection.filter(|inspection| !answers && (outside || inspection.generation > slot.generation))
    };
    match (gallery.get(index), inspection) {
        (Some(slot), _) => match newer(slot) {
            Some(inspection) => Some(of_inspection(view.source, index, inspection)),
            None => {
                let of_set = || session.external.as_ref()?.settings.as_ref();
                let own = slot.knobs.as_ref();
                let settings = if outside { of_set() } else { own.map(|knobs| &knobs.settings) };
                let (stamp, shape, seed) = (slot.stamp, gallery.shape()?, own.map(|knobs| knobs.seed));
                Some(Inspected { source: view.source, index, stamp, shape, tile: &slot.tile, settings, seed })
            }
        },
        (None, inspection) => inspection.map(|inspection| of_inspection(view.source, index, inspection)),
    }
}

fn of_inspection(source: Source, index: usize, inspection: &Inspection) -> Inspected<'_> {
    let Inspection { generation, subject, shape, tile, settings, .. } = inspection;
    let seed = match subject {
        Subject::Sample { spec, .. } => Some(spec.seed),
        Subject::External(_) => None,
    };
    Inspected { source, index, stamp: (1 << 63) | generation, shape: *shape, tile, settings: Some(settings), seed }
}

/// What an image is called.
pub fn name(session: &Session, source: Source, index: usize) -> String {
    match (source, &session.external) {
        (Source::Outside, Some(external)) => {
            external.ids.get(index).cloned().unwrap_or_else(|| format!("Image {index}"))
        }
        _ => format!("Sample {index}"),
    }
}

/// The same of an image that was asked for, with its seed.
pub fn called(session: &Session, subject: &Subject) -> String {
    match subject {
        Subject::Sample { spec, index } => format!("sample {index} (seed {})", spec.seed.0),
        Subject::External(image) => {
            let id = session.among(*image).and_then(|external| external.ids.get(image.index)).cloned();
            id.unwrap_or_else(|| format!("image {} from outside", image.index))
        }
    }
}

/// The inspected image's figures as tab-separated text.
pub fn values(session: &Session, prefs: &Prefs, view: &View) -> Option<String> {
    let (inspected, now) = (inspected(session, prefs, view)?, prefs.settings());
    let p = &inspected.tile.posterior;
    let mut text = comments(&inspected.origin(session, &now));
    text += &format!("# log p(x) {} nats, entropy {} nats, margin {}\n", p.log_px, p.entropy_nats, p.margin);
    if let Some(line) = typicality::copied(inspected.held(session, &now), p.log_px) {
        text += &line;
    }
    text += "class\tposterior\tlog_posterior_nats\tlog_likelihood_nats\n";
    for class in 0..p.probabilities.len() {
        let (probability, log, likelihood) =
            (p.probabilities[class], p.log_probabilities[class], p.log_likelihood[class]);
        text += &format!("{}\t{probability:e}\t{log}\t{likelihood}\n", session.class_name(class));
    }
    Some(text)
}
