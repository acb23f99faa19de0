//! Key pictures, and the pictures between them: drafts that follow τ while it moves.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::data::ImageShape;
use crate::device::ImageSource;
use crate::units::Tau;
use crate::worker::protocol::{KeyOrigin, KeyPictures};

/// Temperatures of key pictures are multiples of this: a power of two, so that they are exact.
const STEP: f64 = 0.0625;
/// Multiples of STEP of the coarsest grid, and of the finer ones that follow τ.
const GRIDS: [u32; 4] = [8, 4, 2, 1];
/// τ up to which the coarsest grid is filled while nothing else is to do.
const FILLED: f64 = 3.0;
/// A level of the lower key picture counts (1 − s)·ONE, of the upper one s·ONE.
const ONE: u32 = 1 << 16;
/// Bytes of pictures that are kept, but for those at the temperatures next to τ.
const ROOM: usize = 128 << 20;
/// Temperatures that are kept in any case: those on both sides of τ.
const LEAST: usize = 2;
/// Where pictures came too slowly, they are asked for again after so long, at rest: something else may have held
/// them up.
const AGAIN: Duration = Duration::from_secs(60);

/// Samples at a few temperatures.
#[derive(Debug, Default)]
pub struct Keys {
    origin: Option<KeyOrigin>,
    shape: Option<ImageShape>,
    /// By running number and multiple of STEP; `None` of one that cannot be made.
    pictures: HashMap<usize, BTreeMap<u32, Option<Vec<u8>>>>,
    bytes: usize,
    too_slow: Option<Instant>,
}

/// What happens while key pictures are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// τ moves.
    Moving,
    /// What is in view is exact, and the rest of the gallery is still being made: what the first movement of τ needs, and no
    /// more.
    Filling,
    /// Nothing.
    Resting,
}

/// A picture between two temperatures.
#[derive(Debug)]
pub struct Between {
    /// It.
    pub pixels: ImageSource,
    /// Tells it from any other of its running number.
    pub stamp: u64,
}

fn tau_of(place: u32) -> Option<Tau> {
    Tau::new(f64::from(place) * STEP).ok()
}

/// The multiples of `grid` on both sides of τ; one where τ is on it.
fn beside(tau: f64, grid: u32) -> [u32; 2] {
    let places = tau / (STEP * f64::from(grid));
    [places.floor(), places.ceil()].map(|place| place as u32 * grid)
}

/// How far a multiple of STEP is from τ.
fn distance(place: u32, tau: f64) -> f64 {
    (f64::from(place) * STEP - tau).abs()
}

/// The multiples of STEP at which pictures are wanted, each once, most urgent first. What is wanted while something else is to do
/// are the first of those that are wanted at rest: there is always the same to be kept.
fn places(tau: f64, meanwhile: Meanwhile) -> Vec<u32> {
    let mut places: Vec<u32> = GRIDS.iter().flat_map(|&grid| beside(tau, grid)).collect();
    let [low, high] = beside(tau, GRIDS[0]);
    match meanwhile {
        Meanwhile::Moving => {}
        _ if low == high => places.extend([low + GRIDS[0], low.saturating_sub(GRIDS[0])]),
        Meanwhile::Filling => places.truncate(2),
        Meanwhile::Resting => {}
    }
    if meanwhile == Meanwhile::Resting {
        let mut far: Vec<u32> = (0..=(FILLED / STEP) as u32).step_by(GRIDS[0] as usize).collect();
        far.sort_by(|&a, &b| distance(a, tau).total_cmp(&distance(b, tau)));
        places.extend(far);
    }
    let mut seen = Vec::new();
    places.retain(|place| {
        !seen.contains(place) && {
            seen.push(*place);
            true
        }
    });
    places
}

impl Keys {
    /// Forgets pictures of anything else.
    pub fn expect(&mut self, origin: &KeyOrigin) {
        if self.origin.as_ref() != Some(origin) {
            *self = Self { origin: Some(origin.clone()), ..Self::default() };
        }
    }

