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
use ureq::{Agent, Proxy, ProxyProtocol};

use crate::data::source::read_bytes;
use crate::error::{Error, Result};

/// Bytes of a piece, and pieces that may wait for the disk.
const PIECE: usize = 1 << 16;
const WAITING: usize = 8;
/// The variable by which OpenSSL, curl and Python are told the certificates to trust.
const CERTIFICATES: &str = "SSL_CERT_FILE";
/// The variables that name a proxy: ureq takes the first that holds an address of one.
const PROXIES: [&str; 6] = ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

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
    /// a SOCKS one.
    pub fn new(patience: Patience) -> Result<Self> {
        refuse_socks(|variable| std::env::var(variable).ok())?;
        let mut tls = TlsConfig::builder();
        if let Some(path) = std::env::var_os(CERTIFICATES).filter(|path| !path.is_empty()) {
            tls = tls.root_certs(certificates(std::path::Path::new(&path))?);
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
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

/// Refuses a SOCKS proxy, as `value` of the variables gives it: ureq, built without those, would go past
/// it without a word.
fn refuse_socks(value: impl Fn(&str) -> Option<String>) -> Result<()> {
    let proxy = |variable: &&'static str| Some((*variable, Proxy::new(&value(variable)?).ok()?.protocol()));
    match PROXIES.iter().find_map(proxy) {
        None | Some((_, ProxyProtocol::Http | ProxyProtocol::Https)) => Ok(()),
        Some((variable, _)) => Err(Error::input(format!(
            "{variable} names a SOCKS proxy, and downloads go through HTTP proxies only: unset {variable}, and name an HTTP proxy in \
             HTTPS_PROXY where one is needed"
        ))),
    }
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
    use super::*;

    #[test]
    fn a_socks_proxy_is_refused_by_the_variable_that_counts() {
        let refused = |set: &[(&str, &str)]| {
            let value =
                |variable: &str| set.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned());
            refuse_socks(value).map_err(|error| error.to_string())
        };
        for fine in [&[][..], &[("HTTPS_PROXY", "http://proxy:3128")], &[("ALL_PROXY", "proxy:3128")]] {
            assert_eq!(refused(fine), Ok(()), "{fine:?}");
        }
        // What is no address is passed over, and what comes later does not count.
        assert_eq!(refused(&[("ALL_PROXY", "http://proxy:3128"), ("http_proxy", "socks5://proxy:1080")]), Ok(()));
        for (variable, socks) in [
            ("ALL_PROXY", &[("ALL_PROXY", "socks5://user:hunter2@proxy:1080")][..]),
            (
                "https_proxy",
                &[("ALL_PROXY", ""), ("https_proxy", "socks5h://proxy"), ("HTTP_PROXY", "http://proxy:3128")],
            ),
            ("all_proxy", &[("all_proxy", "socks4a://proxy")]),
        ] {
            let told = refused(socks).unwrap_err();
            assert!(told.contains(&format!("unset {variable}")) && !told.contains("hunter2"), "{told}");
        }
    }
}
