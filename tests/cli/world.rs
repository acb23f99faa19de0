//! doctor, oracle, sample, posterior.

use std::path::Path;
use std::process::Stdio;

use bayescope::data::{ImageShape, WorldBatch, write_npz};
use bayescope::device::{DeviceChoice, choose};
use serde_json::Value;
use sha2::{Digest, Sha256};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::run::{bayescope, fail, json, succeed, text};

const CPU: [&str; 2] = ["--device", "cpu"];

fn sample(path: &str, extra: &[&str]) {
    let args = [&["sample", "mnist", "--out", path][..], &CPU, extra].concat();
    succeed(&args);
}

fn posterior(path: &str, extra: &[&str]) -> Value {
    json(&[&["posterior", "mnist", path, "--json"][..], &CPU, extra].concat())
}

/// What `posterior` says of images beside the figures.
fn told(images: &Path, extra: &[&str]) -> String {
    let args = [&["posterior", "mnist", text(images), "--typicality", "0"], &CPU[..], extra].concat();
    let output = bayescope(&args).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn doctor_tells_what_will_be_used() {
    let report = json(&["doctor", "--json"]);
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.last().unwrap()["choice"], "cpu");
    assert!(report["use"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    assert!(succeed(&["doctor", "--device", "cpu"]).contains("will use cpu"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_calibrated_labels() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a.npz", "b.npz"].map(|name| folder.path().join(name));
    for path in [&a, &b] {
        sample(text(path), &["--n", "1000", "--seed", "1"]);
    }
    assert!(std::fs::read(&a).unwrap() == std::fs::read(&b).unwrap());
    let report = posterior(text(&a), &[]);
    let images = report["images"].as_array().unwrap();
    assert_eq!(images.len(), 1000);
    chi_square_over_ten_bins(images, 6);
}

#[test]
fn labels_of_a_harder_world_are_calibrated_in_every_bin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hard.npz");
    sample(text(&path), &["--n", "1000", "--seed", "1", "--tau", "1.3"]);
    chi_square_over_ten_bins(posterior(text(&path), &["--tau", "1.3"])["images"].as_array().unwrap(), 10);
}

#[test]
fn narrow_products_draw_where_they_exist_and_the_chain_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("samples.npz");
    let tarflow = crate::common::reference::path("tarflow/afhq_model_2_64_2_2_0.07.pth");
    let of = |oracle, device, products| {
        ["sample", oracle, "--n", "2", "--out", text(&out), "--force", "--device", device, "--products", products]
    };
    assert!(fail(2, &of("mnist", "cpu", "f8")).contains("none of f32, bf16, f16"));
    assert!(fail(1, &of("mnist", "cpu", "f16")).contains("together with their densities"));
    assert!(fail(1, &of(text(&tarflow), "cpu", "bf16")).contains("our kernels on the CPU compute in 32 bits"));
    if let Err(error) = choose(DeviceChoice::Wgpu(None)) {
        return println!("skipped: {error}");
    }
    let adapter = of(text(&tarflow), "wgpu", "f16");
    if choose(DeviceChoice::Wgpu(None)).unwrap().device.supports_dtype(burn::tensor::DType::F16) {
        assert!(succeed(&adapter).contains("drawn with products in half precision"));
        let chain = std::fs::read_to_string(folder.path().join("samples.npz.provenance.json")).unwrap();
        assert!(chain.contains("half precision; log p(x|y) of these very images in 32 bits"), "{chain}");
    } else {
        assert!(fail(1, &adapter).contains("take products f32"));
    }
}

/// Every class of every image is a forecast p of the event "this is the label": in each of ten bins of p the events must
/// come as often as forecast; bins that hold less than one event's worth of doubt are left out. Σ (observed − Σp)²/Σp(1−p) is close to χ² with one degree of freedom a bin.
fn chi_square_over_ten_bins(images: &[Value], filled_at_least: usize) {
    let mut bins = [(0.0, 0.0, 0.0); 10];
    for image in images {
        let label = image["label"].as_u64().unwrap() as usize;
        for (class, p) in numbers(&image["posterior"]).into_iter().enumerate() {
            let bin = &mut bins[((p * 10.0) as usize).min(9)];
            bin.0 += f64::from(u8::from(class == label));
            bin.1 += p;
            bin.2 += p * (1.0 - p);
        }
    }
    let filled: Vec<_> = bins.iter().filter(|(_, _, variance)| *variance > 1.0).collect();
    assert!(filled.len() >= filled_at_least, "too few forecasts in between to test anything: {bins:?}");
    let statistic: f64 = filled.iter().map(|(seen, expected, variance)| (seen - expected).powi(2) / variance).sum();
    let p_value = 1.0 - ChiSquared::new(filled.len() as f64).unwrap().cdf(statistic);
    assert!(p_value > 0.01, "χ² = {statistic:.1} over {} bins, p = {p_value:.4}: {bins:?}", filled.len());
}

#[test]
fn posteriors_of_another_world_than_the_images_were_drawn_in_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let export = ["export", "mnist", "--train", "4", "--test", "4", "--tau", "0.8", "--out", text(&data)];
    succeed(&[&export[..], &CPU].concat());
    let images = data.join("test.npz");
    let note = told(&images, &[]);
    assert!(note.contains("test.npz are samples of this world at τ = 0.8") && note.contains("τ = 1"), "{note}");
    assert!(!told(&images, &["--tau", "0.8"]).contains("note"));
    // Of a folder the training images are read.
    let note = told(&data, &[]);
    assert!(note.contains("train.npz are samples of this world at τ = 0.8"), "{note}");
}

#[test]
fn posteriors_of_samples_at_other_knobs_than_their_record_says_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let [file, pictures, other] = ["x.npz", "pictures/", "y.npz"].map(|name| folder.path().join(name));
    for path in [&file, &pictures] {
        sample(text(path), &["--n", "2", "--tau", "1.6"]);
    }
    sample(text(&other), &["--n", "2", "--label-noise", "symmetric:0.2"]);
    for (images, name) in [(&file, "x.npz"), (&pictures, "pictures/")] {
        let note = told(images, &[]);
        assert!(note.contains(&format!("{name} are samples of this world at τ = 1.6, T = 1; ")), "{note}");
        assert!(!told(images, &["--tau", "1.6"]).contains("note"));
    }
    for knob in [["--smoothing", "2"], ["--prior", "1,1,1,1,1,1,1,1,1,2"]] {
        assert!(
            told(&file, &[&["--tau", "1.6"], &knob[..]].concat()).contains("T = 1; these posteriors are of τ = 1.6")
        );
    }
    assert!(told(&other, &[]).contains("T = 1, label noise symmetric:0.2; "));
    assert!(!told(&other, &["--label-noise", "symmetric:0.2"]).contains("note"));
    // A record of a file that another program has written again says nothing of it.
    std::fs::copy(&other, &file).unwrap();
    assert!(!told(&file, &[]).contains("note"));
}

