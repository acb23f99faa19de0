//! How many images a device is given at once: as many as the caller likes, until it has no memory for them. Then half as many, and
//! half of these; what was found to fit is kept for that device and that work.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use burn::tensor::{Device, Tensor};

use super::faults::{guarded, note};
use super::table;
use crate::error::{Error, Result};

/// Images at once that were found to fit, by the name of the device and the work.
static FITTING: Mutex<BTreeMap<(String, String), usize>> = Mutex::new(BTreeMap::new());

/// Images of one kind of work that a device is known to take at once; none where it never ran out of memory.
pub fn fitting(device: &Device, what: &str) -> Option<usize> {
    if *device == Device::flex() {
        return None;
    }
    let (name, _) = table::of(device)?;
    FITTING.lock().unwrap_or_else(PoisonError::into_inner).get(&(name, what.to_owned())).copied()
}

fn keep(name: &str, what: &str, images: usize) {
    FITTING.lock().unwrap_or_else(PoisonError::into_inner).insert((name.to_owned(), what.to_owned()), images);
}

/// `work` with `n` images at once, or with half of them, again and again, where the device has no memory for them. `what` names the
/// work in the message and tells it from other work on the device.
///
/// # Errors
/// Those of `work`; [`Error::OutOfMemory`], with the way out, where one image is too much.
pub fn halving<T>(device: &Device, what: &str, n: usize, work: impl FnMut(usize) -> Result<T>) -> Result<T> {
    halving_after(device, what, n, 0, work)
}

/// [`halving`] in the midst of more of the same work, of which `most` images at once were the most so far.
fn halving_after<T>(
    device: &Device,
    what: &str,
    n: usize,
    most: usize,
    mut work: impl FnMut(usize) -> Result<T>,
) -> Result<T> {
    let asked = fitting(device, what).unwrap_or(n).clamp(1, n.max(1));
    let mut images = asked;
    loop {
        match guarded(device, || work(images)) {
            Err(Error::OutOfMemory { device: name, why }) => {
                // What was allocated in vain is given back; a device that cannot even do that says so at the next reading.
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
                if images < asked {
                    tell(device, what, asked, images);
                }
                return Ok(done);
            }
            Err(error) => {
                lost_for_memory(&error, what, images.max(most));
                return Err(error);
            }
        }
    }
}

/// What wgpu says of a device that it gives up because there is no memory left for something small, a list of bindings or of commands
/// (hal::DeviceError). Our own words about memory begin with a small letter.
const OUT_OF_MEMORY: &str = "Out of memory";

/// Whether a device was lost for lack of memory.
pub fn is_for_memory(error: &Error) -> bool {
    matches!(error, Error::DeviceLost { why, .. } if why.contains(OUT_OF_MEMORY))
}

/// Whoever does work for which its device was [given up](OUT_OF_MEMORY) begins with half as many images on the next device of that
/// name. Which pass took the memory is not known, for it is lost after the fact: `images` are the most of any.
fn lost_for_memory(error: &Error, what: &str, images: usize) {
    if let Error::DeviceLost { device: name, .. } = error
        && is_for_memory(error)
        && images > 1
    {
        let fewer = images.div_ceil(2);
        keep(name, what, fewer);
        note(format!(
            "{name} was given up for lack of memory with {images} images at once ({what}); the next try takes {fewer}"
        ));
    }
}

fn tell(device: &Device, what: &str, asked: usize, images: usize) {
    let name = table::of(device).map_or_else(|| "the device".to_owned(), |(name, _)| name);
    keep(&name, what, images);
    note(format!("{name} ran out of memory with {asked} images at once ({what}); it goes on with {images}"));
}

/// Arrays of fewer bytes fit into a buffer of any device.
const SMALL: usize = 1 << 20;

/// `array` as it is. Where it is larger than a buffer of its device, the next reading of anything from there is
/// [`Error::OutOfMemory`]. Cubecl (0.11) remembers of every array whether what was to write it has failed, and forgets it when a part
/// is written again: join an array that has no memory with one that has (`Tensor::cat`), and the result counts as written. So
/// whatever may grow with a batch passes through here.
pub fn bounded<const D: usize>(array: Tensor<D>) -> Tensor<D> {
    let bytes = array.dims().iter().product::<usize>() * array.dtype().size();
    if bytes < SMALL {
        return array;
    }
    let device = array.device();
    if let Some(most) = super::largest_buffer(&device).filter(|most| bytes as u64 > *most)
        && let Some((_, faults)) = table::of(&device)
    {
        faults.too_large(format!("an array of {bytes} bytes, where a buffer takes {most}"));
    }
    array
}

/// Images whose largest array, of so many bytes an image, fits into a buffer of the device; at least one: no pass need begin in vain
/// ([`bounded`]).
pub fn at_most(device: &Device, bytes_per_image: u64) -> usize {
    let most = super::largest_buffer(device).map_or(u64::MAX, |bytes| bytes / bytes_per_image.max(1));
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
    let (mut answers, mut at, mut most) = (Vec::new(), 0, 0);
    while at < n {
        let (end, answer) = halving_after(device, what, n - at, most, |images| {
            let end = (at + images).min(n);
            pass(at..end).map(|answer| (end, answer))
        })?;
        answers.push(answer);
        most = most.max(end - at);
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
        let kept = |what: &str| FITTING.lock().unwrap().get(&("a card".to_owned(), what.to_owned())).copied();
        let lost = |why: &str| Error::DeviceLost { device: "a card".into(), why: why.into() };
        lost_for_memory(&lost("Unknown: Out of memory"), "passes of a test", 9);
        assert_eq!(kept("passes of a test"), Some(5));
        lost_for_memory(&lost("Unknown: the GPU was reset"), "another test", 9);
        lost_for_memory(&lost("it had run out of memory before: no results"), "another test", 9);
        lost_for_memory(&lost("Unknown: Out of memory"), "another test", 1);
        assert_eq!(kept("another test"), None);
        assert!(super::super::faults::notes().iter().any(|told| told.contains("the next try takes 5")));
    }

    #[test]
    fn a_device_given_up_during_the_rest_of_a_batch_is_not_asked_for_less_than_half_of_the_batch() {
        let device = Device::flex();
        let lost = || Error::DeviceLost { device: "a device of four".into(), why: "Unknown: Out of memory".into() };
        let rest = |images| if images < 4 { Err(lost()) } else { Ok(images) };
        assert!(halving_after(&device, "a test of rests", 4, 0, rest).is_ok());
        assert!(halving_after(&device, "a test of rests", 1, 4, rest).is_err());
        let kept = FITTING.lock().unwrap().get(&("a device of four".to_owned(), "a test of rests".to_owned())).copied();
        assert_eq!(kept, Some(2));
    }

    #[test]
    fn what_does_not_even_fit_alone_says_so() {
        let error = in_batches(&Device::flex(), "a test", 8, |range| takes(0, range)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("small") && text.contains("one image") && text.contains("--device cpu"), "{text}");
    }
}
