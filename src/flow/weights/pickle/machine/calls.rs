//! What becomes of the calls that a pickle asks for: arrays and containers are made, nothing is run.

use super::{BROKEN, Machine};
use crate::flow::weights::array::View;
use crate::flow::weights::globals::Global;
use crate::flow::weights::pickle::{Id, Node, Tensor};

impl Machine<'_> {
    /// Instructions that would have Python call something.
    pub(super) fn call(&mut self, op: u8) -> Result<(), String> {
        match op {
            b'b' => return self.build(),
            b'i' => {
                let (module, name) = (self.line()?, self.line()?);
                let global = Global::of(&module, &name)?;
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
                if !matches!(&self.nodes[options], Node::Dict(pairs) if pairs.is_empty()) {
                    return Err("its pickle calls by named arguments, which no checkpoint needs".into());
                }
            }
            _ => {}
        }
        let (args, callee) = (self.pop()?, self.pop()?);
        let result = self.result(callee, args)?;
        self.stack.push(result);
        Ok(())
    }

    /// What a call of a known name gives.
    fn result(&mut self, callee: Id, args: Id) -> Result<Id, String> {
        let (Node::Global(global), Node::Sequence(items)) = (&self.nodes[callee], &self.nodes[args]) else {
            return Err(BROKEN.into());
        };
        let (first, last) = (items.first().copied(), items.last().copied());
        let node = match global {
            Global::Rebuild(typed) => Node::Tensor(Box::new(self.tensor(items, *typed)?)),
            Global::Parameter => return first.ok_or_else(|| BROKEN.into()),
            Global::FromType => {
                let &[maker, _, args, ..] = items.as_slice() else { return Err(BROKEN.into()) };
                // Not another of its kind: a pickle may be its own argument.
                if !matches!(self.nodes[maker], Node::Global(Global::Rebuild(_) | Global::Parameter)) {
                    return Err(BROKEN.into());
                }
                return self.result(maker, args);
            }
            Global::Dict => Node::Dict(self.pairs_in(last)?),
            Global::Sequence => match first {
                None => Node::Sequence(Vec::new()),
                Some(id) if matches!(self.nodes[id], Node::Sequence(_)) => return Ok(id),
                Some(_) => return Err(BROKEN.into()),
            },
            Global::Data => Node::Sequence(vec![args]),
            Global::Storage(_) | Global::Number(_) => return Err(BROKEN.into()),
        };
        self.nodes.push(node);
        Ok(self.nodes.len() - 1)
    }

    /// The pairs that a dictionary is made of: those of another one, or a sequence of two-item sequences.
    fn pairs_in(&mut self, source: Option<Id>) -> Result<Vec<(Id, Id)>, String> {
        let found = match source.map(|id| &self.nodes[id]) {
            Some(Node::Dict(pairs)) => pairs.clone(),
            Some(Node::Sequence(items)) => {
                let pair = |&id: &Id| match &self.nodes[id] {
                    Node::Sequence(pair) => <[Id; 2]>::try_from(pair.as_slice()).ok().map(|[k, v]| (k, v)),
                    _ => None,
                };
                items.iter().map(pair).collect::<Option<_>>().ok_or(BROKEN)?
            }
            _ => Vec::new(),
        };
        self.spend(found.len())?;
        Ok(found)
    }

    /// The array that PyTorch would rebuild of (storage, start, shape, strides, …, type).
    fn tensor(&self, items: &[Id], typed: bool) -> Result<Tensor, String> {
        let wrong = || format!("{BROKEN}: an array is described wrongly");
        let &[storage, start, shape, strides, ..] = items else { return Err(wrong()) };
        let Node::Storage(storage) = &self.nodes[storage] else { return Err(wrong()) };
        let number = match items.get(6).map(|&id| &self.nodes[id]) {
            Some(Node::Global(Global::Number(number))) if typed => Some(*number),
            _ if typed => None,
            _ => storage.number,
        };
        let number = number.filter(|&n| storage.number.is_none_or(|of| of == n)).ok_or_else(wrong)?;
        let sizes = |id: Id| match &self.nodes[id] {
            Node::Sequence(items) => items.iter().map(|&id| self.size(id)?.try_into().ok()).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let (shape, strides) = sizes(shape).zip(sizes(strides)).ok_or_else(wrong)?;
        let start = self.size(start).and_then(|start| start.checked_add(storage.part.0)).ok_or_else(wrong)?;
        let view = View { number, shape, strides, start };
        view.check(if storage.number.is_some() { storage.part.1 } else { storage.bytes / number.bytes() })?;
        Ok(Tensor { view, storage: storage.key.clone() })
    }

    /// Gives an object its attributes. Those of a dictionary (`_metadata` of a state dict) join its entries: no array is
    /// lost wherever it stands.
    fn build(&mut self) -> Result<(), String> {
        let (state, object) = (self.pop()?, self.pop()?);
        let attributes =
            if matches!(self.nodes[state], Node::Dict(_)) { self.pairs_in(Some(state))? } else { Vec::new() };
        match &mut self.nodes[object] {
            Node::Dict(pairs) => pairs.extend(attributes),
            Node::Sequence(items) => items.push(state),
            _ => return Err("its pickle sets attributes of what is no container".into()),
        }
        self.stack.push(object);
        Ok(())
    }
}
