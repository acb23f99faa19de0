//! Key pictures: what the window draws samples between while τ moves. Pictures alone, without scores.

use std::time::{Duration, Instant};

use super::super::protocol::{KeyOrigin, KeyPictures};
use super::gallery::Gallery;
use super::{Interactive, PieceContext, unless};
use crate::device::{DeviceChoice, explain};
use crate::error::{Error, Result};
use crate::flow::Decoding;
use crate::oracle::world::{SampleSpec, Settings};
use crate::units::Tau;
use crate::worker::remote_device::is_lost;

/// Where one sample takes longer, key pictures would be late whenever they are wanted.
const SLOWEST: Duration = Duration::from_millis(30);

impl Interactive {
    /// The next piece of the key pictures asked for. While τ rests, what is in view of the gallery comes first.
    pub(super) fn keys_piece(&self, cx: &PieceContext<'_>) {
        let Some(origin) = self.keys.origin().filter(|_| !self.lost()) else { return };
        if origin.world != *self.world.borrow() {
            return self.keys.drop_request();
        }
        if !self.keys.moving() && self.gallery.borrow().as_ref().is_some_and(Gallery::owes_the_view) {
            return;
        }
        let none = KeyPictures { origin, shape: cx.world.shape(), pictures: Vec::new(), too_slow: None };
        let cost = self.cost.get();
        if cost > SLOWEST || matches!(self.device.get(), DeviceChoice::Remote(_)) {
            self.keys.drop_request();
            return publish(cx, KeyPictures { too_slow: Some(cost), ..none });
        }
        let Some((tau, indices)) = self.keys.next(self.largest.get()) else { return };
        let began = Instant::now();
        let pictures = match draw(cx, &none.origin, tau, &indices) {
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

/// Pictures of samples at one τ. Stops for what comes before a gallery, but not for a newer request of
/// the kind: while τ moves there is one in every few frames.
fn draw(cx: &PieceContext<'_>, origin: &KeyOrigin, tau: Tau, indices: &[usize]) -> Result<Vec<Vec<u8>>> {
    let KeyOrigin { seed, class, products, .. } = *origin;
    let spec = SampleSpec { class, products, ..SampleSpec::new(indices.len(), seed) };
    let prior = origin.prior.clone();
    let settings = Settings { tau, prior, ..Settings::default_for(cx.world.flow().classes()) };
    let mut watch = |_: Decoding| unless(cx.called_away() || cx.channels.shared.sketch_request.is_full());
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
