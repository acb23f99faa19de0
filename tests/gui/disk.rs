//! What lies at paths is asked by threads.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bayescope::gui::{App, Prefs};
use bayescope::oracle::library;
use bayescope::worker::protocol::Job;
use eframe::egui::{Key, Modifiers};
use egui_kittest::Harness;

use super::experiments::rewrite;
use super::{full, labels, shows, window};

/// Opens paths as if they were dropped on the window.
pub fn drop_in(harness: &mut Harness<'_, App>, paths: impl IntoIterator<Item: Into<PathBuf>>) {
    harness.state_mut().open(paths.into_iter().map(Into::into).collect());
    looked(harness);
}

/// Steps until threads have said what lies at paths, and the window has taken it in.
pub fn looked(harness: &mut Harness<'_, App>) {
    let patience = Instant::now() + Duration::from_secs(30);
    harness.run_steps(2);
    while harness.state().waits_for_disk() {
        assert!(Instant::now() < patience, "nothing is said of the disk: {:?}", labels(harness));
        harness.step();
    }
    harness.run_steps(2);
}

#[test]
fn an_oracle_that_is_gone_since_the_last_time_is_told_and_the_bundled_world_is_opened_in_its_place() {
    let place = tempfile::tempdir().unwrap();
    for (folder, gone) in [(place.path().to_owned(), false), (place.path().join("gone"), true)] {
        let oracle = folder.display().to_string();
        let (mut harness, fake) = window(Prefs { oracle: oracle.clone(), ..Prefs::default() });
        let ctx = harness.ctx.clone();
        harness.state_mut().look_for_oracle(&ctx);
        looked(&mut harness);
        let asked = if gone { library::DEFAULT } else { oracle.as_str() };
        let told = harness.state().session().log.iter().any(|entry| entry.text.contains("is not there any more"));
        assert_eq!((harness.state().prefs().oracle.as_str(), told), (asked, gone));
        let opened =
            fake.jobs().iter().any(|(_, job)| matches!(job, Job::OpenOracle(name) if name == library::DEFAULT));
        assert_eq!(opened, gone, "{:?}", fake.jobs());
    }
}

#[test]
fn a_path_that_was_mistyped_is_told_in_the_dialog_and_is_no_job() {
    let (mut harness, fake) = full();
    let place = tempfile::tempdir().unwrap();
    let [mistyped, there] = ["digti.png", "digit.png"].map(|name| place.path().join(name));
    std::fs::write(&there, "a picture").unwrap();
    harness.key_press_modifiers(Modifiers::COMMAND, Key::O);
    harness.run_steps(3);
    rewrite(&mut harness, "Path", &mistyped.display().to_string());
    harness.key_press(Key::Enter);
    looked(&mut harness);
    let told = "There is no file or folder of this name.";
    assert!(fake.jobs().is_empty() && shows(&harness, told), "{:?}", labels(&harness));
    harness.check_accessibility();
    rewrite(&mut harness, "Path", &there.display().to_string());
    assert!(!shows(&harness, told), "it was said of another path");
    harness.key_press(Key::Enter);
    looked(&mut harness);
    let opens = |job: &Job| matches!(job, Job::Classify { paths, .. } if *paths == [there.clone()]);
    assert!(fake.jobs().iter().all(|(_, job)| opens(job)) && fake.jobs().len() == 1, "{:?}", fake.jobs());
}