#[test]
fn a_posterior_has_the_promised_fields_and_follows_its_knobs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    sample(text(&path), &["--n", "6", "--class", "3"]);
    let report = posterior(text(&path), &[]);
    assert_eq!(report["classes"].as_array().unwrap().len(), 10);
    for image in report["images"].as_array().unwrap() {
        let p = numbers(&image["posterior"]);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(numbers(&image["log_likelihood"]).len(), 10);
        let entropy: f64 = p.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum();
        assert!((image["entropy_nats"].as_f64().unwrap() - entropy).abs() < 1e-9);
        assert!(image["log_px"].as_f64().unwrap() > 0.0 && image["bits_per_dim"].as_f64().unwrap() > 0.0);
        assert_eq!((&image["label"], &image["id"].is_string()), (&Value::from(3), &true));
    }
    let error = report["precision"]["max_posterior_error"].as_f64().unwrap();
    assert!(error < 1e-3, "f32 is {error} away from f64");
    let entropy = |extra: &[&str]| -> f64 {
        let images = posterior(text(&path), extra)["images"].as_array().unwrap().clone();
        images.iter().map(|image| image["entropy_nats"].as_f64().unwrap()).sum()
    };
    assert!(entropy(&["--smoothing", "100"]) > entropy(&[]));
    assert!(entropy(&["--tau", "3"]) > entropy(&["--tau", "0.5"]));
    let certain = posterior(text(&path), &["--prior", "0,0,0,0,0,0,0,1,0,0"]);
    assert!(certain["images"].as_array().unwrap().iter().all(|image| image["decision"] == 7));
}

