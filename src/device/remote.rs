//! Devices of other machines, over burn's own protocol: sessions, how long they take to answer, and
//! whether they are gone.
//!
//! burn keeps one session for an address and a credential, for the life of the process, also when
//! the connection is long gone: asked again it returns the dead one, whose reads fail at once and
//! whose operations vanish. So a session that has ended is replaced under another spelling of the
//! address, with a number as the user information of the URL (`ws://1@host:port`), which is part of
//! burn's key and reaches nobody.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use burn::remote::{ConnectError, RemoteHost};
use burn::tensor::{Device, Tensor};

use super::address::Address;
pub use super::address::TOKEN;
pub use super::latency::Answer;
use super::presence;
use super::wait::{while_there, within};
use crate::error::{Error, Result, caught};

/// Longest wait for a machine to take a connection at all.
const KNOCK: Duration = Duration::from_secs(3);
/// Longest wait for a machine that has taken the connection to open a session.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest wait for a small round trip of which only "gone" matters, which comes at once.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of one lent device.
struct Session {
    device: Device,
    token: String,
    /// The devices of the sessions before it.
    before: Vec<Device>,
    /// Where its lender was found.
    places: Vec<SocketAddr>,
    /// Why it has ended, if it has.
    ended: Option<String>,
}

#[derive(Default)]
struct Known {
    sessions: BTreeMap<Address, Session>,
    /// By host. In memory only.
    tokens: BTreeMap<String, String>,
}

fn known() -> MutexGuard<'static, Known> {
    static KNOWN: Mutex<Known> = Mutex::new(Known { sessions: BTreeMap::new(), tokens: BTreeMap::new() });
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The token of a machine's lender from now on, until the program ends; empty for that of the
/// environment. It is written nowhere.
pub fn use_token(address: Address, token: &str) {
    let tokens = &mut known().tokens;
    match token.trim() {
        "" => tokens.remove(&address.host()),
        token => tokens.insert(address.host(), token.to_owned()),
    };
}

fn token(address: Address) -> String {
    let told = known().tokens.get(&address.host()).cloned();
    told.unwrap_or_else(|| std::env::var(TOKEN).unwrap_or_default().trim().to_owned())
}

/// Opens the session of a lent device, or takes the one there is if it still answers. Takes at most
/// some 20 seconds, 3 where nobody listens.
///
/// # Errors
/// When nobody answers, the token is refused, there is no such device, or the other side is of
/// another version; what to do is in the message.
pub fn connect(address: Address) -> Result<Device> {
    let token = token(address);
    let same = |session: &&Session| session.ended.is_none() && session.token == token;
    let open = known().sessions.get(&address).filter(same).map(|session| session.device.clone());
    if let Some(device) = open
        && matches!(round_trip(address, PATIENCE), Answer::Came(_))
    {
        return Ok(device);
    }
    let places = vec![knock(address)?];
    let host = address.host();
    let earlier = |session: &Session| [&session.before[..], std::slice::from_ref(&session.device)].concat();
    let before = known().sessions.get(&address).map(earlier).unwrap_or_default();
    let url = match before.len() {
        0 => format!("ws://{host}"),
        n => format!("ws://{n}@{host}"),
    };
    let mut lender = RemoteHost::websocket(&url);
    if !token.is_empty() {
        lender = lender.with_credential(&token);
    }
    let opening = Device::remote_options(&lender).device_index(usize::from(address.device())).init_async();
    let device = match within(ANSWER, opening) {
        Some(Ok(device)) => device,
        Some(Err(error)) => return Err(refused(address, error, token.is_empty())),
        None => {
            let secs = ANSWER.as_secs();
            return Err(failed(
                address,
                format!("something listens there and does not answer within {secs} s; is it `bayescope serve`?"),
            ));
        }
    };
    known().sessions.insert(address, Session { device: device.clone(), token, before, places, ended: None });
    match round_trip(address, ANSWER) {
        Answer::Came(_) => Ok(device),
        Answer::Gone(why) => Err(failed(address, why)),
        Answer::Open => Err(failed(address, "a session was opened, and nothing comes back")),
    }
}

