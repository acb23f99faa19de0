//! Images: IDX, CIFAR, pickled batches, NumPy archives, pictures; statistics of features.

use std::io::Cursor;
use std::path::Path;

use bayescope::data::{
    Fit, Ground, ImageShape, NpzImages, Split, fit_picture, open, open_split, open_test, read_array,
    read_fid_statistics, read_logp, read_picture, write_npz,
};
use bayescope::error::Result;
use bayescope::measure::fidelity::Gaussian;
use safetensors::tensor::{Dtype, TensorView};
use zip::CompressionMethod;

use super::written;
use crate::common::tiny;
use crate::forms::{Form, gzip, packed};
use crate::watch::{Reader, Whole};

fn idx(sizes: &[u32], data: &[u8]) -> Vec<u8> {
    let sizes_of: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
    [&[0, 0, 8, sizes.len() as u8], &sizes_of[..], data].concat()
}

fn either_split(path: &Path) -> Result<()> {
    open_split(path, Split::Test, None).map(drop)?;
    open(path).map(drop)
}

#[test]
fn fuzz_idx() {
    let (images, labels) = (idx(&[3, 4, 4], &[9; 48]), idx(&[3], &[1, 2, 0]));
    let label_file = "a-labels-idx1-ubyte";
    let names = "cat\ndog\nbird\n";
    Reader {
        name: "idx",
        wholes: vec![
            Whole::new("a-images-idx3-ubyte", Form::Bytes, images.clone()).beside(label_file, labels.clone()),
            Whole::new("a-images-idx3-ubyte.gz", Form::Gzip, gzip(&images)),
            Whole::new(label_file, Form::Bytes, labels).beside("a-images-idx3-ubyte", images.clone()),
            Whole::new("class_names.txt", Form::Text, names).beside("a-images-idx3-ubyte", images),
        ],
        few: 2000,
        read: &|path| {
            let images = path.with_file_name("a-images-idx3-ubyte");
            either_split(if images.exists() { &images } else { path })
        },
    }
    .run();
}

#[test]
fn fuzz_cifar() {
    let records = |label_bytes: usize| -> Vec<u8> {
        (0..2 * (label_bytes + 3072))
            .map(|at| if at % (label_bytes + 3072) < label_bytes { 7 } else { at as u8 })
            .collect()
    };
    Reader {
        name: "cifar",
        wholes: vec![
            Whole::new("test_batch.bin", Form::Bytes, records(1)),
            Whole::new("train.bin", Form::Bytes, records(2)),
            Whole::new("any.bin", Form::Bytes, records(1)),
        ],
        few: 1000,
        read: &either_split,
    }
    .run();
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new("tests/fetch/fixtures").join(name)).unwrap()
}

#[test]
fn fuzz_pickled_batches() {
    let batch = |name: &str| Whole::new("data_batch_1", Form::Bytes, fixture(name));
    Reader {
        name: "pickled-batches",
        wholes: vec![
            batch("cifar10-2.pickle"),
            batch("cifar10-3.pickle"),
            batch("cifar10-4.pickle"),
            batch("cifar10-5.pickle"),
            batch("cifar10-python2.pickle"),
            batch("cifar100.pickle"),
            batch("imagenet.pickle"),
            batch("imagenet-array.pickle"),
            Whole::new("batches.meta", Form::Bytes, fixture("cifar10.meta"))
                .beside("data_batch_1", fixture("cifar10-4.pickle")),
        ],
        few: 4000,
        read: &|path| either_split(&path.with_file_name("data_batch_1")),
    }
    .run();
}

pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

pub fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn archive(arrays: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let members: Vec<_> = arrays.iter().map(|(name, bytes)| (format!("{name}.npy"), bytes.clone())).collect();
    packed(&members, method)
}

#[test]
fn fuzz_npz() {
    let zip = |arrays: &[(&str, Vec<u8>)], method| Whole::new("x.npz", Form::Zip, archive(arrays, method));
    let medmnist = [
        ("train_images", npy("|u1", "(2, 4, 4, 3)", &[7; 96])),
        ("train_labels", npy("<i8", "(2, 1)", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0])),
        ("test_images", npy("|u1", "(1, 4, 4, 3)", &[7; 48])),
        ("test_labels", npy("<i8", "(1, 1)", &[0; 8])),
    ];
    let keras = [
        ("x_train", npy("|u1", "(2, 4, 4)", &[7; 32])),
        ("y_train", npy("|u1", "(2,)", &[1, 2])),
        ("x_test", npy("|u1", "(1, 4, 4)", &[7; 16])),
        ("y_test", npy("|u1", "(1,)", &[0])),
    ];
    let doubles: Vec<u8> = (0..8).flat_map(|v| f64::from(v).to_be_bytes()).collect();
    let plain = [("x", npy("<f4", "(2, 1, 2, 2)", &floats(&[0.5; 8]))), ("y", npy("<i4", "(2,)", &[0; 8]))];
    let imagenet = Whole::new("train_data_batch_1.npz", Form::Zip, fixture("imagenet.npz"));
    Reader {
        name: "npz",
        wholes: vec![
            Whole::new("x.npz", Form::Zip, written("x.npz", |path| write_npz(path, &tiny::labelled()).unwrap())),
            zip(&medmnist, CompressionMethod::Deflated),
            zip(&keras, CompressionMethod::Stored),
            zip(&[("x", npy(">f8", "(2, 1, 2, 2)", &doubles))], CompressionMethod::Stored),
            zip(&plain, CompressionMethod::Stored),
            imagenet,
        ],
        few: 3000,
        read: &|path| {
            // What is no batch of images may be arrays, and a stream.
            let _ = (read_logp(path), read_array(path, "y"), open_test(path, None));
            if let Ok(Some(images)) = NpzImages::open(path) {
                let _ = (images.read(0..images.len()), images.verify());
            }
            either_split(path)
        },
    }
    .run();
}

