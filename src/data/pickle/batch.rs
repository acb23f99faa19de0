//! Pickled batches of images: the dictionaries of CIFAR and downsampled ImageNet, with lists,
//! texts, whole numbers and NumPy arrays, in protocols 2 to 5. The bytes of arrays stay in the
//! file; their offsets are kept.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{BROKEN, Dialect, Id, Span, Text, run};
use crate::data::batches::is_pickle;
use crate::data::source::{head, open_file};
use crate::error::{Error, Result};

/// Axes of an array.
const MAX_RANK: usize = 8;
const FORTRAN: &str = "has an array that is stored column by column, which is not read: save it again after \
                       numpy.ascontiguousarray";

type Node = super::Node<Global, Made>;
type Objects = super::Objects<Global, Made>;

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

/// What stands for the results of calls.
#[derive(Debug)]
enum Made {
    /// An array of NumPy that has not got its state.
    Unset,
    /// A type, and whether its most significant byte comes first.
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

/// What a batch may say.
struct Batches;

impl Dialect for Batches {
    type Global = Global;
    type Made = Made;

    const FILE: &'static str = "batch of images";
    /// A batch of 128,000 images takes 150,000.
    const MAX_STEPS: usize = 8_000_000;

    fn knows(instruction: u8) -> bool {
        matches!(
            instruction,
            b'.' | b'(' | b'N' | b'G' | b'J' | b'K' | b'M' | b'U' | b'T' | b'C' | b'B' | b'X' | b')' | b']' | b'}' | b't'
                | b'a' | b'e' | b's' | b'u' | b'q' | b'r' | b'h' | b'j' | b'c' | b'R' | b'b'
                // Of protocol 2 and later.
                | 0x80 | 0x85..=0x8a | 0x8c..=0x8e | 0x93..=0x96
        )
    }

    fn global(module: &str, name: &str) -> Result<Global, String> {
        Ok(match (module, name) {
            ("numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct") => Global::Reconstruct,
            ("numpy.core.numeric" | "numpy._core.numeric", "_frombuffer") => Global::FromBuffer,
            ("numpy", "ndarray") => Global::Ndarray,
            ("numpy", "dtype") => Global::Dtype,
            ("_codecs", "encode") => Global::Encode,
            _ => {
                return Err(format!(
                    "wants to run code: its pickle names '{module}.{name}', which no array needs. Nothing of it was run"
                ));
            }
        })
    }

    fn call(&self, objects: &mut Objects, name: Global, args: Id) -> Result<Id, String> {
        let held = |id: Id| objects.text(id).ok_or(BROKEN);
        let node = match (name, items(objects, args)?) {
            // Class, empty shape, and type of what comes with the state.
            (Global::Reconstruct, &[class, _, _]) if matches!(objects[class], Node::Global(Global::Ndarray)) => {
                Node::Made(Made::Unset)
            }
            (Global::FromBuffer, &[data, dtype, shape, order]) if held(order)? == "C" => {
                Node::Made(Made::Array(Box::new(array(objects, shape, dtype, data)?)))
            }
            (Global::FromBuffer, &[_, _, _, _]) => return Err(FORTRAN.into()),
            (Global::Dtype, &[name, ..]) => Node::Made(Made::Dtype(held(name)?.into_owned(), false)),
            (Global::Encode, &[text, codec]) if ["latin1", "latin-1"].contains(&&*held(codec)?) => {
                let Text { span, held } = bytes(&objects[text]).ok_or(BROKEN)?;
                let ascii = held.clone().filter(|held| held.is_ascii());
                Node::Bytes(Text { span: Span { latin1: true, ..*span }, held: ascii })
            }
            _ => return Err(BROKEN.into()),
        };
        Ok(objects.add(node))
    }

    fn build(&self, objects: &mut Objects, object: Id, state: Id) -> Result<(), String> {
        let node = match (&objects[object], items(objects, state)?) {
            (Node::Made(Made::Unset), &[_, shape, dtype, fortran, data]) => {
                let array = array(objects, shape, dtype, data)?;
                // One row or column is the same in both orders.
                let line = array.shape.iter().filter(|&&size| size > 1).count() < 2;
                match objects[fortran] {
                    Node::Int(0) => {}
                    Node::Int(1) if line => {}
                    _ => return Err(FORTRAN.into()),
                }
                Node::Made(Made::Array(Box::new(array)))
            }
            (Node::Made(Made::Dtype(name, _)), &[_, order, ..]) => {
                Node::Made(Made::Dtype(name.clone(), objects.text(order).ok_or(BROKEN)? == ">"))
            }
            _ => return Err(BROKEN.into()),
        };
        objects[object] = node;
        Ok(())
    }

