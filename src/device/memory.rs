//! Memory of the host that is given back and asked for again.

use std::hint::black_box;

/// A little less than the largest block (32 MiB) by whose release glibc learns.
const BLOCK: usize = (32 << 20) - (64 << 10);

/// Makes the C library keep what is freed. Training takes and frees blocks of some MiB in every step; glibc maps those beyond a
/// threshold from the system one by one and gives them back at once, so that every page is cleared and entered anew, step by
/// step. It raises that threshold to the size of the largest block it has seen freed, and gives the end of its heap back only
/// beyond twice that size: this shows it the largest that counts, untouched. Other libraries do not mind.
pub fn keep_freed() {
    drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
}
