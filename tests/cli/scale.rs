//! `posterior --out`: the same bits whatever the batches, the shards, their order, and however often it was killed.

use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bayescope::data::{ImageShape, WorldBatch, write_npz};
use bayescope::error::Error;
use bayescope::flow::Precision;
use bayescope::oracle::folder::{self, OracleInfo};
use bayescope::oracle::pictures::Fits;
use bayescope::oracle::scale::{Computer, Images, Outcome, Running, ScaleEvent, ScaleSpec, run};
use bayescope::oracle::world::{Settings, World};
use burn::tensor::Device;
use serde_json::Value;

use crate::common::fill::uniform;
use crate::common::npz::npz_array;
use crate::common::pictures::pictures;
use crate::common::{max_abs, tiny};
use crate::run::{SHARP_DIGITS, bayescope, fail, json, succeed, text};

/// Images of the tiny world: two whole passes of 64 and a part of a third.
const IMAGES: usize = 150;
const CLASSES: usize = 12;

/// An oracle and images, in a folder of their own.
struct Bench {
    folder: tempfile::TempDir,
    oracle: String,
    info: OracleInfo,
    world: World,
    input: PathBuf,
}

fn tensor_file(path: &Path, shape: ImageShape, x: Vec<f32>) {
    let batch = WorldBatch { shape, x, classes: 0, y: None, posterior: None, logp: None, aleatoric: None };
    write_npz(path, &batch).unwrap();
}

impl Bench {
    fn of(folder: tempfile::TempDir, oracle: &str, input: PathBuf) -> Self {
        let (info, weights) = folder::read(oracle).unwrap();
        let built = info.clone().build(weights, &Device::flex(), Precision::F32, 32).unwrap();
        Self { folder, oracle: oracle.to_owned(), info, world: built.world, input }
    }

    fn tarflow() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let oracle = tiny::tarflow_file(folder.path(), CLASSES, 5);
        let shape = tiny::tarflow_config(1, 8, 2, CLASSES).shape;
        let x = uniform("x", 1, IMAGES * shape.dims()).into_iter().map(|v| (0.9 * v) as f32).collect();
        let input = folder.path().join("x.npz");
        tensor_file(&input, shape, x);
        Self::of(folder, text(&oracle), input)
    }

    fn mnist(n: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("x.npz");
        succeed(&["sample", "mnist", "--n", &n.to_string(), "--out", text(&input), "--device", "cpu"]);
        Self::of(folder, "mnist", input)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spec(&self) -> ScaleSpec {
        ScaleSpec {
            settings: Settings::default_for(self.world.class_names().len()),
            shard: 0,
            shards: 1,
            class_batch: None,
            image_batch: None,
            compare: false,
        }
    }

    fn run(&self, out: &Path, spec: &ScaleSpec) -> Outcome {
        self.try_run(out, spec, &mut |_| ControlFlow::Continue(())).unwrap()
    }

    fn try_run(
        &self,
        out: &Path,
        spec: &ScaleSpec,
        events: &mut dyn FnMut(ScaleEvent) -> ControlFlow<()>,
    ) -> Result<Outcome, Error> {
        let images = Images::open(std::slice::from_ref(&self.input), &Fits::default(), None, &self.world)?;
        let computer = Computer {
            info: &self.info,
            oracle: &self.oracle,
            world: &self.world,
            precision: Precision::F32,
            device: "the CPU of a test",
        };
        let mut events = |event| events(event);
        run(&computer, &images, spec, out, &mut events)
    }

    /// The bytes of an undisturbed run with the default pieces.
    fn whole(&self) -> Vec<u8> {
        let out = self.path("whole");
        self.run(&out, &self.spec()).report.unwrap();
        result(&out)
    }

    fn check_pieces(&self) {
        let whole = self.whole();
        for (class_batch, image_batch) in [(1, 1), (3, 100), (50, 1000)] {
            let out = self.path(&format!("pieces{class_batch}"));
            let pieces = ScaleSpec { class_batch: Some(class_batch), image_batch: Some(image_batch), ..self.spec() };
            self.run(&out, &pieces);
            assert!(result(&out) == whole, "class batch {class_batch}, image batch {image_batch}");
        }
        for (shards, order) in [(2, vec![1, 0]), (3, vec![2, 0, 1]), (7, vec![3, 0, 6, 5, 1, 2, 4])] {
            let out = self.path(&format!("shards{shards}"));
            for (turn, &shard) in order.iter().enumerate() {
                let outcome = self.run(&out, &ScaleSpec { shard, shards, class_batch: Some(5), ..self.spec() });
                let last = turn + 1 == order.len();
                assert!(last == outcome.report.is_some() || outcome.waiting_for.is_empty(), "{outcome:?}");
            }
            assert!(result(&out) == whole, "{shards} shards in the order {order:?}");
        }
    }

    /// Kills the program each time its shard has grown past another of `moments` (shares of what it will hold).
    fn check_kills(&self, moments: &[f64]) {
        let whole = self.whole();
        let size = std::fs::metadata(self.path("whole/shard-0-of-1.scores")).unwrap().len() as f64;
        let out = self.path("killed");
        let shard = out.join("shard-0-of-1.scores");
        let args = [
            &["posterior", &self.oracle, text(&self.input), "--out", text(&out)][..],
            &["--class-batch", "1", "--image-batch", "1", "--no-compare", "--device", "cpu"],
        ]
        .concat();
        let mut killed = 0;
        for moment in moments {
            let mut child = bayescope(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let grown = || std::fs::metadata(&shard).map_or(0.0, |meta| meta.len() as f64) > moment * size;
            while child.try_wait().unwrap().is_none() && !grown() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            killed += usize::from(!child.wait().unwrap().success());
        }
        assert!(killed > 0, "nothing was killed");
        let report = json(&[&args[..], &["--json"]].concat());
        println!("killed {killed} times, then: {}", report["opened"]);
        assert!(result(&out) == whole, "a killed job ends in other bits");
        let left: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".part")), "{left:?}");
    }
}

