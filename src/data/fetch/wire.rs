//! The network: one request on a thread of its own, whose answer comes in pieces.
//!
//! A name lookup, a connection or a read may hang. The thread waits for them; the caller waits for
//! the thread as long as it wants. Dropping the receiver cancels: the thread ends with its next
//! piece or timeout. It touches no file.

use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use ureq::http::Response;
use ureq::http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

use crate::data::source::read_bytes;
use crate::error::{Error, Result};

/// Bytes of a piece, and pieces that may wait for the disk.
const PIECE: usize = 1 << 16;
const WAITING: usize = 8;
/// The variable by which OpenSSL, curl and Python are told the certificates to trust.
const CERTIFICATES: &str = "SSL_CERT_FILE";
/// The variables that name a proxy: ureq takes the first that holds an address of one.
const PROXIES: [&str; 6] = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
/// The kinds of proxies that ureq knows.
const KINDS: [&str; 7] = ["http", "https", "socks4", "socks4a", "socks", "socks5", "socks5h"];

/// How long a server may keep us waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For its address and for a connection, each.
    pub connect: Duration,
    /// For the next bytes.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: Duration::from_secs(15), idle: Duration::from_secs(30) }
    }
}

/// What comes over the wire.
#[derive(Debug)]
pub(super) enum Piece {
    /// First of all.
    Head(Head),
    Bytes(Vec<u8>),
    /// Nothing more; the server says that this was all.
    End,
    /// The request failed, and why.
    Failed(String),
}

/// What an answer says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub status: u16,
    /// First byte of the part of the file that follows, where it is a part.
    pub start: Option<u64>,
    /// Length of the whole file, where the server tells it.
    pub whole: Option<u64>,
}

/// Our side of the network.
pub(super) struct Network {
    agent: Agent,
    pub patience: Patience,
}

impl Network {
    /// Certificates are Mozilla's (compiled in), or those of the file in `SSL_CERT_FILE`. Proxies
    /// come from `ALL_PROXY`, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
    ///
    /// # Errors
    /// When `SSL_CERT_FILE` names a file that cannot be read or holds no certificate; when the proxy is
    /// of a kind that ureq does not know.
    pub fn new(patience: Patience) -> Result<Self> {
        refuse_unknown(|variable| std::env::var(variable).ok())?;
        Self::by(Proxy::try_from_env(), patience)
    }

    /// By a proxy, where there is one.
    fn by(proxy: Option<Proxy>, patience: Patience) -> Result<Self> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = std::env::var_os(CERTIFICATES).filter(|path| !path.is_empty()) {
            tls = tls.root_certs(certificates(std::path::Path::new(&path))?);
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .proxy(proxy)
            .user_agent(concat!("bayescope/", env!("CARGO_PKG_VERSION")))
            // A status is an answer too; it decides what is tried next.
            .http_status_as_error(false)
            .timeout_resolve(Some(patience.connect))
            .timeout_connect(Some(patience.connect))
            .timeout_recv_response(Some(patience.idle))
            .timeout_per_read(Some(patience.idle))
            .timeout_per_write(Some(patience.idle))
            .build()
            .new_agent();
        Ok(Self { agent, patience })
    }

    /// Asks for a file from byte `from` on.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn request(&self, url: &str, from: u64) -> std::io::Result<Receiver<Piece>> {
        let (sender, receiver) = sync_channel(WAITING);
        let (agent, url) = (self.agent.clone(), url.to_owned());
        std::thread::Builder::new().name("fetch".into()).spawn(move || {
            let last = answer(&agent, &url, from, &sender).unwrap_or_else(Piece::Failed);
            // An error here means that the receiver is gone.
            let _ = sender.send(last);
        })?;
        Ok(receiver)
    }
}

/// Refuses a proxy of a kind that ureq does not know, as `value` of the variables gives it: ureq would go past it without
/// a word.
fn refuse_unknown(value: impl Fn(&str) -> Option<String>) -> Result<()> {
    for variable in PROXIES {
        let Some(proxy) = value(variable) else { continue };
        if Proxy::new(&proxy).is_ok() {
            return Ok(());
        }
        // A name and a password may follow the kind: they are not told.
        let kind = proxy.split_once("://").map(|(kind, _)| kind.to_ascii_lowercase());
        if let Some(kind) = kind.filter(|kind| is_kind(kind) && !KINDS.contains(&kind.as_str())) {
            return Err(Error::input(format!(
                "{variable} names a proxy of the kind {kind}, and downloads go through those of the kinds {}: unset {variable}, \
                 and name one of these where it is needed",
                KINDS.join(", ")
            )));
        }
    }
    Ok(())
}

/// Whether a word can be the scheme of an address.
fn is_kind(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn certificates(path: &std::path::Path) -> Result<RootCerts> {
    let pem = read_bytes(path)
        .map_err(|e| Error::file(path, format!("is named by {CERTIFICATES}, but cannot be read: {e}")))?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| if let Ok(PemItem::Certificate(certificate)) = item { Some(certificate) } else { None })
        .collect();
    if found.is_empty() {
        let cause = format!("holds no certificate ({CERTIFICATES} names it; unset that for Mozilla's)");
        return Err(Error::file(path, cause));
    }
    Ok(RootCerts::from(found))
}

/// Runs one request. Returns the last piece, or the cause of the failure.
fn answer(agent: &Agent, url: &str, from: u64, to: &SyncSender<Piece>) -> Result<Piece, String> {
    let mut request = agent.get(url);
    if from > 0 {
        request = request.header(RANGE, format!("bytes={from}-"));
    }
    let response = request.call().map_err(said)?;
    let head = head(&response);
    if to.send(Piece::Head(head)).is_err() || !matches!(head.status, 200 | 206) {
        return Ok(Piece::End);
    }
    let mut body = response.into_body().into_reader();
    loop {
        let mut piece = vec![0; PIECE];
        let read = match body.read(&mut piece) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|e| said(e.into()))?,
        };
        piece.truncate(read);
        if read == 0 || to.send(Piece::Bytes(piece)).is_err() {
            return Ok(Piece::End);
        }
    }
}

