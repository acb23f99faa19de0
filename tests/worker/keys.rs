//! Key pictures of a real world: the pictures of the very samples, and never before what is in view of a gallery.

use bayescope::oracle::library;
use bayescope::units::Tau;
use bayescope::worker::protocol::{Event, GalleryUpdate, InspectRequest, KeyOrigin, KeyPictures, KeyRequest, Subject};

use super::{Bench, request, settings, spec};

fn origin() -> KeyOrigin {
    let weights = library::find("mnist").unwrap().info().unwrap().weights_sha256;
    KeyOrigin::new(weights, &spec(0), settings(1.0).prior)
}

/// So many key pictures, as they come.
fn pictures(bench: &mut Bench, wanted: usize) -> Vec<(Tau, usize, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    bench.wait(|bench| {
        let KeyPictures { origin: of, pictures, too_slow, shape } = bench.worker.take_keys()?;
        assert!(of == origin() && too_slow.is_none() && shape.dims() == 1024);
        all.extend(pictures);
        (all.len() >= wanted).then_some(())
    });
    all
}

#[test]
fn key_pictures_are_those_of_the_samples_at_their_temperatures() {
    let mut bench = Bench::new();
    let taus = [0.5, 1.25].map(|tau| Tau::new(tau).unwrap());
    let wanted = vec![(taus[0], vec![7, 3]), (taus[1], vec![3])];
    bench.worker.draw_keys(KeyRequest { origin: origin(), wanted, moving: true });
    let keys = pictures(&mut bench, 3);
    assert_eq!(
        keys.iter().map(|(tau, index, _)| (*tau, *index)).collect::<Vec<_>>(),
        [(taus[0], 7), (taus[0], 3), (taus[1], 3)]
    );
    let mut compared = 0;
    for (generation, tau) in [(1, 0.5), (2, 1.25)] {
        bench.worker.show(request(generation, 10, tau, Vec::new()));
        let updates = bench.gallery(generation);
        for tile in updates.iter().filter(|update| update.generation == generation).flat_map(|update| &update.tiles) {
            let key = keys.iter().find(|(of, index, _)| (of.get(), *index) == (tau, tile.index));
            let Some((.., Some(picture))) = key else { continue };
            assert_eq!(tile.pixels.bytes(), Some(picture.as_slice()), "sample {} at τ = {tau}", tile.index);
            compared += 1;
        }
    }
    assert_eq!(compared, 3);
}

#[test]
fn at_rest_what_is_in_view_comes_first_and_while_tau_moves_the_gallery_is_given_up() {
    let mut bench = Bench::new();
    let wanted = vec![(Tau::new(2.0).unwrap(), (0..40).collect::<Vec<_>>())];
    bench.worker.show(request(1, 120, 1.0, (0..120).collect()));
    bench.worker.draw_keys(KeyRequest { origin: origin(), wanted: wanted.clone(), moving: false });
    let mut early = Vec::new();
    bench.wait(|bench| {
        let keys = bench.worker.take_keys();
        let over = bench.worker.take_gallery().is_some_and(|update| update.progress.done == update.progress.total);
        assert!(over || keys.is_none(), "key pictures came before the gallery");
        early.extend(keys.into_iter().flat_map(|keys| keys.pictures));
        over.then_some(())
    });
    let late = if early.len() < 40 { pictures(&mut bench, 40 - early.len()).len() } else { 0 };
    assert_eq!(early.len() + late, 40);
    // What is not in view does not hold them up.
    bench.worker.show(request(2, 5000, 1.2, vec![0]));
    bench.worker.draw_keys(KeyRequest { origin: origin(), wanted: wanted.clone(), moving: false });
    assert_eq!(pictures(&mut bench, 40).len(), 40);
    let over = |update: &GalleryUpdate| update.generation == 2 && update.progress.done == update.progress.total;
    assert!(
        !bench.worker.take_gallery().is_some_and(|update| over(&update)),
        "key pictures waited for the whole gallery"
    );
    bench.worker.show(request(3, 5000, 1.5, Vec::new()));
    bench.wait(|bench| bench.worker.take_gallery().filter(|update| update.generation == 3));
    bench.worker.draw_keys(KeyRequest { origin: origin(), wanted, moving: true });
    assert_eq!(pictures(&mut bench, 40).len(), 40);
    while bench.worker.take_gallery().is_some() {}
    // Typicality's samples are drawn when no request waits any more: a gallery that goes on would come before them.
    let (subject, settings, taus) = (Subject::Sample { spec: spec(10), index: 3 }, settings(1.3), Vec::new());
    bench.worker.inspect(InspectRequest { generation: 1, subject, settings, taus, look: None });
    bench.until(|event| matches!(event, Event::Reference(news) if news.tau.get() == 1.3).then_some(()));
    assert!(bench.worker.take_gallery().is_none(), "a gallery that was given up goes on");
}

/// Pieces of the gallery in between would take turns with them, and are much longer: the slider would be moved before they are there.
#[test]
fn at_rest_no_piece_of_the_gallery_comes_between_key_pictures_of_what_is_in_view() {
    let mut bench = Bench::new();
    bench.worker.show(request(1, 5000, 1.0, vec![0]));
    bench.wait(|bench| bench.worker.take_gallery());
    let taus = [0.5, 1.5, 2.0].map(|tau| Tau::new(tau).unwrap());
    let wanted = taus.map(|tau| (tau, (0..200).collect::<Vec<_>>())).to_vec();
    bench.worker.draw_keys(KeyRequest { origin: origin(), wanted, moving: false });
    let mut drawn = 0;
    bench.wait(|bench| {
        // Taken before the pictures: what it tells was made before them.
        let gallery = bench.worker.take_gallery();
        let begun = drawn > 0;
        drawn += bench.worker.take_keys().map_or(0, |keys| keys.pictures.len());
        assert!(!begun || gallery.is_none() || drawn == 600, "a piece of the gallery came after {drawn} of 600");
        if !begun && drawn > 0 {
            bench.worker.take_gallery();
        }
        (drawn == 600).then_some(())
    });
    let whole = |update: &GalleryUpdate| update.progress.done == update.progress.total;
    bench.wait(|bench| bench.worker.take_gallery().filter(whole));
}
