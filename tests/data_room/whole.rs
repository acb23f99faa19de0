//! What is read from sound files, and written.

use std::fs;
use std::path::{Path, PathBuf};

use bayescope::data::*;
use zip::CompressionMethod;

use crate::common::tiny;
use crate::files::*;

#[test]
fn data_idx_plain_and_gzipped_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<u8> = (0..24).collect();
    let images = put(folder.path(), "train-images-idx3-ubyte", &idx(&[4, 2, 3], &values));
    assert_eq!(read_idx(&images, None).unwrap().labels, None);
    put(folder.path(), "train-labels-idx1-ubyte", &idx(&[4], &[0, 9, 1, 2]));
    let plain = read_idx(&images, None).unwrap();
    assert_eq!((plain.len(), plain.shape.to_string()), (4, "1×2×3".to_owned()));
    assert_eq!(plain.image(1), &values[6..12]);
    assert_eq!(plain.labels.as_deref(), Some(&[0, 9, 1, 2][..]));
    assert_eq!(plain.class_names.len(), 10);
    // Recognised by content, whatever the name says.
    let odd = put(folder.path(), "digits", &gzip(&idx(&[4, 2, 3], &values)));
    let labels = put(folder.path(), "classes", &gzip(&idx(&[4], &[0, 9, 1, 2])));
    let zipped = read_idx(&odd, Some(&labels)).unwrap();
    assert_eq!((&zipped.pixels, &zipped.labels), (&plain.pixels, &plain.labels));
    assert_eq!(pixels(&odd).pixels, plain.pixels);
    assert_eq!(open_dataset(folder.path(), Split::Train, None).unwrap(), plain);
    fails(open_dataset(folder.path(), Split::Test, None), folder.path(), "has a train split, but no test split");
}

#[test]
fn data_cifar_both_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let record = |head: &[u8], value: u8| [head, &[value; 3072]].concat();
    let one = put(folder.path(), "data_batch_1.bin", &[record(&[3], 7), record(&[9], 8)].concat());
    let two = put(folder.path(), "data_batch_2.bin", &record(&[0], 9));
    put(folder.path(), "test_batch.bin", &record(&[1], 1));
    let train = pixels(folder.path());
    assert_eq!(train.labels.as_deref(), Some(&[3, 9, 0][..]));
    assert_eq!((train.image(1)[0], train.image(2)[3071], &*train.class_names[3]), (8, 9, "cat"));
    assert_eq!(open_dataset(folder.path(), Split::Test, None).unwrap().labels, Some(vec![1]));
    put(folder.path(), "batches.meta.txt", b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    assert_eq!(read_cifar10(&[one.clone(), two.clone()]).unwrap().class_names[3], "d");

    let fine = put(folder.path(), "hundred/train.bin", &record(&[19, 99], 5));
    let hundred = pixels(&fine);
    assert_eq!((hundred.labels, &*hundred.class_names[99]), (Some(vec![99]), "class 99"));
    assert_eq!(pixels(&put(folder.path(), "other.bin", &record(&[19, 98], 5))).labels, Some(vec![98]));
}

#[test]
fn data_cifar_damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let record = |head: &[u8], value: u8| [head, &[value; 3072]].concat();
    let bad = put(folder.path(), "bad.bin", &[record(&[3], 7), record(&[10], 8)].concat());
    fails(read_cifar10(std::slice::from_ref(&bad)), &bad, "byte 3073: record 1 has label 10");
    let coarse = put(folder.path(), "coarse.bin", &record(&[1, 100], 7));
    fails(read_cifar100(&coarse), &coarse, "byte 1: record 0 has label 100");
    for length in [0, 1, 3072, 3074, 6145] {
        let cut = put(folder.path(), "cut_batch.bin", &vec![0; length]);
        fails(open(&cut), &cut, "whole CIFAR-10 records");
    }
    assert!(read_cifar10(&[]).is_err());
}

