//! An HTTP server on this machine that can be slow, forgetful and wrong.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Content of a file that no compression and no offset makes the same.
pub fn content() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// How a mirror, which is a first folder of the address, behaves.
#[derive(Clone, Copy)]
pub enum Way {
    /// As it should.
    Whole,
    /// Ends the first answer about a file after so many bytes; then as it should.
    CutsAt(usize),
    /// Answers so and has nothing.
    Status(u16),
    /// Says that it is busy the first time.
    BusyOnce,
    /// Always sends everything.
    NoRanges,
    /// Sends another part than was asked for.
    WrongPart,
    /// Never answers.
    Silent,
    /// Sends so many bytes, then nothing more, and keeps the connection.
    Stalls(usize),
    /// Sends a file of the same length with another content.
    Forged,
    /// Sends a page instead.
    Page,
    /// Sends a page instead, in chunks, without saying how much.
    PageInChunks,
    /// Sends everything, in chunks, without saying how much.
    WholeInChunks,
    /// Says that its file is shorter than what is there.
    Shorter,
    /// Sends the file and more, without saying how much.
    Endless,
    /// Says that it is elsewhere.
    Moved(&'static str),
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Mirror and file, such as `whole/data.bin`.
    pub path: String,
    /// First byte of the range, where one was asked for.
    pub from: Option<usize>,
}

/// The server; it runs until the process ends.
pub struct Server {
    address: String,
    state: Arc<State>,
}

struct State {
    ways: HashMap<&'static str, Way>,
    files: HashMap<&'static str, Vec<u8>>,
    asked: Mutex<Vec<Asked>>,
}

impl Server {
    pub fn new(ways: &[(&'static str, Way)], files: &[(&'static str, &[u8])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(State {
            ways: ways.iter().copied().collect(),
            files: files.iter().map(|(name, bytes)| (*name, bytes.to_vec())).collect(),
            asked: Mutex::new(Vec::new()),
        });
        let shared = state.clone();
        let serve = move || {
            for stream in listener.incoming() {
                let (state, stream) = (shared.clone(), stream.unwrap());
                // Whoever hangs up in the middle of an answer is a test that wanted to.
                let answer = move || drop(state.answer(stream));
                std::thread::Builder::new().name("answer".into()).spawn(answer).unwrap();
            }
        };
        std::thread::Builder::new().name("server".into()).spawn(serve).unwrap();
        Self { address, state }
    }

    /// Address of a mirror.
    pub fn mirror(&self, name: &str) -> String {
        format!("http://{}/{name}/", self.address)
    }

    /// What was asked for so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// First bytes of the ranges that were asked of a mirror.
    pub fn ranges(&self, mirror: &str) -> Vec<Option<usize>> {
        self.asked()
            .iter()
            .filter(|asked| asked.path.starts_with(&format!("{mirror}/")))
            .map(|asked| asked.from)
            .collect()
    }
}

impl State {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let path = line.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        let mut from = None;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
                break;
            }
            if let Some(range) = header.trim().to_ascii_lowercase().strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().ok();
            }
        }
        let before = {
            let mut asked = self.asked.lock().unwrap();
            let before = asked.iter().filter(|asked| asked.path == path).count();
            asked.push(Asked { path: path.clone(), from });
            before
        };
        let (mirror, file) = path.split_once('/').unwrap_or_default();
        let (Some(way), Some(bytes)) = (self.ways.get(mirror), self.files.get(file)) else {
            return status(&mut stream, 404);
        };
        self.behave(*way, before, bytes, from, &mut stream)?;
        if matches!(way, Way::Silent | Way::Stalls(_)) {
            // Until the other side hangs up.
            reader.read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }

    fn behave(
        &self,
        way: Way,
        before: usize,
        bytes: &[u8],
        from: Option<usize>,
        stream: &mut TcpStream,
    ) -> std::io::Result<()> {
        match way {
            Way::Whole => send(stream, bytes, from, usize::MAX),
            Way::CutsAt(at) if before == 0 => send(stream, bytes, from, at),
            Way::CutsAt(_) => send(stream, bytes, from, usize::MAX),
            Way::Status(code) => status(stream, code),
            Way::BusyOnce if before == 0 => status(stream, 503),
            Way::BusyOnce => send(stream, bytes, from, usize::MAX),
            Way::NoRanges => send(stream, bytes, None, usize::MAX),
            Way::WrongPart => {
                let range = format!("Content-Range: bytes 1-{}/{}", bytes.len() - 1, bytes.len());
                write!(stream, "HTTP/1.1 206 Partial\r\n{range}\r\nContent-Length: {}\r\n\r\n", bytes.len() - 1)?;
                stream.write_all(&bytes[1..])
            }
            Way::Silent => Ok(()),
            Way::Stalls(at) => send(stream, bytes, from, at),
            Way::Forged => {
                let forged: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
                send(stream, &forged, from, usize::MAX)
            }
            Way::Page => send(stream, b"<html>Please log in</html>", None, usize::MAX),
            Way::PageInChunks => send_chunks(stream, b"<html>Please log in</html>"),
            Way::WholeInChunks => send_chunks(stream, bytes),
            Way::Shorter if from.is_some() => {
                let told = "HTTP/1.1 416 Not so\r\nContent-Range: bytes */100\r\nContent-Length: 0";
                write!(stream, "{told}\r\nConnection: close\r\n\r\n")
            }
            Way::Shorter => send(stream, &bytes[..100], None, usize::MAX),
            Way::Endless => {
                write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
                // The end of the file and what follows in one piece: who has read the file to its end looks no further.
                let (most, end) = bytes.split_at(bytes.len() - 1);
                stream.write_all(most)?;
                stream.write_all(&[end, &[7; 100_000]].concat())
            }
            Way::Moved(to) => write!(
                stream,
                "HTTP/1.1 302 Found\r\nLocation: ../{to}/data.bin\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ),
        }
    }
}

fn status(stream: &mut TcpStream, code: u16) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {code} Not so\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// At most `most` bytes of an answer that announces all of them.
fn send(stream: &mut TcpStream, bytes: &[u8], from: Option<usize>, most: usize) -> std::io::Result<()> {
    let (code, start, range) = match from {
        Some(from) if from >= bytes.len() => return status(stream, 416),
        Some(from) => (206, from, format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len())),
        None => (200, 0, String::new()),
    };
    let rest = &bytes[start..];
    write!(stream, "HTTP/1.1 {code} OK\r\n{range}Content-Length: {}\r\nConnection: close\r\n\r\n", rest.len())?;
    stream.write_all(&rest[..rest.len().min(most)])
}

/// An answer of unknown length that ends properly.
fn send_chunks(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")?;
    for chunk in bytes.chunks(10_000) {
        write!(stream, "{:x}\r\n", chunk.len())?;
        stream.write_all(chunk)?;
        write!(stream, "\r\n")?;
    }
    write!(stream, "0\r\n\r\n")
}
