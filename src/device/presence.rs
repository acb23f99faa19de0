//! Whether a lender that keeps us waiting is still there. A tunnel keeps its sockets open when the
//! machine behind it has vanished, so that TCP's own keepalive hears of nothing: the lender's port is
//! asked over a connection of its own. A lender that computes for a long time answers that at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::address::Address;
use super::fault_injection;

/// First line of a request that only asks whether anybody is there.
pub const PRESENCE: &str = "GET /presence HTTP/1.1";

/// How long a result is waited for between two questions, and how long the lender may give no sign of
/// life: its answer may be behind data on their way through the same tunnel.
const PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
/// The same for tests.
const IMPATIENCE: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(3)];

/// Time between two questions whether a lender is there, and the longest time without an answer.
pub fn patience() -> [Duration; 2] {
    if fault_injection::are_impatient() { IMPATIENCE } else { PATIENCE }
}

/// Whether anything comes back from the lender's port within `limit`: an answer, or the end of the
/// connection. The addresses are remembered in `known`.
pub fn is_there(address: Address, known: &mut Vec<SocketAddr>, limit: Duration) -> bool {
    asked(known, limit, || address.socket().to_socket_addrs().into_iter().flatten().collect())
}

/// The same with what resolves the name. That is done where no address of before takes a connection:
/// a resolver that fails may take as long as a lender may be silent.
fn asked(known: &mut Vec<SocketAddr>, limit: Duration, resolve: impl FnOnce() -> Vec<SocketAddr>) -> bool {
    let end = Instant::now() + limit;
    if let Some(answered) = one_answers(known, end) {
        return answered;
    }
    if Instant::now() >= end {
        return false;
    }
    let found = resolve();
    if found.is_empty() {
        return false;
    }
    *known = found;
    one_answers(known, end).unwrap_or(false)
}

/// Whether one of these places answers; `None` where none takes a connection.
fn one_answers(places: &[SocketAddr], end: Instant) -> Option<bool> {
    let mut taken = None;
    for place in places {
        match answers(place, end) {
            Ok(true) => return Some(true),
            Ok(false) => taken = Some(false),
            Err(_) => {}
        }
    }
    taken
}

/// Whether a place answers on a connection of its own.
///
/// # Errors
/// When it takes no connection.
fn answers(place: &SocketAddr, end: Instant) -> std::io::Result<bool> {
    // None at all is no time that the system takes.
    let left = || end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream = TcpStream::connect_timeout(place, left())?;
    stream.set_write_timeout(Some(left()))?;
    // Whether the other side has closed it, reading tells.
    let _ = stream.write_all(format!("{PRESENCE}\r\nHost: {place}\r\n\r\n").as_bytes());
    stream.set_read_timeout(Some(left()))?;
    loop {
        match stream.read(&mut [0]) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // Unix says the one, Windows the other.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
            Ok(_) | Err(_) => return Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn an_answer_and_a_closed_connection_are_signs_of_life_and_silence_is_none() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Address = format!("ws://{}", listener.local_addr().unwrap()).parse().unwrap();
        // The system takes the connection, as a tunnel does, and nobody answers.
        assert!(!is_there(address, &mut Vec::new(), Duration::from_millis(100)));
        drop(listener.accept().unwrap());
        let other_side = std::thread::spawn(move || {
            let (closed, _) = listener.accept().unwrap();
            drop(closed);
            let (mut answered, _) = listener.accept().unwrap();
            answered.write_all(b"H").unwrap();
            // Until the one that asks has closed it.
            while answered.read(&mut [0; 64]).is_ok_and(|read| read > 0) {}
        });
        let mut known = Vec::new();
        assert!(is_there(address, &mut known, LIMIT) && is_there(address, &mut known, LIMIT));
        other_side.join().unwrap();
        assert!(!is_there(address, &mut known, LIMIT), "nobody listens");
    }

    #[test]
    fn a_name_is_resolved_again_only_where_nobody_takes_the_connection() {
        let listen = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            (listener.local_addr().unwrap(), listener)
        };
        // Closes so many connections, and is gone then.
        let closing = |listener: TcpListener, count: usize| {
            std::thread::spawn(move || (0..count).for_each(|_| drop(listener.accept().unwrap())))
        };
        let (mut known, mut resolved) = (Vec::new(), 0);
        let mut ask = |known: &mut Vec<SocketAddr>, limit: Duration, found: &[SocketAddr]| {
            let answered = asked(known, limit, || {
                resolved += 1;
                found.to_vec()
            });
            (answered, resolved)
        };
        let ((first, listener), (second, later)) = (listen(), listen());
        let lender = closing(listener, 2);
        assert_eq!(ask(&mut known, LIMIT, &[first]), (true, 1));
        assert_eq!(ask(&mut known, LIMIT, &[]), (true, 1), "it is remembered");
        lender.join().unwrap();
        let lender = closing(later, 1);
        assert_eq!(ask(&mut known, LIMIT, &[second]), (true, 2), "it has another address");
        lender.join().unwrap();
        assert_eq!((ask(&mut known, LIMIT, &[]), &known[..]), ((false, 3), &[second][..]), "the resolver fails");
        // Its tunnel takes the connection, and nothing comes back: another look at the name would not change that.
        let (silent, _listener) = listen();
        known = vec![silent];
        assert_eq!(ask(&mut known, Duration::from_millis(100), &[second]), (false, 3));
    }
}
