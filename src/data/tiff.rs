//! Checks the first directory of a TIFF file (TIFF 6.0, section 2; BigTIFF) before its reader
//! allocates memory: the reader believes a field up to 256 MiB, whatever the length of the file.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// Returns whether the fields of the first directory fit into a file of these bytes; true for
/// other kinds of files.
pub(super) fn fields_fit(bytes: &[u8]) -> io::Result<bool> {
    let fit = Reader::of(bytes).map_or(Ok(true), |mut reader| reader.fields_fit(bytes.len() as u64));
    match fit {
        // Cut short: its reader says so.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
        fit => fit,
    }
}

struct Reader<'a> {
    file: Cursor<&'a [u8]>,
    /// Least significant byte first.
    little: bool,
    /// 64-bit numbers.
    big: bool,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let kind = match bytes.get(..4) {
            Some(b"II*\0") => Some((true, false)),
            Some(b"MM\0*") => Some((false, false)),
            Some(b"II+\0") => Some((true, true)),
            Some(b"MM\0+") => Some((false, true)),
            _ => None,
        };
        kind.map(|(little, big)| Self { file: Cursor::new(bytes), little, big })
    }

    /// A number of so many bytes, 8 at most.
    fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let mut found = [0; 8];
        self.file.read_exact(&mut found[..bytes])?;
        if !self.little {
            found[..bytes].reverse();
        }
        Ok(u64::from_le_bytes(found))
    }

    fn fields_fit(&mut self, length: u64) -> io::Result<bool> {
        let wide = if self.big { 8 } else { 4 };
        self.file.seek(SeekFrom::Start(if self.big { 8 } else { 4 }))?;
        let directory = self.number(wide)?;
        self.file.seek(SeekFrom::Start(directory.min(length)))?;
        let fields = self.number(if self.big { 8 } else { 2 })?;
        for _ in 0..fields {
            let (_tag, kind, count) = (self.number(2)?, self.number(2)?, self.number(wide)?);
            let each = match kind {
                3 | 8 => 2,
                4 | 9 | 11 | 13 => 4,
                5 | 10 | 12 | 16..=18 => 8,
                _ => 1,
            };
            if count.saturating_mul(each) > length {
                return Ok(false);
            }
            self.number(wide)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(bytes: &[u8]) -> bool {
        fields_fit(bytes).unwrap()
    }

    #[test]
    fn a_field_larger_than_the_file_is_seen() {
        let file = |count: u32| {
            let field = [&[1, 1, 4, 0], &count.to_le_bytes()[..], &[0; 4]].concat();
            [b"II*\0\x08\0\0\0\x01\0", &field[..], &[0; 4]].concat()
        };
        assert!(fits(&file(1)) && !fits(&file(1000)) && !fits(&file(u32::MAX)));
        assert!(fits(b"no TIFF") && fits(b"") && fits(b"II*\0\xff\xff\xff\xff"));
        let swapped = [b"MM\0*\0\0\0\x08\0\x01", &[1, 1, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0][..]].concat();
        assert!(!fits(&swapped));
    }
}
