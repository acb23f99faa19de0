//! What a checkpoint's pickle may say: arrays and containers are made, nothing is run.

mod calls;

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::array::{Number, View};
use super::globals::Global;
use crate::data::pickle::{Dialect, Id, Source, run};

/// Bytes of one pickle.
const MAX_BYTES: u64 = 64 << 20;
/// Steps of one pickle, counting copied items: a checkpoint of a thousand arrays takes 50 thousand.
const MAX_STEPS: usize = 4_000_000;
/// Containers inside one another.
const MAX_DEPTH: usize = 100;

type Node = crate::data::pickle::Node<Global, Made>;
type Objects = crate::data::pickle::Objects<Global, Made>;

/// A storage as a pickle names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Storage {
    /// Its name in the container.
    pub key: String,
    /// What it holds; `None`: bytes.
    pub number: Option<Number>,
    /// Bytes in all.
    pub bytes: u64,
    /// The part that is meant, in numbers: first, and one past the last. Only files of 2017 and
    /// before have parts.
    pub part: (u64, u64),
}

/// An array as a pickle describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tensor {
    pub view: View,
    /// Name of its storage.
    pub storage: String,
}

/// What stands for the results of calls and for references out of the pickle.
#[derive(Debug)]
pub(super) enum Made {
    Storage(Box<Storage>),
    Tensor(Box<Tensor>),
}

/// What persistent ids, the references out of a pickle, stand for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outside<'a> {
    Nothing,
    /// Storages, which the id describes.
    Storages,
    /// Arrays, which the id names (tar).
    Tensors(&'a BTreeMap<String, Tensor>),
}

impl Dialect for Outside<'_> {
    type Global = Global;
    type Made = Made;

    const FILE: &'static str = "checkpoint";
    const MAX_STEPS: usize = MAX_STEPS;

    fn knows(instruction: u8) -> bool {
        // Extension codes and buffers outside: calls and data that no checkpoint has.
        !matches!(instruction, 0x82..=0x84 | 0x97 | 0x98)
    }

    fn global(module: &str, name: &str) -> Result<Global, String> {
        Global::of(module, name)
    }

    fn call(&self, objects: &mut Objects, name: Global, args: Id) -> Result<Id, String> {
        calls::call(objects, name, args)
    }

    fn build(&self, objects: &mut Objects, object: Id, state: Id) -> Result<(), String> {
        calls::build(objects, object, state)
    }

    fn outside(&self, objects: &Objects, id: Id) -> Result<Node, String> {
        calls::outside(*self, objects, id)
    }
}

/// A pickle that was read.
#[derive(Debug)]
pub(super) struct Pickle {
    objects: Objects,
    root: Id,
}

impl Pickle {
    /// Reads one pickle and leaves `input` behind it.
    ///
    /// # Errors
    /// A sentence: cut short, not a pickle, or the code that it wants to run.
    pub fn read(input: &mut dyn Source, outside: Outside) -> Result<Self, String> {
        let (objects, root) = run(input, MAX_BYTES, &outside)?;
        Ok(Self { objects, root })
    }

    /// The whole number that this pickle is.
    pub fn int(&self) -> Option<i64> {
        if let Node::Int(value) = self.objects[self.root] { Some(value) } else { None }
    }

    /// The texts or whole numbers that this pickle lists, as texts.
    pub fn keys(&self) -> Option<Vec<String>> {
        self.objects.items(self.root)?.iter().map(|&id| key(&self.objects, id)).collect()
    }

