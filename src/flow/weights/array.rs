//! One array inside a checkpoint: where its numbers lie in the file, and reading them in small
//! pieces.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::{Crc, read::DeflateDecoder};
use half::{bf16, f16};

use crate::data::{CUT_SHORT, said};
use crate::error::{Error, Result};

/// Bytes read, decoded and reported at a time; a multiple of every number's size.
const PIECE: usize = 1 << 20;
/// Values that an array may have beyond what its storage holds: axes of stride 0 repeat what is
/// stored, and nothing else in the file bounds them.
pub(super) const MAX_REPEATED: usize = 1 << 22;

/// How a number is written; always little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    F64,
    F32,
    F16,
    Bf16,
    /// Integers, flags and complex numbers, which no weight is, with their bytes.
    Other(u8),
}

impl Number {
    /// Bytes of one number.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F64 => 8,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Other(bytes) => bytes.into(),
        }
    }

    /// Whether these are weights.
    pub fn is_float(self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Appends the numbers in `data`, rounded to f32, to `values`; a last incomplete number is
    /// dropped.
    pub fn decode(self, data: &[u8], values: &mut Vec<f32>) {
        fn each<const N: usize>(data: &[u8], values: &mut Vec<f32>, decode: impl Fn([u8; N]) -> f32) {
            values.extend(data.as_chunks::<N>().0.iter().map(|&bytes| decode(bytes)));
        }
        match self {
            Self::F64 => each(data, values, |bytes| f64::from_le_bytes(bytes) as f32),
            Self::F32 => each(data, values, f32::from_le_bytes),
            Self::F16 => each(data, values, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Self::Bf16 => each(data, values, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Self::Other(_) => {}
        }
    }
}

/// How an array lies in its storage: element (i, j, …) is number `start` + i·stride₀ + j·stride₁ +
/// … of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub number: Number,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
    /// Numbers from one element to the next, per axis.
    pub strides: Vec<usize>,
    /// Number of the storage that is the first element.
    pub start: u64,
}

impl View {
    /// A whole storage in row-major order. `None` where the count of values overflows.
    pub fn row_major(number: Number, shape: Vec<usize>) -> Option<Self> {
        let mut strides = vec![0; shape.len()];
        let mut step = 1_usize;
        for (stride, &extent) in strides.iter_mut().zip(&shape).rev() {
            *stride = step;
            step = step.checked_mul(extent)?;
        }
        Some(Self { number, shape, strides, start: 0 })
    }

    /// Whether the elements lie one after another.
    fn is_row_major(&self) -> bool {
        let mut step = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&extent, &stride)| {
            // An axis of one element is never stepped along.
            let fits = extent <= 1 || stride == step;
            step *= extent;
            fits
        })
    }

    /// Numbers from the first element to one past the last; 0 where there is none. `None` on
    /// overflow.
    fn reach(&self) -> Option<usize> {
        let count = self.shape.iter().try_fold(1_usize, |n, &extent| n.checked_mul(extent))?;
        if count == 0 {
            return Some(0);
        }
        let mut axes = self.shape.iter().zip(&self.strides);
        axes.try_fold(1_usize, |reach, (&extent, &stride)| reach.checked_add((extent - 1).checked_mul(stride)?))
    }

    /// Whether every element lies within a storage of so many numbers, and memory can hold them.
    ///
    /// # Errors
    /// A sentence with shape and counts.
    pub fn check(&self, stored: u64) -> Result<(), String> {
        let Self { shape, strides, start, .. } = self;
        if strides.len() != shape.len() {
            return Err(format!("an array of shape {shape:?} has strides {strides:?}"));
        }
        let end = self.reach().and_then(|reach| start.checked_add(reach as u64));
        match end {
            Some(end) if end <= stored => {}
            _ => {
                let cause = format!("strides {strides:?} from number {start} leaves its storage of {stored} numbers");
                return Err(format!("an array of shape {shape:?} with {cause}"));
            }
        }
        let count: usize = shape.iter().product();
        if count as u64 > stored && count > MAX_REPEATED {
            return Err(format!("an array of shape {shape:?} repeats {stored} stored numbers {count} times"));
        }
        Ok(())
    }

    /// The elements in row-major order, from the numbers that start at the first of them.
    fn gather(&self, numbers: &[f32]) -> Vec<f32> {
        let mut index = vec![0; self.shape.len()];
        let mut at = 0;
        let count = self.shape.iter().product();
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            values.push(numbers[at]);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                index[axis] = 0;
                at -= self.strides[axis] * self.shape[axis];
            }
        }
        values
    }
}

