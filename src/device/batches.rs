//! How many images a device is given at once: as many as the caller asks for, and half of them
//! again and again while it has no memory. What fits is kept for that device and that work.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Tensor};

use super::faults::note;
use super::guard::guarded;
use super::registry::{self, largest_buffer};
use crate::error::{Error, Result};

/// What is known of one kind of work on a device.
#[derive(Clone, Copy, Default)]
struct Known {
    /// Images at once that were found to fit; none where it never ran out of memory.
    fits: Option<usize>,
    /// The most images at once of which all went well.
    most: usize,
}

/// By the name of the device and the work.
static KNOWN: Mutex<BTreeMap<(String, String), Known>> = Mutex::new(BTreeMap::new());

fn known<T>(name: &str, what: &str, look: impl FnOnce(&mut Known) -> T) -> T {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    look(known.entry((name.to_owned(), what.to_owned())).or_default())
}

/// The name of a device that can run out of memory or be lost.
fn name_of(device: &Device) -> Option<String> {
    registry::of(device).filter(|_| *device != Device::flex()).map(|(name, _)| name)
}

/// Images of one kind of work that fit a device at once; none where it never ran out of memory.
pub fn fitting(device: &Device, what: &str) -> Option<usize> {
    known(&name_of(device)?, what, |known| known.fits)
}

/// `work` with `n` images at once, or with half of them, again and again, where the device has no
/// memory for them. `what` names the work in the message and tells it from other work on the
/// device.
///
/// # Errors
/// Those of `work`; [`Error::OutOfMemory`], with the way out, where one image is too much.
pub fn halving<T>(device: &Device, what: &str, n: usize, mut work: impl FnMut(usize) -> Result<T>) -> Result<T> {
    let asked = fitting(device, what).unwrap_or(n).clamp(1, n.max(1));
    let mut images = asked;
    loop {
        match guarded(device, || work(images)) {
            Err(Error::OutOfMemory { device: name, why }) => {
                // Frees memory. A device that cannot do that fails at the next reading.
                let _ = guarded(device, || {
                    device.memory_cleanup();
                    Ok(())
                });
                if images <= 1 {
                    let why = format!("{what}, even with one image at once: {why}");
                    return Err(Error::OutOfMemory { device: name, why });
                }
                images = images.div_ceil(2);
            }
            Ok(done) => {
                if let Some(name) = name_of(device) {
                    went_well(&name, what, asked, images);
                }
                return Ok(done);
            }
            Err(error) => {
                lost_for_memory(&error, what, images);
                return Err(error);
            }
        }
    }
}

/// Of `asked` images at once so many fitted.
fn went_well(name: &str, what: &str, asked: usize, images: usize) {
    if images == asked {
        return known(name, what, |known| known.most = known.most.max(images));
    }
    known(name, what, |known| *known = Known { fits: Some(images), most: images });
    note(format!("{name} ran out of memory with {asked} images at once ({what}); it goes on with {images}"));
}

/// What wgpu says of a device that it gives up for lack of memory for something small, a list of
/// bindings or of commands (hal::DeviceError). Our own messages begin with a small letter.
const OUT_OF_MEMORY: &str = "Out of memory";

/// Whether a device was lost for lack of memory.
pub fn is_for_memory(error: &Error) -> bool {
    matches!(error, Error::DeviceLost { why, .. } if why.contains(OUT_OF_MEMORY))
}

/// Work whose device was [given up](OUT_OF_MEMORY) begins with half as many images on the next
/// device of that name. Half of the most there were: the loss comes late, so the pass that took the
/// memory is not known, and `images` may be the rest of a batch.
fn lost_for_memory(error: &Error, what: &str, images: usize) {
    let Error::DeviceLost { device: name, .. } = error else { return };
    if !is_for_memory(error) {
        return;
    }
    let most = known(name, what, |known| images.max(known.most));
    // One image is no batch: it was not for these that there was no memory.
    if most > 1 {
        let fewer = most.div_ceil(2);
        known(name, what, |known| *known = Known { fits: Some(fewer), most: fewer });
        note(format!(
            "{name} was given up for lack of memory with up to {most} images at once ({what}); the next try takes {fewer}"
        ));
    }
}

/// Arrays of fewer bytes fit into a buffer of any device.
const SMALL: usize = 1 << 20;

