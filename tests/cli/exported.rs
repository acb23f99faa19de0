//! Pictures of an export: values of their world wherever they are opened, and no photographs.

use crate::export::export;
use crate::run::{SHARP_DIGITS, fail, json, output, succeed, text};

const CPU: [&str; 2] = ["--device", "cpu"];

/// Once they were taken for photographs: nature's error was "at most 83 %".
#[test]
fn what_is_trained_on_or_compared_with_photographs_refuses_exported_pictures() {
    let place = tempfile::tempdir().unwrap();
    let (out, spec) = (place.path().join("digits"), place.path().join("spec.toml"));
    export("mnist", &out, &["--train", "12", "--test", "12", "--format", "png"]);
    for (i, data) in [out.clone(), out.join("test")].into_iter().enumerate() {
        std::fs::write(&spec, format!("name = 'x'\n[data]\npath = '{}'\n", text(&data))).unwrap();
        let run = place.path().join(format!("run {i}"));
        for asked in [
            &["oracle", "reality", "mnist", "--data", text(&data)][..],
            &["oracle", "validate", "mnist", "--data", text(&data)],
            &["oracle", "validate", "mnist", "--data", text(&data), "--images", "60"],
            &["oracle", "train", text(&spec), "--out", text(&run)],
        ] {
            let why = fail(1, &[asked, &CPU].concat());
            assert!(why.contains("pictures of an exported dataset") && why.contains("photographs"), "{asked:?}: {why}");
        }
    }
}

#[test]
fn pictures_of_another_world_are_said_to_be_and_keep_no_label_by_number() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("digits");
    // So many that no class is without a picture.
    export(SHARP_DIGITS, &out, &["--train", "0", "--test", "40", "--seed", "3", "--format", "png"]);
    let test = out.join("test");
    let read = |oracle: &str| {
        let done = output(&[&["posterior", oracle, text(&test), "--json"][..], &CPU].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        (found, String::from_utf8(done.stderr).unwrap())
    };
    let labels = |found: &serde_json::Value| {
        found["images"].as_array().unwrap().iter().filter(|image| image["label"].is_u64()).count()
    };
    let (own, said) = read(SHARP_DIGITS);
    assert!(labels(&own) == 40 && !said.contains("another world"), "{said}");
    let (other, said) = read("fashion");
    assert!(labels(&other) == 0 && other["summary"]["accuracy"].is_null());
    assert!(said.contains("another world, mnist") && said.contains("labels are left out"), "{said}");
    // Other weights, the same classes: digits are digits.
    let (namesake, said) = read("mnist");
    assert!(labels(&namesake) == 40 && said.contains("matched by name"), "{said}");
    // Without labels nothing is trained, and the cause is told.
    let spec = place.path().join("spec.toml");
    let grid = "[grid]\narchitectures = ['linear']\ntrain_sizes = [2]\nseeds = [0]\n[test]\nimages = 4\nwatched = 4\n";
    let text_of = format!("name = 'x'\n[world]\noracle = 'fashion'\n[data]\ntrain = '{}'\n{grid}", text(&test));
    std::fs::write(&spec, text_of).unwrap();
    let why = fail(1, &[&["plan", text(&spec)][..], &CPU].concat());
    assert!(why.contains("no labels") && why.contains("another world, mnist"), "{why}");
}

#[test]
fn classes_without_pictures_are_classes() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("two");
    let two = ["--train", "0", "--test", "12", "--prior", "1,1,0,0,0,0,0,0,0,0", "--format", "png"];
    export("mnist", &out, &two);
    let found = json(&[&["posterior", "mnist", text(&out.join("test")), "--json"][..], &CPU].concat());
    let images = found["images"].as_array().unwrap();
    assert_eq!(images.len(), 12);
    assert!(images.iter().all(|image| image["label"].as_u64().is_some_and(|label| label < 2)), "{found}");
    // The card names what is there.
    let card = std::fs::read_to_string(out.join("README.md")).unwrap();
    let reads = "test = ImageFolder(\"test\", allow_empty=True)  # torchvision 0.17 or later";
    assert!(
        card.contains(reads) && card.contains("row 123 of test.8bit.npz") && !card.contains("(\"train\""),
        "{card}"
    );
}

#[test]
fn a_folder_with_test_images_alone_says_how_to_name_them() {
    let place = tempfile::tempdir().unwrap();
    let test = place.path().join("clothes/test");
    succeed(&[&["sample", "fashion", "--n", "3", "--out", text(&test)][..], &CPU].concat());
    let why = fail(1, &[&["posterior", "fashion", text(&place.path().join("clothes"))][..], &CPU].concat());
    assert!(why.contains("has a test split, but no train split") && why.contains(text(&test)), "{why}");
    assert_eq!(
        json(&[&["posterior", "fashion", text(&test), "--json"][..], &CPU].concat())["images"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    // With training images beside them, these are read, and the others are named: in text, and in JSON.
    let clothes = place.path().join("clothes");
    succeed(&[&["sample", "fashion", "--n", "2", "--out", text(&clothes.join("train"))][..], &CPU].concat());
    let job = place.path().join("job");
    for more in [&["--json"][..], &["--json", "--no-compare", "--out", text(&job)]] {
        let done = output(&[&["posterior", "fashion", text(&clothes)][..], &CPU, more].concat());
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let found: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        let note = found["note"].as_str().unwrap();
        assert!(note.contains("only its training images are read") && note.contains(text(&test)), "{note}");
        assert_eq!(said.matches("only its training images are read").count(), 1, "{said}");
    }
}
