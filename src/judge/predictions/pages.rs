//! Checks the claims of a parquet file's footer and pages before they cost time or memory. Of pages only the headers are read.
//!
//! Both are structures in Thrift's compact protocol. A page begins with a `PageHeader`
//! (parquet-format 2.10): field 2 is its unpacked length, field 3 its length in the file; field 7
//! describes a dictionary, fields 5 and 8 data, and field 1 of each counts its values.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Longest header of a page; what is long in it are the least and the largest value, which programs that write them cut.
const HEADER: u64 = 1 << 16;
/// Most bytes that one byte unpacks to (snappy: 64 of 3), and bytes that any page may claim.
const UNPACKED: i64 = 64;
const FREE: i64 = 1 << 16;
/// How deep a structure nests, lists counted.
const DEPTH: usize = 16;
/// Types of fields.
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// Returns whether a footer (`FileMetaData`) takes no more steps than it has bytes. The `parquet`
/// crate skips lists of flags without consuming a byte for each: 2³¹ of them cost a second, lists
/// of such lists hours. No valid footer has any.
pub(super) fn is_bounded(footer: &[u8]) -> bool {
    Thrift(footer).skip(STRUCT, DEPTH).is_some()
}

/// Returns how many values the pages of a column, which fill a `range` of `file`, hold in all; `None` where they cannot be as
/// large as they say, or one is larger than so many bytes and 64 KiB. Any number of values takes a few bytes where all are
/// alike.
pub(super) fn values(file: &mut (impl Read + Seek), range: Range<u64>, largest: i64) -> io::Result<Option<u64>> {
    let (mut at, mut all, mut window) = (range.start, 0u64, Window { begin: range.start, bytes: Vec::new() });
    while at < range.end {
        let Some((page, begin)) = window.page(file, at..range.end)? else { return Ok(None) };
        let next = u64::try_from(page.packed).ok().and_then(|packed| begin.checked_add(packed));
        match next.filter(|next| *next <= range.end && page.is_possible(largest)) {
            Some(next) => at = next,
            None => return Ok(None),
        }
        all = all.saturating_add(page.data.unsigned_abs());
    }
    Ok(Some(all))
}

/// What is held of a file.
struct Window {
    begin: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The page whose header begins a `range` of `file`, and where that header ends.
    fn page(&mut self, file: &mut (impl Read + Seek), range: Range<u64>) -> io::Result<Option<(Page, u64)>> {
        let at = range.start;
        if let Some(found) = self.held(at) {
            return Ok(Some(found));
        }
        // It is not held, or not to its end.
        self.bytes.clear();
        self.begin = at;
        file.seek(SeekFrom::Start(at))?;
        file.take(HEADER.min(range.end - at)).read_to_end(&mut self.bytes)?;
        Ok(self.held(at))
    }

    fn held(&self, at: u64) -> Option<(Page, u64)> {
        let mut rest = Thrift(self.bytes.get(usize::try_from(at - self.begin).ok()?..)?);
        let page = rest.page()?;
        Some((page, self.begin + (self.bytes.len() - rest.0.len()) as u64))
    }
}

struct Page {
    unpacked: i64,
    packed: i64,
    /// Values of a dictionary.
    values: i64,
    /// Values of data.
    data: i64,
}

impl Page {
    fn is_possible(&self, largest: i64) -> bool {
        let most = self.packed.saturating_mul(UNPACKED).saturating_add(FREE).min(largest.saturating_add(FREE));
        (0..=largest.saturating_add(FREE)).contains(&self.packed)
            && (0..=most).contains(&self.unpacked)
            && (0..=self.unpacked).contains(&self.values)
            && self.data >= 0
    }
}

