//! Events and result of a fetch.

use std::path::PathBuf;

/// The address of a file on one of its servers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Mirror(pub String);

impl std::fmt::Display for Mirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Progress of a fetch. While a server is waited for, events come ten times a second or more.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum FetchEvent {
    /// A mirror is asked for a file, or for the rest of it.
    Asking {
        /// Name of the file.
        file: String,
        /// Who is asked.
        mirror: Mirror,
        /// Bytes that are there already.
        from: u64,
    },
    /// More of a file is there (or, while nothing comes, as much as before).
    Received {
        /// Name of the file.
        file: String,
        /// Where it comes from.
        mirror: Mirror,
        /// Bytes that are there.
        done: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// A mirror did not give the file; the next one is asked, if there is one.
    MirrorFailed {
        /// Name of the file.
        file: String,
        /// Who failed.
        mirror: Mirror,
        /// In what way.
        cause: String,
    },
    /// The checksum of what is there already is computed.
    Verifying {
        /// Name of the file.
        file: String,
        /// Bytes read.
        done: u64,
        /// Bytes of the whole file.
        total: u64,
    },
    /// A file is there, whole and right, and is not downloaded.
    Kept {
        /// Name of the file.
        file: String,
    },
    /// A file of that name was there, and is another one: it is kept under another name.
    SetAside {
        /// Name of the file.
        file: String,
        /// Both hashes and lengths, and the name it has now; continues the file's name.
        cause: String,
    },
    /// A file of the corpus is written from what was downloaded.
    Unpacking {
        /// Name of the new file.
        file: String,
        /// Images or bytes done.
        done: u64,
        /// Images or bytes in all.
        total: u64,
    },
}

/// What [`super::fetch()`] did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fetched {
    /// Name of the corpus.
    pub name: String,
    /// The folder to open.
    pub folder: PathBuf,
    /// Names of the files in it.
    pub files: Vec<String>,
    /// Their bytes together.
    pub bytes: u64,
    /// Bytes that came over the network this time; 0 where everything was there.
    pub downloaded: u64,
    /// Archives that were kept for other corpora, and can be deleted.
    pub archives: Vec<PathBuf>,
    /// Licence or terms of use, and whom to cite.
    pub terms: String,
}
