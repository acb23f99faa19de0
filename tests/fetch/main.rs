//! Corpora by name: downloads from a server of our own that misbehaves as real ones do, and what is unpacked from them; and the batches
//! that users have.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

mod batches;
mod corpora;
mod download;
mod server;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use bayescope::data::fetch::{Corpus, FetchEvent, Layout, Patience, Source};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

/// A file made by `fixtures/make.py`.
fn fixture(name: &str) -> PathBuf {
    std::path::absolute(format!("tests/fetch/fixtures/{name}")).unwrap()
}

/// Catalogues are made of constants; a test's few live as long as it.
fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// A corpus of these files on these mirrors.
fn corpus(mirrors: Vec<String>, files: &[(&'static str, &[u8])], layout: Layout) -> Corpus {
    let source = |(file, bytes): &(&'static str, &[u8])| Source {
        file,
        bytes: bytes.len() as u64,
        sha256: leak(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()),
    };
    Corpus {
        name: "toy",
        aliases: &["plaything"],
        about: "a toy",
        terms: "yours",
        downloads: "toys",
        mirrors: mirrors.into_iter().map(leak).collect::<Vec<_>>().leak(),
        files: files.iter().map(source).collect::<Vec<_>>().leak(),
        layout,
        classes: &[],
    }
}

/// Patience of a test.
fn brief() -> Patience {
    Patience { connect: Duration::from_millis(200), idle: Duration::from_millis(300) }
}

/// A sink that remembers, and stops at the first event that `stop` says yes to.
fn until(heard: &mut Vec<FetchEvent>, stop: impl Fn(&FetchEvent) -> bool) -> impl FnMut(FetchEvent) -> ControlFlow<()> {
    move |event| {
        let stopped = stop(&event);
        heard.push(event);
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// An IDX file of bytes.
fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    bytes.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(values);
    bytes
}
