//! Checkpoints of any size and origin: every form reads back, memory stays bounded, damaged files are refused by name, and
//! no code is run.

use std::ops::ControlFlow;
use std::path::Path;

use bayescope::data::{sha256, sha256_of_file};
use bayescope::error::Error;
use bayescope::events::Progress;
use bayescope::flow::weights::{Storage, WeightFile, Weights};
use bayescope::units::Seed;
use rand::RngExt;

use crate::forge::{self, Content, dict, int, tensor, text, tuple};

/// Names and values of [`write_all`]'s files.
const VALUES: [(&str, &[f32]); 2] = [("a.weight", &[1.0, -2.0, 3.0, 0.5]), ("b", &[0.25, 8.0])];

/// The same two arrays in every container; the names of the files, with the bytes that count.
fn write_all(folder: &Path) -> Vec<(String, u64)> {
    let object = dict(&[
        ("a", dict(&[("weight", tensor("Float", "0", 4, 0, &[4], &[1]))])),
        ("b", tensor("Float", "1", 2, 0, &[2], &[1])),
        ("epoch", int(3)),
    ]);
    let [a, b] = VALUES.map(|(_, values)| Content::floats(values));
    let path = |name: &str| folder.join(name);
    let storages = [("0", a.clone()), ("1", b.clone())];
    forge::zip_checkpoint(&path("zip.pth"), "zip", &object, &storages, false);
    forge::zip_checkpoint(&path("deflated.pth"), "deflated", &object, &storages, true);
    let parts = [("0", 4, a.clone()), ("1", 4, b.clone())];
    forge::legacy_checkpoint(&path("legacy.pth"), &forge::machine(b"N"), &object, &parts);
    forge::safetensors(&path("x.safetensors"), &[("a.weight", a), ("b", b)]);
    // One array of both.
    let object = dict(&[("ab", [text("7"), b"Q".to_vec()].concat())]);
    forge::tar_checkpoint(&path("tar.pth"), &object, &[1.0, -2.0, 3.0, 0.5, 0.25, 8.0]);
    let length = |name: &str| std::fs::metadata(path(name)).unwrap().len();
    // The end of a tar file is zeros, which are not missed.
    ["zip.pth", "deflated.pth", "legacy.pth", "x.safetensors"]
        .map(|name| (name.to_owned(), length(name)))
        .into_iter()
        .chain([("tar.pth".to_owned(), length("tar.pth") - 1024 - 512 + 8)])
        .collect()
}

#[test]
fn every_container_gives_the_same_arrays() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in write_all(folder.path()) {
        let mut file = WeightFile::open(&folder.path().join(&name)).unwrap();
        if name == "tar.pth" {
            assert_eq!(file.take("ab").unwrap(), [1.0, -2.0, 3.0, 0.5, 0.25, 8.0]);
            continue;
        }
        assert_eq!(file.names().collect::<Vec<_>>(), VALUES.map(|(name, _)| name), "{name}");
        for (array, values) in VALUES {
            assert_eq!(file.shape(array), Some(&[values.len()][..]));
            assert_eq!(file.take(array).unwrap(), values, "{array} of {name}");
        }
        let message = file.take("c").unwrap_err().to_string();
        assert!(message.contains(&name) && message.contains("'c' is missing"), "{message}");
        assert!(file.shape("c").is_none());
    }
}

