//! The stack machine of a pickle: each instruction is one byte with its operands (CPython, `Lib/pickletools.py`).

mod calls;

use std::collections::HashMap;
use std::io::{BufRead, Read, Take};

use super::{Id, MAX_STEPS, Node, Outside, Storage, key};
use crate::flow::weights::array::{CUT_SHORT, Number, said};
use crate::flow::weights::globals::Global;

/// Bytes of one pickle.
const MAX_BYTES: u64 = 64 << 20;
/// What is said of a pickle that no pickler wrote.
const BROKEN: &str = "its pickle is damaged";

/// Carries out one pickle: all objects, and which of them it is.
///
/// # Errors
/// As [`super::Pickle::read`].
pub(super) fn run<'a>(input: &'a mut dyn BufRead, outside: Outside<'a>) -> Result<(Vec<Node>, Id), String> {
    let mut machine = Machine {
        input: input.take(MAX_BYTES),
        outside,
        nodes: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        steps: 0,
    };
    while machine.step()? {}
    let root = machine.pop()?;
    Ok((machine.nodes, root))
}

/// The stack machine.
struct Machine<'a> {
    input: Take<&'a mut dyn BufRead>,
    outside: Outside<'a>,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack at open marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    steps: usize,
}

impl Machine<'_> {
    /// Carries out one instruction; false after the last.
    fn step(&mut self) -> Result<bool, String> {
        self.spend(1)?;
        let [op] = self.bytes()?;
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
            b'S' | b'V' | b'T' | b'U' | b'X' | 0x8c | 0x8d => self.text(op)?,
            b'B' | b'C' | 0x8e | 0x96 => {
                self.long_bytes(op)?;
                self.push(Node::Other);
            }
            b')' | b']' | 0x8f | b'}' | b't' | 0x85 | 0x86 | 0x87 | b'l' | 0x91 | b'd' => self.container(op)?,
            b'a' | b'e' | 0x90 | b's' | b'u' => self.fill(op)?,
            b'g' | b'h' | b'j' | b'p' | b'q' | b'r' | 0x94 => self.remember(op)?,
            b'c' | 0x93 | b'P' | b'Q' => self.refer(op)?,
            b'R' | 0x81 | 0x92 | b'i' | b'o' | b'b' => self.call(op)?,
            // Extension codes and buffers outside: calls and data that no checkpoint has.
            0x82..=0x84 | 0x97 | 0x98 => {
                return Err(format!("its pickle uses instruction 0x{op:02x}, which no checkpoint needs"));
            }
            _ => return Err(format!("{BROKEN}: 0x{op:02x} is no instruction")),
        }
        Ok(true)
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err("its pickle is longer than any checkpoint's".into()) } else { Ok(()) }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|e| said(&e))?;
        Ok(bytes)
    }

    /// A line of text, without its end.
    fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        self.input.read_until(b'\n', &mut line).map_err(|e| said(&e))?;
        if line.pop() != Some(b'\n') {
            return Err(BROKEN.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned())
    }

    /// The operand of an instruction that states its length.
    fn long_bytes(&mut self, op: u8) -> Result<Vec<u8>, String> {
        let length = match op {
            b'U' | b'C' | 0x8a | 0x8c => self.bytes::<1>()?[0].into(),
            b'T' | b'X' | b'B' | 0x8b => u32::from_le_bytes(self.bytes()?).into(),
            _ => u64::from_le_bytes(self.bytes()?),
        };
        // Grows with what is there, not with what is claimed.
        let mut bytes = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut bytes).map_err(|e| said(&e))?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(CUT_SHORT.into()) }
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

    fn number(&mut self, op: u8) -> Result<(), String> {
        let whole = |text: &str| text.trim_end_matches('L').parse().map_or(Node::Other, Node::Int);
        let node = match op {
            0x88 => Node::Int(1),
            0x89 => Node::Int(0),
            b'I' | b'L' => whole(&self.line()?),
            b'F' => {
                self.line()?;
                Node::Other
            }
            b'G' => {
                self.bytes::<8>()?;
                Node::Other
            }
            b'J' => Node::Int(i32::from_le_bytes(self.bytes()?).into()),
            b'K' => Node::Int(self.bytes::<1>()?[0].into()),
            b'M' => Node::Int(u16::from_le_bytes(self.bytes()?).into()),
            0x8a | 0x8b => little_endian(&self.long_bytes(op)?).map_or(Node::Other, Node::Int),
            _ => Node::Other,
        };
        self.push(node);
        Ok(())
    }

    fn text(&mut self, op: u8) -> Result<(), String> {
        let text = match op {
            // Protocol 0 quotes texts of Python 2; escapes stay as they are.
            b'S' => self.line()?.trim_matches(['\'', '"']).to_owned(),
            b'V' => self.line()?,
            _ => String::from_utf8_lossy(&self.long_bytes(op)?).into_owned(),
        };
        self.push(Node::Text(text));
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
        match &mut self.nodes[top] {
            Node::Sequence(sequence) if matches!(op, b'a' | b'e' | 0x90) => sequence.extend(items),
            Node::Dict(dict) if matches!(op, b's' | b'u') => dict.extend(pairs(&items)?),
            _ => return Err(format!("{BROKEN}: items for what is no container")),
        }
        Ok(())
    }

    fn remember(&mut self, op: u8) -> Result<(), String> {
        let index = match op {
            b'g' | b'p' => self.line()?.parse().map_err(|_| BROKEN)?,
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
    fn refer(&mut self, op: u8) -> Result<(), String> {
        match op {
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Node::Global(Global::of(&module, &name)?));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Node::Text(module), Node::Text(name)) = (&self.nodes[module], &self.nodes[name]) else {
                    return Err(BROKEN.into());
                };
                let global = Global::of(module, name)?;
                self.push(Node::Global(global));
            }
            b'P' => {
                let name = self.line()?;
                let node = self.named(&name)?;
                self.push(node);
            }
            _ => {
                let id = self.pop()?;
                let node = match (self.outside, key(&self.nodes[id])) {
                    (Outside::Storages, _) => Node::Storage(Box::new(self.storage(id).ok_or(BROKEN)?)),
                    (_, Some(name)) => self.named(&name)?,
                    _ => return Err(BROKEN.into()),
                };
                self.push(node);
            }
        }
        Ok(())
    }

    /// An array that a persistent id names.
    fn named(&self, name: &str) -> Result<Node, String> {
        let Outside::Tensors(tensors) = self.outside else {
            return Err("its pickle refers to data that the file does not have".into());
        };
        let tensor = tensors.get(name).ok_or_else(|| format!("{BROKEN}: there is no array '{name}'"))?;
        Ok(Node::Tensor(Box::new(tensor.clone())))
    }

    /// The storage that a persistent id describes: ('storage', class, key, device, length\[, part\]). The device it was on
    /// is of no interest.
    fn storage(&self, id: Id) -> Option<Storage> {
        let Node::Sequence(fields) = &self.nodes[id] else { return None };
        let (&[tag, class, name, _, length], rest) = fields.split_first_chunk()?;
        let Node::Global(Global::Storage(number)) = self.nodes[class] else { return None };
        if !matches!(&self.nodes[tag], Node::Text(tag) if tag == "storage") {
            return None;
        }
        let length = self.size(length)?;
        let part = match rest.first().map(|&part| &self.nodes[part]) {
            None | Some(Node::Other) => (0, length),
            Some(Node::Sequence(part)) => {
                let &[_, first, count] = part.as_slice() else { return None };
                let first = self.size(first)?;
                (first, first.checked_add(self.size(count)?).filter(|&end| end <= length)?)
            }
            Some(_) => return None,
        };
        let bytes = length.checked_mul(number.map_or(1, Number::bytes))?;
        Some(Storage { key: key(&self.nodes[name])?, number, bytes, part })
    }

    /// A whole number that is not negative.
    fn size(&self, id: Id) -> Option<u64> {
        if let Node::Int(value) = self.nodes[id] { value.try_into().ok() } else { None }
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
