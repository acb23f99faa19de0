//! Corpora fetched by the worker, from a server on this machine that misbehaves as real ones do.

use std::path::Path;

use bayescope::data::fetch::{Corpus, Layout, Source};
use bayescope::worker::fetch::FetchRequest;
use bayescope::worker::protocol::{Event, JobId, Outcome};
use sha2::{Digest, Sha256};

use super::server::{Server, Way, content};
use super::{Bench, request};

const NAME: &str = "data.bin";

/// A server, and the corpus of one file that is fetched from it in these ways, one after another.
fn set_up(ways: &[(&'static str, Way)]) -> (Server, &'static Corpus) {
    let bytes = content();
    let server = Server::new(ways, &[(NAME, &bytes)]);
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mirrors: Vec<&'static str> = ways.iter().map(|(name, _)| &*server.mirror(name).leak()).collect();
    let source = Source { file: NAME, bytes: bytes.len() as u64, sha256: sha256.leak() };
    let corpus = Corpus {
        name: "toy",
        aliases: &[],
        about: "a toy",
        terms: "yours",
        downloads: "toys",
        mirrors: mirrors.leak(),
        files: vec![source].leak(),
        layout: Layout::Idx,
        classes: &[],
    };
    (server, Box::leak(Box::new(corpus)))
}

fn fetch(bench: &mut Bench, corpus: &'static Corpus, out: &Path) -> JobId {
    bench.worker.fetch(FetchRequest { corpus, out: out.to_owned() })
}

#[test]
fn a_corpus_that_was_cancelled_halfway_goes_on_while_the_window_is_served() {
    let mut bench = Bench::new();
    let out = tempfile::tempdir().unwrap();
    let (_, stalls) = set_up(&[("stalls", Way::Stalls(100_000))]);
    let job = fetch(&mut bench, stalls, out.path());
    let half = |event: &Event| match event {
        Event::JobProgress { id, progress, note } if *id == job && progress.done >= 100_000 => {
            Some((progress.total, note.clone()))
        }
        _ => None,
    };
    let (total, note) = bench.until(half);
    assert_eq!(total, 300_000);
    assert!(note.contains("0.1 of 0.3 MB, data.bin from 127.0.0.1"), "{note}");
    // A server that says nothing holds up nobody.
    bench.worker.show(request(1, 20, 1.0, Vec::new()));
    assert!(!bench.gallery(1).is_empty());
    bench.worker.cancel(job);
    assert_eq!(bench.outcome(job), Outcome::Cancelled);
    let (server, whole) = set_up(&[("gone", Way::Status(404)), ("whole", Way::Whole)]);
    let job = fetch(&mut bench, whole, out.path());
    let outcome = bench.outcome(job);
    let Outcome::Done(said) = &outcome else { panic!("{outcome:?}") };
    assert!(said.contains("0.2 MB came over the network"), "{said}");
    assert_eq!(server.ranges("whole"), [Some(100_000)], "the rest alone was asked for");
    let refused = bench.seen.iter().find_map(|event| match event {
        Event::MirrorFailed { id, mirror, cause } if *id == job => Some((mirror.clone(), cause.clone())),
        _ => None,
    });
    let (mirror, cause) = refused.unwrap();
    assert!(mirror.contains("/gone/data.bin") && cause.contains("404"), "{mirror} {cause}");
    let fetched = bench.seen.iter().find_map(|event| match event {
        Event::Fetched(id, fetched) if *id == job => Some(fetched.clone()),
        _ => None,
    });
    assert_eq!(fetched.unwrap().folder, out.path().join("toy"));
    assert!(std::fs::read(out.path().join("toy").join(NAME)).unwrap() == content());
}

#[test]
fn a_corpus_nobody_has_is_told_with_the_way_out_and_a_paused_one_waits() {
    let mut bench = Bench::new();
    let out = tempfile::tempdir().unwrap();
    let (_, gone) = set_up(&[("gone", Way::Status(404))]);
    let job = fetch(&mut bench, gone, out.path());
    let outcome = bench.outcome(job);
    let Outcome::Failed(why) = &outcome else { panic!("{outcome:?}") };
    assert!(why.contains("no mirror gave the file") && why.contains("HTTPS_PROXY"), "{why}");
    // Paused before it begins: nothing is asked until it may go on.
    let (server, whole) = set_up(&[("whole", Way::Whole)]);
    let (_, stalls) = set_up(&[("stalls", Way::Stalls(10))]);
    let before = fetch(&mut bench, stalls, out.path());
    let job = fetch(&mut bench, whole, out.path());
    bench.worker.set_paused(job, true);
    bench.worker.cancel(before);
    assert_eq!(bench.outcome(before), Outcome::Cancelled);
    bench.worker.show(request(2, 20, 1.0, Vec::new()));
    assert!(!bench.gallery(2).is_empty() && server.asked().is_empty());
    bench.worker.set_paused(job, false);
    assert!(matches!(bench.outcome(job), Outcome::Done(_)));
}
