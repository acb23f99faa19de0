//! What may come first over a connection: the head of one HTTP request, then one short websocket
//! message, each within its time.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::device::presence::PRESENCE;

/// The status that answers [`PRESENCE`].
pub const PRESENT: &str = "204 No Content";

/// Longest head of a request or an answer, in bytes.
const HEAD: usize = 8 << 10;

/// Reads a connection up to a moment and a number of bytes.
pub struct Bounded<'a> {
    pub stream: &'a TcpStream,
    pub until: Instant,
    pub left: usize,
}

impl Bounded<'_> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(|| Error::new(ErrorKind::InvalidData, "too long"))?;
        let mut filled = 0;
        while filled < bytes.len() {
            let time = self.until.saturating_duration_since(Instant::now());
            if time.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(time))?;
            match self.stream.read(&mut bytes[filled..])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                more => filled += more,
            }
        }
        Ok(())
    }
}

/// The head of a request or an answer, up to the empty line that ends it.
pub fn head(stream: &TcpStream, until: Instant) -> Result<Vec<u8>> {
    let mut from = Bounded { stream, until, left: HEAD };
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.fill(&mut byte)?;
        head.extend(byte);
    }
    Ok(head)
}

/// Why a request is refused, as the status line of the answer, or [`PRESENT`] for [`PRESENCE`]; `None`
/// where it is one for a session that no web page sends.
pub fn objection(head: &[u8]) -> Option<&'static str> {
    let Ok(head) = std::str::from_utf8(head) else { return Some("400 Bad Request") };
    let mut lines = head.trim_end_matches("\r\n").split("\r\n");
    let first = lines.next().unwrap_or_default();
    let mut upgrade = false;
    for line in lines {
        // Lines that other readers would end or join elsewhere could hide a header.
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t'])) else {
            return Some("400 Bad Request");
        };
        if name.contains(char::is_whitespace) || value.contains(['\r', '\n']) {
            return Some("400 Bad Request");
        }
        if name.eq_ignore_ascii_case("origin") {
            return Some("403 Forbidden");
        }
        upgrade |= name.eq_ignore_ascii_case("upgrade") && value.trim().eq_ignore_ascii_case("websocket");
    }
    match first {
        "GET /session HTTP/1.1" if upgrade => None,
        "GET /session HTTP/1.1" => Some("426 Upgrade Required"),
        PRESENCE => Some(PRESENT),
        _ => Some("404 Not Found"),
    }
}

/// Passes frames on until a binary message, or a close, has gone through; `hold` sees what each
/// frame carries first.
pub fn pass_message(mut from: Bounded<'_>, mut to: &TcpStream, hold: impl Fn(&[u8])) -> Result<()> {
    let mut binary = false;
    loop {
        let mut frame = vec![0; 2];
        from.fill(&mut frame)?;
        let (kind, last, masked) = (frame[0] & 15, frame[0] & 128 != 0, frame[1] & 128 != 0);
        let wide = match frame[1] & 127 {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mut more = vec![0; wide + if masked { 4 } else { 0 }];
        from.fill(&mut more)?;
        let short = usize::from(frame[1] & 127);
        let length = more[..wide].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        let length = if wide == 0 { short } else { usize::try_from(length).unwrap_or(usize::MAX) };
        if length > from.left {
            return Err(Error::new(ErrorKind::InvalidData, format!("a first message of {length} bytes")));
        }
        let mut payload = vec![0; length];
        from.fill(&mut payload)?;
        hold(&payload);
        frame.extend(more);
        frame.extend(payload);
        to.write_all(&frame)?;
        if matches!(kind, 1 | 2) {
            binary = kind == 2;
        }
        if kind == 8 || last && kind < 8 && binary {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_wants_a_session_passes() {
        let ask = |first: &str, more: &str| objection(format!("{first} HTTP/1.1\r\nHost: x\r\n{more}\r\n").as_bytes());
        let upgrade = "Upgrade: websocket\r\n";
        assert_eq!(ask("GET /session", upgrade), None);
        assert_eq!(ask("GET /session", &format!("{upgrade}oRiGiN: null\r\n")), Some("403 Forbidden"));
        assert_eq!(ask("GET /data", upgrade), Some("404 Not Found"));
        assert_eq!(ask("POST /session", upgrade), Some("404 Not Found"));
        assert_eq!(ask("GET /session", ""), Some("426 Upgrade Required"));
        assert_eq!(objection(format!("{PRESENCE}\r\nHost: x\r\n\r\n").as_bytes()), Some(PRESENT));
        for hidden in ["A: b\nOrigin: x\r\n", "Origin : x\r\n", " Origin: x\r\n", "A: b\n\nGET /data\r\n"] {
            assert_eq!(ask("GET /session", &format!("{upgrade}{hidden}")), Some("400 Bad Request"), "{hidden:?}");
        }
    }
}
