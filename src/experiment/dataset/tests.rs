use super::*;
use crate::experiment::View;
use crate::experiment::hand_made::spec;

const SHAPE: ImageShape = ImageShape { channels: 1, height: 1, width: 2 };
const NOISY: Preprocessing = Preprocessing::Gaussian { std: 0.1 };

/// 100 images: image i is (i, i) as 8-bit pixels.
fn part() -> Part {
    let how = Dequantisation::default();
    let record = PartRecord {
        path: "digits".into(),
        images: 100,
        sha256: String::new(),
        dequantisation: Some(how),
        noise_from: 0,
        note: None,
        classes: Mapped::ByNumber,
        of_this_world: false,
    };
    let pixels = (0..100).flat_map(|i| [i, i]).collect();
    let labels = (0..100).map(|i| i % 10).collect();
    Part { shape: SHAPE, values: Values::Pixels(pixels, NOISY, how), labels, classes: 10, logp: None, record }
}

#[test]
fn fewer_images_are_the_first_of_more_and_every_seed_has_its_own() {
    let part = part();
    let all = part.order(Seed(1), 100);
    let mut sorted = all.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..100).collect::<Vec<_>>());
    for n in [1, 30, 99] {
        assert_eq!(part.order(Seed(1), n), all[..n]);
    }
    assert_ne!(part.order(Seed(2), 100), all);
    let first = View { of: &part, at: all.clone() }.take(&[0, 1, 2]).unwrap();
    assert_eq!(first.labels, [all[0] % 10, all[1] % 10, all[2] % 10]);
    assert_eq!(first, part.take(&all[..3]).unwrap());
}

#[test]
fn an_image_has_the_same_noise_in_whatever_batch_it_comes() {
    let part = part();
    let Values::Pixels(pixels, preprocessing, how) = &part.values else { panic!("pixels") };
    let whole = preprocessing.map_in(pixels, 2, 0, *how);
    assert_eq!(part.take(&[40, 7]).unwrap().x, [&whole[80..82], &whole[14..16]].concat());
    assert_ne!(whole[80], whole[81]);
}

#[test]
fn the_same_image_has_other_noise_to_be_tested_on_than_to_be_learned() {
    use Dequantisation::{Levels, Mean, MidPoint, Seeded};
    for how in [Seeded(Seed(0)), Seeded(Seed(5)), Mean(3), Levels] {
        let of = |split| {
            let record = PartRecord { noise_from: noise_from(split, Some(how)), ..part().record };
            let Values::Pixels(pixels, lie, _) = part().values else { panic!("pixels") };
            Part { values: Values::Pixels(pixels, lie, how), record, ..part() }
        };
        let (train, test) = (of(Split::Train), of(Split::Test));
        let Values::Pixels(pixels, ..) = &train.values else { panic!("pixels") };
        // Training images have the noise that `posterior` gives them.
        assert_eq!(train.x(9), NOISY.map_in(pixels, 2, 0, how)[18..20]);
        assert_ne!(test.x(9), train.x(9), "{how}");
        for further in how.further() {
            assert_ne!(test.drawn(9, Some(further)), train.drawn(9, Some(further)), "{how}");
        }
    }
    assert_eq!([None, Some(MidPoint)].map(|how| noise_from(Split::Test, how)), [0, 0], "no noise, no other cells");
}

#[test]
fn whatever_is_taken_from_a_dataset_changes_its_hash() {
    let hashes = [
        part().hash(),
        Part { labels: (0..100).map(|i| (i + 1) % 10).collect(), ..part() }.hash(),
        Part { logp: Some(vec![0.0; 1000]), ..part() }.hash(),
        Part { values: Values::World(vec![0.5; 200]), ..part() }.hash(),
        Part { shape: ImageShape { height: 2, width: 1, ..SHAPE }, ..part() }.hash(),
    ];
    assert!(hashes.iter().enumerate().all(|(i, hash)| !hashes[..i].contains(hash)));
    assert_eq!(part().hash(), hashes[0]);
}

#[test]
fn test_images_that_are_the_training_images_are_refused_whatever_their_labels() {
    let relabelled = Part { labels: vec![0; 100], logp: Some(vec![0.0; 1000]), ..part() };
    for test in [part(), relabelled] {
        let why = test.is_not(&part()).unwrap_err().to_string();
        assert!(why.contains("digits") && why.contains("data.test"), "{why}");
    }
    let how = Dequantisation::default();
    let others = Values::Pixels((0..100).flat_map(|i| [i, 99 - i]).collect(), NOISY, how);
    for values in [others, Values::World(vec![0.5; 200])] {
        Part { values, ..part() }.is_not(&part()).unwrap();
    }
    let world = || Part { values: Values::World(vec![0.5; 200]), ..part() };
    world().is_not(&world()).unwrap_err();
}

#[test]
fn what_is_to_be_said_of_noise_is_told_of_each_part_and_makes_no_other_data() {
    let noted = |note: &str| PartRecord { note: Some(note.into()), ..part().record };
    let record = |train, test| DataRecord { train, test: Some(test), both: false };
    let (plain, said) = (record(part().record, part().record), record(noted("mixed"), noted("a stranger")));
    let told = said.sentences([]);
    assert!(told.contains(&"training images: mixed".into()) && told.contains(&"test images: a stranger".into()));
    assert!(said != plain && said.without_notes() == plain);
}

#[test]
fn seeds_that_share_training_images_are_told_of_and_are_not_where_there_are_enough() {
    let told = |images: usize, seeds: &str, both: bool| {
        let grid = format!("[grid]\narchitectures = ['linear']\ntrain_sizes = [300, 50]\nseeds = {seeds}\n");
        let spec = spec(&format!("[world]\noracle = 'mnist'\n{grid}"));
        let train = PartRecord { images, ..part().record };
        let data = DataRecord { test: Some(train.clone()), train, both };
        data.sentences(&spec.cells())
    };
    for both in [false, true] {
        let some = told(1000, "[0, 1]", both);
        assert!(
            some.len() == 3 && some[1].contains("N = 300 about 30 %") && some[1].contains("too narrow"),
            "{some:?}"
        );
        let all = told(300, "[0, 1, 2]", both);
        assert!(all.len() == 3 && all[1].contains("start and order alone"), "{all:?}");
        // A tenth is few, and a single seed shares nothing.
        assert_eq!([told(3000, "[0, 1]", both).len(), told(300, "[4]", both).len()], [2, 2]);
    }
}
