//! What is known of a folder, and what is read of it again.

use std::ops::ControlFlow;

use bayescope::data::wait_for_lock;
use bayescope::error::Error;
use bayescope::events::Progress;

use super::*;

#[test]
fn a_folder_is_known_for_what_it_is() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    assert!(AnyRun::is(&run.path));
    assert_eq!(AnyRun::open(&run.path).unwrap(), AnyRun::External(Box::new(run.clone())));
    assert!(RunFolder::open(&run.path).unwrap_err().to_string().contains("is an external run"));
    // The same again leaves it as it is, another is refused by what differs.
    log(&run, 1, "{}", &logits(1));
    assert_eq!(made(place.path(), Kind::Logits), run);
    assert_eq!(read(&run).steps().count(), 1);
    let refused = |other: StartExternal, cause: &str| {
        let said = other.make(&world(), "0123", &mut silent()).unwrap_err().to_string();
        assert!(said.contains(cause), "{said}");
    };
    let same = || start(place.path(), Kind::Logits);
    refused(start(place.path(), Kind::Probabilities), "another kind of predictions");
    refused(StartExternal { seed: Seed(6), ..same() }, "other test images");
    refused(StartExternal { precision: Precision::F64, ..same() }, "another precision");
    refused(StartExternal { images: 1, ..same() }, "1 test images");
    // Images that were exchanged, a version to come, and what is no run.
    let file = run.path.join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let opened = |text: &str| {
        std::fs::write(&file, text).unwrap();
        AnyRun::open(&run.path).map(drop).unwrap_err().to_string()
    };
    assert!(opened(&text.replace("format = 1", "format = 2")).contains("external.format is 2"));
    assert!(opened(&text.replace("images = 60", "images = 60000000000")).contains("at most are read"));
    assert!(opened("[external]\nformat = 1\n").contains("run.toml"));
    std::fs::write(&file, &text).unwrap();
    let labels = run.path.join("test/y.npy");
    let mut bytes = std::fs::read(&labels).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&labels, bytes).unwrap();
    let said = run.look(None, 1).unwrap_err().to_string();
    assert!(said.contains("y.npy") && said.contains("is not the file that run.toml names"), "{said}");
    std::fs::remove_dir_all(run.path.join("test")).unwrap();
    RunFolder::delete(&run.path).unwrap();
    assert!(!run.path.exists());
}

/// What cannot come back with the same bytes is named, and stays as it is.
#[test]
fn a_start_makes_the_test_files_of_its_run_whole() {
    const FILES: [&str; 3] = ["x.npy", "y.npy", "posterior.npy"];
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    let file = |name: &str| run.path.join("test").join(name);
    let bytes = || FILES.map(|name| std::fs::read(file(name)).unwrap());
    let whole = bytes();
    let alone = || std::fs::read_dir(run.path.join("test")).unwrap().count() == FILES.len();
    std::fs::remove_file(file("posterior.npy")).unwrap();
    std::fs::write(file("y.npy"), [&whole[1][..], b"!"].concat()).unwrap();
    assert!(run.summary().unwrap_err().to_string().contains("posterior.npy"), "without a record, too");
    assert_eq!(made(place.path(), Kind::Logits), run);
    assert!(bytes() == whole && alone() && !run.path.join(".external-start").exists());
    std::fs::remove_dir_all(run.path.join("test")).unwrap();
    made(place.path(), Kind::Logits);
    assert!(bytes() == whole && alone());
    // A folder of another device or version, on which other bytes were drawn.
    let spec = run.path.join("run.toml");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(&spec, text.replace(&run.spec.test.files["y.npy"], &"0".repeat(64))).unwrap();
    std::fs::write(file("y.npy"), "mine").unwrap();
    let said = start(place.path(), Kind::Logits).make(&world(), "0123", &mut silent()).unwrap_err().to_string();
    assert!(said.contains("y.npy") && said.contains("restore the file"), "{said}");
    assert!(std::fs::read(file("y.npy")).unwrap() == b"mine" && alone());
}

/// Also where they were right at an earlier look, of which nothing else has changed.
#[test]
fn test_images_that_were_changed_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    log(&run, 1, "{}", &logits(1));
    let file = run.path.join("test/x.npy");
    let age = |seconds: u64| {
        let then = SystemTime::now() - Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
    };
    age(200);
    let before = run.look(None, usize::MAX).unwrap();
    assert_eq!(run.look(Some(&before), usize::MAX).unwrap().count(), 1);
    let mut bytes = std::fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&file, bytes).unwrap();
    age(100);
    let refusals =
        [run.look(Some(&before), usize::MAX).map(drop), run.summary().map(drop), run.worst(None, 1).map(drop)];
    for refused in refusals {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("x.npy") && said.contains("is not the file that run.toml names"), "{said}");
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run.look(Some(&before), usize::MAX).unwrap().count(), 1);
}

