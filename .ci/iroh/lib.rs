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

/// Connections and their errors.
pub mod endpoint {
    use super::{EndpointId, Infallible, RelayMode, SecretKey, address_lookup::AddressLookupFailed, fmt};
    use std::future::Ready;

    /// Ready-made settings.
    pub mod presets {
        /// One of them.
        pub trait Preset {}

        /// With public relays.
        pub struct N0;
        impl Preset for N0 {}

        /// With nothing.
        pub struct Minimal;
        impl Preset for Minimal {}
    }

    none_of!(
        /// An endpoint in the making.
        Builder,
        /// A connection to a peer.
        Connection,
        /// The way to a peer.
        SendStream,
        /// The way from a peer.
        RecvStream,
        /// Why an endpoint was not bound.
        BindError,
        /// Why nothing was written.
        WriteError,
    );

    impl std::error::Error for BindError {}

    /// How an address is bound.
    #[derive(Default)]
    pub struct BindOpts;

    impl BindOpts {
        /// Whether it must succeed.
        #[must_use]
        pub fn set_is_required(self, _: bool) -> Self {
            self
        }
    }

    /// Settings of QUIC, and what makes them.
    pub struct QuicTransportConfig;

    impl QuicTransportConfig {
        /// Settings in the making.
        pub fn builder() -> Self {
            Self
        }

        /// Whether packets are cut by the network card.
        #[must_use]
        pub fn enable_segmentation_offload(self, _: bool) -> Self {
            self
        }

        /// The settings.
        #[must_use]
        pub fn build(self) -> Self {
            self
        }
    }

    impl Builder {
        /// With these relays.
        #[must_use]
        pub fn relay_mode(self, _: RelayMode) -> Self {
            match self {}
        }

        /// With these settings.
        #[must_use]
        pub fn transport_config(self, _: QuicTransportConfig) -> Self {
            match self {}
        }

        /// With this key.
        #[must_use]
        pub fn secret_key(self, _: SecretKey) -> Self {
            match self {}
        }

        /// With these protocols.
        #[must_use]
        pub fn alpns(self, _: Vec<Vec<u8>>) -> Self {
            match self {}
        }

        /// Without addresses.
        #[must_use]
        pub fn clear_ip_transports(self) -> Self {
            match self {}
        }

        /// With this address.
        pub fn bind_addr(self, _: String) -> Result<Self, BindError> {
            match self {}
        }

        /// With this address.
        pub fn bind_addr_with_opts(self, _: String, _: BindOpts) -> Result<Self, BindError> {
            match self {}
        }

        /// Binds.
        pub fn bind(self) -> Ready<Result<super::Endpoint, BindError>> {
            match self {}
        }
    }

    type Streams = Ready<Result<(SendStream, RecvStream), ConnectionError>>;

    impl Connection {
        /// Opens a stream.
        pub fn open_bi(&self) -> Streams {
            match *self {}
        }

        /// Waits for a stream.
        pub fn accept_bi(&self) -> Streams {
            match *self {}
        }

        /// Why it was closed, if it was.
        pub fn close_reason(&self) -> Option<ConnectionError> {
            match *self {}
        }

        /// The peer.
        pub fn remote_id(&self) -> EndpointId {
            match *self {}
        }
    }

    impl SendStream {
        /// Writes.
        pub fn write_all(&mut self, _: &[u8]) -> Ready<Result<(), WriteError>> {
            match *self {}
        }

        /// Ends it.
        pub fn finish(&mut self) -> Result<(), WriteError> {
            match *self {}
        }
    }

    impl RecvStream {
        /// Reads.
        pub fn read_exact(&mut self, _: &mut [u8]) -> Ready<Result<(), ReadExactError>> {
            match *self {}
        }
    }

    /// Declares errors that are never made.
    macro_rules! errors {
        ($($(#[$doc:meta])* $name:ident { $($variant:tt)* })+) => {$(
            $(#[$doc])*
            #[derive(Debug)]
            #[allow(missing_docs)]
            pub enum $name { $($variant)* }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(self, f)
                }
            }

            impl std::error::Error for $name {}
        )+};
    }

    errors! {
        /// Why there is no connection.
        ConnectError {
            Connect { source: ConnectWithOptsError },
            Connecting { source: ConnectingError },
            None { never: Infallible },
        }
        /// Why none was begun.
        ConnectWithOptsError {
            NoAddress { source: AddressLookupFailed },
            None { never: Infallible },
        }
        /// Why none was made.
        ConnectingError {
            ConnectionError { source: ConnectionError },
            None { never: Infallible },
        }
        /// Why one ended.
        ConnectionError {
            TimedOut,
            None { never: Infallible },
        }
        /// Why nothing was read.
        ReadExactError {
            FinishedEarly(usize),
            None { never: Infallible },
        }
    }
}

/// Serving.
pub mod protocol {
    use super::{Endpoint, endpoint::Connection, fmt};
    use std::future::{Future, Ready};

    /// Why a connection was not served.
    #[derive(Debug)]
    pub enum AcceptError {}

    impl AcceptError {
        /// Panics: no connection is ever served.
        pub fn from_err<T: std::error::Error + Send + Sync + 'static>(_: T) -> Self {
            panic!("{}", super::ABSENT)
        }
    }

    /// Serves connections.
    pub trait ProtocolHandler: Send + Sync + fmt::Debug + 'static {
        /// Serves one.
        fn accept(&self, connection: Connection) -> impl Future<Output = Result<(), AcceptError>> + Send;

        /// Ends.
        fn shutdown(&self) -> impl Future<Output = ()> + Send {
            async {}
        }
    }

    /// The same in a box.
    pub trait DynProtocolHandler: Send + Sync + fmt::Debug + 'static {}

    impl<P: ProtocolHandler> DynProtocolHandler for P {}

    impl<P: ProtocolHandler> From<P> for Box<dyn DynProtocolHandler> {
        fn from(handler: P) -> Self {
            Box::new(handler)
        }
    }

    none_of!(
        /// Connections on their way to who serves them, and what makes it.
        Router,
    );

    impl Router {
        /// A router in the making.
        pub fn builder(endpoint: Endpoint) -> Self {
            match endpoint {}
        }

        /// With who serves a protocol.
        #[must_use]
        pub fn accept(self, _: &[u8], _: impl Into<Box<dyn DynProtocolHandler>>) -> Self {
            match self {}
        }

        /// Begins to serve.
        #[must_use]
        pub fn spawn(self) -> Self {
            match self {}
        }

        /// Ends.
        pub fn shutdown(&self) -> Ready<Result<(), fmt::Error>> {
            match *self {}
        }
    }
}