/// An error of the network in words.
fn said(error: ureq::Error) -> String {
    let cause = match error {
        ureq::Error::Io(cause) => cause.to_string(),
        error => error.to_string(),
    };
    if cause.contains("UnknownIssuer") {
        return format!("{cause} (where a company's proxy reads along, name its certificates in {CERTIFICATES})");
    }
    cause
}

fn head<T>(response: &Response<T>) -> Head {
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let status = response.status().as_u16();
    if status != 206 {
        let whole = text(CONTENT_LENGTH).and_then(|length| length.trim().parse().ok());
        return Head { status, start: None, whole };
    }
    // `bytes 100-199/200`; the length may be `*`.
    let range = text(CONTENT_RANGE).and_then(|range| range.trim().strip_prefix("bytes")).unwrap_or_default().trim();
    let (part, whole) = range.split_once('/').unwrap_or((range, ""));
    let start = part.split_once('-').and_then(|(first, _)| first.trim().parse().ok());
    Head { status, start, whole: whole.trim().parse().ok() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_proxy_of_another_kind_is_refused_by_the_variable_that_counts() {
        let refused = |set: &[(&str, &str)]| {
            let value =
                |variable: &str| set.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned());
            refuse_unknown(value).map_err(|error| error.to_string())
        };
        let kinds = KINDS.map(|kind| format!("{kind}://user:hunter2@proxy:1080"));
        let known = kinds.each_ref().map(|proxy| [("ALL_PROXY", proxy.as_str())]);
        let fine = [&[][..], &[("HTTPS_PROXY", "proxy:3128")], &[("ALL_PROXY", ""), ("http_proxy", "no address")]];
        for fine in fine.into_iter().chain(known.iter().map(|set| &set[..])) {
            assert_eq!(refused(fine), Ok(()), "{fine:?}");
        }
        // What comes later does not count.
        assert_eq!(refused(&[("ALL_PROXY", "http://proxy:3128"), ("http_proxy", "quic://proxy:1080")]), Ok(()));
        for (variable, kind, set) in [
            ("ALL_PROXY", "socks6", &[("ALL_PROXY", "socks6://user:hunter2@proxy:1080")][..]),
            (
                "https_proxy",
                "quic",
                &[("ALL_PROXY", ""), ("https_proxy", "QUIC://proxy"), ("HTTP_PROXY", "http://proxy:3128")],
            ),
        ] {
            let told = refused(set).unwrap_err();
            assert!(told.contains(&format!("unset {variable}")) && told.contains(&format!("kind {kind},")), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }

    fn take(from: &mut impl Read, n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        from.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// A SOCKS5 proxy (RFC 1928, 1929) for one connection, which answers in the place of the server. Gives name and password,
    /// the kind of the address that it was asked for (1 and 4 are numbers, 3 a name), and the address.
    fn answer_as_socks(listener: &TcpListener) -> ([Vec<u8>; 2], u8, Vec<u8>) {
        let (mut stream, _) = listener.accept().unwrap();
        let greeting = take(&mut stream, 2);
        let with_password = take(&mut stream, greeting[1].into()).contains(&2);
        stream.write_all(&[5, if with_password { 2 } else { 0 }]).unwrap();
        let mut who = <[Vec<u8>; 2]>::default();
        if with_password {
            assert_eq!(take(&mut stream, 1), [1]);
            for word in &mut who {
                let length = take(&mut stream, 1)[0];
                *word = take(&mut stream, length.into());
            }
            stream.write_all(&[1, 0]).unwrap();
        }
        let kind = take(&mut stream, 4)[3];
        let length = match kind {
            1 => 4,
            4 => 16,
            _ => take(&mut stream, 1)[0],
        };
        let address = take(&mut stream, length.into());
        take(&mut stream, 2);
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(take(&mut stream, 1));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfile").unwrap();
        (who, kind, address)
    }

    #[test]
    fn a_download_goes_through_a_socks_proxy_which_finds_names_where_its_address_says_so() {
        let patience = Patience { connect: Duration::from_secs(5), idle: Duration::from_secs(5) };
        let name = b"nowhere.invalid".as_slice();
        for (proxy, host, kinds, address, who) in [
            ("socks5h://", "nowhere.invalid", &[3][..], Some(name), [""; 2]),
            ("socks5h://me:hunter2@", "nowhere.invalid", &[3], Some(name), ["me", "hunter2"]),
            ("socks5://", "localhost", &[1, 4], None, [""; 2]),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let proxy = Proxy::new(&format!("{proxy}{}", listener.local_addr().unwrap())).unwrap();
            let server = std::thread::spawn(move || answer_as_socks(&listener));
            let network = Network::by(Some(proxy), patience).unwrap();
            let pieces: Vec<Piece> = network.request(&format!("http://{host}/data"), 0).unwrap().iter().collect();
            let bytes = |piece: &Piece| if let Piece::Bytes(bytes) = piece { bytes.clone() } else { Vec::new() };
            assert_eq!(pieces.iter().flat_map(bytes).collect::<Vec<u8>>(), b"file", "{pieces:?}");
            let (told, kind, asked) = server.join().unwrap();
            assert_eq!(told, who.map(|word| word.as_bytes().to_vec()));
            assert!(kinds.contains(&kind) && address.is_none_or(|address| asked == address), "{kind} {asked:?}");
        }
    }
}
