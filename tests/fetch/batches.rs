use std::path::Path;

use bayescope::data::{Dataset, Input, Split, open, open_dataset, read_batches};

use crate::fixture;

/// The rows of `fixtures/make.py`.
fn rows() -> Vec<u8> {
    (0..3).flat_map(|i| (0..48).map(move |j| ((5 * i + j) % 251) as u8)).collect()
}

/// A folder with copies of fixtures under other names.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (from, to) in files {
        std::fs::copy(fixture(from), folder.path().join(to)).unwrap();
    }
    folder
}

fn read(path: &Path) -> Dataset {
    let Input::Pixels(dataset) = open(path).unwrap() else { panic!("pixels") };
    dataset
}

#[test]
fn cifar_batches_of_every_protocol() {
    for name in ["cifar10-python2", "cifar10-2", "cifar10-3", "cifar10-4", "cifar10-5"] {
        let dataset = read(&fixture(&format!("{name}.pickle")));
        assert_eq!((dataset.shape.channels, dataset.shape.height, dataset.shape.width), (3, 4, 4), "{name}");
        assert_eq!((dataset.labels.unwrap(), dataset.pixels), (vec![3, 0, 9], rows()), "{name}");
        assert_eq!(dataset.class_names[9], "truck");
    }
    let hundred = read(&fixture("cifar100.pickle"));
    assert_eq!((hundred.labels.unwrap(), hundred.class_names.len()), (vec![99, 0, 50], 100));
}

#[test]
fn folders_of_batches_know_their_splits() {
    let ten = folder(&[
        ("cifar10-4.pickle", "data_batch_1"),
        ("cifar10-python2.pickle", "data_batch_2"),
        ("cifar10-5.pickle", "test_batch"),
        ("cifar10.meta", "batches.meta"),
    ]);
    let train = open_dataset(ten.path(), Split::Train, None).unwrap();
    assert_eq!((train.len(), train.labels.unwrap()), (6, vec![3, 0, 9, 3, 0, 9]));
    assert_eq!((train.pixels, &train.class_names[2][..]), ([rows(), rows()].concat(), "name 2"));
    assert_eq!(open_dataset(ten.path(), Split::Test, None).unwrap().len(), 3);
    let hundred = folder(&[("cifar100.pickle", "train"), ("cifar100.pickle", "test")]);
    assert_eq!(open_dataset(hundred.path(), Split::Test, None).unwrap().class_names.len(), 100);
    let imagenet = folder(&[
        ("imagenet.pickle", "train_data_batch_1"),
        ("imagenet.npz", "train_data_batch_2.npz"),
        ("imagenet-array.pickle", "train_data_batch_10"),
        ("imagenet.npz", "val_data.npz"),
    ]);
    std::fs::rename(imagenet.path().join("train_data_batch_10"), imagenet.path().join("train_data_batch_3")).unwrap();
    let train = open_dataset(imagenet.path(), Split::Train, None).unwrap();
    assert_eq!((train.len(), train.labels.unwrap()), (9, [999, 0, 6].repeat(3)));
    assert_eq!((train.class_names.len(), &train.class_names[999][..]), (1000, "1000"));
    assert_eq!(open_dataset(imagenet.path(), Split::Test, None).unwrap().labels.unwrap(), [999, 0, 6]);
    let mut names = std::fs::File::create(imagenet.path().join("map_clsloc.txt")).unwrap();
    std::io::Write::write_all(&mut names, b"n02119789 1 kit_fox\nn02100735 2 English_setter\n").unwrap();
    let named = open_dataset(imagenet.path(), Split::Train, None).unwrap().class_names;
    assert_eq!((&named[0][..], &named[1][..], &named[2][..]), ("kit fox", "English setter", "3"));
    // Batches of different kinds make no dataset.
    let mixed = [fixture("imagenet.pickle"), fixture("cifar10-4.pickle")];
    assert!(read_batches(&mixed).unwrap_err().to_string().contains("does not go with"));
}

#[test]
fn hostile_pickles_are_refused_and_not_run() {
    for protocol in 2..=5 {
        let path = fixture(&format!("evil-{protocol}.pickle"));
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("wants to run code") && error.contains("posix.system"), "{protocol}: {error}");
    }
    assert!(!Path::new("bayescope-marker").exists());
    let cases: [(&[u8], &str); 9] = [
        (b"\x80\x02cbuiltins\neval\n.", "'builtins.eval'"),
        (b"\x80\x02cnumpy\nload\n.", "'numpy.load'"),
        (b"\x80\x02}\x82\x01.", "instruction 0x82"),
        (b"\x80\x02}X\x05\x00\x00\x00otherQ.", "instruction 0x51"),
        (b"\x80\x02]q\x00h\x00a.", "not of a dictionary"),
        (b"\x80\x02\x8e\xff\xff\xff\xff\xff\xff\xff\xff.", "cut short"),
        (b"\x80\x02B\xff\xff\xff\x7f.", "cut short"),
        (b"\x80\x02((((u.", "damaged"),
        (b"\x80\x02}R.", "damaged"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (bytes, cause) in cases {
        let path = folder.path().join("data_batch_1");
        std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), bytes).unwrap();
        let error = read_batches(&[path]).unwrap_err().to_string();
        assert!(error.contains("data_batch_1") && error.contains(cause), "{cause}: {error}");
    }
    let error = open(&fixture("fortran.pickle")).unwrap_err().to_string();
    assert!(error.contains("column by column"), "{error}");
}

#[test]
fn damage_is_an_error_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data_batch_1");
    for name in ["cifar10-python2.pickle", "cifar10-2.pickle", "cifar10-5.pickle", "imagenet-array.pickle"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        let store = |bytes: &[u8]| {
            std::io::Write::write_all(&mut std::fs::File::create(&path).unwrap(), bytes).unwrap();
            read_batches(std::slice::from_ref(&path))
        };
        for length in 0..whole.len() {
            assert!(store(&whole[..length]).is_err(), "{name} cut to {length}");
        }
        // Changed bytes may give other pixels and labels, or an error, and nothing worse.
        for at in 0..whole.len() {
            for value in [0, whole[at] ^ 0x80, whole[at].wrapping_add(1), 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                if let Ok(dataset) = store(&bytes) {
                    assert_eq!(dataset.pixels.len(), dataset.len() * dataset.shape.dims(), "{name}, byte {at}");
                }
            }
        }
    }
}
