//! A small labelled corpus to train on.

use std::path::Path;

/// Two classes of 8×8 pictures: a bright left half, a bright right half.
pub fn pictures(folder: &Path) {
    for (class, left) in [("left", true), ("right", false)] {
        let class = folder.join("data").join(class);
        std::fs::create_dir_all(&class).unwrap();
        for i in 0..40u32 {
            let pixel = |x: u32, y: u32| {
                let bright = (x < 4) == left;
                let noise = (i * 37 + x * 11 + y * 23 + x * y * 5) % 60;
                image::Luma([if bright { 180 + noise as u8 } else { noise as u8 }])
            };
            image::GrayImage::from_fn(8, 8, pixel).save(class.join(format!("{i:02}.png"))).unwrap();
        }
    }
}
