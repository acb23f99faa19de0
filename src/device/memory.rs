//! Memory of the host that is given back and asked for again.

use std::hint::black_box;

/// A little less than the largest block (32 MiB) by whose release glibc learns.
const BLOCK: usize = (32 << 20) - (64 << 10);

/// Makes glibc keep freed memory. Training allocates and frees blocks of some MiB in every step.
/// glibc maps blocks above a threshold one by one and unmaps them at once, so every page is cleared
/// again in every step. Freeing a block raises that threshold to its size, so this frees the
/// largest that counts, untouched. Other C libraries are not affected.
pub fn keep_freed() {
    drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
}