fn failed(address: Address, why: impl std::fmt::Display) -> Error {
    Error::Device(format!("{address}: {why}"))
}

/// Checks that something listens, and returns where: burn would try for 16 seconds otherwise.
fn knock(address: Address) -> Result<SocketAddr> {
    let (host, port) = address.socket();
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|e| failed(address, format!("the name {host} is not known here ({e})")))?;
    let mut why = "the name has no address".to_owned();
    for place in found {
        match TcpStream::connect_timeout(&place, KNOCK) {
            Ok(_) => return Ok(place),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => why = "nobody listens there".into(),
            Err(e) if e.kind() == ErrorKind::TimedOut => why = format!("nobody answers within {} s", KNOCK.as_secs()),
            Err(e) => why = e.to_string(),
        }
    }
    Err(failed(
        address,
        format!("{why}. Start `bayescope serve` on that machine (and the ssh tunnel, if there is one)"),
    ))
}

fn refused(address: Address, error: ConnectError, bare: bool) -> Error {
    let why = match error {
        ConnectError::Unauthorized if bare => {
            format!("a token is wanted there: set {TOKEN} to the lender's, or type it in the window *Another machine*")
        }
        ConnectError::Unauthorized => {
            format!("the token was refused: it is not the one in {TOKEN} of `bayescope serve` there")
        }
        ConnectError::NoSuchDevice { device_count: 1 } => "only one device is lent there, number 0".into(),
        ConnectError::NoSuchDevice { device_count } => {
            format!("{device_count} devices are lent there, numbered from 0")
        }
        ConnectError::IncompatibleProtocol { client_version, server_version } => format!(
            "the other side speaks version {server_version} of burn's protocol, this program version {client_version}: use the same \
             version of Bayescope on both machines"
        ),
        ConnectError::Handshake { reason } => format!(
            "the other side broke off ({reason}): is it `bayescope serve` of this version, {}?",
            env!("CARGO_PKG_VERSION")
        ),
        ConnectError::Unreachable { reason } => {
            format!(
                "no device is lent there ({reason}). Is it `bayescope serve` that listens, and at the far end of a tunnel too?"
            )
        }
        other => other.to_string(),
    };
    failed(address, why)
}

/// A small tensor on its way there and back.
pub struct Ping {
    address: Address,
    sent: Instant,
    coming: Pin<Box<dyn Future<Output = bool> + Send>>,
}

impl Ping {
    /// Sends one; `None` where no session is open.
    pub fn send(address: Address) -> Option<Self> {
        let device = known().sessions.get(&address).filter(|session| session.ended.is_none())?.device.clone();
        let sent = Instant::now();
        let coming = async move { Tensor::<1>::from_floats([1.0], &device).into_data_async().await.is_ok() };
        Some(Self { address, sent, coming: Box::pin(coming) })
    }

    /// When it was sent.
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// Looks after it; `waker` is woken when there is news.
    pub fn poll(&mut self, waker: &Waker) -> Answer {
        // burn panics where a connection that is gone leaves it no way to return an error.
        let poll = || self.coming.as_mut().poll(&mut Context::from_waker(waker));
        match caught(poll) {
            Ok(Poll::Pending) => Answer::Open,
            Ok(Poll::Ready(true)) => Answer::Came(self.sent.elapsed()),
            Ok(Poll::Ready(false)) | Err(_) => Answer::Gone(ended(self.address)),
        }
    }
}

/// Says what is known of a connection that has just turned out to be gone, and remembers it.
fn ended(address: Address) -> String {
    let why = match knock(address) {
        Ok(_) => {
            "the connection is gone, though somebody listens there still or again: the log of `bayescope serve` may tell why"
        }
        Err(_) => "the connection is gone, and nobody listens there now",
    };
    give_up(address, why);
    why.to_owned()
}

