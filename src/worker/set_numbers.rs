//! Numbers that tell sets of images from outside apart.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::oracle::classify::ExternalImages;

/// Values that are hashed together.
const HASHED: usize = 1 << 16;

/// Numbers the sets of images from outside that are shown. A set that is shown again and again, at whatever knobs,
/// keeps its number, and no other images ever have it: who names a number means these images or none.
#[derive(Debug, Default)]
pub struct SetNumbers(Mutex<Newest>);

/// The newest number.
#[derive(Debug, Default)]
struct Newest {
    number: u64,
    /// What it was given to.
    of: Option<[u8; 32]>,
}

impl SetNumbers {
    /// The number of these images in that world (`OracleInfo::world_id`): that of the set before where they are the same,
    /// otherwise the next.
    pub fn of(&self, images: &ExternalImages, world: &str) -> u64 {
        let of = Some(digest(images, world));
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.of != of {
            *newest = Newest { number: newest.number + 1, of };
        }
        newest.number
    }
}

/// What makes images these and no others. Names alone do not: all pasted pictures have one, and a file may have changed.
fn digest(ExternalImages { name, ids, labels, x, .. }: &ExternalImages, world: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    // Quoted and in brackets, so that no two of them run together alike.
    hash.update(format!("{:?}", (world, name, ids, labels)));
    for x in x.chunks(HASHED) {
        hash.update(x.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::posterior::Posterior;
    use crate::oracle::world::Settings;
    use crate::worker::protocol::Pasted;

    /// A picture of two pixels, as it comes from the clipboard.
    fn pasted(x: [f32; 2]) -> ExternalImages {
        ExternalImages::new(Pasted::NAME.into(), vec![Pasted::NAME.into()], None, x.to_vec())
    }

    #[test]
    fn images_that_are_read_again_keep_their_number_and_no_others_have_it() {
        let sets = SetNumbers::default();
        let a = sets.of(&pasted([0.25, 0.5]), "world");
        // Read again at other knobs: only what follows from them is another.
        let known = Some((Settings::default_for(2), Vec::<Posterior>::new()));
        assert_eq!(sets.of(&ExternalImages { known, ..pasted([0.25, 0.5]) }, "world"), a);
        let b = sets.of(&pasted([0.25, 0.75]), "world");
        assert_ne!(b, a, "another picture of the same name is another set");
        let again = sets.of(&pasted([0.25, 0.5]), "world");
        assert!(again != a && again != b, "others stood in its place meanwhile: what meant it was told so");
        let mut known = vec![a, b, again];
        let mut is_new = |images: ExternalImages, world: &str| {
            let number = sets.of(&images, world);
            let new = !known.contains(&number);
            known.push(number);
            new
        };
        assert!(is_new(pasted([0.25, 0.5]), "another world"));
        let named = ExternalImages { ids: vec!["a.png".into()], ..pasted([0.25, 0.5]) };
        assert!(is_new(named.clone(), "another world"));
        assert!(is_new(ExternalImages { labels: Some(vec![Some(1)]), ..named }, "another world"));
    }

    #[test]
    fn texts_that_run_together_alike_are_not_the_same() {
        let ids = |ids: [&str; 2]| ExternalImages::new("set".into(), ids.map(String::from).into(), None, vec![0.5; 2]);
        assert_ne!(digest(&ids(["a\", \"b", "c"]), "w"), digest(&ids(["a", "b\", \"c"]), "w"));
    }
}
