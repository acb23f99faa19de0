//! Key pictures: what the window draws samples between while τ moves. Pictures alone, without scores.

use std::time::Instant;

use super::super::protocol::{KeyOrigin, KeyPictures};
use super::gallery::Gallery;
use super::{Interactive, PieceContext, unless};
use crate::device::{DeviceChoice, explain};
use crate::error::{Error, Result};
use crate::flow::Decoding;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::Tau;
use crate::worker::remote_device::is_lost;

impl Interactive {
    /// Whether key pictures come before the gallery: always while τ moves, else once what is in view is exact.
    pub(super) fn keys_are_due(&self) -> bool {
        let view = || self.gallery.borrow().as_ref().is_some_and(Gallery::owes_the_view);
        self.keys.origin().is_some() && (self.keys.moving() || !view())
    }

    /// The next piece of the key pictures asked for. While τ rests, what is in view of the gallery comes first.
    pub(super) fn keys_piece(&self, cx: &PieceContext<'_>) {
        let Some(origin) = self.keys.origin().filter(|_| !self.lost()) else { return };
        if origin.world != *self.world.borrow() {
            return self.keys.drop_request();
        }
        if !self.keys_are_due() {
            return;
        }
        let none = KeyPictures { origin, shape: cx.world.shape(), pictures: Vec::new(), too_slow: None };
        if matches!(self.device.get(), DeviceChoice::Remote(_)) {
            self.keys.drop_request();
            return publish(cx, KeyPictures { too_slow: Some(self.cost.get()), ..none });
        }
        // Exact samples take longer, and inspected ones are made alone: only key pictures say what they cost.
        if let Some(each) = self.keys.give_up() {
            return publish(cx, KeyPictures { too_slow: Some(each), ..none });
        }
        let Some((tau, indices)) = self.keys.next(self.largest.get(), self.piece.get()) else { return };
        let began = Instant::now();
        let pictures = match draw(cx, &none.origin, (tau, &indices), self.keys.moving()) {
            Ok(pictures) => pictures.into_iter().map(Some).collect(),
            Err(Error::Cancelled) => return self.keys.put_back(tau, indices),
            Err(loss @ Error::DeviceLost { .. }) => {
                self.keys.put_back(tau, indices);
                return self.lose(loss);
            }
            Err(error) if is_lost(self.device.get()) => {
                self.keys.put_back(tau, indices);
                return self.lose(explain(error, Some(self.device.get())));
            }
            // These have no key pictures: they are drawn as they are without them.
            Err(error) => {
                tracing::debug!("no key pictures at τ = {}: {error}", tau.get());
                vec![None; indices.len()]
            }
        };
        self.keys.took(indices.len(), began.elapsed());
        let pictures = indices.into_iter().zip(pictures).map(|(index, picture)| (tau, index, picture)).collect();
        publish(cx, KeyPictures { pictures, ..none });
    }
}

/// Pictures of samples at one τ. Stops for a drawing and for a new gallery, at rest also for an inspection, but
/// not for a newer request of the kind: while τ moves there is one in every few frames.
fn draw(
    cx: &PieceContext<'_>,
    origin: &KeyOrigin,
    (tau, indices): (Tau, &[usize]),
    moving: bool,
) -> Result<Vec<Vec<u8>>> {
    let KeyOrigin { seed, class, products, .. } = *origin;
    let spec = SampleSpec { class, products, ..SampleSpec::new(indices.len(), seed) };
    let prior = origin.prior.clone();
    let settings = Settings { tau, prior, ..Settings::default_for(cx.world.flow().classes()) };
    let shared = &cx.channels.shared;
    let looks = || shared.inspect_request.is_full() || shared.evidence_request.is_full();
    let newer = || shared.sketch_request.is_full() || shared.gallery_request.is_full() || (!moving && looks());
    let mut watch = |_: Decoding| unless(cx.called_away() || newer());
    cx.world.pictures(&spec, &settings, indices, &mut watch)
}

fn publish(cx: &PieceContext<'_>, news: KeyPictures) {
    cx.channels.shared.keys.merge(news, join);
    (cx.channels.shared.wake)();
}

fn join(mut old: KeyPictures, new: KeyPictures) -> KeyPictures {
    if old.origin != new.origin {
        return new;
    }
    old.pictures.extend(new.pictures);
    old.too_slow = old.too_slow.or(new.too_slow);
    old
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::device::choose;
    use crate::flow::Precision;
    use crate::oracle::folder;
    use crate::oracle::posterior::Prior;
    use crate::units::Seed;
    use crate::worker::channels::tests::alone;
    use crate::worker::protocol::{EvidenceRequest, GalleryRequest, InspectRequest, KeyRequest, Subject};

    #[test]
    fn what_an_inspected_sample_has_cost_says_nothing_of_key_pictures() {
        let (channels, _told) = alone();
        let cpu = choose(DeviceChoice::Cpu).unwrap();
        let opened = folder::open("mnist", &cpu.device, Precision::F32, 16).unwrap();
        let (weights, prior) = (opened.info.world_id(), Prior::uniform(10));
        let interactive = Interactive::default();
        interactive.enter(&weights, DeviceChoice::Cpu, "cpu");
        // Alone, and while others wanted the cores.
        interactive.cost.set(Duration::from_secs(1));
        let origin = KeyOrigin::new(weights, &SampleSpec::new(8, Seed(1)), prior);
        for moving in [false, true] {
            let wanted = vec![(Tau::ONE, vec![3, 5])];
            channels.shared.key_request.put(KeyRequest { origin: origin.clone(), wanted, moving });
            while interactive.serve(&channels, Some(&opened.world), &|| false) {}
            let keys = channels.shared.keys.take().expect("an answer");
            assert_eq!((keys.pictures.len(), keys.too_slow), (2, None));
            assert!(keys.pictures.iter().all(|(_, _, picture)| picture.is_some()));
        }
    }

    #[test]
    fn what_was_asked_for_in_a_world_of_other_classes_is_dropped_without_a_word() {
        let (channels, told) = alone();
        let cpu = choose(DeviceChoice::Cpu).unwrap();
        let opened = folder::open("mnist", &cpu.device, Precision::F32, 16).unwrap();
        let interactive = Interactive::default();
        interactive.enter(&opened.info.world_id(), DeviceChoice::Cpu, "cpu");
        let (spec, there) = (SampleSpec::new(2, Seed(1)), Settings::default_for(8));
        let subject = Subject::Sample { spec, index: 0 };
        let shared = &channels.shared;
        let (first, taus) = (Vec::new(), Vec::new());
        let settings = there.clone();
        shared.gallery_request.put(GalleryRequest { generation: 1, spec, settings, first, look: None, halted: false });
        let settings = there.clone();
        shared.inspect_request.put(InspectRequest {
            generation: 2,
            subject: subject.clone(),
            settings,
            taus,
            look: None,
        });
        // The knobs fit, one of the classes does not.
        let settings = Settings::default_for(10);
        shared.evidence_request.put(EvidenceRequest { generation: 3, subject, settings, a: 0, b: 10 });
        let origin = KeyOrigin::new("another world".into(), &spec, there.prior);
        shared.key_request.put(KeyRequest { origin, wanted: vec![(Tau::ONE, vec![0])], moving: true });
        assert!(!interactive.serve(&channels, Some(&opened.world), &|| false), "something is under way");
        assert!(told.is_empty() && !shared.asked() && shared.gallery.take().is_none() && shared.keys.take().is_none());
    }
}
