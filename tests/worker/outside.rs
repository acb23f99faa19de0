//! Images from outside: which stay on show, and their lines in the ledger.

use std::path::{Path, PathBuf};

use bayescope::data::Fit;
use bayescope::oracle::pictures::Fits;
use bayescope::worker::protocol::{Event, Job, JobId, Outcome, Pasted};
use bayescope::worker::save::SaveSamples;

use super::{Bench, settings, spec};

/// Images that take a second to read again.
const MANY: usize = 2000;

fn done(bench: &mut Bench, job: Job) -> (JobId, String) {
    let id = bench.worker.submit(job);
    match bench.outcome(id) {
        Outcome::Done(sentence) => (id, sentence),
        other => panic!("{other:?}"),
    }
}

/// The first samples in a file.
fn samples(bench: &mut Bench, n: usize, path: &Path) {
    let (settings, path) = (settings(1.0), path.to_owned());
    done(bench, Job::task(SaveSamples { spec: spec(n), indices: vec![], settings, look: None, sheet: false, path }));
}

/// The job that brought the images on show, how many they are, and their τ.
fn on_show(bench: &Bench) -> (JobId, usize, f64) {
    let shown = |event: &Event| match event {
        Event::External { job, tiles, settings, .. } => Some((*job, tiles.len(), settings.tau.get())),
        _ => None,
    };
    bench.seen.iter().rev().find_map(shown).expect("images from outside have come")
}

#[test]
fn images_that_are_read_again_do_not_take_the_place_of_others_opened_since() {
    let mut bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let [a, b]: [PathBuf; 2] = ["a.npz", "b.npz"].map(|name| folder.path().join(name));
    samples(&mut bench, MANY, &a);
    samples(&mut bench, 3, &b);
    let read = |path: &Path, tau: f64, again| {
        let (paths, fits) = (vec![path.to_owned()], Fits::default());
        Job::Classify { paths, fits, settings: settings(tau), again }
    };
    let (of_a, _) = done(&mut bench, read(&a, 1.0, None));
    assert_eq!(on_show(&bench), (of_a, MANY, 1.0));
    // While they are read again, others are opened above that.
    let again = bench.worker.submit(read(&a, 2.0, Some(of_a)));
    bench.until(|event| matches!(event, Event::JobProgress { id, .. } if *id == again).then_some(()));
    let (of_b, _) = done(&mut bench, read(&b, 2.0, None));
    let image = bench.image(0);
    let outcome = bench.outcome(again);
    assert!(matches!(&outcome, Outcome::Done(why) if why.contains("other images were opened")), "{outcome:?}");
    assert_eq!((on_show(&bench), bench.image(0)), ((of_b, 3, 2.0), image.clone()));
    // Those on show are read again as often as a knob moves, and by whichever job they stay the same opening.
    let (first, _) = done(&mut bench, read(&b, 1.5, Some(of_b)));
    assert_eq!((on_show(&bench), bench.image(0)), ((first, 3, 1.5), image));
    let (second, _) = done(&mut bench, read(&b, 1.2, Some(of_b)));
    assert_eq!(on_show(&bench), (second, 3, 1.2));
    // Who opens the others anew sees them.
    let (anew, _) = done(&mut bench, read(&a, 1.0, None));
    assert_eq!(on_show(&bench), (anew, MANY, 1.0));
}

#[test]
fn pictures_of_one_name_have_lines_of_their_own_in_the_ledger() {
    let mut bench = Bench::new();
    for (level, tau) in [(40, 1.0), (40, 1.4), (200, 1.4)] {
        let picture = Pasted::of_rgba([20, 20], (0..400).map(|i| [level, level, (i % 20) as u8, 255]));
        let (fit, settings) = (Fit::default(), settings(tau));
        done(&mut bench, Job::ClassifyPasted { picture, fit, settings, again: None });
    }
    let line = |event: &Event| match event {
        Event::Made(made) => Some(made.clone()),
        _ => None,
    };
    let lines: Vec<_> = bench.seen.iter().filter_map(line).collect();
    let [one, at_other_knobs, other] = &lines[..] else { panic!("{lines:?}") };
    assert!(one.what.starts_with("posterior of pasted picture ("), "{}", one.what);
    assert!(one.what == at_other_knobs.what && one.what != other.what, "{lines:?}");
    let hash = |name: &str| one.provenance.chain.iter().find(|(link, _)| link == name).map(|(_, hash)| &hash[..8]);
    assert!(hash("pixels SHA-256").is_some_and(|hash| one.what.ends_with(&format!("({hash})"))), "{one:?}");
}