#[test]
fn data_folder_follows_torchvision() {
    use image::ColorType::{L8, Rgb8, Rgba8};
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("images");
    let add = |name: &str, value, color| put(&root, name, &png(2, 3, value, color));
    add("cat/b.PNG", 2, L8);
    add("cat/a/z.png", 3, L8);
    add("cat/a-c.png", 1, L8);
    add("Bird/x.png", 4, L8);
    put(&root, "cat/notes.txt", b"no image");
    let grey = read_folder(&root, None).unwrap();
    assert_eq!((grey.shape.channels, &grey.class_names[..]), (1, &["Bird".to_owned(), "cat".to_owned()][..]));
    // sorted(os.walk): the folder itself first, then its subfolders.
    assert_eq!(grey.ids, ["Bird/x.png", "cat/a-c.png", "cat/b.PNG", "cat/a/z.png"]);
    assert_eq!(grey.labels.as_deref(), Some(&[0, 1, 1, 1][..]));
    assert_eq!(grey.pixels.chunks(6).map(|image| image[0]).collect::<Vec<_>>(), [4, 1, 2, 3]);
    // One colour image, and all become RGB; transparency is dropped.
    add("cat/a/y.png", 9, Rgba8);
    let rgb = pixels(&root);
    assert_eq!(rgb.shape.to_string(), "3×2×3");
    assert_eq!((rgb.image(0), rgb.image(3)), (&[4; 18][..], &[9; 18][..]));

    let odd = put(&root, "cat/odd.png", &png(3, 2, 0, Rgb8));
    fails(read_folder(&root, None), &odd, "is 3×2 pixels");
    fs::write(&odd, b"this is text").unwrap();
    fails(read_folder(&root, None), &odd, "not an image");
    fs::remove_file(&odd).unwrap();
    fs::create_dir(root.join("dog")).unwrap();
    fails(read_folder(&root, None), &root.join("dog"), "holds no images");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("..", root.join("dog/loop")).unwrap();
        fails(read_folder(&root, None), Path::new("loop"), "leads back");
    }
}

#[test]
fn data_folder_flat_empty_and_split() {
    let folder = tempfile::tempdir().unwrap();
    fails(open(folder.path()), folder.path(), "holds no images");
    let image = |name: &str| put(folder.path(), name, &png(2, 2, 5, image::ColorType::L8));
    let single = image("flat/1.png");
    image("flat/0.png");
    let flat = pixels(&folder.path().join("flat"));
    assert_eq!((flat.labels, flat.ids, flat.class_names.len()), (None, vec!["0.png".into(), "1.png".into()], 0));
    assert_eq!(pixels(&single).ids, ["1.png"]);
    image("split/train/a/1.png");
    image("split/train/b/1.png");
    image("split/test/b/1.png");
    let split = |split| open_dataset(&folder.path().join("split"), split, None).unwrap().len();
    assert_eq!((split(Split::Train), split(Split::Test)), (2, 1));
    image("vehicles/bus/1.png");
    image("vehicles/train/1.png");
    assert_eq!(pixels(&folder.path().join("vehicles")).class_names, ["bus", "train"]);
    let text = put(folder.path(), "notes.txt", b"hello, this is no image");
    fails(open(&text), &text, "supported are IDX files");
    let missing = folder.path().join("missing.png");
    fails(open(&missing), &missing, "No such file");
    // A PNG header of 2^31-1 squared allocates nothing.
    let mut huge = png(1, 1, 0, image::ColorType::L8);
    huge[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let huge = put(folder.path(), "huge.png", &huge);
    fails(open(&huge), &huge, "image");
}

#[test]
fn data_png_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rgb.png");
    let shape = ImageShape { channels: 3, height: 2, width: 2 };
    let values: Vec<u8> = (0..12).collect();
    write_png(&path, shape, &values).unwrap();
    assert_eq!((pixels(&path).shape, pixels(&path).pixels), (shape, values));
    fails(write_png(&path, shape, &[0; 11]), &path, "11 values");
}

#[test]
fn data_npz_round_trip_is_exact_and_repeatable() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.npz"), folder.path().join("b.npz"));
    write_npz(&a, &tiny::labelled()).unwrap();
    write_npz(&b, &tiny::labelled()).unwrap();
    assert_eq!(fs::read(&a).unwrap(), fs::read(&b).unwrap());
    match open(&a).unwrap() {
        Input::World(read) => assert_eq!(read, tiny::labelled()),
        Input::Pixels(_) => panic!("floats are world space"),
    }
    fails(open_dataset(&a, Split::Train, None), &a, "8-bit images are needed");
    let nan = WorldBatch { x: vec![0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0, 0.0, 0.0], ..tiny::labelled() };
    fails(write_npz(&a, &nan), &a, "array x: image 1 is not finite");
    fails(write_npz(&a, &WorldBatch { y: Some(vec![0, 3]), ..tiny::labelled() }), &a, "array y: image 1");
    assert!(read_npz(&a).is_ok(), "a refused write leaves the old file");
}

