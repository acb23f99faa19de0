//! As much of Python's pickle as the batches of CIFAR and downsampled ImageNet need: dictionaries, lists, texts, whole numbers and
//! NumPy arrays, in protocols 2 to 5.
//!
//! A pickle is a program for a stack machine (CPython, `Lib/pickletools.py`) that may name any function of Python and have it called. Here
//! nothing is ever called: the four names that NumPy's arrays need are known, any other is refused by name, and so is every
//! instruction beyond those that such files have. The bytes of arrays stay in the file; where they lie is remembered. (The reader of
//! PyTorch's checkpoints, `flow::weights`, is another machine for other files: there, no bytes are inside.)

mod machine;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::source::open_file;
use crate::error::{Error, Result};

/// Place of an object in [`Pickle::nodes`].
type Id = usize;

/// Bytes in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    offset: u64,
    bytes: u64,
    /// Whether they are the UTF-8 of a text whose characters are the bytes that are meant: how protocol 2 writes bytes in Python 3.
    latin1: bool,
}

/// An array of NumPy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Array {
    shape: Vec<usize>,
    /// Type and width, such as `u1`.
    dtype: String,
    /// Most significant byte first.
    big: bool,
    data: Span,
}

/// An object.
#[derive(Debug, Clone)]
enum Node {
    /// Nothing that is needed here: none, fractions.
    Other,
    Int(i64),
    /// A text, or bytes of Python.
    Bytes(Span, Option<Vec<u8>>),
    Sequence(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    /// An array of NumPy that has not got its state, or a type.
    Unset,
    Dtype(String, bool),
    Array(Box<Array>),
}

/// The names that these pickles may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Global {
    /// `numpy.core.multiarray._reconstruct`: an array without its state.
    Reconstruct,
    /// `numpy.core.numeric._frombuffer`: a whole array (protocol 5).
    FromBuffer,
    Ndarray,
    Dtype,
    /// `_codecs.encode`: bytes of a text.
    Encode,
}

impl Global {
    fn of(module: &str, name: &str) -> Result<Self, String> {
        Ok(match (module, name) {
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Self::Reconstruct,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Self::FromBuffer,
            ("numpy", "ndarray") => Self::Ndarray,
            ("numpy", "dtype") => Self::Dtype,
            ("_codecs", "encode") => Self::Encode,
            _ => {
                return Err(format!(
                    "wants to run code: its pickle names '{module}.{name}', which no array needs. Nothing of it was run"
                ));
            }
        })
    }
}

/// A pickle that was read: a dictionary.
#[derive(Debug)]
pub(super) struct Pickle {
    path: PathBuf,
    file: BufReader<File>,
    nodes: Vec<Node>,
    root: Id,
}

