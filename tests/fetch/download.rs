use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bayescope::data::fetch::{Corpus, FetchEvent, Fetched, Layout, Patience, fetch_corpus};
use bayescope::error::{Error, Result};

use crate::server::{Server, Way, content};
use crate::{brief, corpus, until};

const NAME: &str = "data.bin";

/// A server with these ways of the one file, and the corpus that is fetched from them in turn.
fn set_up(ways: &[(&'static str, Way)]) -> (Server, Corpus) {
    let bytes = content();
    let files: [(&'static str, &[u8]); 1] = [(NAME, &bytes)];
    let server = Server::new(ways, &files);
    let mirrors = ways.iter().map(|(name, _)| server.mirror(name)).collect();
    (server, corpus(mirrors, &files, Layout::Idx))
}

fn fetch(corpus: &Corpus, out: &Path, heard: &mut Vec<FetchEvent>) -> Result<Fetched> {
    fetch_corpus(corpus, out, brief(), &mut until(heard, |_| false))
}

fn failures(heard: &[FetchEvent]) -> Vec<(String, String)> {
    let failed = heard.iter().filter_map(|event| match event {
        FetchEvent::MirrorFailed { mirror, cause, .. } => {
            let mirror = mirror.0.rsplit('/').nth(1).unwrap().to_owned();
            Some((mirror, cause.clone()))
        }
        _ => None,
    });
    failed.collect()
}

/// The corpus is there, right, and nothing half is beside it.
fn assert_whole(out: &Path) {
    assert!(std::fs::read(out.join("toy").join(NAME)).unwrap() == content());
    assert!(!out.join("downloads/toys").exists(), "nothing is left over");
}

#[test]
fn a_file_is_fetched_once() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let fetched = fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_whole(out.path());
    assert_eq!((fetched.downloaded, fetched.bytes), (300_000, 300_000));
    assert_eq!((fetched.folder, fetched.files), (out.path().join("toy"), vec![NAME.to_owned()]));
    let done: Vec<u64> = heard
        .iter()
        .filter_map(|e| if let FetchEvent::Received { done, .. } = e { Some(*done) } else { None })
        .collect();
    assert!(done.is_sorted() && done.last() == Some(&300_000), "{done:?}");
    // Again: nothing is asked for.
    let again = fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_eq!((again.downloaded, again.bytes), (0, 300_000));
    assert_eq!(server.asked().len(), 1);
    // A damaged file is mended.
    let path = out.path().join("toy").join(NAME);
    let mut bytes = content();
    bytes[7] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::io::Write::write_all(&mut File::create(&path).unwrap(), &bytes).unwrap();
    assert_eq!(fetch(&corpus, out.path(), &mut heard).unwrap().downloaded, 300_000);
    assert_whole(out.path());
}

#[test]
fn what_was_cut_off_is_resumed() {
    let (server, corpus) = set_up(&[("cuts", Way::CutsAt(100_001))]);
    let out = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let fetched = fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_whole(out.path());
    assert_eq!(server.ranges("cuts"), [None, Some(100_001)], "only the rest is asked for");
    assert_eq!(fetched.downloaded, 300_000);
    assert!(failures(&heard).is_empty());
}

#[test]
fn a_stop_is_heard_and_the_next_time_goes_on_from_there() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let stop = |event: &FetchEvent| matches!(event, FetchEvent::Received { done, .. } if *done > 0);
    let stopped = fetch_corpus(&corpus, out.path(), brief(), &mut until(&mut heard, stop));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let part = out.path().join("downloads/toys/data.bin.part");
    let kept = std::fs::metadata(&part).unwrap().len() as usize;
    assert!(kept > 0 && kept < 300_000, "{kept}");
    assert!(!out.path().join("toy").exists());
    let fetched = fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_whole(out.path());
    assert_eq!(server.ranges("whole"), [None, Some(kept)]);
    assert_eq!(fetched.downloaded as usize, 300_000 - kept);
}

#[test]
fn a_stop_is_heard_while_a_server_is_silent() {
    let (_server, corpus) = set_up(&[("silent", Way::Silent)]);
    let out = tempfile::tempdir().unwrap();
    let (mut heard, began) = (Vec::new(), Instant::now());
    let patience = Patience { connect: Duration::from_secs(60), idle: Duration::from_secs(60) };
    let stop = |event: &FetchEvent| matches!(event, FetchEvent::Received { .. });
    let stopped = fetch_corpus(&corpus, out.path(), patience, &mut until(&mut heard, stop));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(began.elapsed() < Duration::from_secs(20), "long before the server's time is up");
}

#[test]
fn a_bad_mirror_makes_way_for_the_next() {
    let cases = [
        (Way::Forged, "another file (SHA-256 ", 1),
        (Way::Status(404), "status 404", 1),
        (Way::Status(403), "status 403", 1),
        (Way::Page, "a file of 26 bytes under that name instead of 300000", 1),
        (Way::Endless, "more than the file's 300000 bytes", 1),
        (Way::WrongPart, "another part of the file", 1),
        (Way::Silent, "timeout", 1),
    ];
    for (way, cause, times) in cases {
        let (server, corpus) = set_up(&[("bad", way), ("whole", Way::Whole)]);
        let out = tempfile::tempdir().unwrap();
        let mut heard = Vec::new();
        fetch(&corpus, out.path(), &mut heard).unwrap();
        assert_whole(out.path());
        let failed = failures(&heard);
        assert!(failed.len() == 1 && failed[0].0 == "bad" && failed[0].1.contains(cause), "{cause}: {failed:?}");
        assert_eq!((server.ranges("bad").len(), server.ranges("whole")), (times, vec![None]), "{cause}");
    }
}

#[test]
fn a_server_that_stalls_is_left_with_what_it_gave() {
    let (server, corpus) = set_up(&[("stalls", Way::Stalls(50_000)), ("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let began = Instant::now();
    // Every answer brings something, so it is asked until the file is whole.
    fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    assert_eq!(server.ranges("stalls").len(), 6);
    assert!(server.ranges("whole").is_empty());
    assert!(began.elapsed() < Duration::from_secs(30));
    // One that gives nothing any more is left, and the next one gives the rest.
    let (server, corpus) = set_up(&[("once", Way::CutsAt(50_000)), ("silent", Way::Silent), ("whole", Way::Whole)]);
    let only_once = Corpus { mirrors: &corpus.mirrors[..1], ..corpus.clone() };
    let out = tempfile::tempdir().unwrap();
    let stop = |event: &FetchEvent| matches!(event, FetchEvent::Asking { from: 50_000, .. });
    fetch_corpus(&only_once, out.path(), brief(), &mut until(&mut Vec::new(), stop)).unwrap_err();
    let rest = Corpus { mirrors: &corpus.mirrors[1..], ..corpus };
    fetch(&rest, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    assert_eq!((server.ranges("silent"), server.ranges("whole")), (vec![Some(50_000)], vec![Some(50_000)]));
}

#[test]
fn a_busy_mirror_gets_a_second_chance_and_a_missing_file_none() {
    let (server, corpus) = set_up(&[("busy", Way::BusyOnce), ("gone", Way::Status(410))]);
    let out = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_whole(out.path());
    assert_eq!((server.ranges("busy").len(), server.ranges("gone").len()), (2, 1));
}

#[test]
fn a_server_without_ranges_is_heard_from_the_start() {
    let (server, corpus) = set_up(&[("stubborn", Way::NoRanges)]);
    let out = tempfile::tempdir().unwrap();
    let stop = |event: &FetchEvent| matches!(event, FetchEvent::Received { done, .. } if *done > 0);
    fetch_corpus(&corpus, out.path(), brief(), &mut until(&mut Vec::new(), stop)).unwrap_err();
    let fetched = fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    assert!(server.ranges("stubborn")[1].is_some(), "the rest was asked for");
    assert_eq!(fetched.downloaded, 300_000);
}

#[test]
fn an_old_part_that_does_not_fit_is_thrown_away() {
    for (length, requests) in [(1_000, 2), (300_000, 1), (400_000, 1)] {
        let (server, corpus) = set_up(&[("whole", Way::Whole)]);
        let out = tempfile::tempdir().unwrap();
        put(out.path(), "data.bin.part", &vec![1; length]);
        fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
        assert_whole(out.path());
        assert_eq!(server.asked().len(), requests, "{length}");
        assert_eq!(server.ranges("whole").last(), Some(&None), "{length}");
    }
}

/// Puts a file of these bytes among the corpus's downloads. Returns their folder.
fn put(out: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let folder = out.join("downloads/toys");
    std::fs::create_dir_all(&folder).unwrap();
    std::io::Write::write_all(&mut File::create(folder.join(name)).unwrap(), bytes).unwrap();
    folder
}

#[test]
fn a_login_page_costs_nothing() {
    for page in [Way::Page, Way::PageInChunks, Way::Shorter] {
        let (server, corpus) = set_up(&[("page", page), ("whole", Way::Whole)]);
        let out = tempfile::tempdir().unwrap();
        put(out.path(), "data.bin.part", &content()[..1234]);
        let fetched = fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
        assert_whole(out.path());
        assert_eq!((server.ranges("page"), server.ranges("whole")), (vec![Some(1234)], vec![Some(1234)]));
        assert!(fetched.downloaded < 300_000 - 1234 + 100);
    }
    // Nor does it where there is nothing else: the part stays, and nothing is left beside it. A page that comes first
    // is no part.
    for (kept, page) in [(1234, Way::PageInChunks), (0, Way::PageInChunks), (1234, Way::Shorter)] {
        let (_server, corpus) = set_up(&[("page", page)]);
        let out = tempfile::tempdir().unwrap();
        let folder = put(out.path(), "data.bin.part", &content()[..kept]);
        let error = fetch(&corpus, out.path(), &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error.contains("the first 1234 bytes are kept"), kept > 0, "{error}");
        assert!(std::fs::read(folder.join("data.bin.part")).unwrap() == content()[..kept]);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}

#[test]
fn what_comes_anew_without_a_length_takes_the_parts_place_when_it_is_the_file() {
    let (server, corpus) = set_up(&[("chunks", Way::WholeInChunks)]);
    let out = tempfile::tempdir().unwrap();
    put(out.path(), "data.bin.part", &content()[..1234]);
    assert_eq!(fetch(&corpus, out.path(), &mut Vec::new()).unwrap().downloaded, 300_000);
    assert_whole(out.path());
    assert_eq!(server.ranges("chunks"), [Some(1234)]);
    // More than the file is not the file: the part goes on elsewhere.
    let (server, corpus) = set_up(&[("endless", Way::Endless), ("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    put(out.path(), "data.bin.part", &content()[..1234]);
    fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    assert_eq!(server.ranges("whole"), [Some(1234)]);
}

#[test]
#[cfg(unix)]
fn a_link_put_there_by_hand_stands_for_its_file() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let (mine, downloads) = (out.path().join("mine"), out.path().join("downloads/toys"));
    [&mine, &downloads].into_iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    std::io::Write::write_all(&mut File::create(mine.join(NAME)).unwrap(), &content()).unwrap();
    std::os::unix::fs::symlink(Path::new("../../mine").join(NAME), downloads.join(NAME)).unwrap();
    fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert!(server.asked().is_empty());
    assert_whole(out.path());
    let placed = std::fs::symlink_metadata(out.path().join("toy").join(NAME)).unwrap();
    assert!(placed.is_file() && mine.join(NAME).is_file());
}

#[test]
fn a_file_put_there_by_hand_is_taken_if_it_is_right_and_kept_under_another_name_if_not() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    put(out.path(), NAME, &content());
    assert_eq!(fetch(&corpus, out.path(), &mut Vec::new()).unwrap().downloaded, 0);
    assert!(server.asked().is_empty());
    let out = tempfile::tempdir().unwrap();
    put(out.path(), "data.bin.wrong", b"an older one");
    let folder = put(out.path(), NAME, b"a newer release");
    let mut heard = Vec::new();
    fetch(&corpus, out.path(), &mut heard).unwrap();
    assert!(std::fs::read(out.path().join("toy").join(NAME)).unwrap() == content());
    assert_eq!(std::fs::read(folder.join("data.bin.wrong")).unwrap(), b"a newer release");
    let told = heard.iter().find_map(|event| match event {
        FetchEvent::SetAside { file, cause } => Some(format!("{file} {cause}")),
        _ => None,
    });
    let (told, right) = (told.unwrap(), corpus.files[0].sha256);
    assert!(told.contains(right) && told.contains("15 bytes") && told.contains("data.bin.wrong"), "{told}");
}

#[test]
fn a_mirror_that_has_moved_is_followed() {
    let (server, corpus) = set_up(&[("moved", Way::Moved("whole")), ("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    fetch(&corpus, out.path(), &mut heard).unwrap();
    assert_whole(out.path());
    assert!(failures(&heard).is_empty());
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn when_nobody_has_it_everybody_is_quoted() {
    let (_server, mut corpus) = set_up(&[("gone", Way::Status(404)), ("cuts", Way::Stalls(0))]);
    // A port where nobody listens.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = crate::leak(format!("http://{free}/"));
    corpus.mirrors = vec![corpus.mirrors[0], corpus.mirrors[1], closed].leak();
    let out = tempfile::tempdir().unwrap();
    let error = fetch(&corpus, out.path(), &mut Vec::new()).unwrap_err().to_string();
    for part in
        ["data.bin: no mirror", "/gone/data.bin: answered with status 404", "/cuts/data.bin: timeout", "HTTPS_PROXY"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(error.contains(&format!("{free}/data.bin: ")) && error.to_lowercase().contains("refused"), "{error}");
    assert!(!out.path().join("toy").exists());
}

#[test]
fn folders_of_others_are_left_alone() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("toy");
    std::fs::create_dir(&folder).unwrap();
    File::create(folder.join("mine.txt")).unwrap();
    let error = fetch(&corpus, out.path(), &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("choose another folder"), "{error}");
    assert!(server.asked().is_empty() && folder.join("mine.txt").exists());
    // An empty one is nobody's.
    std::fs::remove_file(folder.join("mine.txt")).unwrap();
    fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    // Where a file stands in the way, the system says so.
    let file = out.path().join("file");
    File::create(&file).unwrap();
    let error = fetch(&corpus, &file, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn two_processes_do_not_meet() {
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    let out = tempfile::tempdir().unwrap();
    std::fs::create_dir(out.path().join("downloads")).unwrap();
    let other = File::create(out.path().join("downloads/.lock")).unwrap();
    other.lock().unwrap();
    let error = fetch(&corpus, out.path(), &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("another process is fetching"), "{error}");
    assert!(server.asked().is_empty());
    drop(other);
    fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
}

/// In a process that may write no file of more than 128 KiB: this test again, told so by a variable.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_and_what_came_is_kept() {
    const TOLD: &str = "BAYESCOPE_TEST_OUT";
    let (server, corpus) = set_up(&[("whole", Way::Whole)]);
    if let Some(out) = std::env::var_os(TOLD) {
        let error = fetch(&corpus, Path::new(&out), &mut Vec::new()).unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("data.bin.part")), "{error}");
        assert_eq!(server.asked().len(), 1, "a full disk is no reason to ask the next mirror");
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let child = std::process::Command::new("bash")
        .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg("download::a_full_disk_is_said_and_what_came_is_kept")
        .env(TOLD, out.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&child.stderr));
    let kept = std::fs::read(out.path().join("downloads/toys/data.bin.part")).unwrap();
    assert!(!kept.is_empty() && kept.len() <= 128 << 10 && content().starts_with(&kept), "{}", kept.len());
    // With room again, it goes on from there.
    let fetched = fetch(&corpus, out.path(), &mut Vec::new()).unwrap();
    assert_whole(out.path());
    assert_eq!(fetched.downloaded as usize, 300_000 - kept.len());
}