/// Where the bytes of a storage lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// First byte in the file.
    pub offset: u64,
    /// Bytes, uncompressed.
    pub bytes: u64,
    /// Bytes in the file, where a zip entry is deflated (PyTorch never does; other writers may).
    pub deflated: Option<u64>,
    /// CRC-32 of all bytes, where the container has one.
    pub checksum: Option<u32>,
}

impl Place {
    /// Bytes that lie in the file as they are.
    pub fn plain(offset: u64, bytes: u64) -> Self {
        Self { offset, bytes, deflated: None, checksum: None }
    }

    /// A reader of the bytes from number `from` on.
    fn reader<'f>(&self, file: &'f mut File, from: u64) -> io::Result<Box<dyn Read + 'f>> {
        let Some(deflated) = self.deflated else {
            file.seek(SeekFrom::Start(self.offset + from))?;
            return Ok(Box::new(file.take(self.bytes - from)));
        };
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = DeflateDecoder::new(file.take(deflated)).take(self.bytes);
        // What lies before can only be passed by unpacking it.
        io::copy(&mut reader.by_ref().take(from), &mut io::sink())?;
        Ok(Box::new(reader))
    }

    /// All bytes, of which there may be at most `limit`.
    ///
    /// # Errors
    /// A sentence when there are more, when the file ends early, or when the checksum differs.
    pub fn read(&self, file: &mut File, limit: u64) -> Result<Vec<u8>, String> {
        if self.bytes > limit {
            return Err(format!("has {} bytes where at most {limit} are expected", self.bytes));
        }
        let mut bytes = Vec::new();
        self.reader(file, 0).and_then(|mut reader| reader.read_to_end(&mut bytes)).map_err(|e| said(&e))?;
        if bytes.len() as u64 != self.bytes {
            return Err(CUT_SHORT.into());
        }
        let mut crc = Crc::new();
        crc.update(&bytes);
        if self.checksum.is_some_and(|expected| crc.sum() != expected) { Err(DAMAGED.into()) } else { Ok(bytes) }
    }
}

const DAMAGED: &str = "the checksum differs: the file is damaged";

/// An array and the place of its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Array {
    view: View,
    place: Place,
}

impl Array {
    /// An array that lies within its storage.
    ///
    /// # Errors
    /// A sentence when it does not.
    pub fn new(view: View, place: Place) -> Result<Self, String> {
        view.check(place.bytes / view.number.bytes())?;
        Ok(Self { view, place })
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.view.shape
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.view.shape.iter().product()
    }

    /// Where its storage begins, and how many numbers that holds.
    pub fn stored(&self) -> (u64, u64) {
        (self.place.offset, self.place.bytes / self.view.number.bytes())
    }

    /// Numbers between the first element and the last, which are read.
    fn reach(&self) -> usize {
        self.view.reach().unwrap_or(0)
    }

    /// Bytes that [`Self::read`] reads and reports.
    pub fn bytes(&self) -> usize {
        self.reach().saturating_mul(self.view.number.bytes() as usize)
    }

    /// Reads the values, row-major and finite. `step` hears the bytes of every piece read, and may
    /// stop.
    ///
    /// Memory: 4 bytes per value and one piece; for an array that does not lie row-major, 4 bytes
    /// more per number between its first element and its last.
    ///
    /// # Errors
    /// Names the file (`path`) and the array (`name`), or what `step` returns.
    pub fn read(
        &self,
        file: &mut File,
        path: &Path,
        name: &str,
        step: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<f32>> {
        let fail = |cause: &str| Error::file(path, format!("array '{name}': {cause}"));
        let numbers = self.numbers(file, &fail, step)?;
        let values = if self.view.is_row_major() { numbers } else { self.view.gather(&numbers) };
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(Error::file(path, format!("array '{name}' holds NaN or infinity")))
        }
    }

