//! What burn-remote names of iroh, and nothing behind it.
//!
//! `burn-dispatch` turns `burn-remote/iroh` on for every build that lends devices (docs/upstream.md, 7).
//! Bayescope lends over WebSockets alone: of iroh it uses nothing. iroh itself brings 115 crates (QUIC, relays,
//! DNS), and burn's server is compiled a second time for its streams. So `[patch.crates-io]` puts this crate
//! in its place.
//!
//! Almost every type is an enum without variants: no value of it exists. The compiler therefore leaves out
//! what would follow from one, and burn's code for iroh with it. The few functions that would make a value
//! ([`SecretKey::generate`], [`SecretKey::from_bytes`], [`Endpoint::builder`]) panic; nothing of Bayescope
//! calls them.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Errors of names and addresses that are looked up.
pub mod address_lookup {
    /// No address of a peer was found.
    #[derive(Debug)]
    pub enum AddressLookupFailed {
        /// Nothing was found.
        NoResults {},
        /// There is nothing that could find it.
        NoServiceConfigured {},
    }
}

/// Declares types of which no value exists.
macro_rules! none_of {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {}

        impl fmt::Display for $name {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {}
            }
        }
    )+};
}

pub mod endpoint;
pub mod protocol;

none_of!(
    /// The public key of a peer.
    EndpointId,
    /// The address of a relay.
    RelayUrl,
    /// The key of an endpoint.
    SecretKey,
    /// A socket of this process.
    Endpoint,
);

/// What a function that would make a value says.
const ABSENT: &str = "Bayescope is built without iroh: devices are lent over WebSockets alone";

impl EndpointId {
    /// Its first characters.
    pub fn fmt_short(&self) -> Self {
        *self
    }
}

impl serde::Serialize for EndpointId {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match *self {}
    }
}

impl<'de> serde::Deserialize<'de> for EndpointId {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(ABSENT))
    }
}

impl FromStr for RelayUrl {
    type Err = fmt::Error;

    fn from_str(_: &str) -> Result<Self, Self::Err> {
        Err(fmt::Error)
    }
}

impl SecretKey {
    /// Panics: there is none.
    pub fn generate() -> Self {
        panic!("{ABSENT}")
    }

    /// Panics: there is none.
    pub fn from_bytes(_: &[u8; 32]) -> Self {
        panic!("{ABSENT}")
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        match *self {}
    }

    /// Its public key.
    pub fn public(&self) -> EndpointId {
        match *self {}
    }
}

/// A peer and where it may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EndpointAddr {
    /// The peer.
    pub id: EndpointId,
}

impl EndpointAddr {
    /// With an address to try.
    #[must_use]
    pub fn with_ip_addr(self, _: SocketAddr) -> Self {
        self
    }

    /// With a relay.
    #[must_use]
    pub fn with_relay_url(self, _: RelayUrl) -> Self {
        self
    }

    /// The addresses to try.
    pub fn ip_addrs(&self) -> std::iter::Empty<&SocketAddr> {
        match self.id {}
    }
}

impl From<EndpointId> for EndpointAddr {
    fn from(id: EndpointId) -> Self {
        match id {}
    }
}

impl serde::Serialize for EndpointAddr {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self.id {}
    }
}

impl<'de> serde::Deserialize<'de> for EndpointAddr {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::Deserialize::deserialize(deserializer).map(|id| Self { id })
    }
}

/// Which relays an endpoint uses.
pub enum RelayMode {
    /// None.
    Disabled,
    /// These.
    Custom(RelayUrl),
}

impl RelayMode {
    /// These relays.
    pub fn custom<const N: usize>(_: [RelayUrl; N]) -> Self {
        Self::Disabled
    }
}

impl Endpoint {
    /// Panics: there is none.
    pub fn builder(_: impl endpoint::presets::Preset) -> endpoint::Builder {
        panic!("{ABSENT}")
    }

    /// Its public key.
    pub fn id(&self) -> EndpointId {
        match *self {}
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        match *self {}
    }

    /// Its addresses.
    pub fn bound_sockets(&self) -> Vec<SocketAddr> {
        match *self {}
    }

    /// Waits until it is closed.
    pub fn closed(&self) -> std::future::Ready<()> {
        match *self {}
    }

    /// Connects to a peer.
    pub fn connect(
        &self,
        _: EndpointAddr,
        _: &[u8],
    ) -> std::future::Ready<Result<endpoint::Connection, endpoint::ConnectError>> {
        match *self {}
    }
}
