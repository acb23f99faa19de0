//! The port that others reach: who may connect, how many, and what they may send before their
//! token.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write, copy};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, park_timeout, scope};
use std::time::{Duration, Instant};

use super::handshake::{Bounded, PRESENT, head, objection, pass_message};
use crate::error::{Error, Result};

/// Longest wait for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Longest wait for the first message, which holds the token.
const INIT_TIME: Duration = Duration::from_secs(10);
/// Longest wait for the port of a session, and for burn's answers.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// Longest line with the port of a session, in bytes.
const LINE: u64 = 16;
/// Largest first message, in bytes.
const INIT: usize = 64 << 10;
/// How long a refusal is held back.
const DELAY: Duration = Duration::from_secs(1);
/// Most connections at once.
const CONNECTIONS: usize = 64;
/// Most of them from one address before their tokens have been accepted.
const STRANGERS: usize = 4;

#[derive(Default)]
struct Guests {
    all: usize,
    /// Those without an accepted token, by address.
    strangers: BTreeMap<IpAddr, usize>,
}

#[derive(Default)]
struct Book(Mutex<Guests>);

impl Book {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more, if there is one.
    fn enter(&self, from: IpAddr) -> Option<Seat<'_>> {
        let mut guests = self.guests();
        let strangers = guests.strangers.get(&from).copied().unwrap_or_default();
        if guests.all >= CONNECTIONS || strangers >= STRANGERS {
            return None;
        }
        guests.all += 1;
        guests.strangers.insert(from, strangers + 1);
        Some(Seat { book: self, from, stranger: true })
    }
}

/// The place of one connection, free again when it is dropped.
struct Seat<'a> {
    book: &'a Book,
    from: IpAddr,
    stranger: bool,
}

impl Seat<'_> {
    /// The connection's token has been accepted.
    fn known(&mut self) {
        if std::mem::take(&mut self.stranger) {
            let strangers = &mut self.book.guests().strangers;
            match strangers.get(&self.from).copied().unwrap_or_default() {
                0 | 1 => strangers.remove(&self.from),
                more => strangers.insert(self.from, more - 1),
            };
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.known();
        self.book.guests().all -= 1;
    }
}

/// The process that computes for one connection; dropped, it is ended.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Takes connections for ever.
pub fn keep(listener: &TcpListener, command: &(impl Fn() -> Result<Command> + Sync)) -> Result<()> {
    let book = Book::default();
    scope(|threads| {
        loop {
            match listener.accept() {
                Ok((stream, peer)) => welcome(threads, &book, stream, peer, command),
                Err(error) => {
                    tracing::warn!("a connection could not be taken: {error}");
                    park_timeout(DELAY);
                }
            }
        }
    })
}

fn welcome<'scope, 'env>(
    threads: &'scope Scope<'scope, 'env>,
    book: &'env Book,
    mut stream: TcpStream,
    peer: SocketAddr,
    command: &'env (impl Fn() -> Result<Command> + Sync),
) {
    let Some(seat) = book.enter(peer.ip()) else {
        tracing::debug!("{peer}: too many connections");
        let _ = stream.set_nonblocking(true);
        let _ = stream.write_all(answer("503 Service Unavailable").as_bytes());
        return;
    };
    let serve = move || {
        if let Err(error) = attend(&stream, peer, seat, command) {
            tracing::info!("{peer}: {error}");
        }
        let _ = stream.shutdown(Shutdown::Both);
    };
    if let Err(error) = Builder::new().name("client".into()).spawn_scoped(threads, serve) {
        tracing::warn!("{peer}: no thread: {error}");
    }
}