/// Arrays of every kind of number, views, shared and nested ones, and things that are none.
fn varied(path: &Path, deflate: bool) {
    let bytes = |values: &[&[u8]]| Content::Bytes(values.concat());
    let half = |v: f32| half::f16::from_f32(v).to_le_bytes();
    let brain = |v: f32| half::bf16::from_f32(v).to_le_bytes();
    let storages = [
        ("f64", bytes(&[&1.5_f64.to_le_bytes(), &(-2.0_f64).to_le_bytes()])),
        ("f16", bytes(&[&half(0.5), &half(-4.0)])),
        ("bf16", bytes(&[&brain(3.0), &brain(0.125)])),
        ("i64", bytes(&[&7_i64.to_le_bytes()])),
        ("f32", Content::floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])),
        ("nan", Content::floats(&[0.0, f32::NAN])),
    ];
    let parameter = [
        b"ctorch._utils\n_rebuild_parameter\n",
        &tuple(&[tensor("Float", "f32", 6, 4, &[], &[]), b"\x88".to_vec(), b"ccollections\nOrderedDict\n)R".to_vec()])
            [..],
        b"R",
    ];
    let scalar = b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\0\0\0f8K\0K\x01tRX\x01\0\0\0xtR".to_vec();
    // One object under two names: the second is a reference to the first.
    let tied = [&tensor("Float", "f32", 6, 3, &[3], &[1])[..], b"q\x05"].concat();
    let shared_dict = [b"}q\x06(", &[text("w"), b"h\x05".to_vec()].concat()[..], b"u"].concat();
    let object = dict(&[
        ("f64", tensor("Double", "f64", 2, 0, &[2], &[1])),
        ("f16", tensor("Half", "f16", 2, 0, &[2], &[1])),
        ("bf16", tensor("BFloat16", "bf16", 2, 0, &[2], &[1])),
        ("steps", tensor("Long", "i64", 1, 0, &[], &[])),
        ("transposed", tensor("Float", "f32", 6, 0, &[3, 2], &[1, 3])),
        ("repeated", tensor("Float", "f32", 6, 1, &[2, 2], &[0, 1])),
        ("empty", tensor("Float", "f32", 6, 6, &[0, 4], &[4, 1])),
        ("parameter", parameter.concat()),
        ("tied", tied),
        ("inner", shared_dict),
        ("list", tuple(&[b"h\x05".to_vec(), b"h\x06".to_vec(), scalar])),
        ("nan", tensor("Float", "nan", 2, 0, &[2], &[1])),
        ("not_nan", tensor("Float", "nan", 2, 0, &[1], &[1])),
    ]);
    forge::zip_checkpoint(path, "views", &object, &storages, deflate);
}