#[test]
fn pictures_and_contact_sheets_read_back_as_images() {
    let folder = tempfile::tempdir().unwrap();
    let (sheet, pictures) = (folder.path().join("sheet.png"), folder.path().join("pictures"));
    sample(text(&sheet), &["--n", "5"]);
    assert!(std::fs::metadata(&sheet).unwrap().len() > 100);
    sample(text(&pictures), &["--n", "12"]);
    let report = posterior(text(&pictures), &[]);
    let images = report["images"].as_array().unwrap();
    assert_eq!(images.len(), 12);
    // A folder of classes brings labels. Clipping to 8 bits leaves the world: a good part of the pictures is decided otherwise.
    let right = images.iter().filter(|image| image["label"] == image["decision"]).count();
    assert!(right >= 6, "only {right} of 12 pictures keep their class");
    // The sheet holds the same pictures in the order of their numbers, without labels.
    sample(text(&sheet), &["--n", "12", "--force"]);
    let report = posterior(text(&sheet), &["--dequantise", "midpoint"]);
    let in_sheet = report["images"].as_array().unwrap();
    let alone = posterior(text(&pictures), &["--dequantise", "midpoint"]);
    let alone = alone["images"].as_array().unwrap();
    assert_eq!((in_sheet.len(), &in_sheet[11]["id"]), (12, &"sheet.png, image 11".into()));
    for (i, image) in in_sheet.iter().enumerate() {
        let file = format!("{i:06}.png");
        let same = alone.iter().find(|one| one["id"].as_str().unwrap().ends_with(&file)).unwrap();
        assert_eq!((&image["log_px"], &image["decision"]), (&same["log_px"], &same["decision"]), "{file}");
    }
}

#[test]
fn pixels_are_dequantised_with_seeded_noise_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    sample(text(&pictures), &["--n", "6"]);
    let of = |how: &str| posterior(text(&pictures), &["--dequantise", how]);
    // As another program writes them again: what they say of their noise is lost, and that is told.
    for file in files_below(&pictures).into_iter().filter(|file| file.extension().is_some_and(|e| e == "png")) {
        image::open(&file).unwrap().save(&file).unwrap();
    }
    let (usual, middle, mean) = (posterior(text(&pictures), &[]), of("midpoint"), of("mean:3"));
    let names = [&usual, &middle, &mean].map(|report| report["dequantisation"].as_str().unwrap());
    assert_eq!(names, ["seed:0", "midpoint", "mean:3"]);
    assert!(usual["note"].as_str().unwrap().contains("provenance.json calls these pictures samples"), "{usual}");
    assert_eq!(of("levels")["note"], Value::Null);
    assert_eq!(usual["images"], of("seed:0")["images"]);
    assert_ne!(usual["images"], of("seed:1")["images"]);
    let log_px = |report: &Value| -> Vec<f64> {
        report["images"].as_array().unwrap().iter().map(|image| image["log_px"].as_f64().unwrap()).collect()
    };
    let (drawn, at_middle, averaged) = (log_px(&usual), log_px(&middle), log_px(&mean));
    assert!(drawn.iter().zip(&at_middle).all(|(a, b)| (a - b).abs() > 1.0), "{drawn:?} {at_middle:?}");
    // The first of three draws is that of seed 0, so that the mean density is no less than a third of it.
    assert!(drawn.iter().zip(&averaged).all(|(a, b)| a - 3f64.ln() < b + 1e-9), "{drawn:?} {averaged:?}");
    let cells: Vec<&Value> = mean["images"].as_array().unwrap().iter().map(|image| &image["cell"]).collect();
    let unsure = cells.iter().filter(|cell| cell["converges"] == false).count();
    assert!(cells.iter().all(|cell| cell["draws"] == 3 && cell["warning"].is_string() == (cell["converges"] == false)));
    assert_eq!(mean["summary"]["not_converged"], unsure);
    assert_eq!((&usual["summary"]["images"], &usual["images"][0]["cell"]), (&Value::from(6), &Value::Null));
    assert!(fail(2, &["posterior", "mnist", text(&pictures), "--dequantise", "mean:1"]).contains("mean:R"));
    let out = text(folder.path()).to_owned() + "/out";
    let why = fail(1, &["posterior", "mnist", text(&pictures), "--dequantise", "mean:2", "--out", &out]);
    assert!(why.contains("one tensor an image"), "{why}");
}

