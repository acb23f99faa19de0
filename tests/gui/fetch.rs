//! The window *Fetch a corpus*: what it says before a byte is downloaded, and what becomes of it.

use bayescope::data::fetch::{Fetched, corpus};
use bayescope::events::Progress;
use bayescope::gui::{App, Prefs};
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::{by_palette, full, shows, sized};

#[test]
fn nothing_is_fetched_without_a_click_and_a_failure_tells_the_way_out() {
    let (mut harness, fake) = full();
    let place = tempfile::tempdir().unwrap();
    by_palette(&mut harness, "Fetch corpus: kmnist");
    let kmnist = corpus("kmnist").unwrap();
    for text in
        [kmnist.about, kmnist.terms, "Nothing is downloaded before you press Fetch", "emnist-letters", "codh.rois"]
    {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    click(&mut harness, "cifar10 170.1 MB");
    assert!(shows(&harness, corpus("cifar10").unwrap().terms));
    click(&mut harness, "kmnist 21.2 MB");
    rewrite(&mut harness, "Folder for corpora", &place.path().display().to_string());
    assert!(fake.fetches().is_empty());
    click(&mut harness, "Fetch");
    let asked = fake.fetches();
    let [(id, request)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((request.corpus, request.out.as_path()), (kmnist, place.path()));
    fake.send(Event::JobStarted { id: *id });
    let note = "9.1 of 21.0 MB, train-images-idx3-ubyte.gz from codh.rois.ac.jp".to_owned();
    fake.send(Event::JobProgress { id: *id, progress: Progress { done: 9, total: 21 }, note: note.clone() });
    let (mirror, cause) = ("http://elsewhere/train-images-idx3-ubyte.gz".into(), "answered with status 503".into());
    fake.send(Event::MirrorFailed { id: *id, mirror, cause });
    harness.run_steps(4);
    assert!(
        shows(&harness, &note) && shows(&harness, "elsewhere/train-images-idx3-ubyte.gz: answered with status 503")
    );
    // One at a time, and nobody presses twice by mistake.
    click(&mut harness, "Fetch");
    click(&mut harness, "mnist 11.6 MB");
    assert!(shows(&harness, "kmnist is on its way") && fake.fetches().len() == 1);
    click(&mut harness, "kmnist 21.2 MB");
    click(&mut harness, "Cancel fetching kmnist");
    assert_eq!(fake.cancelled(), [*id]);
    fake.send(Event::JobEnded { id: *id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "What came is kept"));
    // No network: why, and the way out; the window stays.
    click(&mut harness, "Fetch");
    let (id, _) = fake.fetches().pop().unwrap();
    let why = "train-images-idx3-ubyte.gz: no mirror gave the file. Is there a connection, and a proxy to be named in HTTPS_PROXY?";
    fake.send(Event::JobEnded { id, outcome: Outcome::Failed(why.into()) });
    harness.run_steps(4);
    assert!(shows(&harness, why) && shows(&harness, kmnist.terms));
    harness.check_accessibility();
}

#[test]
fn it_fits_a_small_window() {
    let size = [683.0, 467.0];
    let (mut harness, fake) = sized(Prefs { n: 12, ..Prefs::default() }, size);
    fake.open_oracle();
    harness.run_steps(6);
    by_palette(&mut harness, "Fetch corpus: kmnist");
    harness.run_steps(6);
    for name in ["mnist 11.6 MB", "Browse for: Folder for corpora", "Copy fetch as command"] {
        let rect = harness.get_by_label(name).rect();
        let inside = rect.left() >= 0.0 && rect.right() <= size[0] && rect.top() >= 0.0;
        assert!(inside, "'{name}' is cut off: {rect:?}");
    }
}

#[test]
fn what_was_fetched_is_put_to_use() {
    let (mut harness, fake) = full();
    let place = tempfile::tempdir().unwrap();
    let kmnist = corpus("kmnist").unwrap();
    by_palette(&mut harness, "Fetch corpus: kmnist");
    rewrite(&mut harness, "Folder for corpora", &place.path().display().to_string());
    click(&mut harness, "Fetch");
    let (id, _) = fake.fetches().pop().unwrap();
    let folder = place.path().join("kmnist");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("fetched.json"), "{}").unwrap();
    let fetched = Fetched {
        name: "kmnist".into(),
        folder: folder.clone(),
        files: Vec::new(),
        bytes: 21,
        downloaded: 12,
        archives: vec![place.path().join("downloads/gzip.zip")],
        terms: kmnist.terms.into(),
    };
    fake.send(Event::Fetched(id, Box::new(fetched)));
    fake.send(Event::JobEnded { id, outcome: Outcome::Done("kmnist is there".into()) });
    harness.run_steps(4);
    assert!(shows(&harness, &format!("It is in {}", folder.display())) && shows(&harness, "gzip.zip is kept"));
    click(&mut harness, "Copy its path");
    let said = |harness: &Harness<'_, App>, text: &str| {
        harness.state().session().log.iter().any(|entry| entry.text.contains(text))
    };
    assert!(said(&harness, &format!("Copied: {}", folder.display())));
    click(&mut harness, "Copy fetch as command");
    assert!(said(&harness, &format!("bayescope fetch kmnist --out {}", place.path().display())));
    click(&mut harness, "Use in training");
    let field = harness.get_by_role_and_label(Role::TextInput, "Folder of images");
    assert_eq!(field.value().as_deref(), Some(folder.display().to_string().as_str()));
    assert!(!shows(&harness, kmnist.terms), "the window is out of the way");
}

#[test]
fn a_form_that_wants_images_leads_to_the_corpora() {
    let (mut harness, fake) = full();
    click(&mut harness, "Oracle training");
    click(&mut harness, "Fetch a corpus…");
    assert!(shows(&harness, "Nothing is downloaded before you press Fetch"));
    let close = harness.get_all_by_label("Close").last().unwrap();
    close.click();
    harness.run_steps(4);
    assert!(!shows(&harness, "Nothing is downloaded") && fake.fetches().is_empty());
}