/// The second came in while the first drew, made its own run there, and lost its test images to the first.
#[test]
fn of_two_starts_in_one_folder_the_second_finds_the_run_of_the_first() {
    let place = tempfile::tempdir().unwrap();
    let (first, mine) = (start(place.path(), Kind::Logits), world());
    let second = StartExternal { seed: Seed(6), ..first.clone() };
    std::thread::scope(|scope| {
        let mut other = None;
        let mut events = |_: Progress| {
            if other.is_none() {
                let begin = || second.make(&world(), "0123", &mut silent()).map(drop).map_err(|e| e.to_string());
                let (running, begun) = (scope.spawn(begin), Instant::now());
                while !running.is_finished() && begun.elapsed() < Duration::from_secs(1) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other = Some(running);
            }
            ControlFlow::Continue(())
        };
        let run = first.make(&mine, "0123", &mut events).unwrap();
        let said = other.unwrap().join().unwrap().unwrap_err();
        assert!(said.contains("other test images"), "{said}");
        assert_eq!((run.spec.test.seed, run.truth().unwrap().labels.len()), (Seed(5), IMAGES));
        assert!(!run.path.join(".external-start").exists());
    });
    // Who waits touches nothing and can be stopped.
    let folder = place.path().join("held");
    std::fs::create_dir(&folder).unwrap();
    let held = wait_for_lock(&folder.join(".external-start"), &mut || Ok(())).unwrap();
    let waiting = StartExternal { folder: folder.clone(), ..first };
    let stopped = waiting.make(&mine, "0123", &mut |_: Progress| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Cancelled)) && !folder.join("test").exists(), "{stopped:?}");
    drop(held);
    waiting.make(&mine, "0123", &mut silent()).unwrap();
}

#[test]
fn probabilities_in_a_run_of_logits_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    let mut values: Vec<f32> = softmax(&logits(1)).iter().map(|&q| q as f32).collect();
    log(&run, 1, "{}", &values);
    // A single row that is none makes them logits.
    values[0] += 0.5;
    log(&run, 2, "{}", &values);
    let steps = |course: &Course| course.steps().map(|step| step.step).collect::<Vec<_>>();
    let course = read(&run);
    assert_eq!((steps(&course), course.refused().len(), course.refused()[0].step), (vec![2], 1, 1));
    let why = &course.refused()[0].why;
    assert!(why.contains("look like probabilities; run.toml says logits") && why.contains("softmax"), "{why}");
    assert!(run.measured(1).unwrap_err().to_string().contains("look like probabilities"));
    // What it advises helps.
    let file = run.path.join("run.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("predictions = \"logits\"", "predictions = \"probabilities\"")).unwrap();
    let run = ExternalFolder::open(&run.path).unwrap();
    assert_eq!(steps(&read(&run)), [1]);
}

/// After a break, or after its end.
#[test]
fn a_run_that_goes_on_is_not_finished_and_its_time_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    assert_eq!(run.seconds_before(1).unwrap(), None);
    let at = |seconds: f64| Header { seconds: Some(seconds), ..Header::default() };
    run.log(10, &at(2.5), &logits(10)).unwrap();
    run.log(20, &at(5.0), &logits(20)).unwrap();
    // A record that cannot be read says nothing; one that can says nothing of steps before it.
    std::fs::write(path(&run, 30), "{}\n").unwrap();
    let before = [10, 11, 20, 21, 40].map(|step| run.seconds_before(step).unwrap());
    assert_eq!(before, [None, Some(2.5), Some(2.5), Some(5.0), Some(5.0)]);
    run.finish().unwrap();
    // What is refused is no record.
    assert!(run.log(30, &at(7.0), &[]).is_err() && run.finished());
    run.log(30, &at(7.0), &logits(30)).unwrap();
    assert!(!run.finished() && !read(&run).finished);
    run.finish().unwrap();
    assert!(read(&run).finished);
}

