//! The panel *Export*: the world of the card as a dataset.

use std::path::Path;

use bayescope::events::Progress;
use bayescope::export::{ExportDataset, Format};
use bayescope::task::Done;
use bayescope::worker::protocol::{Event, Outcome};
use eframe::egui::Role;
use egui_kittest::kittest::Queryable;

use super::experiments::{click, rewrite};
use super::{full, shows, tasks};

#[test]
fn the_world_of_the_card_is_exported_and_its_figures_shown() {
    let (mut harness, fake) = full();
    click(&mut harness, "Export");
    assert!(shows(&harness, "Give the folder it is to go to") && shows(&harness, "No dataset made yet"));
    rewrite(&mut harness, "Folder of the dataset", "/data/digits");
    click(&mut harness, "npz");
    assert!(shows(&harness, "choose a format at least"), "{:?}", super::labels(&harness));
    click(&mut harness, "npz");
    click(&mut harness, "parquet");
    harness.get_by_role_and_label(Role::Slider, "Base temperature τ").set_value_accesskit(1.25);
    harness.run_steps(2);
    click(&mut harness, "Copy export as command");
    let command =
        "bayescope export mnist --train 10000 --test 2000 --tau 1.25 --seed 0 --format npz,parquet --out /data/digits";
    assert!(harness.state().session().log.iter().any(|entry| entry.text.contains(command)));
    click(&mut harness, "Start export");
    let (id, ExportDataset { spec, folder, .. }) = tasks::asked(&fake);
    assert_eq!((folder.as_path(), spec.train, spec.settings.tau.get()), (Path::new("/data/digits"), 10_000, 1.25));
    assert_eq!(spec.formats, [Format::Npz, Format::Parquet]);
    fake.send(Event::JobStarted { id });
    let (progress, note) = (Progress { done: 3, total: 12 }, "drawing train images: 3 of 12".to_owned());
    fake.send(Event::JobProgress { id, progress, note });
    harness.run_steps(4);
    assert!(shows(&harness, "An export is going on"));
    fake.send(Event::JobEnded { id, outcome: Outcome::Cancelled });
    harness.run_steps(4);
    assert!(shows(&harness, "is not complete: start the same export again"));
    click(&mut harness, "Start export");
    let (id, _) = fake.jobs().pop().unwrap();
    tasks::done::<ExportDataset>(&fake, id, Done::new(manifest(), "12 images"));
    harness.run_steps(4);
    for text in ["Bayes error of the world", "test: 2,000 images", "KL of 8-bit posteriors", "Bayes decisions changed"]
    {
        assert!(shows(&harness, text), "'{text}' is not shown: {:?}", super::labels(&harness));
    }
    harness.get_by_label("Start export").scroll_to_me();
    harness.check_accessibility();
}

#[test]
fn a_tilde_is_the_home_folder() {
    let Some(home) = std::env::var_os("HOME").map(std::path::PathBuf::from).filter(|home| home.is_absolute()) else {
        return println!("skipped: there is no home folder");
    };
    let (mut harness, fake) = full();
    click(&mut harness, "Export");
    rewrite(&mut harness, "Folder of the dataset", "~/digits");
    click(&mut harness, "Start export");
    assert_eq!(tasks::asked::<ExportDataset>(&fake).1.folder, home.join("digits"));
}

/// As `dataset.json` has it.
fn manifest() -> bayescope::export::Manifest {
    let figure = |value: f64| serde_json::json!({ "value": value, "std_error": 0.001, "interval": [value - 0.002, value + 0.002] });
    let estimate = |value: f64| serde_json::json!({ "value": value, "interval": [value - 0.01, value + 0.01] });
    let split = |images: usize| {
        serde_json::json!({
            "images": images, "seed": 1, "counts": vec![images / 10; 10], "bayes_error": estimate(0.1),
            "aleatoric_nats": estimate(0.3), "rounding": { "images": images, "rounded": 0, "max_drift": 0.0 },
            "pictures": { "8": { "levels": { "bits": 8, "low": -0.05, "high": 1.05 }, "images": images, "kl_nats": estimate(0.02),
                "largest_kl_nats": 0.4, "decisions_changed": { "value": 0.0, "interval": [0.0, 0.00192] }, "bayes_error": estimate(0.1),
                "decision_error": estimate(0.2), "added_error": estimate(0.1), "aleatoric_nats": estimate(0.3) } },
        })
    };
    let manifest = serde_json::json!({
        "format": 1, "made_by": "bayescope", "oracle": "mnist", "weights_sha256": "00", "tau": 1.25, "smoothing": 1.0,
        "prior": vec![0.1; 10], "seed": 0, "labels": "drawn", "class_names": (0..10).map(|k| k.to_string()).collect::<Vec<_>>(),
        "shape": { "channels": 1, "height": 32, "width": 32 }, "world_space": "v", "pixel_range": [0.0, 1.0], "exactness": "exact",
        "world": { "tau": 1.25, "bayes_error": figure(0.11), "badge": "bounded", "how": "quadrature", "aleatoric_nats": figure(0.3),
            "aleatoric_badge": "estimated", "label_entropy_nats": 2.3, "mutual_information_bits": figure(2.8) },
        "splits": { "train": split(10_000), "test": split(2_000) }, "files": { "test.npz": "00" },
    });
    serde_json::from_value(manifest).unwrap()
}

#[test]
fn images_that_lose_their_posteriors_have_a_remedy_in_worlds_with_a_logit_map() {
    let remedy = |pixels: Option<&str>, rounded| {
        let mut manifest = manifest();
        manifest.pixels = pixels.map(str::to_owned);
        manifest.splits.get_mut("test").unwrap().rounding.rounded = rounded;
        manifest.rounding_remedy()
    };
    assert!(remedy(Some("uniform"), 3).unwrap().contains("noise = \"gaussian\""));
    assert_eq!([remedy(Some("uniform"), 0), remedy(Some("gaussian-0.05"), 3), remedy(None, 3)], [None; 3]);
}
