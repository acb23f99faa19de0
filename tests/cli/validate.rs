//! `oracle validate` with samples, `oracle reality` and `oracle precision`.

use crate::run::{fail, json, succeed, text};

const CPU: [&str; 2] = ["--device", "cpu"];

#[test]
fn a_world_is_validated_beside_its_own_samples_and_reported() {
    let place = tempfile::tempdir().unwrap();
    let (data, report) = (place.path().join("data"), place.path().join("report"));
    for (split, seed) in [("train", "1"), ("test", "2")] {
        let out = data.join(split);
        let args = [&["sample", "mnist", "--n", "90", "--seed", seed, "--out", text(&out)][..], &CPU].concat();
        succeed(&args);
    }
    let asked = ["oracle", "validate", "mnist", "--data", text(&data), "--images", "60", "--feature-epochs", "1"];
    let asked = [&asked[..], &["--limit", "80", "--report", text(&report)], &CPU].concat();
    let found = json(&[&asked[..], &["--json"]].concat());
    // What images from outside cost is at the top, as without samples.
    assert!(found["bits_per_dim"].as_f64().unwrap() > 0.0 && found["accuracy"].as_f64().unwrap() > 0.5);
    assert_eq!(found["corpus"]["of_the_oracle"], false);
    assert_eq!(found["fidelity"]["n"], serde_json::json!([80, 90, 60]));
    // Its training moved every image by up to a pixel.
    assert_eq!(found["fidelity"]["forms"], 9);
    let told = |set: &str| found["two_sample"]["right"][set]["value"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&told("generated")) && (0.0..=1.0).contains(&told("held_out")));
    assert_eq!(found["two_sample"]["images"], 45);
    let fid = |set: &str| found["fidelity"]["fid"][set]["plain"]["value"].as_f64().unwrap();
    assert!(fid("generated") > 0.0 && fid("held_out") > 0.0);
    assert!(found["fidelity"]["features"]["name"].as_str().unwrap().contains("trained on the spot"));
    assert!(found["round_trip"]["largest_levels"].as_f64().unwrap() < 1.0);
    for name in
        ["validation.md", "validation.json", "validate-distances.svg", "validate-beside.csv", "pairs-held-out.png"]
    {
        assert!(report.join(name).is_file(), "{name}");
    }
    assert!(!report.join(".parts").exists(), "what was kept for a stop is gone");
    let table = std::fs::read_to_string(report.join("validate-beside.csv")).unwrap();
    assert!(table.contains("# weights SHA-256: ") && table.contains("KID") && table.contains("two-sample test"));
    // Another validation does not go on there.
    let other = [&asked[..], &["--seed", "7"]].concat();
    assert!(fail(1, &other).contains("another validation"));
}

#[test]
fn what_a_validation_cannot_use_is_named() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let args = [&["sample", "mnist", "--n", "20", "--out", text(&data)][..], &CPU].concat();
    succeed(&args);
    let ask =
        |more: &[&str]| fail(1, &[&["oracle", "validate", "mnist", "--data", text(&data)][..], more, &CPU].concat());
    assert!(ask(&["--images", "60"]).contains("50 are needed at least"));
    assert!(ask(&["--images", "5"]).contains("too few"));
    let nowhere = ["oracle", "validate", "mnist", "--data", "/nowhere/at/all"];
    assert!(fail(1, &[&nowhere[..], &CPU].concat()).contains("/nowhere/at/all"));
}

#[test]
fn decisions_on_real_images_bound_natures_error() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let out = data.join("test");
    succeed(&[&["sample", "mnist", "--n", "120", "--seed", "4", "--out", text(&out)][..], &CPU].concat());
    let asked = [&["oracle", "reality", "mnist", "--data", text(&data)][..], &CPU].concat();
    let found = json(&[&asked[..], &["--published-error", "0.2%", "--published-name", "LeNet", "--json"]].concat());
    assert_eq!((found["images"].as_u64(), found["held_out"].as_bool()), (Some(120), Some(true)));
    let e = found["world"]["bayes_error"]["value"].as_f64().unwrap();
    assert!((e - 0.0173).abs() < 0.001, "{e}");
    // The same decisions as those whose accuracy `oracle validate` tells.
    let args = [&["oracle", "validate", "mnist", "--data", text(&data), "--json"][..], &CPU].concat();
    let accuracy = json(&args)["accuracy"].as_f64().unwrap();
    assert!((found["decision_error"]["value"].as_f64().unwrap() + accuracy - 1.0).abs() < 1e-9, "{accuracy}");
    let of_kind = |kind: &str| found["findings"].as_array().unwrap().iter().any(|one| one["kind"] == kind);
    assert!(of_kind("published-below-world") && of_kind("verdict"), "{}", found["findings"]);
    let told = succeed(&asked);
    assert!(told.contains("it is at most") && told.contains("calibration error ECE"), "{told}");
    assert!(fail(1, &[&asked[..], &["--prior", "1,2"]].concat()).contains("10 classes"));
    fail(2, &[&asked[..], &["--published-name", "LeNet"]].concat());
}

#[test]
fn thirty_two_bits_are_compared_with_sixty_four() {
    let args = [&["oracle", "precision", "mnist", "--images", "6", "--tau", "1.2", "--json"][..], &CPU].concat();
    let found = json(&args);
    assert_eq!((found["images"].as_u64(), found["classes"].as_u64()), (Some(6), Some(10)));
    let largest = found["log_likelihood"]["largest"].as_f64().unwrap();
    assert!(largest > 0.0 && largest < 0.1, "{largest}");
    assert_eq!(found["provenance"]["badge"], "estimated");
    assert!(succeed(&[&args[..args.len() - 3], &CPU].concat()).contains("Bayes decisions changed"));
}
