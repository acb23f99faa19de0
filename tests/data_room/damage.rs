//! Damaged, swapped and hostile files: each refused with its name and cause, fast, without a panic.

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::Instant;

use bayescope::data::*;
use bayescope::units::Seed;
use rand::RngExt;
use zip::CompressionMethod;

use crate::common::tiny;
use crate::files::*;

#[test]
fn data_idx_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| put(folder.path(), name, bytes);
    let whole = idx(&[2, 2, 2], &[1; 8]);
    let path = at("cut-images-idx3-ubyte", &whole);
    for cut in 0..whole.len() {
        at("cut-images-idx3-ubyte", &whole[..cut]);
        fails(read_idx(&path, None), &path, &format!("byte {cut}: truncated"));
        fails(open(&path), &path, "truncated");
    }
    let zipped = gzip(&whole);
    for cut in 0..zipped.len() {
        let path = at("cut-images-idx3-ubyte.gz", &zipped[..cut]);
        assert!(read_idx(&path, None).is_err(), "cut at {cut}");
    }
    let path = at("long-images-idx3-ubyte", &[&whole[..], &[0]].concat());
    fails(read_idx(&path, None), &path, "byte 24: trailing bytes");
    let labels = at("a-labels-idx1-ubyte", &idx(&[3], &[0, 1, 2]));
    fails(read_idx(&labels, None), &labels, "label file, not an image file");
    let images = at("a-images-idx3-ubyte", &whole);
    fails(read_idx(&images, None), &labels, "3 labels, but");
    fails(read_idx(&images, Some(&images)), &images, "image file, not a label file");
    fails(read_idx(&at("p", b"\x89PNG\r\n"), None), Path::new("p"), "not an IDX file");
    fails(read_idx(&at("none", &idx(&[0, 28, 28], &[])), None), Path::new("none"), "0 images");
    fails(read_idx(folder.path(), None), folder.path(), "not a regular file");
}

#[test]
fn data_idx_huge_headers_fail_fast() {
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let max = u32::MAX;
    for sizes in [[max, max, max], [max, max, 1], [max, 28, 28], [max, 1, 1]] {
        for bytes in [idx(&sizes, &[0; 100]), gzip(&idx(&sizes, &[0; 100]))] {
            let path = put(folder.path(), "huge-images-idx3-ubyte", &bytes);
            assert!(read_idx(&path, None).is_err());
        }
    }
    // A gzip of 64 MiB zeros behind a header that announces 8 bytes is not unpacked.
    let bomb = gzip(&idx(&[2, 2, 2], &vec![0; 1 << 26]));
    let path = put(folder.path(), "bomb-images-idx3-ubyte.gz", &bomb);
    fails(read_idx(&path, None), &path, "trailing bytes");
    // The same zeros behind a header that announces more than they can be.
    let bomb = gzip(&idx(&[1 << 20, 1 << 10, 1 << 10], &vec![0; 1 << 26]));
    let path = put(folder.path(), "announced-images-idx3-ubyte.gz", &bomb);
    fails(read_idx(&path, None), &path, "do not fit into a file");
    assert!(start.elapsed().as_secs() < 10);
}

#[test]
fn data_cifar_that_no_memory_holds_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data_batch_1.bin");
    // A file of holes: three TB that take no room.
    std::fs::File::create(&path).unwrap().set_len(3073 << 30).unwrap();
    fails(read_cifar10(std::slice::from_ref(&path)), &path, "of memory");
}