impl Pickle {
    /// Reads the structure of a pickled dictionary.
    ///
    /// # Errors
    /// Names the file and what is wrong: cut short, no pickle of protocol 2 to 5, the code that it wants to run.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = open_file(path)?;
        let length = file.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
        let (nodes, root) = machine::run(&mut file, length).map_err(|cause| Error::file(path, cause))?;
        match nodes[root] {
            Node::Dict(_) => Ok(Self { path: path.to_owned(), file, nodes, root }),
            _ => Err(Error::file(path, "is a pickle, but not of a dictionary as batches of images are")),
        }
    }

    fn entry(&self, name: &str) -> Option<&Node> {
        let Node::Dict(pairs) = &self.nodes[self.root] else { return None };
        let named = |id: Id| matches!(&self.nodes[id], Node::Bytes(_, Some(text)) if text == name.as_bytes());
        pairs.iter().rfind(|(key, _)| named(*key)).map(|(_, value)| &self.nodes[*value])
    }

    /// Whether there is something of that name.
    pub fn holds(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn bad(&self, name: &str, cause: impl std::fmt::Display) -> Error {
        Error::file(&self.path, format!("'{name}': {cause}"))
    }

    /// The texts of a list.
    ///
    /// # Errors
    /// When it is missing or no list of texts.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let text = |&id: &Id| match &self.nodes[id] {
            Node::Bytes(_, Some(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        match self.entry(name) {
            Some(Node::Sequence(items)) => items.iter().map(text).collect(),
            _ => None,
        }
        .ok_or_else(|| self.bad(name, "is missing, or no list of texts"))
    }

    /// The whole numbers of a list or array.
    ///
    /// # Errors
    /// When it is missing, or something else.
    pub fn integers(&mut self, name: &str) -> Result<Vec<i64>> {
        let int = |&id: &Id| if let Node::Int(value) = self.nodes[id] { Some(value) } else { None };
        let array = match self.entry(name) {
            Some(Node::Sequence(items)) => {
                let all: Option<Vec<i64>> = items.iter().map(int).collect();
                return all.ok_or_else(|| self.bad(name, "is no list of whole numbers"));
            }
            Some(Node::Array(array)) => (**array).clone(),
            _ => return Err(self.bad(name, "is missing, or no list of whole numbers")),
        };
        let mut bytes = Vec::new();
        self.read(array.data, &mut bytes).map_err(|e| self.bad(name, e))?;
        decode(&array, &bytes).filter(|values| values.len() == array.shape.iter().product::<usize>()).ok_or_else(|| {
            self.bad(name, format!("{} bytes are no whole numbers of type {}", bytes.len(), array.dtype))
        })
    }

    /// Rows and columns of an array of bytes, whose values are appended to `into`.
    ///
    /// # Errors
    /// When it is missing, or another kind of array.
    pub fn rows(&mut self, name: &str, into: &mut Vec<u8>) -> Result<(usize, usize)> {
        let Some(Node::Array(array)) = self.entry(name) else {
            return Err(self.bad(name, "is missing, or no array"));
        };
        let array = (**array).clone();
        let ([rows, columns], "u1") = (&array.shape[..], array.dtype.as_str()) else {
            let cause =
                format!("type {} of shape {:?}; images are bytes (u1) of [N, pixels]", array.dtype, array.shape);
            return Err(self.bad(name, cause));
        };
        let shape = (*rows, *columns);
        let before = into.len();
        self.read(array.data, into).map_err(|e| self.bad(name, e))?;
        match into.len() - before == rows * columns {
            true => Ok(shape),
            false => Err(self.bad(name, format!("{} bytes for shape {shape:?}", into.len() - before))),
        }
    }

    /// Appends the bytes of a span.
    fn read(&mut self, span: Span, into: &mut Vec<u8>) -> Result<(), String> {
        let io = |e: std::io::Error| e.to_string();
        self.file.seek(SeekFrom::Start(span.offset)).map_err(io)?;
        let mut bytes = (&mut self.file).take(span.bytes);
        if !span.latin1 {
            bytes.read_to_end(into).map_err(io)?;
            return Ok(());
        }
        // One or two bytes a character: 110000ab 10cdefgh is the byte abcdefgh.
        let mut high = None;
        for byte in bytes.bytes() {
            match (byte.map_err(io)?, high.take()) {
                (byte @ ..0x80, None) => into.push(byte),
                (byte @ 0xc2..=0xc3, None) => high = Some(byte),
                (byte @ 0x80..0xc0, Some(high)) => into.push((high & 3) << 6 | (byte & 0x3f)),
                _ => return Err("is a text that stands for no bytes".into()),
            }
        }
        Ok(())
    }
}

/// Whole numbers of one to eight bytes.
fn decode(array: &Array, bytes: &[u8]) -> Option<Vec<i64>> {
    let (signed, width) = match array.dtype.as_bytes() {
        [b'i', width @ (b'1' | b'2' | b'4' | b'8')] => (true, usize::from(width - b'0')),
        [b'u', width @ (b'1' | b'2' | b'4')] => (false, usize::from(width - b'0')),
        _ => return None,
    };
    let value = |item: &[u8]| {
        let fold = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
        let raw = if array.big { item.iter().fold(0, fold) } else { item.iter().rev().fold(0, fold) };
        let unused = 64 - 8 * width as u32;
        if signed { (raw << unused).cast_signed() >> unused } else { raw.cast_signed() }
    };
    Some(bytes.chunks_exact(width).map(value).collect())
}
