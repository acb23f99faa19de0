//! The stack machine of a pickle: instructions of one byte and operands (`Lib/pickletools.py`).

use std::collections::HashMap;
use std::io::{BufRead, Read};

use super::{BROKEN, Dialect, Id, Node, Objects, Source, Span, Text};
use crate::data::source::{CUT_SHORT, said};

/// Texts up to this length are held; longer ones, and the bytes of arrays, stay in the file.
pub(super) const MAX_HELD: u64 = 4096;

/// All objects of a pickle, and which of them it is.
type Loaded<D> = (Objects<<D as Dialect>::Global, <D as Dialect>::Made>, Id);

/// Runs one pickle of at most `limit` bytes. Returns all objects and the index of the root.
///
/// # Errors
/// A sentence: cut short, not a pickle, or the code that it wants to run.
pub(crate) fn run<D: Dialect>(input: &mut dyn Source, limit: u64, dialect: &D) -> Result<Loaded<D>, String> {
    let mut machine = Machine {
        input,
        at: 0,
        limit,
        dialect,
        objects: Objects::new(D::MAX_STEPS),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
    };
    while machine.step()? {}
    let root = machine.pop()?;
    Ok((machine.objects, root))
}

/// The stack machine.
struct Machine<'a, D: Dialect> {
    input: &'a mut dyn Source,
    /// Bytes read, and how many may be.
    at: u64,
    limit: u64,
    dialect: &'a D,
    objects: Objects<D::Global, D::Made>,
    stack: Vec<Id>,
    /// Heights of the stack at open marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
}

