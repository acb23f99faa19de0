//! The stack machine: each instruction is one byte with its operands.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use super::{Array, Global, Id, Node, Span};

/// Instructions of one pickle: a batch of 128,000 images takes 150,000.
const MAX_STEPS: usize = 8_000_000;
/// Texts up to this length are held; longer ones, and arrays, stay in the file.
const MAX_TEXT: u64 = 4096;
/// Axes of an array.
const MAX_RANK: usize = 8;
const CUT_SHORT: &str = "is cut short";
const BROKEN: &str = "is damaged: its pickle is none that a pickler wrote";

/// Carries out the pickle of a file of `length` bytes: all objects, and which of them it is.
///
/// # Errors
/// A sentence.
pub(super) fn run(file: &mut BufReader<File>, length: u64) -> Result<(Vec<Node>, Id), String> {
    let mut machine =
        Machine { file, at: 0, length, nodes: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: HashMap::new() };
    let [first, protocol] = machine.bytes()?;
    if first != 0x80 || !(2..=5).contains(&protocol) {
        return Err("is no pickle of protocol 2 to 5 (save it again with pickle.dump(…, protocol=4))".into());
    }
    for _ in 0..MAX_STEPS {
        if !machine.step()? {
            let root = machine.pop()?;
            return Ok((machine.nodes, root));
        }
    }
    Err("is a pickle longer than any batch of images".into())
}

