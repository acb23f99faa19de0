//! The gallery while τ moves: drafts between key pictures, exact images when it rests.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::engine::Engine;
use super::session::Session;
use super::session::keys::Meanwhile;
use super::view::View;
use crate::units::Tau;
use crate::worker::protocol::{KeyOrigin, KeyRequest};

/// Exact images are asked for when τ has not moved for so long.
const REST: Duration = Duration::from_millis(120);

/// What is known of the movement of τ, and the key pictures that were asked for.
#[derive(Default)]
pub struct Glide {
    moved: Option<(Tau, Instant)>,
    /// What was asked for last, and of which samples.
    asked: Vec<(Tau, Vec<usize>)>,
    of: Option<KeyOrigin>,
    gave_up: bool,
}

impl Glide {
    /// τ is here now. Returns whether it moves still.
    pub fn moves(&mut self, tau: Tau, now: Instant) -> bool {
        let since = match self.moved {
            Some((before, since)) if before == tau => since,
            _ => now,
        };
        self.moved = Some((tau, since));
        now - since < REST
    }

    /// The gallery is asked for, or has been.
    pub fn rest(&mut self) {
        (self.moved, self.gave_up) = (None, false);
    }

    /// Whether the engine was told to give up the gallery under way.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// How soon τ rests, if nothing more moves it.
    pub fn rests_in(&self) -> Option<Duration> {
        self.moved.map(|(_, since)| REST.saturating_sub(since.elapsed()))
    }

    /// Asks for the key pictures that are missing for what is in view, unless they are on their way.
    pub fn ask(&mut self, engine: &dyn Engine, session: &Session, view: &View, (origin, tau): (KeyOrigin, Tau)) {
        let moving = self.moved.is_some();
        let meanwhile = match moving {
            true => Meanwhile::Moving,
            false if session.gallery.complete() => Meanwhile::Resting,
            false => Meanwhile::Filling,
        };
        let wanted = session.keys.wanted(&view.in_view, tau.get(), meanwhile);
        if wanted.is_empty() {
            // What was asked for has come, or never will.
            self.asked.clear();
        }
        let gives_up = moving && !self.gave_up;
        let on_its_way = || self.of.as_ref() == Some(&origin) && self.is_next(&wanted);
        if !gives_up && (wanted.is_empty() || on_its_way()) {
            return;
        }
        self.gave_up |= moving;
        self.of = Some(origin.clone());
        self.asked.clone_from(&wanted);
        engine.draw_keys(KeyRequest { origin, wanted, moving });
    }

    /// Whether the first of these are the next that the engine draws.
    fn is_next(&self, wanted: &[(Tau, Vec<usize>)]) -> bool {
        let Some((tau, images)) = wanted.first() else { return false };
        // Thousands of small images may be in view.
        let set = |images: &[usize]| images.iter().copied().collect::<HashSet<usize>>();
        let open = |(tau, images): &&(Tau, Vec<usize>)| {
            let now = wanted.iter().find(|(other, _)| other == tau).map(|(_, now)| set(now));
            now.is_some_and(|now| images.iter().any(|image| now.contains(image)))
        };
        let Some((next, asked)) = self.asked.iter().find(open) else { return false };
        let asked = set(asked);
        next == tau && images.iter().all(|image| asked.contains(image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tau: f64) -> Tau {
        Tau::new(tau).unwrap()
    }

    #[test]
    fn tau_rests_when_it_has_not_moved_for_a_while() {
        let (mut glide, began) = (Glide::default(), Instant::now());
        assert!(glide.moves(at(1.0), began));
        assert!(glide.moves(at(1.1), began + REST));
        assert!(glide.moves(at(1.1), began + REST + REST / 2));
        assert!(!glide.moves(at(1.1), began + REST + REST));
        assert!(glide.moves(at(1.0), began + REST + REST), "it moved again");
        glide.rest();
        assert!(glide.rests_in().is_none() && !glide.gave_up());
    }

    #[test]
    fn what_is_on_its_way_is_not_asked_for_again() {
        let (one, two) = (at(1.0), at(2.0));
        let asked = vec![(one, vec![0, 1]), (two, vec![0, 1])];
        let glide = Glide { asked: asked.clone(), ..Glide::default() };
        assert!(glide.is_next(&asked));
        assert!(glide.is_next(&[(one, vec![1]), (two, vec![0, 1])]), "a part has come");
        assert!(glide.is_next(&[(two, vec![0])]), "the first has come");
        assert!(!glide.is_next(&[(two, vec![0]), (one, vec![1])]), "in another order");
        assert!(!glide.is_next(&[(two, vec![0, 2])]), "another image is in view");
        assert!(!glide.is_next(&[(at(3.0), vec![0])]));
    }
}
