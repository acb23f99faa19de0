//! Every type and order, and every refusal.

use super::*;
use crate::data::world::{write_header, write_values};

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn read(bytes: &[u8]) -> Result<Array, String> {
    read_npy(&mut &bytes[..], bytes.len() as u64, Types::Numbers)
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

/// An array with any type.
fn any(header: &str, data: &[u8]) -> Result<Values, String> {
    let bytes = npy(header, data);
    read_npy(&mut &bytes[..], bytes.len() as u64, Types::All).map(|array| array.values)
}

fn texts(texts: &[&str]) -> Values {
    Values::Text(texts.iter().map(|&text| text.to_owned()).collect())
}

#[test]
fn byte_and_index_order_are_seen_through() {
    let big = npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }\n", &[0, 1, 0xff, 0xff]);
    let read_big = Array { shape: vec![2], values: Values::I64(vec![1, -1]), descr: ">i2".into() };
    assert_eq!(read(&big).unwrap(), read_big);
    let fortran = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", &[1, 4, 2, 5, 3, 6]);
    assert_eq!(read(&fortran).unwrap().values, Values::U8(vec![1, 2, 3, 4, 5, 6]));
    let mut own = Vec::new();
    write_header(&mut own, "<f4", &[2]).unwrap();
    assert!(own.len().is_multiple_of(64));
    write_values(&mut own, &[1.5f32, -2.0], f32::to_le_bytes).unwrap();
    let read_own = Array { shape: vec![2], values: Values::F32(vec![1.5, -2.0]), descr: "<f4".into() };
    assert_eq!(read(&own).unwrap(), read_own);
    let quoted = header("|u1", "False", "(1,)").replace('\'', "\"");
    assert_eq!(read(&npy(&quoted, &[7])).unwrap().values, Values::U8(vec![7]));
}

#[test]
fn a_header_is_not_believed() {
    let cases = [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 4294967295, 9), }", "impossible shape"),
        // Of two images 2 · 2⁶³ classes each, which is 0 in 64 bits: as many as there are numbers.
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 9223372036854775808), }", "impossible shape"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295,), }", "holds 4"),
        ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "type <c8"),
        ("{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }", "type <f2"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "not understood"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "not understood"),
        ("((((((((((((((((((((((", "not understood"),
    ];
    for (header, cause) in cases {
        let error = read(&npy(header, &[0; 4])).unwrap_err();
        assert!(error.contains(cause), "{header}: {error}");
    }
    let whole = npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", &[0xff; 8]);
    assert!(read(&whole).unwrap_err().contains("63 bits"));
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err());
    }
    let huge = b"\x93NUMPY\x02\x00\xff\xff\xff\xff";
    assert!(read(huge).unwrap_err().contains("header of 4294967295 bytes"));
}

#[test]
fn halves_and_strings_are_read_where_they_are_asked_for() {
    let half = header("<f2", "False", "(2,)");
    assert_eq!(any(&half, &[0x00, 0x3c, 0x01, 0x00]), Ok(Values::F32(vec![1.0, 2f32.powi(-24)])));
    assert_eq!(any(&header(">f2", "False", "(1,)"), &[0xc0, 0x00]), Ok(Values::F32(vec![-2.0])));
    assert_eq!(any(&header(">i2", "False", "(2,)"), &[0, 1, 0xff, 0xff]), Ok(Values::I64(vec![1, -1])));
    assert_eq!(any(&header("|S3", "False", "()"), b"ab\0"), Ok(texts(&["ab"])));
    let unicode = [0xc4, 3, 0, 0, 0, 0, 0, 0];
    assert_eq!(any(&header("<U2", "False", "(1,)"), &unicode), Ok(texts(&["τ"])));
    assert_eq!(any(&header(">U1", "False", "(1,)"), &[0, 0, 3, 0xc4]), Ok(texts(&["τ"])));
    let turned = header("|S1", "True", "(2, 3)");
    assert_eq!(any(&turned, b"adbecf"), Ok(texts(&["a", "b", "c", "d", "e", "f"])));
    // An element longer than what is decoded at a time, and elements of nothing.
    let long = header(&format!("|S{}", CHUNK + 1), "False", "(2,)");
    let data = [vec![b'x'; CHUNK + 1], vec![0; CHUNK + 1]].concat();
    assert_eq!(any(&long, &data), Ok(texts(&["x".repeat(CHUNK + 1).as_str(), ""])));
    assert_eq!(any(&header("|S0", "False", "(4294967295,)"), &[]), Ok(texts(&[])));
    // Images are neither.
    for descr in ["<f2", "|S2", "<U1"] {
        let error = read(&npy(&header(descr, "False", "(1,)"), &[0; 4])).unwrap_err();
        let expected = format!("type {descr} is not read; float32, float64, bool and integers of 8 to 64 bits are");
        assert_eq!(error, expected);
    }
}

#[test]
fn damage_is_refused_at_every_byte() {
    let whole = npy(&header("<f8", "False", "(2,)"), &[0; 16]);
    for cut in 0..whole.len() {
        assert!(read_npy(&mut &whole[..cut], cut as u64, Types::All).is_err(), "{cut}");
    }
    assert!(any(&"(".repeat(10_000), &[]).unwrap_err().contains("not understood"));
    let cases = [("<f8", "(4294967295, 4294967295, 9)"), ("<c8", "(2,)"), ("|O", "(2,)"), ("<f8", "(-1,)")];
    for (descr, shape) in cases {
        assert!(any(&header(descr, "False", shape), &[0; 16]).is_err(), "{descr} {shape}");
    }
    let huge = header("<U18446744073709551615", "False", "(1,)");
    assert!(any(&huge, &[0; 16]).unwrap_err().contains("is not read"));
}
