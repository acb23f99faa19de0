//! Which image each row of a file is of.

use std::collections::HashMap;

use super::{Note, listed};
use crate::judge::Truth;
use crate::units::images;

/// The row of each image of `truth`, in its order.
pub(super) fn rows(
    ids: Option<&[String]>,
    rows: usize,
    truth: &Truth,
    notes: &mut Vec<Note>,
) -> Result<Vec<usize>, String> {
    let n = truth.len();
    let Some(ids) = ids else {
        if rows != n {
            return Err(format!(
                "{rows} rows for {} of {}; without ids there must be one row for each image in its order. Add ids \
                 (a column or array id with the running number of each image)",
                images(n),
                truth.origin.path
            ));
        }
        notes.push(Note::ByOrder);
        return Ok((0..n).collect());
    };
    let places = truth.places();
    let mut row_of: Vec<Option<usize>> = vec![None; n];
    let mut strangers: Vec<&String> = Vec::new();
    let mut seen = HashMap::new();
    for (row, id) in ids.iter().enumerate() {
        let number =
            number(id, &truth.origin.split, &truth.class_names).map_err(|cause| format!("row {row}: {cause}"))?;
        if let Some(first) = seen.insert(number, row) {
            return Err(format!("rows {first} and {row} have the same id {id}; each image may have one row"));
        }
        match places.get(&number) {
            Some(&image) => row_of[image] = Some(row),
            None => strangers.push(id),
        }
    }
    let missing: Vec<String> = (0..n).filter(|&i| row_of[i].is_none()).map(|i| truth.image_name(i)).collect();
    if !missing.is_empty() {
        return Err(format!(
            "{} of {n} images have no row: {}. Predict all images of the split: a figure over some of them is another figure",
            missing.len(),
            listed(&missing)
        ));
    }
    if let Some(first) = strangers.first() {
        notes.push(Note::RowsIgnored { count: strangers.len(), first: (*first).clone() });
    }
    let order: Vec<usize> = row_of.into_iter().flatten().collect();
    let moved = order.iter().enumerate().filter(|(image, row)| image != *row).count();
    if moved > 0 && !order.is_sorted() {
        notes.push(Note::RowsSorted { moved });
    }
    Ok(order)
}

/// Largest whole number up to which a float64 counts every one.
const COUNTED: f64 = (1u64 << 53) as f64;

/// The number in an id: `123`, `123.0`, `1.23e+02` as `np.savetxt` writes it, `test/000123`, `3/000123.png`.
fn number(id: &str, split: &str, class_names: &[String]) -> Result<i64, String> {
    let parts: Vec<&str> = id.trim().split(['/', '\\']).collect();
    // The last such folder says the split: the dataset may lie in folders of any name, and a class may be called train.
    let says = |part: &&&str| ["train", "test"].contains(*part) && !class_names.iter().any(|name| name == **part);
    if let Some(&other) = parts[..parts.len() - 1].iter().rfind(says)
        && other != split
    {
        return Err(format!(
            "id {id} is of the {other} images; the {split} images are judged. If it is one of these, give their running numbers, or \
             paths that begin in the dataset's folder"
        ));
    }
    let last = parts[parts.len() - 1];
    let stem = match last.rsplit_once('.') {
        Some((stem, extension)) if !extension.is_empty() => {
            let zeros = extension.bytes().all(|b| b == b'0');
            let word =
                extension.bytes().all(|b| b.is_ascii_alphanumeric()) && !extension.as_bytes()[0].is_ascii_digit();
            if zeros || word { stem } else { last }
        }
        _ => last,
    };
    stem.parse().ok().or_else(|| counted(last)).ok_or_else(|| {
        format!("id {id:?} does not end in the number of an image (as in 123, {split}/000123 or 3/000123.png)")
    })
}

/// A whole number in digits or in scientific notation: `123`, `1.23e+02`.
pub(super) fn counted(text: &str) -> Option<i64> {
    let scientific = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) && text.contains(['e', 'E']);
    let number = || text.parse().ok().filter(|number: &f64| number.fract() == 0.0 && number.abs() <= COUNTED);
    text.parse().ok().or_else(|| number().filter(|_| scientific).map(|number| number as i64))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn ids_are_read_as_people_write_them() {
        for id in
            ["123", "000123", " 123 ", "123.0", "test/000123", "3/000123.png", "test\\cat\\000123.jpeg", "./123.npy"]
        {
            assert_eq!(number(id, "test", &[]), Ok(123), "{id}");
        }
        for (id, found) in [("0.000000000000000000e+00", 0), ("1.230000000000000000e+02", 123), ("12E1", 120)] {
            assert_eq!(number(id, "test", &[]), Ok(found), "{id}");
        }
        for id in ["", "cat", "12.5", "test/", "000123.5png", "image_12", "1.235e+01", "1e300", "e", "nan", "infe0"] {
            assert!(number(id, "test", &[]).is_err(), "{id}");
        }
        // As torchvision's ImageFolder names the pictures of an export in a folder of any name.
        assert_eq!(number("/home/me/train/digits/png16/test/6/000123.png", "test", &[]), Ok(123));
        assert_eq!(number("C:\\test\\digits\\train\\6\\000123.png", "train", &[]), Ok(123));
        for id in ["train/000123", "/home/me/test/digits/train/6/000123.png"] {
            let said = number(id, "test", &[]).unwrap_err();
            assert!(said.contains("train images") && said.contains("running numbers"), "{said}");
        }
        assert_eq!(number("train/000123", "train", &[]), Ok(123));
        assert_eq!(number("train/000123", "test", &["train".into()]), Ok(123));
        assert!(number("train/test/000123", "test", &["test".into()]).unwrap_err().contains("train images"));
    }
}