    /// New pictures; those of anything else are dropped. Where there is no room for all, images that are not `in_view` go first,
    /// then the temperatures that are wanted last for the present τ.
    pub fn take(&mut self, news: KeyPictures, tau: f64, in_view: &[usize]) {
        if self.origin.as_ref() != Some(&news.origin) {
            return;
        }
        self.too_slow = news.too_slow.map(|_| Instant::now());
        self.shape = Some(news.shape);
        for (tau, index, picture) in news.pictures {
            let picture = picture.filter(|picture| picture.len() == news.shape.dims());
            self.bytes += picture.as_ref().map_or(0, Vec::len);
            let place = (tau.get() / STEP).round() as u32;
            let before = self.pictures.entry(index).or_default().insert(place, picture);
            self.bytes -= before.flatten().map_or(0, |before| before.len());
        }
        self.make_room(ROOM, tau, in_view);
    }

    /// Drops pictures until the others have no more bytes than this.
    fn make_room(&mut self, room: usize, tau: f64, in_view: &[usize]) {
        if self.bytes <= room {
            return;
        }
        let kept: BTreeSet<usize> = in_view.iter().copied().collect();
        self.pictures.retain(|index, _| kept.contains(index));
        let mut at: BTreeMap<u32, usize> = BTreeMap::new();
        for (&place, picture) in self.pictures.values().flatten() {
            *at.entry(place).or_default() += picture.as_ref().map_or(0, Vec::len);
        }
        self.bytes = at.values().sum();
        // What is wanted is kept before what is not: it would be drawn again at once.
        let wanted = places(tau, Meanwhile::Resting);
        let urgency = |place: u32| wanted.iter().position(|&other| other == place).unwrap_or(wanted.len());
        let mut order: Vec<u32> = at.keys().copied().collect();
        order.sort_by(|&a, &b| urgency(a).cmp(&urgency(b)).then(distance(a, tau).total_cmp(&distance(b, tau))));
        for place in order.into_iter().skip(LEAST).rev() {
            if self.bytes <= room {
                break;
            }
            self.pictures.values_mut().for_each(|of| _ = of.remove(&place));
            self.bytes -= at.get(&place).copied().unwrap_or_default();
        }
    }

    /// Temperatures at which there is room for pictures of so many images.
    fn most(&self, images: usize) -> usize {
        let all = images * self.shape.map_or(0, |shape| shape.dims());
        ROOM.checked_div(all).map_or(usize::MAX, |most| most.max(LEAST))
    }

    /// Returns whether drafts of this origin are to follow τ: where pictures are there, and where τ has outrun the
    /// exact images, which would be begun again at every τ and never come.
    pub fn follow(&self, origin: &KeyOrigin, outrun: bool) -> bool {
        self.origin.as_ref() == Some(origin) && self.too_slow.is_none() && (outrun || !self.pictures.is_empty())
    }

    /// Shape of the pictures, once there are any.
    pub fn shape(&self) -> Option<ImageShape> {
        self.shape
    }

    /// Sample `index` at τ: between its next key pictures on both sides; `None` without these. Levels
    /// are interpolated linearly in τ, which is a draft and no image of any world.
    pub fn between(&self, index: usize, tau: f64) -> Option<Between> {
        let [low, high] = beside(tau, 1);
        let pictures = self.pictures.get(&index)?;
        let there = |(&place, picture): (&u32, &Option<Vec<u8>>)| picture.is_some().then_some(place);
        let low = pictures.range(..=low).rev().find_map(there)?;
        let high = pictures.range(high..).find_map(there)?;
        // Further apart, it would be two pictures one above the other.
        if high - low > GRIDS[0] {
            return None;
        }
        let [a, b] = [pictures.get(&low)?.as_ref()?, pictures.get(&high)?.as_ref()?];
        let share = if high > low { (tau / STEP - f64::from(low)) / f64::from(high - low) } else { 0.0 };
        // In whole numbers: hundreds of images at every frame.
        let (part, all) = ((share * f64::from(ONE)).round() as u32, ONE);
        let level = |(&a, &b): (&u8, &u8)| ((u32::from(a) * (all - part) + u32::from(b) * part + all / 2) / all) as u8;
        let pixels: Vec<u8> = a.iter().zip(b).map(level).collect();
        // Stamps of finished tiles count from 1 and never come so far.
        let places = u64::from(low) << 40 ^ u64::from(high) << 20;
        Some(Between { pixels: pixels.into(), stamp: (tau.to_bits() ^ places) | 1 << 63 })
    }