impl<D: Dialect> Machine<'_, D> {
    /// Runs one instruction. Returns false after the last.
    fn step(&mut self) -> Result<bool, String> {
        self.objects.spend(1)?;
        let [op] = self.bytes()?;
        if !D::knows(op) {
            return Err(format!("its pickle uses instruction 0x{op:02x}, which no {} needs", D::FILE));
        }
        match op {
            b'.' => return Ok(false),
            // The protocol, and the length of a frame: how the rest was written, not what.
            0x80 => drop(self.bytes::<1>()?),
            0x95 => drop(self.bytes::<8>()?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' if self.marks.last() == Some(&self.stack.len()) => drop(self.marks.pop()),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'N' | 0x88 | 0x89 | b'I' | b'L' | b'F' | b'J' | b'K' | b'M' | b'G' | 0x8a | 0x8b => self.number(op)?,
            b'S' | b'V' | b'T' | b'U' | b'X' | 0x8c | 0x8d | b'B' | b'C' | 0x8e | 0x96 => self.text(op)?,
            b')' | b']' | 0x8f | b'}' | b't' | 0x85 | 0x86 | 0x87 | b'l' | 0x91 | b'd' => self.container(op)?,
            b'a' | b'e' | 0x90 | b's' | b'u' => self.fill(op)?,
            b'g' | b'h' | b'j' | b'p' | b'q' | b'r' | 0x94 => self.use_memo(op)?,
            b'c' | 0x93 | b'P' | b'Q' => self.push_reference(op)?,
            b'R' | 0x81 | 0x92 | b'i' | b'o' => self.call(op)?,
            b'b' => {
                let (state, object) = (self.pop()?, self.pop()?);
                self.dialect.build(&mut self.objects, object, state)?;
                self.stack.push(object);
            }
            _ => return Err(format!("{BROKEN}: 0x{op:02x} is no instruction")),
        }
        Ok(true)
    }

    /// Advances by so many bytes within the limit.
    fn claim(&mut self, bytes: u64) -> Result<(), String> {
        self.at = self.at.checked_add(bytes).filter(|&at| at <= self.limit).ok_or(CUT_SHORT)?;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|e| said(&e))?;
        Ok(bytes)
    }

    /// A line, without its end.
    fn line(&mut self) -> Result<Text, String> {
        let (offset, room) = (self.at, self.limit - self.at);
        let mut held = Vec::new();
        let mut begin = (&mut *self.input).take(room.min(MAX_HELD + 1));
        let mut length = begin.read_until(b'\n', &mut held).map_err(|e| said(&e))? as u64;
        let whole = held.pop_if(|&mut last| last == b'\n').is_some();
        if !whole && length <= MAX_HELD {
            return Err(BROKEN.into());
        }
        if !whole {
            let mut rest = (&mut *self.input).take(room - length);
            length += rest.skip_until(b'\n').map_err(|e| said(&e))? as u64;
        }
        self.claim(length)?;
        while held.pop_if(|&mut last| last == b'\r').is_some() {}
        let span = Span { offset, bytes: length - 1, latin1: false };
        Ok(Text { span, held: whole.then(|| held.into()) })
    }

    /// A short line.
    fn word(&mut self) -> Result<String, String> {
        let held = self.line()?.held.ok_or(BROKEN)?;
        Ok(String::from_utf8_lossy(&held).into_owned())
    }

    /// The length that an operand begins with.
    fn length(&mut self, op: u8) -> Result<u64, String> {
        Ok(match op {
            b'U' | b'C' | 0x8a | 0x8c => self.bytes::<1>()?[0].into(),
            b'T' | b'X' | b'B' | 0x8b => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        })
    }

    /// Takes `length` bytes; reads them if they are at most `most`.
    fn take_text(&mut self, length: u64, most: u64) -> Result<Text, String> {
        let span = Span { offset: self.at, bytes: length, latin1: false };
        self.claim(length)?;
        if length > most {
            self.input.skip(length).map_err(|e| said(&e))?;
            return Ok(Text { span, held: None });
        }
        let mut held = vec![0; length as usize];
        self.input.read_exact(&mut held).map_err(|e| said(&e))?;
        Ok(Text { span, held: Some(held.into()) })
    }

    fn push(&mut self, node: Node<D::Global, D::Made>) {
        let id = self.objects.add(node);
        self.stack.push(id);
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

    fn number(&mut self, op: u8) -> Result<(), String> {
        let value = match op {
            0x88 => Some(1),
            0x89 => Some(0),
            b'I' | b'L' => self.line()?.held.and_then(|line| {
                let digits = String::from_utf8_lossy(&line);
                digits.trim_end_matches('L').parse().ok()
            }),
            b'F' => self.line().map(|_| None)?,
            b'G' => self.bytes::<8>().map(|_| None)?,
            b'J' => Some(i32::from_le_bytes(self.bytes()?).into()),
            b'K' => Some(self.bytes::<1>()?[0].into()),
            b'M' => Some(u16::from_le_bytes(self.bytes()?).into()),
            0x8a | 0x8b => {
                let length = self.length(op)?;
                self.take_text(length, 8)?.held.and_then(|bytes| little_endian(&bytes))
            }
            _ => None,
        };
        self.push(value.map_or(Node::Other, Node::Int));
        Ok(())
    }

    fn text(&mut self, op: u8) -> Result<(), String> {
        let mut text = match op {
            b'S' | b'V' => self.line()?,
            _ => {
                let length = self.length(op)?;
                self.take_text(length, MAX_HELD)?
            }
        };
        // Protocol 0 quotes texts of Python 2; escapes stay as they are.
        if let (b'S', Some(held)) = (op, &text.held) {
            text.held = Some(String::from_utf8_lossy(held).trim_matches(['\'', '"']).as_bytes().into());
        }
        self.push(if matches!(op, b'B' | b'C' | 0x8e | 0x96) { Node::Bytes(text) } else { Node::Text(text) });
        Ok(())
    }

    fn container(&mut self, op: u8) -> Result<(), String> {
        let node = match op {
            b')' | b']' | 0x8f => Node::Sequence(Vec::new()),
            b'}' => Node::Dict(Vec::new()),
            0x85..=0x87 => {
                let mut items = (0x84..op).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
                items.reverse();
                Node::Sequence(items)
            }
            b'd' => Node::Dict(pairs(&self.pop_to_mark()?)?),
            _ => Node::Sequence(self.pop_to_mark()?),
        };
        self.push(node);
        Ok(())
    }

    /// Puts items into the list, set or dictionary on the stack.
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
        match &mut self.objects[top] {
            Node::Sequence(sequence) if matches!(op, b'a' | b'e' | 0x90) => sequence.extend(items),
            Node::Dict(dict) if matches!(op, b's' | b'u') => dict.extend(pairs(&items)?),
            _ => return Err(format!("{BROKEN}: items for what is no container")),
        }
        Ok(())
    }

    fn use_memo(&mut self, op: u8) -> Result<(), String> {
        let index = match op {
            b'g' | b'p' => self.word()?.parse().map_err(|_| BROKEN)?,
            b'h' | b'q' => self.bytes::<1>()?[0].into(),
            b'j' | b'r' => u32::from_le_bytes(self.bytes()?),
            _ => self.memo.len() as u32,
        };
        if matches!(op, b'g' | b'h' | b'j') {
            self.stack.push(*self.memo.get(&index).ok_or(BROKEN)?);
        } else {
            self.memo.insert(index, self.top()?);
        }
        Ok(())
    }

    /// Names of Python, and references out of the pickle.
    fn push_reference(&mut self, op: u8) -> Result<(), String> {
        let node = match op {
            b'c' => {
                let (module, name) = (self.word()?, self.word()?);
                Node::Global(D::global(&module, &name)?)
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (module, name) = self.objects.text(module).zip(self.objects.text(name)).ok_or(BROKEN)?;
                Node::Global(D::global(&module, &name)?)
            }
            _ => {
                let id = match op {
                    b'P' => {
                        let name = self.line()?;
                        self.objects.add(Node::Text(name))
                    }
                    _ => self.pop()?,
                };
                self.dialect.outside(&self.objects, id)?
            }
        };
        self.push(node);
        Ok(())
    }

    /// Instructions that call something in Python; nothing is called here.
    fn call(&mut self, op: u8) -> Result<(), String> {
        match op {
            b'i' => {
                let (module, name) = (self.word()?, self.word()?);
                let global = D::global(&module, &name)?;
                let args = self.pop_to_mark()?;
                self.push(Node::Global(global));
                self.push(Node::Sequence(args));
            }
            b'o' => {
                let items = self.pop_to_mark()?;
                let (&callee, args) = items.split_first().ok_or(BROKEN)?;
                self.stack.push(callee);
                self.push(Node::Sequence(args.to_vec()));
            }
            0x92 => {
                let options = self.pop()?;
                if !matches!(&self.objects[options], Node::Dict(pairs) if pairs.is_empty()) {
                    return Err(format!("its pickle calls by named arguments, which no {} needs", D::FILE));
                }
            }
            _ => {}
        }
        let (args, callee) = (self.pop()?, self.pop()?);
        let (&Node::Global(name), Node::Sequence(_)) = (&self.objects[callee], &self.objects[args]) else {
            return Err(BROKEN.into());
        };
        let result = self.dialect.call(&mut self.objects, name, args)?;
        self.stack.push(result);
        Ok(())
    }
}

/// Keys and values in turn.
fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>, String> {
    let (pairs, rest) = items.as_chunks::<2>();
    if rest.is_empty() { Ok(pairs.iter().map(|&[k, v]| (k, v)).collect()) } else { Err(BROKEN.into()) }
}

/// A whole number in two's complement, least significant byte first; `None` beyond 64 bits.
fn little_endian(bytes: &[u8]) -> Option<i64> {
    let mut wide = [if bytes.last().is_some_and(|&byte| byte >= 0x80) { 0xff } else { 0 }; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(wide))
}