#[test]
fn fuzz_pictures() {
    let encoded = |format| {
        let mut out = Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(9, 7).brighten(80).write_to(&mut out, format).unwrap();
        out.into_inner()
    };
    let png = |color| {
        let mut out = Cursor::new(Vec::new());
        image::DynamicImage::new(9, 7, color).write_to(&mut out, image::ImageFormat::Png).unwrap();
        Whole::new("g.png", Form::Png, out.into_inner())
    };
    Reader {
        name: "pictures",
        wholes: vec![
            png(image::ColorType::Rgb8),
            png(image::ColorType::L16),
            png(image::ColorType::Rgba8),
            Whole::new("h.jpg", Form::Bytes, encoded(image::ImageFormat::Jpeg)),
            Whole::new("i.bmp", Form::Bytes, encoded(image::ImageFormat::Bmp)),
            Whole::new("j.gif", Form::Bytes, encoded(image::ImageFormat::Gif)),
            Whole::new("k.webp", Form::Bytes, encoded(image::ImageFormat::WebP)),
            Whole::new("l.ppm", Form::Bytes, encoded(image::ImageFormat::Pnm)),
            Whole::new("m.tiff", Form::Bytes, encoded(image::ImageFormat::Tiff)),
        ],
        few: 2000,
        // As one of a dataset, and as a single picture that is fitted.
        read: &|path| {
            let ground = Ground { shape: ImageShape { channels: 1, height: 8, width: 8 }, border: [0; 3] };
            let fitted = read_picture(path).and_then(|bytes| fit_picture(path, &bytes, &Fit::default(), &ground));
            open(path).and(fitted).map(drop)
        },
    }
    .run();
}

#[test]
fn fuzz_fid_statistics() {
    let bytes = |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|v| v.to_le_bytes()).collect() };
    let moments = [
        ("mu", npy("<f8", "(2,)", &bytes(&[0.5, 1.0]))),
        ("sigma", npy("<f8", "(2, 2)", &bytes(&[2.0, 0.1, 0.1, 1.0]))),
    ];
    let sums = [
        ("real_features_sum", npy("<f8", "(2,)", &bytes(&[5.0, 7.0]))),
        ("real_features_cov_sum", npy("<f8", "(2, 2)", &bytes(&[12.0, 11.0, 11.0, 14.0]))),
        ("real_features_num_samples", npy("<i8", "()", &4_i64.to_le_bytes())),
    ];
    let arrays: Vec<_> = [("mu", vec![2], vec![0.5, 1.0]), ("sigma", vec![2, 2], vec![2.0, 0.1, 0.1, 1.0])]
        .map(|(name, shape, values)| (name, shape, bytes(&values)))
        .into();
    let views: Vec<_> = arrays
        .iter()
        .map(|(name, shape, bytes)| (*name, TensorView::new(Dtype::F64, shape.clone(), bytes).unwrap()))
        .collect();
    let file = safetensors::serialize(views, None).unwrap();
    Reader {
        name: "fid-statistics",
        wholes: vec![
            Whole::new("s.npz", Form::Zip, archive(&moments, CompressionMethod::Stored)),
            Whole::new("s.npz", Form::Zip, archive(&sums, CompressionMethod::Deflated)),
            Whole::new("s.safetensors", Form::Headed, file),
        ],
        few: 2000,
        read: &|path| {
            use bayescope::data::FidStatistics;
            let made = match read_fid_statistics(path)? {
                FidStatistics::Moments { mean, covariance } => Gaussian::new(mean, &covariance, None),
                FidStatistics::Sums { sum, products, n } => Gaussian::from_sums(&sum, &products, n),
            };
            // Numbers that are no Gaussian's are complained of by whoever names the file to the user.
            made.map(drop).or(Ok(()))
        },
    }
    .run();
}