/// Arrays with one fault each, and what its message says.
type Fault = (Vec<(&'static str, Vec<u8>)>, &'static str);

fn faulty_images() -> Vec<Fault> {
    vec![
        (vec![], "among the arrays: none"),
        (vec![("y", npy("<i8", "(1,)", &[0; 8]))], "among the arrays: y"),
        (vec![("x", npy("<i4", "(1, 1, 1, 2)", &[0; 8]))], "array x: type integer"),
        (vec![("x", npy("<f2", "(1, 1, 1, 4)", &[0; 8]))], "array x: type <f2"),
        (vec![("x", npy("<f4", "(1, 2)", &[0; 8]))], "array x: shape [1, 2]"),
        (vec![("x", npy("<f4", "(1, 1, 1, 3)", &[0; 8]))], "array x: shape [1, 1, 1, 3] of type <f4 needs 12 bytes"),
        (vec![("x", npy("<f4", "(99999999999, 3, 64, 64)", &[0; 8]))], "array x: shape"),
        (vec![("x", npy("<f4", "(0, 1, 1099511627776, 1099511627776)", &[]))], "array x: impossible shape"),
        (vec![("x", npy("<f4", "(2, 1, 1, 1)", &floats(&[0.0, f32::INFINITY])))], "array x: image 1 is not finite"),
        (vec![("x", npy("<f8", "(1, 1, 1, 1)", &1e300f64.to_le_bytes()))], "array x: image 0 is not finite"),
    ]
}

fn faulty_companions() -> Vec<Fault> {
    let x = npy("<f4", "(1, 1, 1, 2)", &floats(&[0.5, 1.0]));
    vec![
        (vec![("x", x.clone()), ("y", npy("<f4", "(1,)", &[0; 4]))], "array y: float32 of shape [1]"),
        (vec![("x", x.clone()), ("y", npy("<i8", "(2,)", &[0; 16]))], "array y: 2 values"),
        (vec![("x", x.clone()), ("posterior", npy("<f4", "(1, 1)", &floats(&[1.5])))], "array posterior: image 0"),
        (
            vec![("x", x.clone()), ("posterior", npy("<f4", "(1,)", &floats(&[1.0])))],
            "array posterior: float32 of shape [1]",
        ),
        (vec![("x", x.clone()), ("logp", npy("<f4", "(1, 1)", &floats(&[f32::NAN])))], "array logp: image 0"),
        (vec![("x", npy("|u1", "(1, 5, 2, 2)", &[0; 20]))], "array x: shape [1, 5, 2, 2]"),
        (
            vec![("images", npy("|u1", "(1, 1, 1)", &[0])), ("labels", npy("<i8", "(1,)", &[0xff; 8]))],
            "array labels: image 0 has label -1",
        ),
    ]
}

#[test]
fn data_npz_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.npz");
    for (arrays, cause) in faulty_images().into_iter().chain(faulty_companions()) {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            fs::write(&path, npz(&arrays, method)).unwrap();
            fails(read_npz(&path), &path, cause);
        }
    }
}

#[test]
fn data_npz_tables_of_zeros_are_read_where_labels_tell_so_many_classes() {
    const N: usize = 16_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zeros.npz");
    let write = |classes: i64| {
        let labels: Vec<u8> = (0..N as i64).flat_map(|i| (i % classes).to_le_bytes()).collect();
        let arrays = [
            ("x", npy("<f4", "(16000, 1, 1, 1)", &[0; 4 * N])),
            ("y", npy("<i8", "(16000,)", &labels)),
            ("logp", npy("<f8", "(16000, 1000)", &vec![0; 8 * N * 1000])),
        ];
        fs::write(&path, npz(&arrays, CompressionMethod::Deflated)).unwrap();
    };
    write(1000);
    let Input::World(batch) = read_npz(&path).unwrap() else { panic!("{} is read as pixels", path.display()) };
    assert_eq!((batch.len(), batch.classes), (N, 1000));
    // The same table beside two classes is a bomb.
    write(2);
    fails(read_npz(&path), &path, "array logp");
}

#[test]
fn data_npz_truncation_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.npz");
    write_npz(&path, &tiny::labelled()).unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        assert!(open(&path).is_err(), "cut at {cut}");
    }
}

/// A few bytes changed at random: an error or a dataset, never a panic, and never a long wait.
#[test]
fn data_random_corruption_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let encoded = |format| {
        let mut out = Cursor::new(Vec::new());
        let image = image::DynamicImage::new_rgb8(16, 16);
        image.write_to(&mut out, format).unwrap();
        out.into_inner()
    };
    write_npz(&folder.path().join("whole.npz"), &tiny::labelled()).unwrap();
    let stored = fs::read(folder.path().join("whole.npz")).unwrap();
    let x = npy("<f4", "(2, 1, 4, 4)", &floats(&[0.5; 32]));
    let images = idx(&[3, 4, 4], &[9; 48]);
    let seeds = [
        ("a-images-idx3-ubyte", images.clone()),
        ("b-images-idx3-ubyte.gz", gzip(&images)),
        ("c-labels-idx1-ubyte", idx(&[3], &[1, 2, 3])),
        ("d_batch.bin", vec![1; 3073]),
        ("e.npz", stored),
        ("f.npz", npz(&[("x", x)], CompressionMethod::Deflated)),
        ("g.png", png(8, 8, 3, image::ColorType::Rgb8)),
        ("h.jpg", encoded(image::ImageFormat::Jpeg)),
        ("i.bmp", encoded(image::ImageFormat::Bmp)),
        ("j.gif", encoded(image::ImageFormat::Gif)),
        ("k.webp", encoded(image::ImageFormat::WebP)),
        ("l.ppm", encoded(image::ImageFormat::Pnm)),
        ("m.tiff", encoded(image::ImageFormat::Tiff)),
    ];
    for (kind, (name, whole)) in seeds.iter().enumerate() {
        for case in 0..300 {
            let mut rng = Seed(1).split(name).rng(case);
            let mut bytes = whole.clone();
            for _ in 0..rng.random_range(1..=4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            let path = put(folder.path(), name, &bytes);
            let start = Instant::now();
            let read = std::panic::catch_unwind(|| open(&path));
            assert!(read.is_ok(), "format {kind}, case {case} panicked");
            assert!(start.elapsed().as_secs() < 20, "format {kind}, case {case} took {:?}", start.elapsed());
        }
    }
}