/// All files of a folder and the folders in it.
fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn what_is_behind_a_file_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let beside = |name: &str| -> serde_json::Value {
        let place = folder.path().join(name);
        serde_json::from_slice(&std::fs::read(&place).unwrap_or_else(|_| panic!("{}", place.display()))).unwrap()
    };
    let npz = folder.path().join("s.npz");
    sample(text(&npz), &["--n", "3", "--tau", "1.5", "--class", "7"]);
    let exact = beside("s.npz.provenance.json");
    let hash: String = Sha256::digest(std::fs::read(&npz).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((exact["badge"].as_str(), exact["sha256"].as_str()), (Some("exact"), Some(&hash[..])));
    assert_eq!(exact["device"], "cpu");
    let instructions = exact["instructions"].as_str().unwrap();
    assert!(["avx512", "avx2", "neon", "128-bit", "portable"].contains(&instructions), "{instructions}");
    let chain = exact["chain"].as_array().unwrap();
    let link = |name: &str| chain.iter().find(|link| link[0] == name).map(|link| link[1].as_str().unwrap());
    assert_eq!([link("τ"), link("classes"), link("class prior π")], [Some("1.5"), Some("7"), Some("uniform")]);
    let weights = json(&["oracle", "info", "mnist", "--json"])["weights_sha256"].as_str().unwrap().to_owned();
    assert_eq!(link("weights SHA-256"), Some(&weights[..]));
    sample(text(&folder.path().join("s.png")), &["--n", "3"]);
    assert_eq!(beside("s.png.provenance.json")["badge"], "illustrative");
    sample(text(&folder.path().join("pictures")), &["--n", "3"]);
    assert_eq!(beside("pictures/provenance.json")["badge"], "illustrative");
}

