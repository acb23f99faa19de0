//! Files that a user or a disk got wrong, by the thousand: every reader is given mutations of whole files and must answer with an
//! error that names the file, or with what it read. No panic, nothing over a second, no more memory than 4 times the file and 64 MiB.
//!
//! As part of the tests each reader gets some hundred to some thousand inputs. `BAYESCOPE_FUZZ=1000000` gives each so many (in an
//! optimised build, one process a reader: `tests/fuzz/sweep.sh`), `BAYESCOPE_FUZZ_FROM=N` begins at input N, and
//! `BAYESCOPE_FUZZ_SECONDS=S` ends after S seconds. Inputs follow from the reader's name and their number. What failed is kept in the folder that the message names, made smaller where that is easy; a
//! reader that was mended keeps its input in `found/READER/`.
//!
//! | file | what |
//! |---|---|
//! | `watch` | one input under observation: panic, time, memory; what the inputs of a reader came to |
//! | `mutate`, `forms` | bytes changed at random, and inside of archives, headers and messages, whose lengths and checksums are made right again |
//! | `readers` | the readers and the whole files that their inputs are made of |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../glow_reference/forge.rs"]
#[allow(dead_code)] // Its holes and safetensors are for files larger than memory.
mod forge;
mod forms;
mod mutate;
mod readers;
mod watch;