    /// The whole number under a name, where this pickle is a dictionary.
    pub fn entry(&self, name: &str) -> Option<i64> {
        let Node::Dict(pairs) = &self.objects[self.root] else { return None };
        let named = |id: Id| self.objects.text(id).is_some_and(|text| text == name);
        match self.objects[pairs.iter().rfind(|(k, _)| named(*k))?.1] {
            Node::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The parts of this pickle where it is a sequence: (text or whole number as text, numbers of a
    /// class of storages).
    pub fn fields(&self) -> Vec<(Option<String>, Option<Number>)> {
        let number = |id: Id| if let Node::Global(Global::Storage(n)) = self.objects[id] { n } else { None };
        let items = self.objects.items(self.root).unwrap_or_default();
        items.iter().map(|&id| (key(&self.objects, id), number(id))).collect()
    }

    /// All storages that were named.
    pub fn storages(&self) -> impl Iterator<Item = &Storage> {
        self.objects.iter().filter_map(|node| match node {
            Node::Made(Made::Storage(storage)) => Some(&**storage),
            _ => None,
        })
    }

    /// All arrays under their dotted names.
    ///
    /// # Errors
    /// A sentence when the pickle is no dictionary, two arrays have one name, or containers nest
    /// without end.
    pub fn tensors(&self) -> Result<BTreeMap<String, &Tensor>, String> {
        if !matches!(self.objects[self.root], Node::Dict(_)) {
            return Err("is not a dictionary of arrays (a state dict)".into());
        }
        let mut walk = Walk { objects: &self.objects, found: BTreeMap::new(), steps: 0 };
        walk.visit(self.root, &mut Vec::new())?;
        Ok(walk.found)
    }
}

/// A text or whole number as text.
fn key(objects: &Objects, id: Id) -> Option<String> {
    match objects[id] {
        Node::Int(value) => Some(value.to_string()),
        _ => objects.text(id).map(Cow::into_owned),
    }
}

/// The search for arrays.
struct Walk<'a> {
    objects: &'a Objects,
    found: BTreeMap<String, &'a Tensor>,
    steps: usize,
}

impl Walk<'_> {
    fn visit(&mut self, id: Id, path: &mut Vec<String>) -> Result<(), String> {
        self.steps += 1;
        // Objects may contain one another many times, and themselves.
        if self.steps > MAX_STEPS || path.len() > MAX_DEPTH {
            return Err("its containers nest without end".into());
        }
        let objects = self.objects;
        match &objects[id] {
            Node::Dict(pairs) => {
                for &(name, value) in pairs {
                    // A name of another kind cannot be an array's; the dots tell that something
                    // stood there.
                    path.push(key(objects, name).unwrap_or_default());
                    self.visit(value, path)?;
                    path.pop();
                }
            }
            Node::Sequence(items) => {
                for (i, &value) in items.iter().enumerate() {
                    path.push(i.to_string());
                    self.visit(value, path)?;
                    path.pop();
                }
            }
            Node::Made(Made::Tensor(tensor)) => {
                let name = path.join(".");
                if self.found.insert(name.clone(), tensor).is_some() {
                    return Err(format!("holds two arrays named '{name}'"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Result<Pickle, String> {
        let pickle = Pickle::read(&mut bytes, Outside::Nothing)?;
        assert!(bytes.is_empty(), "all was read");
        Ok(pickle)
    }

    /// `pickle.dumps({'a': [1, -2, 'three'], 'little_endian': True, 'f': 1.5, 'n': None, 'big':
    /// 2**70}, protocol=p)` of Python 3.11, p = 0, 2 and 5.
    #[test]
    fn plain_objects_of_every_protocol() {
        let pickles: [&[u8]; 3] = [
            b"(dp0\nVa\np1\n(lp2\nI1\naI-2\naVthree\np3\nasVlittle_endian\np4\nI01\nsVf\np5\nF1.5\nsVn\np6\nNsVbig\np7\nL1180591620717411303424L\ns.",
            b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xffX\x05\x00\x00\x00threeq\x03eX\x0d\x00\x00\x00little_endianq\x04\x88X\x01\x00\x00\x00fq\x05G?\xf8\x00\x00\x00\x00\x00\x00X\x01\x00\x00\x00nq\x06NX\x03\x00\x00\x00bigq\x07\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
            b"\x80\x05\x95P\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xff\x8c\x05three\x94e\x8c\x0dlittle_endian\x94\x88\x8c\x01f\x94G?\xf8\x00\x00\x00\x00\x00\x00\x8c\x01n\x94N\x8c\x03big\x94\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00@u.",
        ];
        for bytes in pickles {
            let pickle = read(bytes).unwrap();
            assert_eq!((pickle.entry("little_endian"), pickle.entry("a"), pickle.entry("f")), (Some(1), None, None));
            assert!(pickle.tensors().unwrap().is_empty());
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "cut to {length}");
            }
        }
        assert_eq!(read(b"\x80\x02](K\x01X\x01\x00\x00\x00be.").unwrap().keys().unwrap(), ["1", "b"]);
        assert_eq!(read(b"\x80\x02\x8a\x02\xff\xff.").unwrap().int(), Some(-1));
        assert_eq!(read(b"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01.").unwrap().int(), None);
    }

    /// `pickle.dumps(OrderedDict([('w', Evil())]), protocol=p)` of Python 3.11, where
    /// `Evil().__reduce__()` is `(os.system, ('touch bayescope-marker',))`.
    #[test]
    fn calls_of_every_protocol_are_refused() {
        let pickles: [&[u8]; 4] = [
            b"ccollections\nOrderedDict\np0\n(tRp1\nVw\np2\ncposix\nsystem\np3\n(Vtouch bayescope-marker\np4\ntp5\nRp6\ns.",
            b"ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\x00\x00\x00wq\x02cposix\nsystem\nq\x03(X\x16\x00\x00\x00touch bayescope-markerq\x04tq\x05Rq\x06s.",
            b"\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\x00\x00\x00wq\x02cposix\nsystem\nq\x03X\x16\x00\x00\x00touch bayescope-markerq\x04\x85q\x05Rq\x06s.",
            b"\x80\x04\x95W\x00\x00\x00\x00\x00\x00\x00\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01w\x94\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x16touch bayescope-marker\x94\x85\x94R\x94s.",
        ];
        for bytes in pickles {
            let message = read(bytes).unwrap_err();
            assert!(message.contains("run code") && message.contains("'posix.system'"), "{message}");
        }
    }
}