/// In the words that a reader would say of it.
#[test]
fn what_a_reader_would_refuse_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let changed = |at: usize, value: f32| {
        let mut values = logits(1);
        values[at] = value;
        values
    };
    let empty = [&[f32::NEG_INFINITY; CLASSES][..], &logits(1)[CLASSES..]].concat();
    let rows = |row: [f32; CLASSES]| row.repeat(IMAGES);
    let cases = [
        (Kind::Logits, changed(7, f32::NAN), "image 1: class 3 is NaN"),
        (Kind::Logits, changed(7, f32::INFINITY), "image 1: class 3 is inf"),
        (Kind::Logits, empty, "image 0: every class is −∞"),
        (Kind::Logits, rows([0.25; CLASSES]), "these look like probabilities"),
        (Kind::Logits, rows([0.25, 0.25, 0.25, 0.248]), "these look like probabilities"),
        (Kind::Probabilities, rows([0.25, 0.25, 0.25, 0.248]), "write them with more digits"),
        (Kind::Probabilities, rows([0.5, 0.25, 0.25, 0.25]), "add up to 1.25"),
        (Kind::Probabilities, rows([0.75, -0.25, 0.25, 0.25]), "negative probability"),
        (Kind::LogProbabilities, rows([0.0; CLASSES]), "add up to 4.0"),
    ];
    for (i, (kind, values, words)) in cases.into_iter().enumerate() {
        let run = made(&place.path().join(i.to_string()), kind);
        let said = run.log(1, &Header::default(), &values).unwrap_err().to_string();
        assert!(said.contains(words) && run.last_step().unwrap().is_none(), "{said}");
        // By another program.
        log(&run, 1, "{}", &values);
        assert_eq!(read(&run).refused()[0].why, said);
    }
    // A class that cannot be is one of the answers.
    made(&place.path().join("certain"), Kind::Logits)
        .log(1, &Header::default(), &changed(7, f32::NEG_INFINITY))
        .unwrap();
}

/// A record that was read is not read again.
#[cfg(unix)]
#[test]
fn of_a_run_that_grows_only_what_is_new_is_read() {
    let place = tempfile::tempdir().unwrap();
    let run = made(place.path(), Kind::Logits);
    (1..=3).for_each(|step| log(&run, step, "{}", &logits(step)));
    let before = read(&run);
    // The same file to all who do not read it.
    let old = path(&run, 2);
    let (written, length) = (old.metadata().unwrap().modified().unwrap(), old.metadata().unwrap().len());
    std::fs::write(&old, vec![0; length as usize]).unwrap();
    std::fs::File::options().write(true).open(&old).unwrap().set_modified(written).unwrap();
    log(&run, 4, "{}", &logits(4));
    let after = run.look(Some(&before), usize::MAX).unwrap();
    assert_eq!((after.steps().count(), after.refused().len()), (4, 0));
    assert!(before.steps().eq(after.steps().take(3)));
    assert_eq!(read(&run).refused().len(), 1, "it is no record when it is read");
}

/// What the window asks of hundreds of folders every two seconds: unchanged ones are not listed again, and no change is missed.
#[cfg(unix)]
#[test]
fn a_folder_is_known_until_something_in_it_changes() {
    let place = tempfile::tempdir().unwrap();
    let folder = made(place.path(), Kind::Logits);
    let records = folder.path.join(PREDICTIONS);
    let age = |path: &Path| {
        std::fs::File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap()
    };
    let aged = || age(&records);
    let look = |before: Option<&Course>| folder.look(before, usize::MAX).unwrap();
    age(&folder.path.join("test/x.npy"));
    folder.log(10, &Header::default(), &logits(10)).unwrap();
    let young = look(None);
    assert!(!folder.is_known(&young), "clocks of files are coarse: one more change might not show");
    aged();
    let course = look(Some(&young));
    assert!(folder.is_known(&course) && look(Some(&course)) == course);
    // A record that grows where it lies: the last, and one that could not be read.
    std::fs::write(records.join("20.pred"), b"{}\n").unwrap();
    assert!(!folder.is_known(&course), "a new file");
    aged();
    let torn = look(Some(&course));
    assert!(folder.is_known(&torn) && torn.refused().len() == 1);
    folder.log(30, &Header::default(), &logits(30)).unwrap();
    aged();
    let torn = look(Some(&torn));
    assert!(folder.is_known(&torn));
    std::fs::write(records.join("20.pred"), b"{}\ngrown").unwrap();
    aged();
    assert!(!folder.is_known(&torn), "a torn record in the middle has grown");
    let torn = look(Some(&torn));
    std::fs::write(records.join("30.pred"), b"").unwrap();
    aged();
    assert!(!folder.is_known(&torn), "the last record has changed where it lies");
    let torn = look(Some(&torn));
    assert!(folder.is_known(&torn));
    folder.finish().unwrap();
    assert!(!folder.is_known(&torn), "it says that nothing more comes");
    // What is still to be read keeps it open.
    let part = folder.look(None, 1).unwrap();
    assert!(part.waiting > 0 && !folder.is_known(&part));
}
