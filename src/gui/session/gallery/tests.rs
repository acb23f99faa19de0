//! Tiles that come late, drafts, samples that cannot be made, and the order of all.

use std::sync::Arc;

use super::*;
use crate::oracle::label_noise::LabelNoise;
use crate::oracle::posterior::{Posterior, Prior};
use crate::oracle::world::SampleSpec;
use crate::units::{Seed, Smoothing, Tau};
use crate::worker::protocol::Looked;

const SHAPE: ImageShape = ImageShape { channels: 1, height: 1, width: 1 };

fn tile(index: usize, lead: f64) -> Tile {
    let posterior = Posterior::new(vec![lead, 0.0], &Prior::uniform(2), Smoothing::ONE);
    Tile { index, source: 0, label: 0, pixels: vec![0].into(), posterior: Arc::new(posterior), look: None }
}

fn update(generation: u64, tiles: Vec<Tile>) -> GalleryUpdate {
    GalleryUpdate {
        generation,
        shape: SHAPE,
        tiles,
        drafts: Vec::new(),
        failed: Vec::new(),
        progress: Progress { done: 0, total: 0 },
    }
}

/// Asks for so many samples of a seed.
fn ask(gallery: &mut Gallery, (generation, n): (u64, usize), seed: u64, settings: Settings) {
    gallery.expect(generation, n);
    let origin = KeyOrigin::new("w".into(), &SampleSpec::new(2, Seed(seed)), settings.prior.clone());
    gallery.expect_of(origin, settings);
}

#[test]
fn old_tiles_stay_until_replaced_and_late_ones_are_dropped() {
    let mut gallery = Gallery::default();
    ask(&mut gallery, (1, 2), 0, Settings::default_for(2));
    gallery.take(update(1, vec![tile(0, 1.0), tile(1, 1.0)]));
    assert!(gallery.complete() && gallery.estimates().is_some_and(|e| e.n == 2));
    gallery.expect(2, 2);
    gallery.take(update(2, vec![tile(0, -1.0)]));
    gallery.take(update(1, vec![tile(0, 1.0)]));
    assert_eq!(gallery.get(0).map(|slot| (slot.generation, slot.tile.posterior.decision)), Some((2, 1)));
    assert_eq!(gallery.get(1).map(|slot| slot.generation), Some(1));
    assert_eq!(gallery.progress(), Progress { done: 1, total: 2 });
    gallery.expect(3, 1);
    assert!(gallery.get(1).is_none());
}

#[test]
fn images_of_another_tau_or_other_latents_are_not_of_this_one() {
    let mut gallery = Gallery::default();
    let ask = |gallery: &mut Gallery, generation, seed, tau| {
        ask(gallery, (generation, 2), seed, Settings { tau: Tau::new(tau).unwrap(), ..Settings::default_for(2) });
    };
    ask(&mut gallery, 1, 1, 1.0);
    gallery.take(update(1, vec![tile(0, 1.0), tile(1, 1.0)]));
    // Another smoothing leaves images as they are.
    ask(&mut gallery, 2, 1, 1.0);
    assert!(gallery.is_of(0, 1.0) && !gallery.is_of(0, 1.5) && !gallery.is_of(2, 1.0));
    ask(&mut gallery, 3, 1, 1.5);
    gallery.take(update(3, vec![tile(0, 1.0)]));
    assert!(gallery.is_of(0, 1.5) && !gallery.is_of(1, 1.5) && !gallery.is_of(1, 1.0));
    ask(&mut gallery, 4, 2, 1.5);
    assert!(!gallery.is_of(0, 1.5));
}

#[test]
fn drafts_are_shown_until_their_tile_comes_and_have_no_figures() {
    let mut gallery = Gallery::default();
    gallery.expect(1, 3);
    let blocks = Progress { done: 1, total: 4 };
    let drafts =
        vec![Draft { index: 2, pixels: vec![7].into(), blocks }, Draft { index: 0, pixels: vec![8].into(), blocks }];
    gallery.take(GalleryUpdate { drafts, ..update(1, vec![tile(1, 1.0)]) });
    assert_eq!(gallery.picture(2).and_then(|(_, pixels)| pixels.bytes()), Some(&[7][..]));
    assert_eq!(arrange(&gallery, Sort::Index, false, None).order, [0, 1, 2]);
    assert_eq!(arrange(&gallery, Sort::Entropy, true, None).order, [1, 0, 2]);
    let arranged = arrange(&gallery, Sort::Index, false, Some(0));
    assert_eq!((arranged.order, arranged.total), (vec![1], 1));
    let look = SamplerOptions { guidance: None, denoise: true };
    gallery.take(update(1, vec![Tile { look: Some(Looked { look, pixels: vec![9].into() }), ..tile(2, 1.0) }]));
    assert!(gallery.draft(2).is_none() && gallery.draft(0).is_some());
    assert_eq!(gallery.picture(2).and_then(|(_, pixels)| pixels.bytes()), Some(&[9][..]));
    gallery.take(GalleryUpdate { failed: vec![0], ..update(1, Vec::new()) });
    assert!(gallery.draft(0).is_none() && gallery.complete() && gallery.estimates().is_none());
    assert!(gallery.cannot_be_made(0) && gallery.failed() == 1);
    gallery.show_only(Some(look));
    assert_eq!(gallery.picture(2).and_then(|(_, pixels)| pixels.bytes()), Some(&[9][..]));
    gallery.show_only(None);
    assert_eq!(gallery.picture(2).and_then(|(_, pixels)| pixels.bytes()), Some(&[0][..]));
    gallery.expect(2, 3);
    assert!(gallery.draft(0).is_none());
}

