//! Bytes and texts changed at random.

use rand::RngExt;
use rand::seq::IndexedRandom;

/// Where every choice comes from.
pub type Rng = rand_chacha::ChaCha8Rng;

/// Numbers at which lengths, counts and offsets go wrong.
const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    1 << 16,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX,
];
/// Their like as words of a text.
const WORDS: [&str; 30] = [
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "-0.0",
    "1e308",
    "1e999",
    "-1e999",
    "1e-320",
    "NaN",
    "inf",
    "-inf",
    "255",
    "256",
    "65536",
    "2147483648",
    "4294967296",
    "999999999999",
    "9223372036854775807",
    "18446744073709551616",
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "''",
    "\"\\u0000\"",
    "1_000",
    "\u{feff}",
];
/// Most changes of one input.
const MOST: usize = 5;
/// Longest chunk that is doubled, moved or lost.
const CHUNK: usize = 64;
/// How much longer than its seed an input may become.
const GROWN: usize = 4096;

fn place(rng: &mut Rng, length: usize) -> usize {
    const ENDS: usize = 256;
    // Headers stand in front, directories at the end.
    match rng.random_range(0..4) {
        0 => rng.random_range(0..length.min(ENDS)),
        1 => rng.random_range(length - length.min(ENDS)..length),
        _ => rng.random_range(0..length),
    }
}

fn chunk(rng: &mut Rng, bytes: &[u8]) -> std::ops::Range<usize> {
    let at = place(rng, bytes.len());
    let most = if rng.random_ratio(1, 16) { bytes.len() } else { CHUNK };
    at..(at + rng.random_range(1..=most)).min(bytes.len())
}

/// Writes a number over the bytes at a place, in 1 to 8 bytes, either end first.
fn number(rng: &mut Rng, bytes: &mut [u8]) {
    let at = place(rng, bytes.len());
    let width = 1 << rng.random_range(0..4);
    let value = match rng.random_range(0..3) {
        0 => rng.random::<u64>(),
        1 => bytes.len() as u64 + rng.random_range(0..3) - 1,
        _ => *NUMBERS.choose(rng).unwrap(),
    };
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    let word = if rng.random() { &little[..width] } else { &big[8 - width..] };
    bytes[at..].iter_mut().zip(word).for_each(|(byte, new)| *byte = *new);
}

/// `seed` after some changes; `other` is a file of the same kind, parts of which may come in.
pub fn bytes(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.random_range(1..=MOST) {
        if bytes.is_empty() {
            bytes.push(rng.random());
        }
        match rng.random_range(0..12) {
            0 | 1 => {
                let at = place(rng, bytes.len());
                bytes[at] ^= 1 << rng.random_range(0..8);
            }
            2 => {
                let at = place(rng, bytes.len());
                bytes[at] = rng.random();
            }
            3 => {
                let at = place(rng, bytes.len());
                bytes[at] = bytes[at].wrapping_add(rng.random_range(0..3)).wrapping_sub(1);
            }
            4..=6 => number(rng, &mut bytes),
            7 => bytes.truncate(place(rng, seed.len().max(1))),
            8 => {
                let range = chunk(rng, &bytes);
                bytes.drain(range);
            }
            9 => {
                let double = bytes[chunk(rng, &bytes)].to_vec();
                let at = place(rng, bytes.len());
                bytes.splice(at..at, double);
            }
            10 if !other.is_empty() => {
                let new = other[chunk(rng, other)].to_vec();
                let old = chunk(rng, &bytes);
                bytes.splice(old, new);
            }
            _ => {
                let range = chunk(rng, &bytes);
                let value = *[0, 0xff, b' ', rng.random()].choose(rng).unwrap();
                bytes[range].fill(value);
            }
        }
        bytes.truncate(2 * seed.len() + GROWN);
    }
    bytes
}

/// Words, spaces and single signs of a text.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        _ if c.is_alphanumeric() || "._-+".contains(c) => 0,
        ' ' | '\t' => 1,
        _ => 2,
    };
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |&(_, c): &(usize, char)| kind(c) != kind(first) || kind(c) == 2;
        let end = rest.char_indices().skip(1).find(same).map_or(rest.len(), |(at, _)| at);
        tokens.push(&rest[..end]);
        rest = &rest[end..];
    }
    tokens
}

/// A text whose words and signs are changed; some inputs are no text any more.
pub fn text(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    if rng.random_ratio(1, 6) {
        return bytes(rng, seed, other);
    }
    let (seed, other) = (String::from_utf8_lossy(seed), String::from_utf8_lossy(other));
    let (mut words, theirs) = (tokens(&seed), tokens(&other));
    let nested = [["[", "{", "{\"a\":", "(", "["], ["]", "}", "1}", ")", ","]];
    let deep = rng.random_range(0..5);
    let (left, right) = (nested[0][deep].repeat(3000), nested[1][deep].repeat(3000));
    let long = "9".repeat(3000);
    for _ in 0..rng.random_range(1..=MOST) {
        if words.is_empty() {
            words.push("x");
        }
        let at = rng.random_range(0..words.len());
        let to = (at + rng.random_range(1..12)).min(words.len());
        match rng.random_range(0..11) {
            0..=2 => words[at] = WORDS.choose(rng).unwrap(),
            3 => words[at] = theirs.choose(rng).unwrap_or(&"x"),
            4 => drop(words.drain(at..to)),
            5 => {
                let double = words[at..to].to_vec();
                words.splice(at..at, double);
            }
            6 => words.insert(at, WORDS.choose(rng).unwrap()),
            7 => words.truncate(at),
            8 => {
                let to = rng.random_range(0..words.len());
                words.swap(at, to);
            }
            9 if rng.random_ratio(1, 8) => words[at] = if rng.random() { &left } else { &right },
            10 if rng.random_ratio(1, 8) => words[at] = &long,
            _ => {
                // A number for a number: what is read past the syntax.
                let numbers: Vec<usize> = (0..words.len()).filter(|&i| words[i].parse::<f64>().is_ok()).collect();
                if let Some(&i) = numbers.choose(rng) {
                    words[i] = WORDS[..21].choose(rng).unwrap();
                }
            }
        }
    }
    words.concat().into_bytes()
}
