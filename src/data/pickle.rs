//! Python's pickle, as far as files of arrays need it.
//!
//! A pickle is a program for a stack machine (CPython, `Lib/pickletools.py`) that may call any
//! function of Python. Nothing is ever called here. One machine ([`run`]) builds numbers, texts and
//! containers. A [`Dialect`] lists the names a file may use beyond that and the objects that stand
//! for their results: batches of images ([`Batch`]) and PyTorch checkpoints (`flow::weights`) have
//! one each.
//!
//! Objects live in one list; their index is their identity, as references are in Python.

mod batch;
mod machine;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::ops::{Index, IndexMut};

pub(super) use batch::Batch;
pub(crate) use machine::run;

/// The message for a pickle that no pickler wrote.
pub(crate) const BROKEN: &str = "its pickle is damaged";

/// Place of an object in [`Objects`].
pub(crate) type Id = usize;

/// Bytes in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The first, counted from where the pickle begins.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Whether these are UTF-8 of a text of Latin-1 bytes: how Python 3 writes protocol 2.
    pub latin1: bool,
}

/// A text or bytes: where they lie, and, when there are few, what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub span: Span,
    pub held: Option<Box<[u8]>>,
}

/// An object. `G`: the names a dialect knows; `M`: what it makes of calls.
#[derive(Debug)]
pub(crate) enum Node<G, M> {
    /// Nothing that is needed here: none, a fraction, a whole number beyond 64 bits.
    Other,
    /// A whole number, or a flag as 0 or 1.
    Int(i64),
    /// A text; also the bytes of Python 2.
    Text(Text),
    /// Bytes of Python 3.
    Bytes(Text),
    /// A list, tuple or set.
    Sequence(Vec<Id>),
    /// Pairs in the order in which they were set.
    Dict(Vec<(Id, Id)>),
    Global(G),
    Made(M),
}

/// All objects of a pickle.
#[derive(Debug)]
pub(crate) struct Objects<G, M> {
    nodes: Vec<Node<G, M>>,
    /// Steps that may still be taken.
    steps: usize,
}

impl<G, M> Objects<G, M> {
    fn new(steps: usize) -> Self {
        Self { nodes: Vec::new(), steps }
    }

    /// Adds an object.
    pub fn add(&mut self, node: Node<G, M>) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Counts instructions and copied items.
    pub fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.checked_sub(steps).ok_or("its pickle is longer than any of its kind")?;
        Ok(())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Node<G, M>> {
        self.nodes.iter()
    }

    /// The items of a list, tuple or set.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        if let Node::Sequence(items) = &self[id] { Some(items) } else { None }
    }

    /// A text that is held.
    pub fn text(&self, id: Id) -> Option<Cow<'_, str>> {
        let Node::Text(text) = &self[id] else { return None };
        text.held.as_deref().map(String::from_utf8_lossy)
    }

    /// A whole number that is not negative.
    pub fn size(&self, id: Id) -> Option<u64> {
        if let Node::Int(value) = self[id] { value.try_into().ok() } else { None }
    }
}

impl<G, M> Index<Id> for Objects<G, M> {
    type Output = Node<G, M>;

    fn index(&self, id: Id) -> &Self::Output {
        &self.nodes[id]
    }
}

impl<G, M> IndexMut<Id> for Objects<G, M> {
    fn index_mut(&mut self, id: Id) -> &mut Self::Output {
        &mut self.nodes[id]
    }
}

/// What one kind of files may say, and what stands for what they would make.
pub(crate) trait Dialect {
    /// The known names.
    type Global: Copy + Debug;
    /// What calls of them make.
    type Made: Debug;

    /// Such a file, for messages.
    const FILE: &'static str;
    /// Instructions of one pickle, and items that [`Objects::spend`] counts.
    const MAX_STEPS: usize;

    /// Returns whether these files have an instruction.
    fn knows(instruction: u8) -> bool;

    /// The meaning of a name of a module. The error says which code the file wants to run.
    fn global(module: &str, name: &str) -> Result<Self::Global, String>;

    /// The object that stands for the result of a call; an error for calls these files never make.
    fn call(&self, objects: &mut Objects<Self::Global, Self::Made>, name: Self::Global, args: Id)
    -> Result<Id, String>;

    /// Gives an object its state; an error where it has none.
    fn build(&self, objects: &mut Objects<Self::Global, Self::Made>, object: Id, state: Id) -> Result<(), String>;

    /// The object that stands for a persistent id, a reference out of the pickle.
    fn outside(
        &self,
        objects: &Objects<Self::Global, Self::Made>,
        id: Id,
    ) -> Result<Node<Self::Global, Self::Made>, String>;
}

/// What a pickle is read from.
pub(crate) trait Source: BufRead {
    /// Skips bytes; beyond the end only the next read may fail.
    fn skip(&mut self, bytes: u64) -> io::Result<()>;
}

impl<R: Read + Seek> Source for BufReader<R> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.seek_relative(bytes.try_into().map_err(|_| io::ErrorKind::UnexpectedEof)?)
    }
}

impl Source for &[u8] {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        *self = usize::try_from(bytes).ok().and_then(|n| self.get(n..)).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(())
    }
}