#[test]
fn numbers_of_every_kind_and_views() {
    let folder = tempfile::tempdir().unwrap();
    for deflate in [false, true] {
        let path = folder.path().join("views.pth");
        varied(&path, deflate);
        let mut file = WeightFile::open(&path).unwrap();
        let expected: [(&str, &[f32]); 12] = [
            ("f64", &[1.5, -2.0]),
            ("f16", &[0.5, -4.0]),
            ("bf16", &[3.0, 0.125]),
            ("transposed", &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
            ("repeated", &[1.0, 2.0, 1.0, 2.0]),
            ("empty", &[]),
            ("parameter", &[4.0]),
            ("tied", &[3.0, 4.0, 5.0]),
            ("inner.w", &[3.0, 4.0, 5.0]),
            ("list.0", &[3.0, 4.0, 5.0]),
            ("list.1.w", &[3.0, 4.0, 5.0]),
            ("not_nan", &[0.0]),
        ];
        for (name, values) in expected {
            assert_eq!(file.take(name).unwrap(), values, "{name}");
        }
        assert!(file.take("nan").unwrap_err().to_string().contains("'nan' holds NaN"));
        assert_eq!(file.names().count(), expected.len() + 1, "the integers are left out");
        let finite = file.into_weights(|name| name != "nan", &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(finite.shape("transposed"), Some(&[3, 2][..]));
    }
}

#[test]
fn cut_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, length) in write_all(folder.path()) {
        let whole = std::fs::read(folder.path().join(&name)).unwrap();
        let path = folder.path().join(format!("cut_{name}"));
        for length in 0..length as usize {
            std::fs::write(&path, &whole[..length]).unwrap();
            let message = match Weights::read(&path) {
                Ok(_) => panic!("{name} cut to {length} of {} bytes opens", whole.len()),
                Err(error) => error.to_string(),
            };
            assert!(message.contains(&format!("cut_{name}")), "{message}");
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Seed(7).rng(0);
    for (name, _) in write_all(folder.path()) {
        let whole = std::fs::read(folder.path().join(&name)).unwrap();
        let path = folder.path().join(format!("flipped_{name}"));
        for attempt in 0..1500 {
            let mut bytes = whole.clone();
            for _ in 0..1 + attempt % 3 {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            std::fs::write(&path, bytes).unwrap();
            if let Err(error) = Weights::read(&path) {
                assert!(error.to_string().contains(&format!("flipped_{name}")), "{error}");
            }
        }
    }
}

/// Calls of `os.system('touch bayescope-marker')` and others, in every place where a pickle can put one; each beside an
/// array, so that the file would open if they were passed over.
fn code() -> Vec<(&'static str, Vec<u8>)> {
    let call = b"cposix\nsystem\nX\x16\x00\x00\x00touch bayescope-marker\x85R".to_vec();
    let array = tensor("Float", "0", 4, 0, &[4], &[1]);
    let good = dict(&[("w", array.clone())]);
    let beside = |object: &[u8]| dict(&[("w", array.clone()), ("x", object.to_vec())]);
    // pickle.dumps({'x': …}, protocol=4) of Python 3.11, without its frame.
    let modern = b"\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x16touch bayescope-marker\x94\x85\x94R\x94";
    let in_location = forge::storage(b"ctorch\nFloatStorage\n", "0", &call, 4);
    let typed = b"ctorch._tensor\n_rebuild_from_type_v2\n(cposix\nsystem\nN(X\x01\0\0\0xtNtR";
    vec![
        ("a value", beside(&call)),
        ("thrown away", [&call[..], b"0", &good].concat()),
        ("named only", [b"cposix\nsystem\n0", &good[..]].concat()),
        ("attributes", [&good[..], &dict(&[("x", call.clone())]), b"b"].concat()),
        ("a key", [&good[..], &call, b"K\x01s"].concat()),
        ("protocol 4", beside(modern)),
        (
            "names from the memo",
            beside(b"X\x05\0\0\0posixq\x01X\x06\0\0\0systemq\x0200h\x01h\x02\x93X\x01\0\0\0x\x85R"),
        ),
        ("protocol 0", beside(b"cposix\nsystem\n(S'touch bayescope-marker'\ntR")),
        ("an instance", beside(b"(S'touch bayescope-marker'\niposix\nsystem\n")),
        ("an object", beside(b"(cposix\nsystem\nX\x16\0\0\0touch bayescope-markero")),
        ("a new object", beside(b"csubprocess\nPopen\nX\x04\0\0\0true\x85\x81")),
        ("with options", beside(b"csubprocess\nPopen\n)}\x92")),
        ("where the storage was", [&in_location[..], b"0", &good].concat()),
        ("a class of its own", beside(typed)),
        ("PyTorch's own", beside(b"ctorch\nload\nX\x01\0\0\0x\x85R")),
        ("a saved model", beside(b"c__main__\nNet\n)\x81}b")),
        ("eval", beside(b"c__builtin__\neval\nX\x03\0\0\x001+1\x85R")),
        ("an attribute", beside(b"c__builtin__\ngetattr\n(cbuiltins\ndict\nX\x03\0\0\0getttR")),
    ]
}

#[test]
fn a_file_that_wants_to_run_code_is_refused_and_runs_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("evil.pth");
    let content = Content::floats(&[1.0; 4]);
    let refused = |place: &str| {
        let message = match WeightFile::open(&path) {
            Ok(_) => panic!("opens with code in {place}"),
            Err(error) => error.to_string(),
        };
        assert!(message.contains("evil.pth") && message.contains("run code"), "{place}: {message}");
        let marker = Path::new("bayescope-marker");
        assert!(!marker.exists() && !folder.path().join(marker).exists(), "{place} was run");
    };
    for (place, object) in code() {
        forge::zip_checkpoint(&path, "evil", &object, &[("0", content.clone())], false);
        refused(place);
        forge::legacy_checkpoint(&path, &forge::machine(b"N"), &object, &[("0", 4, content.clone())]);
        refused(place);
    }
    let call = b"cposix\nsystem\nX\x16\0\0\0touch bayescope-marker\x85R";
    let good = dict(&[("w", tensor("Float", "0", 4, 0, &[4], &[1]))]);
    forge::legacy_checkpoint(&path, &forge::machine(call), &good, &[("0", 4, content)]);
    refused("the description of the machine");
    forge::tar_checkpoint(&path, &dict(&[("x", call.to_vec())]), &[1.0]);
    refused("a tar archive");
    std::fs::write(&path, forge::pickle(call)).unwrap();
    refused("a pickle alone");
}

#[test]
fn pickles_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.pth");
    let refused = |object: &[u8]| {
        forge::zip_checkpoint(&path, "bomb", object, &[], true);
        let message = WeightFile::open(&path).unwrap_err().to_string();
        assert!(message.contains("bomb.pth"), "{message}");
    };
    // A dictionary inside itself, lists of the same list thirty levels deep, a list nested 10,000 times, endless nones.
    refused(b"}q\x01X\x01\0\0\0ah\x01s");
    let levels: Vec<u8> =
        (1..30_u8).flat_map(|i| [&b"](h"[..], &[i - 1], b"h", &[i - 1], b"eq", &[i]].concat()).collect();
    refused(&[b"}X\x01\0\0\0a]q\0", &levels[..], b"s"].concat());
    refused(&[&b"}X\x01\0\0\0a]"[..], &b"\x85".repeat(10_000), b"s"].concat());
    refused(&[&b"}"[..], &b"N".repeat(5_000_000)].concat());
    refused(&dict(&[("a", tensor("Float", "missing", 4, 0, &[4], &[1]))]));
}

#[test]
fn reading_can_be_stopped_between_arrays() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in write_all(folder.path()).into_iter().filter(|(name, _)| name != "tar.pth") {
        let path = folder.path().join(&name);
        let mut seen = Vec::new();
        let all = WeightFile::open(&path).unwrap().into_weights(|_| true, &mut |progress| {
            seen.push(progress);
            ControlFlow::Continue(())
        });
        assert_eq!(all.unwrap().0.len(), 2);
        assert_eq!(seen, [0, 16, 24].map(|done| Progress { done, total: 24 }), "{name}");
        let mut calls = 0;
        let stopped = WeightFile::open(&path).unwrap().into_weights(|_| true, &mut |progress: Progress| {
            calls += 1;
            if progress.done == 16 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(stopped, Err(Error::Cancelled)) && calls == 2, "{name}");
        let one =
            WeightFile::open(&path).unwrap().into_weights(|n| n == "b", &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(one.0.keys().collect::<Vec<_>>(), ["b"]);
    }
}

#[test]
fn the_hash_is_that_of_the_file_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| i as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let mut last = None;
    let hash = sha256_of_file(&path, &mut |progress| {
        last = Some(progress);
        ControlFlow::Continue(())
    });
    assert_eq!(hash.unwrap(), sha256(&bytes));
    assert_eq!(last, Some(Progress { done: bytes.len(), total: bytes.len() }));
    let stopped = sha256_of_file(&path, &mut |p: Progress| {
        if p.done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(sha256_of_file(&folder.path().join("nowhere"), &mut |_| ControlFlow::Continue(())).is_err());
}

/// What a rounded copy loses in size: the same names read from half the bytes.
#[test]
fn a_written_file_opens() {
    let folder = tempfile::tempdir().unwrap();
    write_all(folder.path());
    let weights = Weights::read(&folder.path().join("zip.pth")).unwrap();
    let path = folder.path().join("half.safetensors");
    weights.write(&path, Storage::F16).unwrap();
    let mut file = WeightFile::open(&path).unwrap();
    assert_eq!(file.take("a.weight").unwrap(), VALUES[0].1);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(Weights::from_safetensors(&path, &bytes).unwrap(), weights);
}
