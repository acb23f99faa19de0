//! Key pictures that are asked for, in pieces.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::super::protocol::{KeyOrigin, KeyRequest};
use super::pace::Pace;
use crate::units::Tau;
use crate::worker::shared::Shared;

/// The request under way, and how quickly pictures come.
#[derive(Default)]
pub struct KeyQueue {
    request: RefCell<Option<KeyRequest>>,
    pace: Cell<Pace>,
}

impl KeyQueue {
    /// Takes the newest request in, if it is of this world (`OracleInfo::world_id`). Returns whether it says that τ moves.
    pub fn take_in(&self, shared: &Shared, world: &str) -> bool {
        let here = |request: &KeyRequest| request.origin.world == world;
        let Some(request) = shared.key_request.take().filter(here) else { return false };
        let moving = request.moving;
        *self.request.borrow_mut() = Some(request);
        moving
    }

    /// Notes that τ has stopped moving, so that these pictures no longer come first.
    pub fn rest(&self) {
        if let Some(request) = self.request.borrow_mut().as_mut() {
            request.moving = false;
        }
    }

    /// Queues the request under way again, unless a newer one waits.
    pub fn requeue(&self, shared: &Shared) {
        if let Some(request) = self.request.take() {
            shared.key_request.offer(request);
        }
    }

    /// Nothing is asked for.
    pub fn drop_request(&self) {
        self.request.take();
    }

    /// Another world or device: nothing is asked for, and nothing is known of the pace.
    pub fn forget(&self) {
        self.drop_request();
        self.pace.set(Pace::default());
    }

    /// What a picture takes where that is too long; then nothing is asked for any more, and the next request
    /// measures anew: what else the machine had to do may be over.
    pub fn give_up(&self) -> Option<Duration> {
        let each = self.pace.get().is_too_slow()?;
        self.forget();
        Some(each)
    }

    /// Of what the pictures asked for are; nothing where none are.
    pub fn origin(&self) -> Option<KeyOrigin> {
        self.request.borrow().as_ref().map(|request| request.origin.clone())
    }

    /// Whether τ moves: these pictures come first.
    pub fn moving(&self) -> bool {
        self.request.borrow().as_ref().is_some_and(|request| request.moving)
    }

    /// The next pictures, of one τ, at most so many, and in the first piece no more than `first`; without any the
    /// request has ended.
    pub fn next(&self, most: usize, first: usize) -> Option<(Tau, Vec<usize>)> {
        let most = self.pace.get().size(first).min(most.max(1));
        let mut slot = self.request.borrow_mut();
        let wanted = &mut slot.as_mut()?.wanted;
        while let Some((tau, indices)) = wanted.first_mut() {
            let piece: Vec<usize> = indices.drain(..most.min(indices.len())).collect();
            let tau = *tau;
            if !piece.is_empty() {
                return Some((tau, piece));
            }
            wanted.remove(0);
        }
        *slot = None;
        None
    }

    /// A piece that is to be begun again.
    pub fn put_back(&self, tau: Tau, indices: Vec<usize>) {
        if let Some(request) = self.request.borrow_mut().as_mut() {
            request.wanted.insert(0, (tau, indices));
        }
    }

    /// So many pictures took so long.
    pub fn took(&self, pictures: usize, time: Duration) {
        let mut pace = self.pace.get();
        pace.took(pictures, time);
        self.pace.set(pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Prior;
    use crate::oracle::world::SampleSpec;
    use crate::units::Seed;

    #[test]
    fn pieces_are_of_one_temperature_in_order_and_cover_what_was_asked_for() {
        let origin = KeyOrigin::new("world".into(), &SampleSpec::new(5, Seed(1)), Prior::uniform(2));
        let [low, high] = [0.5, 1.0].map(|tau| Tau::new(tau).unwrap());
        let wanted = vec![(low, vec![0, 1, 2]), (high, Vec::new()), (high, vec![4])];
        let queue = KeyQueue::default();
        *queue.request.borrow_mut() = Some(KeyRequest { origin, wanted, moving: true });
        assert_eq!(queue.next(2, 2), Some((low, vec![0, 1])));
        queue.put_back(low, vec![0, 1]);
        let rest: Vec<_> = std::iter::from_fn(|| queue.next(2, 2)).collect();
        assert_eq!(rest, [(low, vec![0, 1]), (low, vec![2]), (high, vec![4])]);
        assert!(queue.origin().is_none() && !queue.moving(), "the request has ended");
    }

    #[test]
    fn what_is_too_slow_is_given_up_once_and_the_next_request_measures_anew() {
        let origin = KeyOrigin::new("world".into(), &SampleSpec::new(500, Seed(1)), Prior::uniform(2));
        let request = KeyRequest { origin, wanted: vec![(Tau::ONE, (0..500).collect())], moving: false };
        let queue = KeyQueue::default();
        *queue.request.borrow_mut() = Some(request.clone());
        let mut pieces = 0;
        while queue.give_up().is_none() {
            let (_, piece) = queue.next(500, 4).expect("500 pictures");
            queue.took(piece.len(), Duration::from_secs(1) * piece.len() as u32);
            pieces += 1;
        }
        assert!(pieces <= 4 && queue.origin().is_none(), "{pieces} pieces of a second each picture");
        *queue.request.borrow_mut() = Some(request);
        assert!(queue.give_up().is_none());
        assert_eq!(queue.next(500, 4).map(|(_, piece)| piece.len()), Some(4));
    }
}
