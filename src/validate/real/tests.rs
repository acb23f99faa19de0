use burn::tensor::Device;

use super::super::{pieces, tests::spec};
use super::*;
use crate::data::{ImageShape, write_png};
use crate::flow::Precision;
use crate::oracle::folder;
use crate::oracle::train::{DataSpec, test_corpus};

fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// An image of each class.
fn images(classes: &str) -> Dataset {
    let (class_names, n) = (names(classes), names(classes).len());
    let shape = ImageShape { channels: 1, height: 1, width: 1 };
    let (name, labels) = ("zoo".into(), Some((0..n).collect()));
    let (ids, noises) = (class_names.clone(), Default::default());
    Dataset { name, shape, pixels: vec![0; n], labels, ids, class_names, noises }
}

#[test]
fn classes_in_common_find_each_other_by_name() {
    let (world, mut notes) = (names("cat dog wild"), Vec::new());
    let found = matched(&images("fox wild cat"), &world, &mut notes).unwrap();
    assert_eq!((found.ids, found.labels, found.class_names), (names("wild cat"), Some(vec![2, 0]), world));
    assert!(notes[0].ends_with("left out: fox") && notes[1].ends_with("no image: dog"), "{notes:?}");
    // Counted from 1 there, from 0 here: nobody knows which class is which.
    let refused = matched(&images("0 1 2"), &names("1 2 3"), &mut notes).unwrap_err().to_string();
    assert!(refused.contains("(0, 1, 2)") && refused.contains("(1, 2, 3)"), "{refused}");
}

#[test]
fn numbers_count_where_names_say_nothing() {
    let (world, mut notes) = (names("cat dog wild"), Vec::new());
    let mut numbers = |classes: &str| {
        matched(&images(classes), &world, &mut notes).map(|found| found.labels).map_err(|e| e.to_string())
    };
    assert_eq!(numbers("0 2"), Ok(Some(vec![0, 2])));
    assert_eq!(numbers("Hund Katze Wild"), Ok(Some(vec![0, 1, 2])));
    for unknown in ["0 3", "Hund Katze", "a b c d"] {
        assert!(numbers(unknown).unwrap_err().contains("not those of the oracle (cat, dog, wild)"));
    }
    assert_eq!(notes.len(), 2);
}

#[test]
fn test_images_have_the_border_that_training_images_had() {
    let place = tempfile::tempdir().unwrap();
    let shape = ImageShape { channels: 1, height: 40, width: 40 };
    for (class, dark) in [("0", 30), ("1", 90)] {
        let folder = place.path().join("test").join(class);
        std::fs::create_dir_all(&folder).unwrap();
        let pixels: Vec<u8> = (0..shape.dims()).map(|i| dark + (i * 7 % 150) as u8).collect();
        write_png(&folder.join("0.png"), shape, &pixels).unwrap();
    }
    let folder::Oracle { mut info, world } = folder::open("mnist", &Device::flex(), Precision::F32, 8).unwrap();
    let data = &mut info.training.as_mut().unwrap().spec.data;
    data.resize = Some(28);
    let trained = DataSpec { path: place.path().to_owned(), ..data.clone() };
    let TestPart { images: found, is_part, .. } =
        test_part(&world, &info, (place.path(), Seed(0)), &mut Vec::new()).unwrap();
    assert!(is_part && found.pixels == test_corpus(&trained).unwrap().unwrap().pixels);
    let row = |image: usize, y: usize| &found.image(image)[32 * y..][..32];
    for image in 0..2 {
        assert!(row(image, 1).iter().all(|&pixel| pixel == 0) && row(image, 2)[2..30].iter().all(|&pixel| pixel > 0));
    }
}

#[test]
fn real_images_get_the_noise_of_the_world_and_no_other() {
    let grey = |oracle: &str| {
        let world = folder::open(oracle, &Device::flex(), Precision::F32, 8).unwrap().world;
        let pixels = vec![128; 4 * world.shape().dims()];
        let ids = (0..4).map(|i| i.to_string()).collect();
        let (name, shape) = ("grey".to_owned(), world.shape());
        let (class_names, noises) = (Vec::new(), Default::default());
        let images = Dataset { name, shape, pixels, labels: None, class_names, ids, noises };
        // Pictures that hold it keep their levels.
        assert!(noisy(&world, &images, Dequantisation::Levels).is_none_or(|same| same == images));
        noisy(&world, &images, Dequantisation::Seeded(Seed(1)))
    };
    assert!(grey("mnist@9b44f254").is_none() && grey("mnist").is_some());
    // σ = 0.05 of the range from -1 to 1, rounded to levels; no image has the noise of another.
    let images = grey("cells").unwrap();
    let change = |&level: &u8| (f64::from(level) - 128.0).powi(2);
    let variance = images.pixels.iter().map(change).sum::<f64>() / images.pixels.len() as f64;
    assert!((variance.sqrt() - 0.05 * 127.5).abs() < 0.2, "{}", variance.sqrt());
    assert_ne!(images.image(0), images.image(1));
}

#[test]
fn what_a_bootstrap_drew_twice_is_not_held_out_from_itself() {
    let place = tempfile::tempdir().unwrap();
    let shape = ImageShape { channels: 1, height: 28, width: 28 };
    for i in 0..600 {
        let folder = place.path().join((i % 10).to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let pixels: Vec<u8> = (0..shape.dims()).map(|at| (i >> (8 * (at % 2))) as u8).collect();
        write_png(&folder.join(format!("{i}.png")), shape, &pixels).unwrap();
    }
    let device = Device::flex();
    let folder::Oracle { mut info, world } = folder::open("mnist", &device, Precision::F32, 8).unwrap();
    let spec = spec(place.path(), 60);
    let record = info.training.as_mut().unwrap();
    let data = &mut record.spec.data;
    (data.bootstrap, data.held_out, data.limit, data.classes) = (Some(Seed(4)), 20, None, Vec::new());
    let (drawn, pixels_sha256) = training_images(&record.spec, place.path()).unwrap();
    record.pixels_sha256 = pixels_sha256;
    let store = pieces::begin(None, &spec, "weights").unwrap();
    let work = Work { spec: &spec, world: &world, info: &info, device: &device, store };
    let Real { train, held_out, corpus, .. } = Real::open(&work).unwrap();
    assert_eq!((drawn.len(), corpus.of_the_oracle), (580, Some(true)));
    let images = |set: &Dataset| (0..set.len()).map(|i| set.image(i).to_vec()).collect::<Vec<_>>();
    let all = [images(&train), images(&held_out)].concat();
    let (different, were_drawn): (HashSet<_>, HashSet<_>) =
        (all.iter().cloned().collect(), images(&drawn).into_iter().collect());
    // Every image that was drawn is on one of the two sides, once.
    assert_eq!((all.len(), &different), (were_drawn.len(), &were_drawn));
    let said = format!("580 draws with replacement of {} different images", were_drawn.len());
    assert!(corpus.notes.iter().any(|note| note.contains(&said)), "{:?}", corpus.notes);
}
