//! The machine without any dialect: where texts stay, and what is refused.

use std::io::{BufReader, Cursor};

use super::machine::MAX_HELD;
use super::*;

/// Files of plain objects, of ten steps at the most.
struct Plain;

impl Dialect for Plain {
    type Global = ();
    type Made = ();

    const FILE: &'static str = "test";
    const MAX_STEPS: usize = 10;

    fn knows(instruction: u8) -> bool {
        instruction != b'2'
    }

    fn global(module: &str, name: &str) -> Result<(), String> {
        Err(format!("{module}.{name}"))
    }

    fn call(&self, _: &mut Objects<(), ()>, _: (), _: Id) -> Result<Id, String> {
        Err("a call".into())
    }

    fn build(&self, _: &mut Objects<(), ()>, _: Id, _: Id) -> Result<(), String> {
        Err("a state".into())
    }

    fn outside(&self, _: &Objects<(), ()>, _: Id) -> Result<Node<(), ()>, String> {
        Err("a reference".into())
    }
}

#[test]
fn long_texts_and_lines_stay_in_the_file() {
    let long = "x".repeat(MAX_HELD as usize + 1);
    let lengths = [(long.len() as u32).to_le_bytes().as_slice(), long.as_bytes()].concat();
    for (bytes, offset) in [([b"X", &lengths[..], b"."].concat(), 5), ([b"V", long.as_bytes(), b"\n."].concat(), 1)] {
        let sources: [&mut dyn Source; 2] = [&mut &bytes[..], &mut BufReader::with_capacity(16, Cursor::new(&bytes))];
        for source in sources {
            let (objects, root) = run(source, bytes.len() as u64, &Plain).unwrap();
            let Node::Text(text) = &objects[root] else { panic!("a text") };
            let span = Span { offset, bytes: long.len() as u64, latin1: false };
            assert_eq!((text.span, &text.held), (span, &None));
            assert_eq!(source.fill_buf().unwrap(), b"");
        }
        for limit in 0..bytes.len() {
            assert!(run(&mut &bytes[..], limit as u64, &Plain).is_err(), "limit {limit}");
            assert!(run(&mut &bytes[..limit], u64::MAX, &Plain).is_err(), "cut to {limit}");
        }
    }
    let (objects, root) = run(&mut &b"Vshort\r\n."[..], 9, &Plain).unwrap();
    assert_eq!(objects.text(root).unwrap(), "short");
}

#[test]
fn what_a_dialect_does_not_know_is_refused() {
    let cause = |bytes: &[u8]| run(&mut &*bytes, u64::MAX, &Plain).err().unwrap();
    assert_eq!(cause(b"N2."), "its pickle uses instruction 0x32, which no test needs");
    assert!(cause(&[b'N'; 20]).contains("longer than any"));
    assert!(cause(b"N\xff.").contains("no instruction"));
    assert_eq!(cause(b"cos\nsystem\n."), "os.system");
    assert_eq!(cause(b"(ios\nsystem\n."), "os.system");
    assert_eq!(cause(b"]]b."), "a state");
    assert_eq!(cause(b"NQ."), "a reference");
}
