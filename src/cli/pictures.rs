//! What was done to pictures, on stdout.

use crate::error::in_line;
use crate::oracle::pictures::{Picture, summary};

/// Of more pictures than this, only how many were cropped, scaled and so on.
const EACH: usize = 16;

/// Tells what was done to each, and what might be done besides.
pub fn print<'a>(named: impl Iterator<Item = (&'a str, &'a Picture)>) {
    let named: Vec<(&str, &Picture)> = named.collect();
    if named.len() > EACH {
        let pictures: Vec<Picture> = named.iter().map(|(_, picture)| (*picture).clone()).collect();
        if let Some(done) = summary(&pictures) {
            println!("{done} (each in --json)");
        }
    }
    let few = if named.len() > EACH { &[] } else { named.as_slice() };
    for (id, picture) in few {
        println!("{id}: {}", picture.treatment.describe());
    }
    let mut offers = named.iter().filter_map(|(id, picture)| Some((id, picture.treatment.offer()?)));
    if let Some((id, why)) = offers.next() {
        let others = match offers.count() {
            0 => String::new(),
            n => format!(", and so for {n} more"),
        };
        println!("{id} may be dark where this world is light: {why}{others}; --invert exchanges light and dark");
    }
}

/// What is to be said of images that were read, on stderr.
pub fn tell(note: Option<&String>) {
    if let Some(note) = note {
        eprintln!("note: {}", in_line(note));
    }
}
