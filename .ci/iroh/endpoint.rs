//! Connections and their errors.

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