#[test]
fn images_of_given_latents_are_recorded_with_their_file_and_without_a_seed() {
    let folder = tempfile::tempdir().unwrap();
    let (latents, out) = (folder.path().join("z.npz"), folder.path().join("x.npz"));
    sample(text(&latents), &["--n", "3", "--tau", "0.7"]);
    let args = ["sample", "mnist", "--latents", text(&latents), "--out", text(&out), "--json"];
    let report = json(&[&args[..], &CPU].concat());
    assert!(report.get("spec").is_none() && report["saved"]["images"] == 3, "{report}");
    let record = std::fs::read(folder.path().join("x.npz.provenance.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let chain = record["chain"].as_array().unwrap();
    let link = |name: &str| chain.iter().find(|link| link[0] == name).map(|link| link[1].as_str().unwrap());
    let hash: String =
        Sha256::digest(std::fs::read(&latents).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!([link("seed"), link("running numbers")], [None, None]);
    assert_eq!([link("images"), link("classes")], [Some("3"), Some("as given")]);
    assert_eq!([link("latents"), link("latents SHA-256")], [Some(text(&latents)), Some(&hash[..])]);
    assert_eq!((record["badge"].as_str(), link("τ")), (Some("exact"), Some("1")));
}

#[test]
fn latents_that_are_not_of_the_world_are_refused_by_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let (latents, out) = (folder.path().join("z.npz"), folder.path().join("x.npz"));
    let refused = |side: usize, y: Option<Vec<i64>>, why: &str| {
        let (shape, x) = (ImageShape { channels: 1, height: side, width: side }, vec![0.1; 2 * side * side]);
        let batch = WorldBatch { shape, x, classes: 0, y, posterior: None, logp: None, aleatoric: None };
        write_npz(&latents, &batch).unwrap();
        let args = ["sample", "mnist", "--latents", text(&latents), "--out", text(&out)];
        let said = fail(1, &[&args[..], &CPU].concat());
        assert!(said.contains(&format!("z.npz: {why}")) && !out.exists(), "{said}");
    };
    refused(8, Some(vec![0, 1]), "array x: latents of");
    refused(32, None, "array y: missing; latents are");
    refused(32, Some(vec![0, -1]), "array y: image 1 has class -1, and this world 10 classes");
    refused(32, Some(vec![10, 0]), "array y: image 0 has class 10, and this world 10 classes");
}

#[test]
fn oracles_are_listed_described_and_validated() {
    assert!(succeed(&["oracle", "list"]).contains("mnist"));
    let info = json(&["oracle", "info", "mnist", "--json"]);
    assert_eq!((info["family"].as_str(), info["architecture"]["classes"].as_u64()), (Some("glow"), Some(10)));
    let folder = tempfile::tempdir().unwrap();
    sample(text(folder.path()), &["--n", "40"]);
    let data = text(folder.path());
    let args = [&["oracle", "validate", "mnist", "--data", data, "--json"][..], &CPU].concat();
    let result = json(&args);
    assert_eq!(result["images"], 40);
    assert!(result["nll_nats"].as_f64().unwrap() > 0.0 && result["accuracy"].as_f64().unwrap() > 0.5);
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.png");
    std::fs::write(&bad, b"not a picture").unwrap();
    let out = folder.path().join("o.npz");
    let out = text(&out);
    assert!(fail(1, &["posterior", "mnist", text(&bad)]).contains("bad.png"));
    assert!(fail(1, &["posterior", "mnist", "/nowhere/x.npz"]).contains("/nowhere/x.npz"));
    assert!(fail(1, &["sample", "atlantis", "--out", out]).contains("mnist"));
    assert!(fail(1, &["sample", "mnist", "--tau", "-1", "--out", out]).contains("τ"));
    assert!(fail(1, &["sample", "mnist", "--prior", "1,2", "--out", out]).contains("10 classes"));
    assert!(fail(1, &["sample", "mnist", "--class", "eleven", "--out", out]).contains("eleven"));
    assert!(fail(1, &["sample", "mnist", "--out", "/nowhere/at/all.npz"]).contains("/nowhere/at/all.npz"));
    assert!(fail(2, &["sample", "mnist", "--device", "abacus", "--out", out]).contains("abacus"));
    assert!(fail(2, &["posterior", "mnist"]).contains("INPUT"));
    let labelled = folder.path().join("of-a-class.npz");
    let why = fail(1, &["sample", "mnist", "--class", "4", "--smoothing", "2", "--out", text(&labelled)]);
    assert!(why.contains("p_T(y|x)") && !labelled.exists(), "{why}");
    assert!(fail(1, &["oracle", "train", text(&bad), "--out", out]).contains("bad.png"));
}

#[test]
fn a_reader_who_has_seen_enough_is_no_failure() {
    let mut child = bayescope(&["oracle", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success() && ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_output_that_is_full_is_told() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let ended = bayescope(&["oracle", "list"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("standard output").count(), 1, "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn without_a_display_the_explorer_says_what_to_do_instead() {
    let message = fail(1, &[]);
    assert!(message.contains("bayescope sample"), "{message}");
}

#[test]
fn bench_measures_everything_against_the_peak_of_the_device() {
    let report = json(&["bench", "mnist", "--device", "cpu", "--runs", "1", "--json"]);
    assert!(report["device"].as_str().unwrap().contains("CPU"), "{report}");
    for key in ["matmul_gflops", "multiply_add_gflops", "copied_gb_per_second"] {
        assert!(report[key].as_f64().is_some_and(|most| most > 0.0), "{key}: {report}");
    }
    let benches = report["benches"].as_array().unwrap();
    for bench in benches {
        let [min, median, max] = ["min", "median", "max"].map(|key| bench[key].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max && bench["runs"] == 1, "{bench}");
        // Where nothing is drawn, nothing limits a Bayes error.
        let share = bench["roofline_share"].as_f64();
        assert!(share.is_some_and(|share| share > 0.0) || bench["aim"].is_number(), "{bench}");
        assert!(bench["roofline"].is_string(), "{bench}");
    }
    for what in ["log-likelihoods", "sampling", "training ResNet-18", "training ViT", "Bayes error"] {
        let named = |bench: &serde_json::Value| bench["name"].as_str().unwrap().starts_with(what);
        assert!(benches.iter().any(named), "{what}: {report}");
    }
}
