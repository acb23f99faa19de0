//! Samples that images are held against.

use crate::measure::typicality::Reference;
use crate::oracle::world::Settings;
use crate::worker::protocol::ReferenceNews;

/// The newest reference.
#[derive(Debug, Default)]
pub struct References {
    news: Option<ReferenceNews>,
    reference: Option<Reference>,
}

/// What is known of the reference at some knobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Held<'a> {
    /// It is there; whether no more samples will come.
    Against(&'a Reference, bool),
    /// It is being drawn.
    Coming,
    /// There is none, and why.
    Never(&'a str),
}

impl References {
    pub fn take(&mut self, news: ReferenceNews) {
        self.reference = news.outcome.as_ref().ok().cloned().and_then(Reference::new);
        self.news = Some(news);
    }

    /// The reference at these knobs.
    pub fn at(&self, settings: &Settings) -> Held<'_> {
        if settings.tau.get() == 0.0 {
            return Held::Never("at τ = 0 there is no density");
        }
        let Some(news) = self.news.as_ref().filter(|news| news.is_of(settings)) else { return Held::Coming };
        match (&news.outcome, &self.reference) {
            (Err(why), _) => Held::Never(why),
            (Ok(_), Some(reference)) => Held::Against(reference, news.complete),
            (Ok(_), None) => Held::Coming,
        }
    }
}