fn answer(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// One connection, from its first byte to its last.
fn attend(
    mut client: &TcpStream,
    peer: SocketAddr,
    mut seat: Seat<'_>,
    command: &impl Fn() -> Result<Command>,
) -> Result<()> {
    let failed = |e: std::io::Error| Error::Device(format!("the connection has ended: {e}"));
    watch_for_death(client);
    client.set_write_timeout(Some(ANSWER_TIME)).map_err(failed)?;
    let request = head(client, Instant::now() + HEAD_TIME).map_err(failed)?;
    if let Some(status) = objection(&request) {
        if status != PRESENT {
            tracing::warn!("{peer}: refused, {status}");
        }
        return client.write_all(answer(status).as_bytes()).map_err(failed);
    }
    let (mut session, inner, answer) = match begin(command, &request) {
        Ok(begun) => begun,
        // Whoever lends is to know it: no client can be served.
        Err(error) => {
            tracing::warn!("{peer}: {error}");
            return Ok(());
        }
    };
    let server = &inner;
    client.write_all(&answer).map_err(failed)?;
    if !answer.starts_with(b"HTTP/1.1 101 ") {
        return Ok(());
    }
    let first = Bounded { stream: client, until: Instant::now() + INIT_TIME, left: INIT };
    pass_message(first, server, |_| ()).map_err(failed)?;
    let refused = std::cell::Cell::new(false);
    let reply = Bounded { stream: server, until: Instant::now() + ANSWER_TIME, left: INIT };
    pass_message(reply, client, |reply| {
        if reply.windows(11).any(|name| name == b"InitRefused") {
            let token = reply.windows(12).any(|name| name == b"Unauthorized");
            tracing::warn!(
                "{peer}: refused, {}",
                if token { "its token is not ours" } else { "no session it could have" }
            );
            refused.set(true);
            park_timeout(DELAY);
        }
    })
    .map_err(failed)?;
    if refused.get() {
        return Ok(());
    }
    seat.known();
    tracing::info!("{peer}: a session");
    pass(client, server).map_err(failed)?;
    // A process that was aborted has closed its sockets a moment before its end can be seen.
    park_timeout(Duration::from_millis(100));
    if let Ok(Some(status)) = session.0.try_wait()
        && !status.success()
    {
        tracing::warn!("{peer}: its session ended with {status}; others go on");
    }
    Ok(())
}

/// A process for one session, a connection to it, and its answer to a client's request.
fn begin(command: &impl Fn() -> Result<Command>, request: &[u8]) -> Result<(Session, TcpStream, Vec<u8>)> {
    let (session, inner) = start(command, ANSWER_TIME)?;
    let answered = (&inner).write_all(request).and_then(|()| head(&inner, Instant::now() + ANSWER_TIME));
    let answer = answered.map_err(|e| Error::Device(format!("the process for a session ended at once: {e}")))?;
    Ok((session, inner, answer))
}

/// A process for one session that names its port within `patience`, and a connection to it.
fn start(command: &impl Fn() -> Result<Command>, patience: Duration) -> Result<(Session, TcpStream)> {
    let failed = |why: &dyn std::fmt::Display| Error::Device(format!("no process for a session: {why}"));
    let mut command = command()?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut session = Session(command.spawn().map_err(|e| failed(&e))?);
    let out = session.0.stdout.take().ok_or_else(|| failed(&"it says nothing"))?;
    let (told, heard) = channel();
    let listen = move || {
        let mut port = String::new();
        let _ = told.send(BufReader::new(out.take(LINE)).read_line(&mut port).map(|_| port));
    };
    Builder::new().name("port of a session".into()).spawn(listen).map_err(|e| failed(&e))?;
    // A process that hangs, in a driver perhaps, is ended with its session.
    let port = heard.recv_timeout(patience).map_err(|_| failed(&format!("it named no port within {patience:?}")))?;
    let port = port.map_err(|e| failed(&e))?;
    let port: u16 = port.trim().parse().map_err(|_| failed(&"it has ended at once"))?;
    let inner = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|e| failed(&e))?;
    inner.set_nodelay(true).map_err(|e| failed(&e))?;
    Ok((session, inner))
}

/// Passes bytes both ways until one side ends.
fn pass(client: &TcpStream, server: &TcpStream) -> std::io::Result<()> {
    for stream in [client, server] {
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
    }
    let way = |mut from: &TcpStream, mut to: &TcpStream| {
        let _ = copy(&mut from, &mut to);
        for stream in [client, server] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    };
    scope(|threads| {
        Builder::new().name("answers".into()).spawn_scoped(threads, || way(server, client))?;
        way(client, server);
        Ok(())
    })
}

/// Lets the system notice a client that has vanished, and send small packets at once.
fn watch_for_death(client: &TcpStream) {
    let _ = client.set_nodelay(true);
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let _ = sockopt::set_socket_keepalive(client, true);
        let _ = sockopt::set_tcp_keepidle(client, Duration::from_secs(15));
        let _ = sockopt::set_tcp_keepintvl(client, Duration::from_secs(5));
        let _ = sockopt::set_tcp_keepcnt(client, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_process_that_hangs_or_says_no_port_gives_its_seat_back() {
        let begun = Instant::now();
        let complaint = |script: &str| {
            let command = || {
                let mut shell = Command::new("sh");
                shell.args(["-c", script]);
                Ok(shell)
            };
            start(&command, Duration::from_millis(300)).err().unwrap().to_string()
        };
        assert!(complaint("exec sleep 60").contains("named no port within 300ms"));
        assert!(complaint("yes | tr -d '\\n'").contains("ended at once"), "an endless line is read no further");
        assert!(complaint("exit 3").contains("ended at once"));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    }
}
