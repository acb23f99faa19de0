//! Devices of other machines, in a build that reaches none.

use std::task::Waker;
use std::time::{Duration, Instant};

use burn::tensor::Device;

use super::address::Address;
pub use super::address::TOKEN;
pub use super::latency::Answer;
use crate::error::{Error, Result};

/// Nobody to give it to.
pub fn use_token(_: Address, _: &str) {}

/// Reaches nobody.
///
/// # Errors
/// Always.
pub fn connect(address: Address) -> Result<Device> {
    Err(Error::Device(format!("{address}: this build reaches no other machine (build with --features remote)")))
}

/// Never sent.
pub struct Ping(Instant);

impl Ping {
    /// Sends none.
    pub fn send(_: Address) -> Option<Self> {
        None
    }

    /// When it was sent.
    pub fn sent(&self) -> Instant {
        self.0
    }

    /// Stays where it is.
    pub fn poll(&mut self, _: &Waker) -> Answer {
        Answer::Open
    }
}

/// There is no session to end.
pub fn give_up(_: Address, _: &str) {}

/// There is no connection.
pub fn round_trip(_: Address, _: Duration) -> Answer {
    Answer::Gone("there is no connection".into())
}

/// None was opened.
pub fn lost(_: Address) -> Option<String> {
    None
}

/// None was opened.
pub fn gone(_: Option<Address>) -> Option<Error> {
    None
}

/// None was opened.
pub fn gone_of(_: &Device) -> Option<Error> {
    None
}

/// There is none.
pub struct LentDevice(());

/// It is none of another machine.
pub fn lent(_: &Device) -> Option<LentDevice> {
    None
}

impl LentDevice {
    /// Sends nothing.
    ///
    /// # Errors
    /// Always.
    pub fn answered<T>(&self, _: impl Future<Output = T>) -> Result<T, String> {
        Err("there is no connection".into())
    }
}