/// The unread rest. `None` from a method: it ends too early, or is no Thrift.
struct Thrift<'a>(&'a [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number with its sign in the lowest bit.
    fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// The next field of a structure: its number and type; `None` inside: the structure ends.
    fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let number = match head >> 4 {
            0 => self.int()?,
            more => last.checked_add(more.into())?,
        };
        Some(Some((number, head & 0xf)))
    }

    /// Passes over a value.
    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            // Flags stand in the type.
            1 | 2 => Some(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 0xf { self.varint()? } else { u64::from(head >> 4) };
                let (kind, inner) = (head & 0xf, depth.checked_sub(1)?);
                // Of flags, see `is_bounded`.
                if kind <= 2 && count > 0 {
                    return None;
                }
                (0..count).try_for_each(|_| self.skip(kind, inner))
            }
            STRUCT => {
                let inner = depth.checked_sub(1)?;
                let mut last = 0;
                while let Some((number, kind)) = self.field(last)? {
                    self.skip(kind, inner)?;
                    last = number;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn page(&mut self) -> Option<Page> {
        // A header says both lengths; zeros, of which holes in a file consist, say nothing.
        let (mut page, mut last) = (Page { unpacked: -1, packed: -1, values: 0, data: 0 }, 0);
        while let Some((number, kind)) = self.field(last)? {
            match (number, kind) {
                (2, I32) => page.unpacked = self.int()?,
                (3, I32) => page.packed = self.int()?,
                (7, STRUCT) => page.values = self.first_number()?,
                // A page of data, of either version.
                (5 | 8, STRUCT) => page.data = self.first_number()?,
                _ => self.skip(kind, DEPTH)?,
            }
            last = number;
        }
        Some(page)
    }

    /// Field 1 of a structure, passing over the others.
    fn first_number(&mut self) -> Option<i64> {
        let (mut found, mut last) = (0, 0);
        while let Some((number, kind)) = self.field(last)? {
            match (number, kind) {
                (1, I32) => found = self.int()?,
                _ => self.skip(kind, DEPTH)?,
            }
            last = number;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages that fill these bytes, of at most 1,000 bytes and 64 KiB each.
    fn values(chunk: &[u8]) -> Option<u64> {
        super::values(&mut io::Cursor::new(chunk), 0..chunk.len() as u64, 1000).unwrap()
    }

    /// A page of 3 bytes that says it unpacks to so many, and a dictionary of so many values in it.
    fn page(unpacked: u8, values: u8) -> Vec<u8> {
        vec![0x15, 4, 0x15, 2 * unpacked, 0x15, 6, 0x4c, 0x15, 2 * values, 0x15, 0, 0x11, 0, 0, 1, 2, 3]
    }

    #[test]
    fn lists_of_flags_are_not_believed() {
        // Field 1: a list of 2 numbers, of so many flags.
        assert!(is_bounded(&[0x19, 0x25, 4, 6, 0]));
        assert!(!is_bounded(&[0x19, 0x21, 1, 1, 0]));
        assert!(!is_bounded(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0]));
        // A list of lists of lists … ends somewhere.
        assert!(!is_bounded(&[[0x19].as_slice(), &[0x19; 100], &[0; 100]].concat()));
    }

    #[test]
    fn pages_are_believed_as_far_as_snappy_goes() {
        assert!(values(&page(60, 15)) == Some(0) && values(&[page(60, 15), page(3, 0)].concat()) == Some(0));
        // 2³¹ − 1 bytes of 3, values that do not fit, a negative length.
        let huge = [&[0x15, 4, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x15, 6, 0], &[1, 2, 3][..]].concat();
        assert!(values(&huge).is_none() && values(&page(10, 11)).is_none());
        assert!(values(&[0x15, 4, 0x15, 1, 0x15, 1, 0]).is_none());
        let whole = page(60, 15);
        assert!((1..whole.len()).all(|cut| values(&whole[..cut]).is_none()));
    }

    /// A long file that has a page wherever it is looked at; how many bytes of it were read.
    struct Counted(u64);

    impl Read for Counted {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 += into.len() as u64;
            // A page of 2³⁰ bytes that hold 20 values, and zeros behind its header.
            let header =
                [0x15, 0, 0x15, 0x80, 0x80, 0x80, 0x80, 8, 0x15, 0x80, 0x80, 0x80, 0x80, 8, 0x2c, 0x15, 40, 0, 0];
            let beginning = header.iter().copied().chain(std::iter::repeat(0));
            into.iter_mut().zip(beginning).for_each(|(byte, of)| *byte = of);
            Ok(into.len())
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
            Ok(at)
        }
    }

    #[test]
    fn long_pages_are_passed_over_and_no_page_is_longer_than_what_is_needed() {
        let page = (1 << 30) + 19;
        let mut file = Counted(0);
        assert_eq!(super::values(&mut file, 0..3 * page, 1 << 30).unwrap(), Some(60));
        assert!(file.0 <= 3 * HEADER, "{} bytes were read", file.0);
        assert_eq!(super::values(&mut file, 0..3 * page, 1 << 29).unwrap(), None);
        // Holes are no pages.
        assert_eq!(values(&[0; 100]), None);
    }

    /// Pages of 3 bytes that unpack to 8, and say that they hold so many values.
    #[test]
    fn values_of_data_are_counted() {
        // The number is in fields 5 and 8, the structures of both versions.
        let data = |header: u8, values: &[u8]| {
            [&[0x15, 0, 0x15, 16, 0x15, 6, header, 0x15], values, &[0x15, 0, 0, 0, 1, 2, 3]].concat()
        };
        let (one, two) = (data(0x2c, &[40]), data(0x5c, &[14]));
        assert_eq!([values(&one), values(&two), values(&[one, two].concat())], [Some(20), Some(7), Some(27)]);
        assert_eq!(values(&data(0x2c, &[0xfe, 0xff, 0xff, 0xff, 0x0f])), Some(0x7fff_ffff));
        assert_eq!(values(&data(0x2c, &[1])), None);
    }
}
