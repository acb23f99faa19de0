use std::io::{Cursor, Write};
use std::path::Path;

use bayescope::data::fetch::{Corpus, FetchEvent, Fetched, Layout, catalogue, corpus as by_name, fetch, fetch_corpus};
use bayescope::data::{Split, open_dataset};
use bayescope::error::{Error, Result};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::server::{Server, Way};
use crate::{brief, corpus, fixture, gzip, idx, until};

/// Fetches a corpus of these files from a server that has them.
fn fetch_files(files: &[(&'static str, &[u8])], change: impl FnOnce(&mut Corpus), out: &Path) -> Result<Fetched> {
    let server = Server::new(&[("whole", Way::Whole)], files);
    let mut corpus = corpus(vec![server.mirror("whole")], files, Layout::Idx);
    change(&mut corpus);
    fetch_corpus(&corpus, out, brief(), &mut until(&mut Vec::new(), |_| false))
}

#[test]
fn the_catalogue_is_sound() {
    let mut names = std::collections::BTreeSet::new();
    for corpus in catalogue() {
        for name in std::iter::once(&corpus.name).chain(corpus.aliases) {
            assert!(names.insert(*name), "{name} twice");
            assert_eq!(by_name(&name.to_uppercase()).unwrap().name, corpus.name);
        }
        assert!(corpus.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        assert!(!corpus.about.is_empty() && !corpus.terms.is_empty() && corpus.bytes() > 0);
        assert!(corpus.mirrors.len() >= 2, "{}", corpus.name);
        assert!(corpus.mirrors.iter().all(|base| base.starts_with("http") && base.ends_with('/')));
        for file in corpus.files {
            assert!(file.sha256.len() == 64 && file.sha256.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')));
        }
        if let Layout::Emnist { .. } = corpus.layout {
            let announced = corpus.about.split(" classes").next().unwrap().rsplit(' ').next().unwrap();
            assert_eq!(announced, corpus.classes.len().to_string(), "{}", corpus.name);
        }
    }
    assert_eq!(by_name("Fashion MNIST").unwrap().name, "fashion-mnist");
    assert_eq!(by_name("CIFAR_10").unwrap().name, "cifar10");
    let error = by_name("imagenet").unwrap_err().to_string();
    assert!(error.contains("mnist, fashion-mnist") && error.contains("ImageNet-64"), "{error}");
    assert!(matches!(fetch("nothing", Path::new("."), &mut until(&mut Vec::new(), |_| true)), Err(Error::Input(_))));
}

#[test]
fn idx_files_open_with_class_names() {
    let images = gzip(&idx(&[2, 1, 2], &[1, 2, 3, 4]));
    let labels = gzip(&idx(&[2], &[1, 0]));
    let files: [(&'static str, &[u8]); 4] = [
        ("train-images-idx3-ubyte.gz", &images),
        ("train-labels-idx1-ubyte.gz", &labels),
        ("t10k-images-idx3-ubyte.gz", &images),
        ("t10k-labels-idx1-ubyte.gz", &labels),
    ];
    let out = tempfile::tempdir().unwrap();
    let fetched = fetch_files(&files, |corpus| corpus.classes = &["o", "ki", "su"], out.path()).unwrap();
    for split in [Split::Train, Split::Test] {
        let dataset = open_dataset(&fetched.folder, split, None).unwrap();
        assert_eq!((dataset.len(), dataset.pixels, dataset.labels), (2, vec![1, 2, 3, 4], Some(vec![1, 0])));
        assert_eq!(dataset.class_names, ["o", "ki", "su"]);
    }
}

/// EMNIST's archive: images of 3 rows and 2 columns, stored column by column, labels from 1.
fn emnist() -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (split, first) in [("letters", 1), ("digits", 0)] {
        for part in ["train", "test"] {
            // The upright image is 0 1 / 2 3 / 4 5.
            let images = idx(&[2, 2, 3], &[0, 2, 4, 1, 3, 5, 10, 12, 14, 11, 13, 15]);
            let labels = idx(&[2], &[first + 2, first]);
            for (kind, bytes) in [("images-idx3", images), ("labels-idx1", labels)] {
                let name = format!("gzip/emnist-{split}-{part}-{kind}-ubyte.gz");
                zip.start_file(name, SimpleFileOptions::default()).unwrap();
                zip.write_all(&gzip(&bytes)).unwrap();
            }
        }
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn emnist_stands_upright_and_counts_from_zero() {
    let archive = emnist();
    let server = Server::new(&[("whole", Way::Whole)], &[("gzip.zip", &archive)]);
    let out = tempfile::tempdir().unwrap();
    for (name, split, first_label) in [("emnist-letters", "letters", 1), ("emnist-digits", "digits", 0)] {
        let layout = Layout::Emnist { split, first_label };
        let mut corpus = corpus(vec![server.mirror("whole")], &[("gzip.zip", &archive)], layout);
        (corpus.name, corpus.classes) = (name, &["A", "B", "C"]);
        let fetched = fetch_corpus(&corpus, out.path(), brief(), &mut until(&mut Vec::new(), |_| false)).unwrap();
        assert_eq!(fetched.archives, [out.path().join("downloads/toys/gzip.zip")]);
        for split in [Split::Train, Split::Test] {
            let dataset = open_dataset(&out.path().join(name), split, None).unwrap();
            assert_eq!((dataset.shape.height, dataset.shape.width), (3, 2));
            assert_eq!((dataset.image(0), dataset.image(1)), (&[0, 1, 2, 3, 4, 5][..], &[10, 11, 12, 13, 14, 15][..]));
            assert_eq!((dataset.labels.unwrap(), dataset.class_names.len()), (vec![2, 0], 3));
        }
    }
    assert_eq!(server.asked().len(), 1, "one archive for all splits");
}

#[test]
fn a_stop_while_unpacking_leaves_no_half_corpus() {
    let archive = emnist();
    let server = Server::new(&[("whole", Way::Whole)], &[("gzip.zip", &archive)]);
    let layout = Layout::Emnist { split: "digits", first_label: 0 };
    let corpus = corpus(vec![server.mirror("whole")], &[("gzip.zip", &archive)], layout);
    let out = tempfile::tempdir().unwrap();
    let stop = |event: &FetchEvent| matches!(event, FetchEvent::Unpacking { file, .. } if file.starts_with("t10k"));
    let stopped = fetch_corpus(&corpus, out.path(), brief(), &mut until(&mut Vec::new(), stop));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    assert!(!out.path().join("toy").exists());
    let left: Vec<_> =
        std::fs::read_dir(out.path().join("downloads/toys")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["gzip.zip"]);
    fetch_corpus(&corpus, out.path(), brief(), &mut until(&mut Vec::new(), |_| false)).unwrap();
    assert_eq!(open_dataset(&out.path().join("toy"), Split::Test, None).unwrap().len(), 2);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_wrong_archive_is_called_by_its_fault() {
    let labels = |values: &[u8]| {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (kind, bytes) in [("images-idx3", idx(&[1, 1, 1], &[7])), ("labels-idx1", idx(&[1], values))] {
            zip.start_file(format!("emnist-x-train-{kind}-ubyte.gz"), SimpleFileOptions::default()).unwrap();
            zip.write_all(&gzip(&bytes)).unwrap();
        }
        zip.finish().unwrap().into_inner()
    };
    let cases: [(Vec<u8>, &str); 4] = [
        (labels(&[0]), "emnist-x-train-labels-idx1-ubyte.gz: a label below 1"),
        (labels(&[1, 2]), "longer than its sizes say"),
        (labels(&[1]), "holds no emnist-x-test-images-idx3-ubyte.gz"),
        (b"no zip at all".to_vec(), "no whole zip archive"),
    ];
    for (archive, cause) in cases {
        let out = tempfile::tempdir().unwrap();
        let layout = Layout::Emnist { split: "x", first_label: 1 };
        let error = fetch_files(&[("gzip.zip", &archive)], |corpus| corpus.layout = layout, out.path()).unwrap_err();
        assert!(error.to_string().contains(cause), "{cause}: {error}");
        assert!(!out.path().join("toy").exists());
    }
}

/// A gzipped tar archive.
fn tar(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        // Written as it is: an honest builder would refuse the name.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, &bytes[..]).unwrap();
    }
    gzip(&tar.into_inner().unwrap())
}

#[test]
fn cifar_comes_out_of_its_archive_and_nothing_else_does() {
    let record = |label: u8| [vec![label], vec![label; 3072]].concat();
    let names: String = (0..10).map(|i| format!("kind {i}\n")).collect();
    let archive = tar(&[
        ("cifar-10-batches-bin/data_batch_1.bin", record(3)),
        ("cifar-10-batches-bin/data_batch_2.bin", record(4)),
        ("cifar-10-batches-bin/test_batch.bin", record(5)),
        ("cifar-10-batches-bin/batches.meta.txt", names.into_bytes()),
        ("../../escaped.html", b"out".to_vec()),
        ("cifar-10-batches-bin/readme.html", b"hello".to_vec()),
    ]);
    let members = &["data_batch_1.bin", "data_batch_2.bin", "test_batch.bin", "batches.meta.txt"];
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("a/b");
    let fetched =
        fetch_files(&[("c.tar.gz", &archive)], |corpus| corpus.layout = Layout::Tar { members }, &folder).unwrap();
    assert_eq!(fetched.files, ["batches.meta.txt", "data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"]);
    let train = open_dataset(&fetched.folder, Split::Train, None).unwrap();
    assert_eq!((train.labels.unwrap(), &train.class_names[9][..]), (vec![3, 4], "kind 9"));
    assert_eq!(open_dataset(&fetched.folder, Split::Test, None).unwrap().labels.unwrap(), [5]);
    assert!(!out.path().join("escaped.html").exists() && !folder.join("escaped.html").exists());
    let layout = Layout::Tar { members: &["data_batch_1.bin", "absent.bin"] };
    let error = fetch_files(&[("c.tar.gz", &archive)], |corpus| corpus.layout = layout, &out.path().join("c"));
    assert!(error.unwrap_err().to_string().contains("holds no absent.bin"));
    let cut = &archive[..archive.len() / 2];
    let error =
        fetch_files(&[("c.tar.gz", cut)], |corpus| corpus.layout = Layout::Tar { members }, &out.path().join("d"));
    assert!(error.unwrap_err().to_string().contains("c.tar.gz: "));
}

/// Against SciPy's `savemat`: see `fixtures/make.py` for the values.
#[test]
fn svhn_is_read_as_scipy_wrote_it() {
    for (name, height, width) in [("svhn-compressed.mat", 32, 32), ("svhn-plain.mat", 4, 2)] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let layout = Layout::Svhn { files: &[("a.mat", "train.npz"), ("a.mat", "test.npz")] };
        let out = tempfile::tempdir().unwrap();
        let fetched = fetch_files(&[("a.mat", &bytes)], |corpus| corpus.layout = layout, out.path()).unwrap();
        for split in [Split::Train, Split::Test] {
            let dataset = open_dataset(&fetched.folder, split, None).unwrap();
            assert_eq!((dataset.shape.channels, dataset.shape.height, dataset.shape.width), (3, height, width));
            assert_eq!(dataset.labels.as_deref(), Some(&[1, 0, 5][..]), "{name}");
            for n in 0..3 {
                let value = |at: usize| {
                    let (c, h, w) = (at / (height * width), at / width % height, at % width);
                    ((7 * h + 13 * w + 101 * c + 29 * n) % 256) as u8
                };
                let expected: Vec<u8> = (0..3 * height * width).map(value).collect();
                assert_eq!(dataset.image(n), expected, "{name}, image {n}");
            }
        }
        // Cut anywhere, it is refused, and nothing is left.
        for length in (0..bytes.len()).step_by(7) {
            let out = tempfile::tempdir().unwrap();
            let error = fetch_files(&[("a.mat", &bytes[..length])], |corpus| corpus.layout = layout, out.path());
            assert!(error.unwrap_err().to_string().contains("a.mat: "), "{name} cut to {length}");
            assert!(!out.path().join("toy").exists());
        }
    }
}