    /// What is missing of these images for τ, most urgent first: beside it, coarse to fine; while it
    /// rests also the coarsest grid, outwards from it.
    pub fn wanted(&self, images: &[usize], tau: f64, meanwhile: Meanwhile) -> Vec<(Tau, Vec<usize>)> {
        if self.too_slow.is_some_and(|since| meanwhile == Meanwhile::Moving || since.elapsed() < AGAIN) {
            return Vec::new();
        }
        let places = places(tau, meanwhile).into_iter().take(self.most(images.len()));
        let lacks = |index: &usize, place| !self.pictures.get(index).is_some_and(|of| of.contains_key(&place));
        let missing = |place| -> Vec<usize> { images.iter().copied().filter(|index| lacks(index, place)).collect() };
        let wanted = places.filter_map(|place| Some((tau_of(place)?, missing(place))));
        wanted.filter(|(_, images)| !images.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Prior;
    use crate::oracle::world::SampleSpec;
    use crate::units::Seed;

    const SHAPE: ImageShape = ImageShape { channels: 1, height: 1, width: 2 };

    fn origin(seed: u64) -> KeyOrigin {
        KeyOrigin::new("world".into(), &SampleSpec::new(4, Seed(seed)), Prior::uniform(2))
    }

    /// Answers everything that is wanted by pictures that are linear in τ.
    fn answer(keys: &mut Keys, wanted: &[(Tau, Vec<usize>)], of: KeyOrigin) {
        let one = |tau: Tau, index| (tau, index, Some(vec![(tau.get() * 32.0) as u8, 200]));
        let pictures = wanted.iter().flat_map(|(tau, images)| images.iter().map(|&index| one(*tau, index))).collect();
        keys.take(KeyPictures { origin: of, shape: SHAPE, pictures, too_slow: None }, 1.0, &[]);
    }

    #[test]
    fn what_is_wanted_brackets_tau_and_once_it_is_there_drafts_follow() {
        let mut keys = Keys::default();
        keys.expect(&origin(1));
        assert!(!keys.follow(&origin(1), false) && keys.between(0, 1.0).is_none());
        assert!(keys.follow(&origin(1), true) && !keys.follow(&origin(2), true));
        for tau in [0.0, 0.03, 0.5, 1.0, 1.37, 2.9, 7.77] {
            let wanted = keys.wanted(&[0, 2], tau, Meanwhile::Moving);
            assert!(wanted.len() <= 2 * GRIDS.len());
            answer(&mut keys, &wanted[..wanted.len().min(2)], origin(1));
            let coarse = keys.between(2, tau).expect("the coarsest grid comes first");
            let rest = keys.wanted(&[0, 2], tau, Meanwhile::Moving);
            answer(&mut keys, &rest, origin(1));
            assert!(keys.wanted(&[0, 2], tau, Meanwhile::Moving).is_empty(), "τ = {tau}");
            let fine = keys.between(2, tau).unwrap();
            for draft in [&coarse, &fine] {
                let level = f64::from(draft.pixels.bytes().unwrap()[0]);
                assert!((level - 32.0 * tau).abs() <= 1.0, "{level} at τ = {tau}");
                assert!(draft.stamp >> 63 == 1);
            }
        }
        assert!(keys.follow(&origin(1), false) && !keys.follow(&origin(2), false));
        assert!(keys.between(1, 1.0).is_none(), "of an image that nobody asked for");
    }

    #[test]
    fn at_rest_the_coarse_grid_is_filled_and_then_nothing_is_wanted() {
        let mut keys = Keys::default();
        keys.expect(&origin(1));
        let wanted = keys.wanted(&[3], 1.1, Meanwhile::Resting);
        assert_eq!(wanted[0].0.get(), 1.0);
        answer(&mut keys, &wanted, origin(1));
        assert!(keys.wanted(&[3], 1.1, Meanwhile::Resting).is_empty());
        assert!((0..=300).all(|i| keys.between(3, f64::from(i) * 0.01).is_some()));
        assert!(keys.between(3, 3.3).is_none(), "beyond the slider");
        // While the rest of the gallery is made: as far as the first movement goes.
        for (tau, asked) in [(1.0, vec![1.0, 1.5, 0.5]), (1.1, vec![1.0, 1.5]), (0.0, vec![0.0, 0.5])] {
            let mut keys = Keys::default();
            keys.expect(&origin(1));
            let wanted = keys.wanted(&[3], tau, Meanwhile::Filling);
            assert_eq!(wanted.iter().map(|(tau, _)| tau.get()).collect::<Vec<_>>(), asked);
            answer(&mut keys, &wanted, origin(1));
            assert!(keys.between(3, tau + 0.03).is_some() && keys.wanted(&[3], tau, Meanwhile::Filling).is_empty());
        }
    }

    #[test]
    fn pictures_of_another_world_and_those_that_cannot_be_made_are_never_shown() {
        let mut keys = Keys::default();
        keys.expect(&origin(1));
        let wanted = keys.wanted(&[0], 1.0, Meanwhile::Moving);
        answer(&mut keys, &wanted, origin(2));
        assert!(keys.between(0, 1.0).is_none());
        let pictures = wanted.iter().map(|(tau, _)| (*tau, 0, None)).collect();
        keys.take(KeyPictures { origin: origin(1), shape: SHAPE, pictures, too_slow: None }, 1.0, &[]);
        assert!(
            keys.between(0, 1.0).is_none() && keys.wanted(&[0], 1.0, Meanwhile::Moving).is_empty(),
            "asked for once"
        );
        keys.expect(&origin(2));
        assert!(!keys.wanted(&[0], 1.0, Meanwhile::Moving).is_empty());
        let slow = Some(std::time::Duration::from_secs(1));
        keys.take(KeyPictures { origin: origin(2), shape: SHAPE, pictures: Vec::new(), too_slow: slow }, 1.0, &[]);
        assert!(keys.wanted(&[0], 1.0, Meanwhile::Moving).is_empty() && !keys.follow(&origin(2), true));
        keys.too_slow = Instant::now().checked_sub(AGAIN);
        assert!(keys.wanted(&[0], 1.0, Meanwhile::Moving).is_empty());
        let again = keys.wanted(&[0], 1.0, Meanwhile::Resting);
        answer(&mut keys, &again, origin(2));
        assert!(!again.is_empty() && keys.follow(&origin(2), false), "asked again after a while, and quick now");
    }

    /// 256²×3 levels of 96 images: 18.9 MB at every τ, room for seven of them.
    #[test]
    fn pictures_far_from_tau_make_room_and_what_is_wanted_comes_to_an_end() {
        let shape = ImageShape { channels: 3, height: 256, width: 256 };
        let (mut keys, in_view) = (Keys::default(), (0..96).collect::<Vec<usize>>());
        keys.expect(&origin(1));
        for tau in [0.3, 1.03, 1.61, 2.2, 2.87] {
            let mut asked = 0;
            while let Some((at, images)) = keys.wanted(&in_view, tau, Meanwhile::Resting).into_iter().next() {
                let pictures = images.iter().map(|&index| (at, index, Some(vec![1; shape.dims()]))).collect();
                let news = KeyPictures { origin: origin(1), shape, pictures, too_slow: None };
                keys.take(news, tau, &in_view);
                let held: usize = keys.pictures.values().flat_map(BTreeMap::values).flatten().map(Vec::len).sum();
                assert!(held <= ROOM && held == keys.bytes, "{held} bytes are held, {} are counted", keys.bytes);
                asked += 1;
                assert!(asked <= 7, "what was dropped is asked for again and again");
            }
            assert!(keys.between(95, tau).is_some(), "τ = {tau}");
        }
        assert!(keys.between(0, 0.3).is_none(), "far away");
    }
}
