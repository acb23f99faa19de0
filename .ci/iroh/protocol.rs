//! Serving.

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