#[test]
fn what_cannot_be_made_leaves_no_tile_and_no_estimate_of_other_knobs() {
    let mut gallery = Gallery::default();
    ask(&mut gallery, (1, 2), 0, Settings::default_for(2));
    gallery.take(update(1, vec![tile(0, 1.0), tile(1, 1.0)]));
    assert!(gallery.estimates().is_some());
    ask(&mut gallery, (2, 2), 0, Settings::default_for(2));
    gallery.take(GalleryUpdate { failed: vec![1], ..update(2, vec![tile(0, 2.0)]) });
    assert!(gallery.complete() && gallery.get(1).is_none() && gallery.estimates().is_none());
    ask(&mut gallery, (3, 2), 0, Settings::default_for(2));
    assert!(!gallery.cannot_be_made(1));
    gallery.take(update(3, vec![tile(0, 1.0), tile(1, 1.0)]));
    assert!(gallery.estimates().is_some());
}

/// Of n samples of which none is in doubt, 3/n may be: the rule of three. Label noise puts every label in doubt and says
/// nothing of what was not seen, so it holds there, too; and a sum over what was seen is at least 0.
#[test]
fn estimates_hold_what_few_samples_do_not_show() {
    let noise = LabelNoise::symmetric(0.2).unwrap();
    for noise in [None, Some(noise)] {
        let settings = Settings { label_noise: noise, ..Settings::default_for(2) };
        let mut gallery = Gallery::default();
        ask(&mut gallery, (1, 100), 0, settings.clone());
        let posterior = Arc::new(settings.posterior(vec![40.0, 0.0]));
        let sure = |index| Tile { posterior: posterior.clone(), ..tile(index, 40.0) };
        gallery.take(update(1, (0..100).map(sure).collect()));
        let Estimates { n, entropy, bayes_error } = gallery.estimates().unwrap();
        let floor = if settings.label_noise.is_some() { 0.2 } else { 0.0 };
        let (low, high) = bayes_error.interval;
        assert!(n == 100 && (bayes_error.value - floor).abs() < 1e-9);
        // What was not seen lies at an end of the range.
        let ends = [floor - 0.03 * floor, floor + 0.03 * (1.0 - floor)];
        assert!((low - ends[0]).abs() < 1e-9 && (high - ends[1]).abs() < 1e-9, "{low} to {high}");
        assert!((entropy.interval.1 - entropy.value - 0.03 * (2f64.ln() - entropy.value)).abs() < 1e-9);
    }
}

#[test]
fn figures_are_of_the_knobs_of_their_request() {
    let mut gallery = Gallery::default();
    let knobs = |smoothing| Settings { smoothing: Smoothing::new(smoothing).unwrap(), ..Settings::default_for(2) };
    ask(&mut gallery, (1, 2), 0, knobs(1.0));
    gallery.take(update(1, vec![tile(0, 1.0), tile(1, 1.0)]));
    assert!(gallery.has_figures_of_now(0));
    // Another smoothing leaves images as they are, and no figure.
    ask(&mut gallery, (2, 2), 0, knobs(2.0));
    gallery.take(update(2, vec![tile(0, 1.0)]));
    assert!(gallery.is_of(0, 1.0) && gallery.is_of(1, 1.0));
    assert!(gallery.has_figures_of_now(0) && !gallery.has_figures_of_now(1));
    let of =
        |index| gallery.get(index).and_then(|slot| slot.knobs.as_ref()).map(|knobs| knobs.settings.smoothing.get());
    assert_eq!([of(0), of(1)], [Some(2.0), Some(1.0)]);
    // More samples of the same are no other ones.
    ask(&mut gallery, (3, 3), 0, knobs(2.0));
    assert!(gallery.has_figures_of_now(0));
}

#[test]
fn order_is_stable_in_both_directions() {
    let mut gallery = Gallery::default();
    gallery.expect(1, 4);
    gallery.take(update(1, vec![tile(0, 0.5), tile(1, -2.0), tile(2, 0.5), tile(3, 0.0)]));
    let margins = |descending| arrange(&gallery, Sort::Margin, descending, None).order;
    assert_eq!(margins(false), [3, 0, 2, 1]);
    assert_eq!(margins(true), [1, 0, 2, 3]);
    let all = arrange(&gallery, Sort::Index, false, Some(0));
    assert_eq!((all.mismatches, all.total), (1, 4));
    assert!(arrange(&gallery, Sort::Index, false, Some(1)).order.is_empty());
}