    fn outside(&self, _: &Objects, _: Id) -> Result<Node, String> {
        Err("its pickle refers to data that the file does not have".into())
    }
}

/// The items of a tuple.
fn items(objects: &Objects, id: Id) -> Result<&[Id], String> {
    objects.items(id).ok_or_else(|| BROKEN.into())
}

/// A text, or bytes: which of them a program of Python 2 or 3 has written tells nothing.
fn bytes(node: &Node) -> Option<&Text> {
    if let Node::Text(text) | Node::Bytes(text) = node { Some(text) } else { None }
}

/// What a short text or bytes are.
fn held(node: &Node) -> Option<&[u8]> {
    bytes(node)?.held.as_deref()
}

fn array(objects: &Objects, shape: Id, dtype: Id, data: Id) -> Result<Array, String> {
    let size = |&id: &Id| objects.size(id).and_then(|size| usize::try_from(size).ok());
    let shape = items(objects, shape)?.iter().map(size).collect::<Option<Vec<_>>>().ok_or(BROKEN)?;
    let (Node::Made(Made::Dtype(dtype, big)), Some(Text { span, .. })) = (&objects[dtype], bytes(&objects[data]))
    else {
        return Err(BROKEN.into());
    };
    let width: usize = dtype.get(1..).and_then(|width| width.parse().ok()).ok_or(BROKEN)?;
    let bytes = shape.iter().try_fold(width as u64, |all, &size| all.checked_mul(size as u64));
    // A text takes one or two bytes for each byte that is meant.
    let fits = |bytes: u64| if span.latin1 { bytes <= span.bytes } else { bytes == span.bytes };
    if shape.len() > MAX_RANK || !bytes.is_some_and(fits) {
        return Err(format!("has an array of shape {shape:?} and type {dtype} in {} bytes", span.bytes));
    }
    Ok(Array { shape, dtype: dtype.clone(), big: *big, data: *span })
}

/// A pickle that was read: a dictionary.
#[derive(Debug)]
pub(in crate::data) struct Batch {
    path: PathBuf,
    file: BufReader<File>,
    objects: Objects,
    root: Id,
}

impl Batch {
    /// Reads the structure of a pickled dictionary.
    pub fn open(path: &Path) -> Result<Self> {
        let bad = |cause: String| Error::file(path, cause);
        if !is_pickle(&head(path, 2)?) {
            return Err(bad("is no pickle of protocol 2 to 5 (save it again with pickle.dump(…, protocol=4))".into()));
        }
        let mut file = open_file(path)?;
        let length = file.get_ref().metadata().map_err(|e| Error::io(path, e))?.len();
        let (objects, root) = run(&mut file, length, &Batches).map_err(bad)?;
        match objects[root] {
            Node::Dict(_) => Ok(Self { path: path.to_owned(), file, objects, root }),
            _ => Err(bad("is a pickle, but not of a dictionary as batches of images are".into())),
        }
    }

    fn entry(&self, name: &str) -> Option<&Node> {
        let Node::Dict(pairs) = &self.objects[self.root] else { return None };
        let named = |id: Id| held(&self.objects[id]) == Some(name.as_bytes());
        pairs.iter().rfind(|(key, _)| named(*key)).map(|(_, value)| &self.objects[*value])
    }

    /// Returns whether there is something of that name.
    pub fn holds(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    fn bad(&self, name: &str, cause: impl std::fmt::Display) -> Error {
        Error::file(&self.path, format!("'{name}': {cause}"))
    }

    /// The texts of a list.
    pub fn texts(&self, name: &str) -> Result<Vec<String>> {
        let text = |&id: &Id| held(&self.objects[id]).map(|text| String::from_utf8_lossy(text).into_owned());
        match self.entry(name) {
            Some(Node::Sequence(items)) => items.iter().map(text).collect(),
            _ => None,
        }
        .ok_or_else(|| self.bad(name, "is missing, or no list of texts"))
    }

    /// The whole numbers of a list or array.
    pub fn integers(&mut self, name: &str) -> Result<Vec<i64>> {
        let int = |&id: &Id| if let Node::Int(value) = self.objects[id] { Some(value) } else { None };
        let array = match self.entry(name) {
            Some(Node::Sequence(items)) => {
                let all: Option<Vec<i64>> = items.iter().map(int).collect();
                return all.ok_or_else(|| self.bad(name, "is no list of whole numbers"));
            }
            Some(Node::Made(Made::Array(array))) => (**array).clone(),
            _ => return Err(self.bad(name, "is missing, or no list of whole numbers")),
        };
        let mut bytes = Vec::new();
        self.read(array.data, &mut bytes).map_err(|e| self.bad(name, e))?;
        decode(&array, &bytes).filter(|values| values.len() == array.shape.iter().product::<usize>()).ok_or_else(|| {
            self.bad(name, format!("{} bytes are no whole numbers of type {}", bytes.len(), array.dtype))
        })
    }

    /// Rows and columns of an array of bytes, whose values are appended to `into`.
    pub fn rows(&mut self, name: &str, into: &mut Vec<u8>) -> Result<(usize, usize)> {
        let Some(Node::Made(Made::Array(array))) = self.entry(name) else {
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