fn result(out: &Path) -> Vec<u8> {
    std::fs::read(out.join("posteriors.npz")).unwrap()
}

#[test]
fn no_batch_and_no_shard_changes_a_bit_of_a_class_map_world() {
    Bench::tarflow().check_pieces();
}

#[test]
fn no_batch_and_no_shard_changes_a_bit_of_a_shared_map_world() {
    Bench::mnist(70).check_pieces();
}

#[test]
fn a_killed_job_goes_on_to_the_same_bits() {
    Bench::tarflow().check_kills(&[0.0, 0.2, 0.21, 0.55, 0.9]);
    Bench::mnist(160).check_kills(&[0.1, 0.5, 0.8]);
}

#[test]
fn a_stop_loses_nothing_that_was_reported() {
    let bench = Bench::tarflow();
    let whole = bench.whole();
    let out = bench.path("stopped");
    let pieces = ScaleSpec { class_batch: Some(5), image_batch: Some(64), ..bench.spec() };
    let mut stops = 0;
    loop {
        let mut last: Option<Running> = None;
        let mut seen = 0;
        let ended = bench.try_run(&out, &pieces, &mut |event| {
            if let ScaleEvent::Opened(opened) = &event {
                // Each of the earlier starts was stopped after one batch.
                assert_eq!(opened.dropped_bytes, 0);
                assert!(opened.pairs.done >= stops * 22 * 2, "{opened:?}");
            }
            if let ScaleEvent::Computed(running) = event {
                seen += 1;
                assert_eq!(running.leaders.len(), running.images.len());
                assert!(running.leaders.iter().all(|(class, share)| *class < CLASSES && (0.0..=1.0).contains(share)));
                let to_come = (running.classes.total - running.classes.done) as f64 / CLASSES as f64;
                assert!((running.prior_left - to_come).abs() < 1e-12);
                last = Some(running);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match ended {
            Err(Error::Cancelled) if seen == 1 => stops += 1,
            Ok(outcome) => {
                assert!(outcome.report.is_some());
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stops, 9, "three image batches in three class batches");
    assert!(result(&out) == whole);
}

/// What leads among some classes can only lose to those to come.
#[test]
fn a_running_share_is_an_upper_bound() {
    let bench = Bench::tarflow();
    let pieces = ScaleSpec { class_batch: Some(2), image_batch: Some(IMAGES), ..bench.spec() };
    let mut leaders: Vec<Vec<(usize, f64)>> = Vec::new();
    bench
        .try_run(&bench.path("out"), &pieces, &mut |event| {
            if let ScaleEvent::Computed(running) = event {
                leaders.push(running.leaders);
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(leaders.len(), CLASSES / 2);
    let last = leaders.last().unwrap();
    for earlier in &leaders {
        for (earlier, last) in earlier.iter().zip(last).filter(|(earlier, last)| earlier.0 == last.0) {
            assert!(earlier.1 >= last.1 - 1e-12);
        }
    }
}

#[test]
fn a_torn_or_spoilt_shard_is_read_up_to_its_last_whole_entry() {
    let bench = Bench::tarflow();
    let whole = bench.whole();
    let pieces = ScaleSpec { class_batch: Some(4), image_batch: Some(64), ..bench.spec() };
    let shard = |out: &Path| std::fs::read(out.join("shard-0-of-1.scores")).unwrap();
    let full = bench.path("full");
    bench.run(&full, &pieces);
    let bytes = shard(&full);
    for (i, u) in uniform("cuts", 7, 12).into_iter().enumerate() {
        let at = ((0.5 + 0.5 * u) * bytes.len() as f64) as usize;
        let out = bench.path(&format!("cut{i}"));
        std::fs::create_dir(&out).unwrap();
        std::fs::copy(full.join("job.json"), out.join("job.json")).unwrap();
        let mut torn = bytes.clone();
        if i % 3 == 0 {
            torn[at.max(80)] ^= 0x40;
        } else {
            torn.truncate(at);
        }
        bayescope::data::write_atomically(&out.join("shard-0-of-1.scores"), |file| file.write_all(&torn)).unwrap();
        bench.run(&out, &pieces);
        assert!(result(&out) == whole, "cut or spoilt at byte {at}");
    }
}

#[test]
fn another_job_is_refused_by_what_differs() {
    let bench = Bench::tarflow();
    let out = bench.path("out");
    let args = |extra: &[&'static str]| {
        let head: Vec<String> =
            ["posterior", &bench.oracle, text(&bench.input), "--out", text(&out), "--device", "cpu", "--no-compare"]
                .map(str::to_owned)
                .to_vec();
        [head, extra.iter().map(|s| (*s).to_owned()).collect()].concat()
    };
    let refused = |extra: &[&'static str]| {
        let args = args(extra);
        fail(1, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let first = args(&["--json"]);
    let report = json(&first.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(report["report"]["classes"], CLASSES);
    assert!(refused(&["--tau", "0.5"]).contains("settings.tau is 1.0 there, 0.5 here"));
    assert!(refused(&["--smoothing", "500"]).contains("settings.smoothing"));
    assert!(refused(&["--precision", "f64"]).contains("precision is \"f32\" there"));
    assert!(refused(&["--shard", "0", "--of", "2"]).contains("shards is 1 there, 2 here"));
    assert!(refused(&["--shard", "2", "--of", "2"]).contains("no shard 2 of 2"));
    assert!(refused(&["--class-batch", "0"]).contains("at least one class"));
    let shape = tiny::tarflow_config(1, 8, 2, CLASSES).shape;
    let other = bench.path("other.npz");
    tensor_file(&other, shape, vec![0.25; shape.dims()]);
    let message = fail(1, &["posterior", &bench.oracle, text(&other), "--out", text(&out), "--device", "cpu"]);
    assert!(message.contains("input.images is 150 there, 1 here") && message.contains("input.sha256"), "{message}");
    let oracle = tiny::tarflow_file(bench.folder.path(), CLASSES, 6);
    let input = text(&bench.input);
    let message = fail(1, &["posterior", text(&oracle), input, "--out", text(&out), "--device", "cpu"]);
    assert!(message.contains("job.json") && message.contains("weights_sha256"), "{message}");
    // A finished job is not begun again, and one in work is left alone.
    assert_eq!(json(&first.iter().map(String::as_str).collect::<Vec<_>>())["report"], report["report"]);
    std::fs::remove_file(out.join("posteriors.json")).unwrap();
    let lock = OpenOptions::new().write(true).open(out.join("shard-0-of-1.lock")).unwrap();
    lock.lock().unwrap();
    assert!(refused(&[]).contains("another process is working on this shard"));
}

#[test]
fn the_result_is_that_of_posterior_and_says_how_exact_it_is() {
    let bench = Bench::mnist(40);
    let out = bench.path("out");
    let common = ["posterior", "mnist", text(&bench.input), "--device", "cpu", "--json", "--tau", "1.2"];
    let report = json(&[&common[..], &["--out", text(&out)]].concat());
    assert_eq!(report["estimate"]["passes"], 2);
    assert!(report["estimate"]["basis"].as_str().unwrap().contains("32 images on CPU"), "{report}");
    let written = &report["report"];
    let error = written["precision"]["max_posterior_error"].as_f64().unwrap();
    assert!(error < 1e-3 && written["precision"]["images"] == 8, "{written}");
    assert!(written["exact_for"].as_str().unwrap().contains("float tensors"));
    let [device] = &written["devices"].as_array().unwrap()[..] else { panic!("{}", written["devices"]) };
    let named = |set: &&str| device.as_str().unwrap().ends_with(&format!("(burn flex), {set}"));
    assert!(["avx512", "avx2", "neon", "128-bit", "portable"].iter().any(named), "{device}");
    let stored: Value = serde_json::from_slice(&std::fs::read(out.join("posteriors.json")).unwrap()).unwrap();
    assert_eq!(&stored, written);
    // Rows are images in their order; beside x they read back as a world-space set.
    let direct = json(&common);
    let images = direct["images"].as_array().unwrap();
    let field = |name: &str| -> Vec<f64> {
        let numbers = |image: &Value| match &image[name] {
            Value::Array(values) => values.iter().map(|v| v.as_f64().unwrap()).collect(),
            value => vec![value.as_f64().unwrap()],
        };
        images.iter().flat_map(numbers).collect()
    };
    let arrays = npz_arrays(&out.join("posteriors.npz"));
    assert!(max_abs(&arrays[0], &field("log_likelihood")) < 2e-3);
    assert!(max_abs(&arrays[1], &field("posterior")) < 1e-4);
    assert!(max_abs(&arrays[2], &field("entropy_nats")) < 1e-3);
    assert!(max_abs(&arrays[3], &field("log_px")) < 2e-3);
}

/// logp, posterior, aleatoric and log_px of a result.
pub fn npz_arrays(path: &Path) -> [Vec<f64>; 4] {
    let wide = |name: &str| npz_array::<f64>(path, name);
    let (logp, aleatoric, log_px) = (wide("logp"), wide("aleatoric"), wide("log_px"));
    let narrow = npz_array::<f32>(path, "posterior");
    [logp, narrow.into_iter().map(f64::from).collect(), aleatoric, log_px]
}

#[test]
fn pictures_are_mapped_in_as_without_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path());
    let oracle = tiny::tarflow_file(folder.path(), 3, 8);
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    let common = ["posterior", text(&oracle), text(&data), "--device", "cpu", "--json"];
    let report = json(&[&common[..], &["--out", text(&out)]].concat());
    assert!(report["report"]["exact_for"].as_str().unwrap().contains("mapped to"), "{report}");
    let direct = json(&common);
    let expected: Vec<f64> =
        direct["images"].as_array().unwrap().iter().map(|i| i["log_px"].as_f64().unwrap()).collect();
    assert_eq!(expected.len(), 80);
    assert!(max_abs(&npz_arrays(&out.join("posteriors.npz"))[3], &expected) < 1e-3);
}

#[test]
fn bad_images_are_named_by_their_number_in_the_whole() {
    let bench = Bench::tarflow();
    let shape = tiny::tarflow_config(1, 8, 2, CLASSES).shape;
    let path = bench.path("bad.npz");
    let mut x = vec![0.5f32; 100 * shape.dims()];
    tensor_file(&path, shape, x.clone());
    // The program's own writer refuses such numbers: they are put into the file.
    x[70 * shape.dims()] = f32::NAN;
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.windows(4).position(|four| four == 0.5f32.to_le_bytes()).unwrap() + 70 * shape.dims() * 4;
    bytes[end..end + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    bayescope::data::write_atomically(&path, |file| file.write_all(&bytes)).unwrap();
    let out = bench.path("o");
    let message = fail(1, &["posterior", &bench.oracle, text(&path), "--out", text(&out), "--device", "cpu"]);
    assert!(message.contains("bad.npz") && (message.contains("checksum") || message.contains("image 70")), "{message}");
    let glow = bench.path("glow.npz");
    let shape = ImageShape { channels: 1, height: 32, width: 32 };
    let mut x = vec![0.5f32; 40 * 1024];
    x[35 * 1024] = 3.0;
    tensor_file(&glow, shape, x);
    let message =
        fail(1, &["posterior", SHARP_DIGITS, text(&glow), "--out", text(&bench.path("g")), "--device", "cpu"]);
    assert!(message.contains("image 3 ") && message.contains("from image 32"), "{message}");
    let message = fail(1, &["posterior", &bench.oracle, text(&glow), "--out", text(&out), "--device", "cpu"]);
    assert!(message.contains("1×32×32") && message.contains("1×8×8"), "{message}");
}
