//! Which image an error is about: a flow counts among the images that it is given.

use std::path::PathBuf;

use crate::error::{Error, OVERFLOW, in_line};
use crate::units::Tau;

/// An error about an image of a batch, with the number of the batch's first image.
pub fn renumber(error: Error, first: usize) -> Error {
    match error {
        Error::Overflow { image, tau } => Error::Overflow { image: first + image, tau },
        Error::Input(text) if first > 0 => Error::Input(format!("{text} (counted from image {first})")),
        other => other,
    }
}

/// An error about one of the samples that were drawn at τ: `numbers` are their running numbers, where
/// they have others than their places.
pub fn of_sample(error: Error, numbers: &[usize], tau: Tau) -> Error {
    match error {
        Error::Overflow { image, .. } => {
            Error::Overflow { image: numbers.get(image).copied().unwrap_or(image), tau: Some(tau.get()) }
        }
        other => other,
    }
}

/// An error about one of the images of these names. Names that are mere numbers stay numbers.
pub fn named(error: Error, ids: &[String]) -> Error {
    match error {
        Error::Overflow { image, tau: None } => match ids.get(image).filter(|id| id.parse::<usize>().is_err()) {
            Some(id) => Error::Numeric(format!("{} {OVERFLOW}", in_line(id))),
            None => error,
        },
        other => other,
    }
}

/// An error about an image that is known by its number, with the file, folder or dataset it is from.
pub fn within(error: Error, name: &str) -> Error {
    match error {
        Error::Overflow { tau: None, .. } => Error::Numeric(format!("{}: {error}", in_line(name))),
        other => other,
    }
}

/// [`within`] the file or folder, where the images are of a single one.
pub fn from_files(error: Error, paths: &[PathBuf]) -> Error {
    match paths {
        [path] => within(error, &path.display().to_string()),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_called_by_the_number_or_name_that_people_know() {
        let overflow = || Error::Overflow { image: 6, tau: None };
        let ids = |name: &str| (0..7).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
        let tau = Tau::new(1e18).unwrap();
        for (error, words) in [
            (within(renumber(overflow(), 64), "a/big.npz"), format!("a/big.npz: image 70 {OVERFLOW}")),
            (within(named(overflow(), &ids("")), "big.npz"), format!("big.npz: image 6 {OVERFLOW}")),
            (within(named(overflow(), &ids("cat")), "pets"), format!("cat6 {OVERFLOW}")),
            (
                of_sample(renumber(overflow(), 3), &(100..120).collect::<Vec<_>>(), tau),
                format!("sample 109 {OVERFLOW} at τ = 1000000000000000000: lower τ"),
            ),
        ] {
            assert_eq!(error.to_string(), words);
        }
        let input = || Error::input("image 6 is dark");
        assert_eq!(renumber(input(), 0).to_string(), "image 6 is dark");
        assert_eq!(renumber(input(), 64).to_string(), "image 6 is dark (counted from image 64)");
    }
}