/// From now on the session counts as ended: the next [`connect`] opens another.
pub fn give_up(address: Address, why: &str) {
    if let Some(session) = known().sessions.get_mut(&address) {
        session.ended = Some(why.to_owned());
    }
}

/// How a small tensor fares that is waited for no longer than `limit`: behind work that waits
/// there, it may be slow.
pub fn round_trip(address: Address, limit: Duration) -> Answer {
    let Some(mut ping) = Ping::send(address) else {
        return Answer::Gone(lost(address).unwrap_or_else(|| "there is no connection".into()));
    };
    let answer = within(
        limit,
        std::future::poll_fn(|cx| match ping.poll(cx.waker()) {
            Answer::Open => Poll::Pending,
            answer => Poll::Ready(answer),
        }),
    );
    answer.unwrap_or(Answer::Open)
}

/// Why the connection of a lent device has ended, if that is known. Sends nothing.
pub fn lost(address: Address) -> Option<String> {
    known().sessions.get(&address)?.ended.clone()
}

/// Whether the connection of a lent device is gone, `on` this one or on any that was opened: asks
/// it, and says so.
pub fn gone(on: Option<Address>) -> Option<Error> {
    let open: Vec<Address> = known().sessions.keys().copied().collect();
    let gone = |address| match round_trip(address, PATIENCE) {
        Answer::Gone(why) => Some(failed(address, why)),
        Answer::Came(_) | Answer::Open => None,
    };
    open.into_iter().filter(|address| on.is_none_or(|on| on == *address)).find_map(gone)
}

/// The same of the machine whose device this is, if it is one.
pub fn gone_of(device: &Device) -> Option<Error> {
    let lent = lent(device)?;
    match lent.ended() {
        Some(why) => Some(failed(lent.address, why)),
        None => gone(Some(lent.address)),
    }
}

/// A device of another machine.
pub struct LentDevice {
    address: Address,
    device: Device,
}

/// The device as that of another machine, if it is one: also where its connection has ended.
pub fn lent(device: &Device) -> Option<LentDevice> {
    let known = known();
    if known.sessions.is_empty() {
        return None;
    }
    let device = device.clone().inner();
    let mut sessions = known.sessions.iter();
    let (&address, _) = sessions.find(|(_, session)| session.device == device || session.before.contains(&device))?;
    Some(LentDevice { address, device })
}

impl LentDevice {
    /// Why its connection has ended, if that is known. Sends nothing.
    fn ended(&self) -> Option<String> {
        match known().sessions.get(&self.address)? {
            session if session.device == self.device => session.ended.clone(),
            _ => Some("the connection is gone, and another one has taken its place".to_owned()),
        }
    }

    /// Whether its lender answers within `limit`, where it was found before.
    fn lender_is_there(&self, limit: Duration) -> bool {
        let mut places = known().sessions.get(&self.address).map(|session| session.places.clone()).unwrap_or_default();
        // The lock is free meanwhile: others ask what is known.
        let there = presence::is_there(self.address, &mut places, limit);
        if let Some(session) = known().sessions.get_mut(&self.address) {
            session.places = places;
        }
        there
    }

    /// Waits for what the device is to send, as long as its lender is there ([`presence`]).
    ///
    /// # Errors
    /// Why nothing comes. The session then counts as ended.
    pub fn answered<T>(&self, answer: impl Future<Output = T>) -> Result<T, String> {
        let [pause, silence] = presence::patience();
        if let Some(why) = self.ended() {
            return Err(why);
        }
        let mut heard = Instant::now();
        let there = || {
            let left = silence.saturating_sub(heard.elapsed());
            if self.ended().is_none() && self.lender_is_there(left) {
                heard = Instant::now();
            }
            self.ended().is_none() && heard.elapsed() < silence
        };
        while_there(pause, answer, there).ok_or_else(|| {
            let silent = || {
                let why = format!("the connection is gone: nothing has come back for {} s", silence.as_secs());
                give_up(self.address, &why);
                why
            };
            self.ended().unwrap_or_else(silent)
        })
    }
}