    /// The numbers from the first element to the last.
    fn numbers(
        &self,
        file: &mut File,
        fail: &dyn Fn(&str) -> Error,
        step: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<f32>> {
        let number = self.view.number;
        let mut values = Vec::new();
        // How much a deflated entry holds shows when it is unpacked.
        let certain = self.place.deflated.map_or(self.reach(), |deflated| self.reach().min(deflated as usize));
        if values.try_reserve_exact(certain).is_err() {
            return Err(fail(&format!("{} values do not fit into memory", self.reach())));
        }
        let from = self.view.start * number.bytes();
        let mut reader = self.place.reader(file, from).map_err(|e| fail(&said(&e)))?;
        let mut left = self.bytes();
        let mut piece = vec![0; left.min(PIECE)];
        let mut crc = Crc::new();
        // A checksum covers the whole storage, so a part of one cannot be checked.
        let checksum = self.place.checksum.filter(|_| self.place.bytes == left as u64);
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE)];
            reader.read_exact(piece).map_err(|e| fail(&said(&e)))?;
            number.decode(piece, &mut values);
            if checksum.is_some() {
                crc.update(piece);
            }
            left -= piece.len();
            step(piece.len())?;
        }
        if checksum.is_some_and(|expected| crc.sum() != expected) { Err(fail(DAMAGED)) } else { Ok(values) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(shape: &[usize], strides: &[usize], start: u64) -> View {
        View { number: Number::F32, shape: shape.to_vec(), strides: strides.to_vec(), start }
    }

    #[test]
    fn views_gather_what_pytorch_would() {
        let numbers: Vec<f32> = (0..6_u8).map(f32::from).collect();
        assert!(view(&[2, 3], &[3, 1], 0).is_row_major() && view(&[2, 1, 3], &[3, 77, 1], 0).is_row_major());
        assert_eq!(view(&[3, 2], &[1, 3], 0).gather(&numbers), [0., 3., 1., 4., 2., 5.]);
        assert_eq!(view(&[2, 2], &[0, 2], 0).gather(&numbers), [0., 2., 0., 2.]);
        assert_eq!(view(&[], &[], 5).gather(&numbers[5..]), [5.]);
        assert!(view(&[0, 3], &[3, 1], 0).gather(&numbers).is_empty());
        assert_eq!(View::row_major(Number::F32, vec![2, 3]), Some(view(&[2, 3], &[3, 1], 0)));
        assert_eq!(View::row_major(Number::F32, vec![usize::MAX, 3]), None);
    }

    #[test]
    fn views_that_leave_their_storage_are_refused() {
        assert_eq!(view(&[2, 3], &[3, 1], 0).check(6), Ok(()));
        assert_eq!(view(&[1 << 20], &[0], 5).check(6), Ok(()));
        let wrong: [(&[usize], &[usize], u64); 6] = [
            (&[2, 3], &[3, 1], 1),
            (&[2, 3], &[4, 1], 0),
            (&[2, 3], &[1], 0),
            (&[2, usize::MAX], &[1, usize::MAX], 0),
            (&[1], &[1], u64::MAX),
            (&[1 << 40], &[0], 0),
        ];
        for (shape, strides, start) in wrong {
            assert!(view(shape, strides, start).check(6).is_err(), "{shape:?} {strides:?} {start}");
        }
    }

    #[test]
    fn every_number_decodes() {
        let mut values = Vec::new();
        Number::F64.decode(&1.5_f64.to_le_bytes(), &mut values);
        Number::F16.decode(&f16::from_f32(-2.0).to_le_bytes(), &mut values);
        Number::Bf16.decode(&bf16::from_f32(0.5).to_le_bytes(), &mut values);
        Number::F32.decode(&[0, 0, 128, 63, 1, 2], &mut values);
        assert_eq!(values, [1.5, -2.0, 0.5, 1.0]);
    }
}