struct Machine<'a> {
    file: &'a mut BufReader<File>,
    /// Place in the file, and its length.
    at: u64,
    length: u64,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack at open marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl Machine<'_> {
    /// Carries out one instruction; false after the last.
    fn step(&mut self) -> Result<bool, String> {
        let [op] = self.bytes()?;
        match op {
            b'.' => return Ok(false),
            // The length of a frame: how the rest was written, not what.
            0x95 => drop(self.bytes::<8>()?),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.push(Node::Other),
            b'G' => {
                self.bytes::<8>()?;
                self.push(Node::Other);
            }
            0x88 => self.push(Node::Int(1)),
            0x89 => self.push(Node::Int(0)),
            b'J' => {
                let value = i32::from_le_bytes(self.bytes()?);
                self.push(Node::Int(value.into()));
            }
            b'K' => {
                let [value] = self.bytes()?;
                self.push(Node::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.bytes()?);
                self.push(Node::Int(value.into()));
            }
            0x8a => self.long()?,
            b'U' | b'T' | b'C' | b'B' | 0x8e | 0x96 | 0x8c | b'X' | 0x8d => self.text(op)?,
            b')' | b']' => self.push(Node::Sequence(Vec::new())),
            b'}' => self.push(Node::Dict(Vec::new())),
            b't' | 0x85..=0x87 => self.tuple(op)?,
            b'a' | b'e' | b's' | b'u' => self.fill(op)?,
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember(op)?,
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Node::Global(Global::of(&module, &name)?));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let global = Global::of(&self.held(module)?, &self.held(name)?)?;
                self.push(Node::Global(global));
            }
            b'R' => self.reduce()?,
            b'b' => self.build()?,
            _ => {
                return Err(format!("is a pickle with instruction 0x{op:02x}, which no batch of images needs"));
            }
        }
        Ok(true)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(said)?;
        self.at += N as u64;
        Ok(bytes)
    }

    /// A line of text, without its end; names are short.
    fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        self.file.by_ref().take(MAX_TEXT).read_until(b'\n', &mut line).map_err(said)?;
        self.at += line.len() as u64;
        if line.pop() != Some(b'\n') {
            return Err(BROKEN.into());
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    fn push(&mut self, node: Node) {
        self.stack.push(self.nodes.len());
        self.nodes.push(node);
    }

    fn top(&self) -> Result<Id, String> {
        // What lies below a mark is not for an instruction above it.
        let above_mark = self.marks.last().is_none_or(|&mark| mark < self.stack.len());
        self.stack.last().copied().filter(|_| above_mark).ok_or_else(|| BROKEN.into())
    }

    fn pop(&mut self) -> Result<Id, String> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or(BROKEN)?;
        Ok(self.stack.split_off(mark))
    }

    fn long(&mut self) -> Result<(), String> {
        let [length] = self.bytes()?;
        let mut bytes = vec![0; length.into()];
        self.file.read_exact(&mut bytes).map_err(said)?;
        self.at += u64::from(length);
        let mut wide = [if bytes.last().is_some_and(|&byte| byte >= 0x80) { 0xff } else { 0 }; 8];
        let node = match wide.get_mut(..bytes.len()) {
            Some(low) => {
                low.copy_from_slice(&bytes);
                Node::Int(i64::from_le_bytes(wide))
            }
            None => Node::Other,
        };
        self.push(node);
        Ok(())
    }

    /// Texts and bytes, whose length comes first.
    fn text(&mut self, op: u8) -> Result<(), String> {
        let bytes: u64 = match op {
            b'U' | b'C' | 0x8c => self.bytes::<1>()?[0].into(),
            b'T' | b'B' | b'X' => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        };
        let span = Span { offset: self.at, bytes, latin1: false };
        self.at = self.at.checked_add(bytes).filter(|&end| end <= self.length).ok_or(CUT_SHORT)?;
        let held = if bytes <= MAX_TEXT {
            let mut held = vec![0; bytes as usize];
            self.file.read_exact(&mut held).map_err(said)?;
            Some(held)
        } else {
            self.file.seek_relative(bytes.cast_signed()).map_err(said)?;
            None
        };
        self.push(Node::Bytes(span, held));
        Ok(())
    }

    fn tuple(&mut self, op: u8) -> Result<(), String> {
        let items = match op {
            b't' => self.pop_to_mark()?,
            _ => {
                let mut items = (0x84..op).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                items
            }
        };
        self.push(Node::Sequence(items));
        Ok(())
    }

    /// Puts items into the list or dictionary on the stack.
    fn fill(&mut self, op: u8) -> Result<(), String> {
        let items = match op {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.pop_to_mark()?,
        };
        let top = self.top()?;
        match &mut self.nodes[top] {
            Node::Sequence(sequence) if matches!(op, b'a' | b'e') => sequence.extend(items),
            Node::Dict(dict) if matches!(op, b's' | b'u') && items.len().is_multiple_of(2) => {
                dict.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => return Err(BROKEN.into()),
        }
        Ok(())
    }

    fn remember(&mut self, op: u8) -> Result<(), String> {
        let index = match op {
            b'h' | b'q' => self.bytes::<1>()?[0].into(),
            b'j' | b'r' => u32::from_le_bytes(self.bytes()?),
            _ => self.memo.len() as u32,
        };
        if matches!(op, b'h' | b'j') {
            self.stack.push(*self.memo.get(&index).ok_or(BROKEN)?);
        } else {
            self.memo.insert(index, self.top()?);
        }
        Ok(())
    }

    /// The text of a node that is held.
    fn held(&self, id: Id) -> Result<String, String> {
        match &self.nodes[id] {
            Node::Bytes(_, Some(text)) => Ok(String::from_utf8_lossy(text).into_owned()),
            _ => Err(BROKEN.into()),
        }
    }

    fn items(&self, id: Id) -> Result<&[Id], String> {
        if let Node::Sequence(items) = &self.nodes[id] { Ok(items) } else { Err(BROKEN.into()) }
    }

    /// What a call of a known name would give; nothing is called.
    fn reduce(&mut self) -> Result<(), String> {
        let (args, callee) = (self.pop()?, self.pop()?);
        let Node::Global(global) = self.nodes[callee] else { return Err(BROKEN.into()) };
        let args = self.items(args)?;
        let node = match (global, args) {
            // Class, empty shape, and type of what comes with the state.
            (Global::Reconstruct, &[class, _, _]) if matches!(self.nodes[class], Node::Global(Global::Ndarray)) => {
                Node::Unset
            }
            (Global::FromBuffer, &[data, dtype, shape, order]) if self.held(order)? == "C" => {
                Node::Array(Box::new(self.array(shape, dtype, data)?))
            }
            (Global::FromBuffer, &[_, _, _, _]) => return Err(FORTRAN.into()),
            (Global::Dtype, &[name, ..]) => Node::Dtype(self.held(name)?, false),
            (Global::Encode, &[text, codec]) if ["latin1", "latin-1"].contains(&self.held(codec)?.as_str()) => {
                let Node::Bytes(span, held) = &self.nodes[text] else { return Err(BROKEN.into()) };
                let ascii = held.clone().filter(|held| held.is_ascii());
                Node::Bytes(Span { latin1: true, ..*span }, ascii)
            }
            _ => return Err(BROKEN.into()),
        };
        self.push(node);
        Ok(())
    }

    /// Gives an array or a type its state.
    fn build(&mut self) -> Result<(), String> {
        let (state, object) = (self.pop()?, self.pop()?);
        let node = match (&self.nodes[object], self.items(state)?) {
            (Node::Unset, &[_, shape, dtype, fortran, data]) => {
                let array = self.array(shape, dtype, data)?;
                // One row or column is the same in both orders.
                let line = array.shape.iter().filter(|&&size| size > 1).count() < 2;
                match self.nodes[fortran] {
                    Node::Int(0) => {}
                    Node::Int(1) if line => {}
                    _ => return Err(FORTRAN.into()),
                }
                Node::Array(Box::new(array))
            }
            (Node::Dtype(name, _), &[_, order, ..]) => Node::Dtype(name.clone(), self.held(order)? == ">"),
            _ => return Err(BROKEN.into()),
        };
        self.nodes[object] = node;
        self.stack.push(object);
        Ok(())
    }

    fn array(&self, shape: Id, dtype: Id, data: Id) -> Result<Array, String> {
        let size = |&id: &Id| match self.nodes[id] {
            Node::Int(size) => usize::try_from(size).ok(),
            _ => None,
        };
        let shape = self.items(shape)?.iter().map(size).collect::<Option<Vec<_>>>().ok_or(BROKEN)?;
        let (Node::Dtype(dtype, big), Node::Bytes(span, _)) = (&self.nodes[dtype], &self.nodes[data]) else {
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
}

const FORTRAN: &str = "has an array that is stored column by column, which is not read: save it again after \
                       numpy.ascontiguousarray";

fn said(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => CUT_SHORT.into(),
        _ => error.to_string(),
    }
}
