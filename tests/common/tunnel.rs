//! A tunnel to a lender, as `ssh -L` makes one: its sockets stay open whatever happens behind it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Takes connections until the test program ends.
pub struct Tunnel {
    /// What to pass to `--device`.
    pub address: String,
    taken: Arc<AtomicUsize>,
    /// Of how many connections, from the first on, nothing is passed on.
    held: Arc<AtomicUsize>,
}

impl Tunnel {
    /// To the lender at `ws://HOST:PORT`.
    pub fn to(lender: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("ws://{}", listener.local_addr().unwrap());
        let place = lender.trim_start_matches("ws://").to_owned();
        let tunnel = Self { address, taken: Arc::default(), held: Arc::default() };
        let (taken, held) = (tunnel.taken.clone(), tunnel.held.clone());
        spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(&place).unwrap());
                let number = taken.fetch_add(1, Ordering::SeqCst);
                let ways =
                    [(&near, &far), (&far, &near)].map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()));
                for (from, to) in ways {
                    let held = held.clone();
                    spawn(move || pass(from, to, || number < held.load(Ordering::SeqCst)));
                }
            }
        });
        tunnel
    }

    /// Nothing comes through any more, on no connection.
    pub fn cut(&self) {
        self.held.store(usize::MAX, Ordering::SeqCst);
    }

    /// Nothing comes through on the connections there are, as from a lender that computes; new ones pass.
    pub fn hold(&self) {
        self.held.store(self.taken.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// What was held comes through.
    pub fn release(&self) {
        self.held.store(0, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, held: impl Fn() -> bool) {
    let mut bytes = [0; 1 << 14];
    loop {
        let read = from.read(&mut bytes).unwrap_or(0);
        while held() {
            sleep(Duration::from_millis(5));
        }
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