#[test]
fn data_npz_pixels_in_their_layouts() {
    let folder = tempfile::tempdir().unwrap();
    let labels = npy("<i4", "(2, 1)", &[1, 0, 0, 0, 4, 0, 0, 0]);
    for (shape, channels, first) in [("(2, 2, 3)", 1, 1), ("(2, 1, 2, 3)", 1, 1), ("(2, 2, 1, 3)", 3, 3)] {
        let data: Vec<u8> = (0..12).collect();
        let arrays = [
            ("x_train", npy("|u1", shape, &data)),
            ("y_train", labels.clone()),
            ("x_test", npy("|u1", "(1, 1, 1)", &[7])),
        ];
        let path = put(folder.path(), "digits.npz", &npz(&arrays, CompressionMethod::Deflated));
        let train = pixels(&path);
        assert_eq!((train.shape.channels, train.pixels[1]), (channels, first));
        assert_eq!((train.labels.as_deref(), train.class_names.len()), (Some(&[1, 4][..]), 5));
        assert_eq!(open_dataset(&path, Split::Test, None).unwrap().pixels, [7]);
    }
}

/// MNIST's four files, whole or with fewer training images, in the folder that `BAYESCOPE_MNIST` names.
#[test]
fn data_real_mnist() {
    let Some(folder) = std::env::var_os("BAYESCOPE_MNIST").map(PathBuf::from) else {
        println!("skipped: BAYESCOPE_MNIST names no folder with MNIST's four files");
        return;
    };
    for split in [Split::Train, Split::Test] {
        let digits = open_dataset(&folder, split, None).unwrap();
        assert!(digits.len() == 10_000 || split == Split::Train && digits.len() > 10_000, "{} images", digits.len());
        assert_eq!(digits.shape.to_string(), "1×28×28");
        assert_eq!(digits.class_names, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
        let mean = digits.pixels.iter().map(|&v| f64::from(v)).sum::<f64>() / digits.pixels.len() as f64;
        assert!((32.0..35.0).contains(&mean), "mean grey value {mean}");
    }
    let test = open_dataset(&folder, Split::Test, None).unwrap();
    let ones = test.labels.iter().flatten().filter(|&&label| label == 1).count();
    assert_eq!(ones, 1_135, "the official test set has 1,135 ones");
    assert_eq!(test.pad_to(32).unwrap().to_channels(3).unwrap().shape.to_string(), "3×32×32");
}

#[test]
fn large_photographs_are_scaled_down_as_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let shape = |height, width| ImageShape { channels: 3, height, width };
    for (split, class, [height, width]) in
        [("train", "cat", [40, 40]), ("train", "dog", [48, 80]), ("val", "cat", [16, 16])]
    {
        let path = folder.path().join(split).join(class);
        std::fs::create_dir_all(&path).unwrap();
        // Left half black, right half white, in every channel.
        let row = |_| (0..width).map(|x| if x < width / 2 { 0 } else { 255 }).collect::<Vec<u8>>();
        let pixels: Vec<u8> = (0..3 * height).flat_map(row).collect();
        write_png(&path.join("1.png"), shape(height, width), &pixels).unwrap();
    }
    fails(open_dataset(folder.path(), Split::Train, None), &folder.path().join("train/dog/1.png"), "is 48×80 pixels");
    let train = open_dataset(folder.path(), Split::Train, Some(16)).unwrap();
    assert_eq!((train.shape, train.len()), (shape(16, 16), 2));
    for i in 0..2 {
        let image = train.image(i);
        for row in image.chunks(16) {
            // The middle of the wide one is kept, edge in the middle; away from it nothing is blurred.
            assert!(row[..6].iter().all(|&p| p == 0) && row[10..].iter().all(|&p| p == 255), "{i}: {row:?}");
        }
    }
    // What fits is left alone.
    let test = open_dataset(folder.path(), Split::Test, Some(16)).unwrap();
    assert_eq!(test.image(0), open_dataset(folder.path(), Split::Test, None).unwrap().image(0));
}
