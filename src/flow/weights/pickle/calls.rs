//! What stands for the results of a checkpoint's calls and for its references out of the pickle.

use super::{Id, Made, Node, Objects, Outside, Storage, Tensor, key};
use crate::data::pickle::BROKEN;
use crate::flow::weights::array::{Number, View};
use crate::flow::weights::globals::Global;

/// What a call of a known name gives.
pub(super) fn call(objects: &mut Objects, name: Global, args: Id) -> Result<Id, String> {
    let items = objects.items(args).ok_or(BROKEN)?;
    let (first, last) = (items.first().copied(), items.last().copied());
    let node = match name {
        Global::Rebuild(typed) => Node::Made(Made::Tensor(Box::new(tensor(objects, items, typed)?))),
        Global::Parameter => return first.ok_or_else(|| BROKEN.into()),
        Global::FromType => {
            let &[maker, _, args, ..] = items else { return Err(BROKEN.into()) };
            // Not another of its kind: a pickle may be its own argument.
            let Node::Global(maker @ (Global::Rebuild(_) | Global::Parameter)) = objects[maker] else {
                return Err(BROKEN.into());
            };
            return call(objects, maker, args);
        }
        Global::Dict => Node::Dict(pairs_in(objects, last)?),
        Global::Sequence => match first {
            None => Node::Sequence(Vec::new()),
            Some(id) if objects.items(id).is_some() => return Ok(id),
            Some(_) => return Err(BROKEN.into()),
        },
        Global::Data => Node::Sequence(vec![args]),
        Global::Storage(_) | Global::Number(_) => return Err(BROKEN.into()),
    };
    Ok(objects.add(node))
}

/// The pairs that a dictionary is made of: those of another one, or a sequence of two-item
/// sequences.
fn pairs_in(objects: &mut Objects, source: Option<Id>) -> Result<Vec<(Id, Id)>, String> {
    let found = match source.map(|id| &objects[id]) {
        Some(Node::Dict(pairs)) => pairs.clone(),
        Some(Node::Sequence(items)) => {
            let pair = |&id: &Id| <[Id; 2]>::try_from(objects.items(id)?).ok().map(|[k, v]| (k, v));
            items.iter().map(pair).collect::<Option<_>>().ok_or(BROKEN)?
        }
        _ => Vec::new(),
    };
    objects.spend(found.len())?;
    Ok(found)
}

/// The array that PyTorch would rebuild of (storage, start, shape, strides, …, type).
fn tensor(objects: &Objects, items: &[Id], typed: bool) -> Result<Tensor, String> {
    let wrong = || format!("{BROKEN}: an array is described wrongly");
    let &[storage, start, shape, strides, ..] = items else { return Err(wrong()) };
    let Node::Made(Made::Storage(storage)) = &objects[storage] else { return Err(wrong()) };
    let number = match items.get(6).map(|&id| &objects[id]) {
        Some(Node::Global(Global::Number(number))) if typed => Some(*number),
        _ if typed => None,
        _ => storage.number,
    };
    let number = number.filter(|&n| storage.number.is_none_or(|of| of == n)).ok_or_else(wrong)?;
    let sizes = |id: Id| -> Option<Vec<usize>> {
        objects.items(id)?.iter().map(|&id| objects.size(id)?.try_into().ok()).collect()
    };
    let (shape, strides) = sizes(shape).zip(sizes(strides)).ok_or_else(wrong)?;
    let start = objects.size(start).and_then(|start| start.checked_add(storage.part.0)).ok_or_else(wrong)?;
    let view = View { number, shape, strides, start };
    view.check(if storage.number.is_some() { storage.part.1 } else { storage.bytes / number.bytes() })?;
    Ok(Tensor { view, storage: storage.key.clone() })
}

/// Gives an object its attributes. Those of a dictionary (`_metadata` of a state dict) join its
/// entries: no array is lost wherever it stands.
pub(super) fn build(objects: &mut Objects, object: Id, state: Id) -> Result<(), String> {
    let attributes = if matches!(objects[state], Node::Dict(_)) { pairs_in(objects, Some(state))? } else { Vec::new() };
    match &mut objects[object] {
        Node::Dict(pairs) => pairs.extend(attributes),
        Node::Sequence(items) => items.push(state),
        _ => return Err("its pickle sets attributes of what is no container".into()),
    }
    Ok(())
}

/// What a persistent id stands for.
pub(super) fn outside(outside: Outside, objects: &Objects, id: Id) -> Result<Node, String> {
    let made = match (outside, key(objects, id)) {
        (Outside::Storages, None) => Made::Storage(Box::new(storage(objects, id).ok_or(BROKEN)?)),
        (Outside::Tensors(tensors), Some(name)) => {
            let tensor = tensors.get(&name).ok_or_else(|| format!("{BROKEN}: there is no array '{name}'"))?;
            Made::Tensor(Box::new(tensor.clone()))
        }
        (_, Some(_)) => return Err("its pickle refers to data that the file does not have".into()),
        _ => return Err(BROKEN.into()),
    };
    Ok(Node::Made(made))
}

/// The storage that a persistent id describes: ('storage', class, key, device, length\[, part\]).
/// The device it was on is of no interest.
fn storage(objects: &Objects, id: Id) -> Option<Storage> {
    let (&[tag, class, name, _, length], rest) = objects.items(id)?.split_first_chunk()?;
    let Node::Global(Global::Storage(number)) = objects[class] else { return None };
    if objects.text(tag)? != "storage" {
        return None;
    }
    let length = objects.size(length)?;
    let part = match rest.first().map(|&part| &objects[part]) {
        None | Some(Node::Other) => (0, length),
        Some(Node::Sequence(part)) => {
            let &[_, first, count] = part.as_slice() else { return None };
            let first = objects.size(first)?;
            (first, first.checked_add(objects.size(count)?).filter(|&end| end <= length)?)
        }
        Some(_) => return None,
    };
    let bytes = length.checked_mul(number.map_or(1, Number::bytes))?;
    Some(Storage { key: key(objects, name)?, number, bytes, part })
}