/// `array` as it is. Where it is larger than a buffer of its device, the next reading of anything
/// from there is [`Error::OutOfMemory`]. Cubecl (0.11) remembers of every array whether what was to
/// write it has failed, and forgets it when a part is written again: join an array that has no
/// memory with one that has (`Tensor::cat`), and the result counts as written. So whatever may grow
/// with a batch passes through here.
pub fn bounded<const D: usize>(array: Tensor<D>) -> Tensor<D> {
    let bytes = array.dims().iter().product::<usize>() * array.dtype().size();
    if bytes < SMALL {
        return array;
    }
    let device = array.device();
    if let Some(most) = largest_buffer(&device).filter(|most| bytes as u64 > *most)
        && let Some((_, faults)) = registry::of(&device)
    {
        faults.too_large(format!("an array of {bytes} bytes, where a buffer takes {most}"));
    }
    array
}

/// Images whose largest array, of so many bytes an image, fits into a buffer of the device; at
/// least one. Larger passes would fail ([`bounded`]).
pub fn at_most(device: &Device, bytes_per_image: u64) -> usize {
    let most = largest_buffer(device).map_or(u64::MAX, |bytes| bytes / bytes_per_image.max(1));
    usize::try_from(most).unwrap_or(usize::MAX).max(1)
}

/// The answers of `pass` about images 0 … `n` − 1, as many at once as the device takes.
///
/// # Errors
/// As [`halving`].
pub fn in_batches<T>(
    device: &Device,
    what: &str,
    n: usize,
    mut pass: impl FnMut(Range<usize>) -> Result<T>,
) -> Result<Vec<T>> {
    let (mut answers, mut at) = (Vec::new(), 0);
    while at < n {
        let (end, answer) = halving(device, what, n - at, |images| {
            let end = (at + images).min(n);
            pass(at..end).map(|answer| (end, answer))
        })?;
        answers.push(answer);
        at = end;
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes so many images at once.
    fn takes(most: usize, range: Range<usize>) -> Result<Range<usize>> {
        match range.len() <= most {
            true => Ok(range),
            false => Err(Error::OutOfMemory { device: "small".into(), why: "full".into() }),
        }
    }

    #[test]
    fn every_image_is_answered_once_whatever_fits() {
        for (n, most) in [(10, 64), (10, 3), (7, 1), (1, 1), (0, 1)] {
            let found = in_batches(&Device::flex(), "a test", n, |range| takes(most, range)).unwrap();
            let images: Vec<usize> = found.iter().flat_map(Clone::clone).collect();
            assert_eq!(images, (0..n).collect::<Vec<_>>());
            assert!(found.iter().all(|range| range.len() <= most));
        }
    }

    #[test]
    fn the_next_device_takes_half_of_what_one_was_lost_for() {
        let fits = |what: &str| known("a card", what, |known| known.fits);
        let lost = |why: &str| Error::DeviceLost { device: "a card".into(), why: why.into() };
        lost_for_memory(&lost("Unknown: Out of memory"), "passes of a test", 9);
        assert_eq!(fits("passes of a test"), Some(5));
        assert!(super::super::faults::notes().iter().any(|told| told.contains("the next try takes 5")));
        lost_for_memory(&lost("Unknown: Out of memory"), "passes of a test", 5);
        assert_eq!(fits("passes of a test"), Some(3));
        lost_for_memory(&lost("Unknown: the GPU was reset"), "another test", 9);
        lost_for_memory(&lost("it had run out of memory before: no results"), "another test", 9);
        lost_for_memory(&lost("Unknown: Out of memory"), "another test", 1);
        assert_eq!(fits("another test"), None);
    }

    #[test]
    fn a_device_given_up_during_the_rest_of_a_batch_is_asked_for_half_of_the_batch() {
        let fits = || known("a card", "rests", |known| known.fits);
        let lost = Error::DeviceLost { device: "a card".into(), why: "Unknown: Out of memory".into() };
        went_well("a card", "rests", 64, 64);
        went_well("a card", "rests", 3, 3);
        assert_eq!(fits(), None);
        lost_for_memory(&lost, "rests", 2);
        assert_eq!(fits(), Some(32));
        // Where fewer fitted later on, the size of before counts no more.
        went_well("a card", "rests", 32, 16);
        lost_for_memory(&lost, "rests", 16);
        assert_eq!(fits(), Some(8));
    }

    #[test]
    fn what_does_not_even_fit_alone_says_so() {
        let error = in_batches(&Device::flex(), "a test", 8, |range| takes(0, range)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("small") && text.contains("one image") && text.contains("--device cpu"), "{text}");
    }
}
