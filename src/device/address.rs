//! Where another machine's device is: `ws://host:port` and which of the devices lent there.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Default port of `bayescope serve`, and of addresses without a port.
pub const PORT: u16 = 3000;

/// Environment variable that holds the token a lender asks for, where the window was not told one.
pub const TOKEN: &str = "BAYESCOPE_TOKEN";

/// The command that opens an encrypted way to `port` of a machine's own loopback. It ends half a minute
/// after that machine has vanished, and closes what goes through it: a tunnel that stays open hides
/// that nobody is there any more.
pub fn ssh_tunnel(port: u16, machine: &str) -> String {
    format!("ssh -N -o ServerAliveInterval=10 -L {port}:127.0.0.1:{port} {machine}")
}

/// A device that another machine lends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: &'static str,
    port: u16,
    device: u16,
}

/// Keeps a host's name for the life of the program, once. A choice of device is copied everywhere,
/// into preferences, commands and records, and a program meets a handful of hosts: a few bytes each
/// that are never freed buy that it stays `Copy`.
fn intern(host: &str) -> &'static str {
    static HOSTS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = hosts.get(host) {
        return known;
    }
    let kept: &'static str = Box::leak(host.into());
    hosts.insert(kept);
    kept
}

impl Address {
    /// Host and port.
    pub fn host(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The host as the system resolves it (an IPv6 address without its brackets), and the port.
    pub fn socket(&self) -> (&'static str, u16) {
        (self.host.trim_matches(['[', ']']), self.port)
    }

    /// Which of the devices lent there, from 0.
    pub fn device(&self) -> u16 {
        self.device
    }

    /// The same machine's `device`-th device.
    pub fn with_device(self, device: u16) -> Self {
        Self { device, ..self }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ws://{}:{}", self.host, self.port)?;
        if self.device > 0 { write!(f, "/{}", self.device) } else { Ok(()) }
    }
}

impl FromStr for Address {
    type Err = Error;

    /// `ws://host`, `ws://host:port` or `ws://host:port/N`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| Error::input(format!("'{text}' is no address of a device: {why}"));
        let rest = match text.trim().split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ws") => rest,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("wss") => {
                return Err(wrong("devices are lent without encryption, over ws://; go through `ssh -L` instead"));
            }
            _ => return Err(wrong("write ws://host:port or ws://host:port/N")),
        };
        let (place, device) = rest.split_once('/').unwrap_or((rest, ""));
        let device = match device.trim_end_matches('/') {
            "" => 0,
            number => number.parse().map_err(|_| wrong("what follows the / is the number of a device, from 0"))?,
        };
        let (host, port) = match place.rsplit_once(':') {
            // The colons of an IPv6 address stand within its brackets.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("the port is a number of 1 to 65535"))?)
            }
            _ => (place, PORT),
        };
        let host = host.to_ascii_lowercase();
        match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
            Some(inner) if inner.parse::<Ipv6Addr>().is_ok() => {}
            Some(_) => return Err(wrong("the brackets hold no IPv6 address")),
            None if host.is_empty() => return Err(wrong("the host is missing")),
            None if host.contains(|c: char| !(c.is_alphanumeric() || "-._".contains(c))) => {
                return Err(wrong("a host is a name, or an address such as 192.0.2.7 or [2001:db8::7]"));
            }
            None => {}
        }
        match port {
            0 => Err(wrong("the port is a number of 1 to 65535")),
            port => Ok(Self { host: intern(&host), port, device }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_they_are_written() {
        for text in
            ["ws://gpu-box:3000", "ws://127.0.0.1:81/2", "ws://[2001:db8::7]:3000", "ws://a.b_c.example:65535/65535"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for (text, same) in
            [("WS://GPU", "ws://gpu:3000"), (" ws://gpu/1/ ", "ws://gpu:3000/1"), ("ws://[::1]/0", "ws://[::1]:3000")]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), same);
        }
        let one: Address = "ws://[::1]:7/3".parse().unwrap();
        assert_eq!((one.host(), one.socket(), one.device()), ("[::1]:7".into(), ("::1", 7), 3));
        assert_eq!(one.with_device(0).to_string(), "ws://[::1]:7");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for (text, why) in [
            ("gpu:3000", "write ws://host:port"),
            ("wss://gpu", "ssh -L"),
            ("http://gpu", "write ws://"),
            ("ws://", "host is missing"),
            ("ws://:3000", "host is missing"),
            ("ws://gpu:port", "the port"),
            ("ws://gpu:0", "the port"),
            ("ws://gpu:70000", "the port"),
            ("ws://gpu:1/two", "number of a device"),
            ("ws://token@gpu", "a host is a name"),
            ("ws://a b", "a host is a name"),
            ("ws://[gpu]", "IPv6"),
            ("ws://::1", "a host is a name"),
        ] {
            let message = text.parse::<Address>().unwrap_err().to_string();
            assert!(message.contains(why) && message.contains(text), "{text}: {message}");
        }
    }

    #[test]
    fn a_host_is_kept_once() {
        let [a, b]: [Address; 2] = ["ws://kept-once:1", "ws://KEPT-ONCE:2"].map(|text| text.parse().unwrap());
        assert!(std::ptr::eq(a.host, b.host) && a != b);
    }
}
