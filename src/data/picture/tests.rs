use image::codecs::gif::GifEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::metadata::Orientation;
use image::{Delay, ExtendedColorType, Frame as GifFrame, GrayImage, ImageEncoder, Luma, Rgb, Rgba};

use super::super::{encode_png, encode_png16, read_image_files};
use super::*;

const GREY: Ground = Ground { shape: ImageShape { channels: 1, height: 32, width: 32 }, border: [0; 3] };
const COLOUR: Ground = Ground { shape: ImageShape { channels: 3, height: 32, width: 32 }, border: [200, 190, 180] };

fn fitted(bytes: &[u8], fit: Fit, ground: &Ground) -> Fitted {
    fit_picture(Path::new("a picture"), bytes, &fit, ground).unwrap()
}

fn cropped(bytes: &[u8], ground: &Ground) -> Fitted {
    fitted(bytes, Fit::default(), ground)
}

fn png(image: &DynamicImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// A colour picture in which no two parts are alike.
fn scene(width: u32, height: u32) -> RgbImage {
    let share = |at: u32, of: u32| (250 * at / of) as u8;
    RgbImage::from_fn(width, height, |x, y| {
        Rgb([share(x, width), share(y, height), if x + y < height { 200 } else { 30 }])
    })
}

/// A JPEG with the tag Orientation in its EXIF data.
fn jpeg(image: &RgbImage, exif: u8) -> Vec<u8> {
    let mut plain = Vec::new();
    JpegEncoder::new_with_quality(&mut plain, 100).encode_image(image).unwrap();
    let mut tags = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    tags.extend([exif, 0, 0, 0, 0, 0, 0, 0]);
    let mut bytes = vec![0xff, 0xd8, 0xff, 0xe1];
    bytes.extend(((tags.len() + 2) as u16).to_be_bytes());
    bytes.extend(tags);
    bytes.extend(&plain[2..]);
    bytes
}

#[test]
fn a_photograph_stands_upright_however_the_camera_was_held() {
    let upright = scene(90, 120);
    let wanted = cropped(&jpeg(&upright, 1), &COLOUR);
    assert_eq!((wanted.treatment.turned, wanted.treatment.upright()), (None, [90, 120]));
    assert_eq!(wanted.treatment.cropped, Some(Cut { x: 0, y: 15, width: 90, height: 90 }));
    for exif in 2..=8 {
        let orientation = Orientation::from_exif(exif).unwrap();
        // Turning back is turning the other way; everything else is its own opposite.
        let back = match orientation {
            Orientation::Rotate90 => Orientation::Rotate270,
            Orientation::Rotate270 => Orientation::Rotate90,
            other => other,
        };
        let mut stored = DynamicImage::ImageRgb8(upright.clone());
        stored.apply_orientation(back);
        let found = cropped(&jpeg(&stored.to_rgb8(), exif), &COLOUR);
        assert!(found.treatment.turned.is_some() && found.treatment.upright() == [90, 120], "{exif}");
        let far = found.pixels.iter().zip(&wanted.pixels).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(far <= 6, "{exif}: {far} levels");
        assert!(found.treatment.describe().contains("EXIF"), "{}", found.treatment.describe());
    }
}

#[test]
fn transparent_parts_lie_on_what_the_drawing_stands_out_from() {
    let drawing = |ink: u8, paper: u8| {
        let image = RgbaImage::from_fn(64, 64, |x, _| match (24..40).contains(&x) {
            true => Rgba([ink, ink, ink, 255]),
            false => Rgba([ink, ink, ink, paper]),
        });
        cropped(&png(&DynamicImage::ImageRgba8(image)), &GREY)
    };
    let black = drawing(0, 0);
    assert_eq!(black.treatment.background, Some([255; 3]));
    assert_eq!([black.pixels[16 * 32], black.pixels[16 * 32 + 16]], [255, 0]);
    // Dark on light in a world of light on dark: offered, not done.
    assert!(black.treatment.offers_inversion() && !black.treatment.inverted && black.treatment.offer().is_some());
    let white = drawing(255, 0);
    assert_eq!((white.treatment.background, white.treatment.offers_inversion()), (Some([0; 3]), false));
    assert_eq!([white.pixels[16 * 32], white.pixels[16 * 32 + 16]], [0, 255]);
    // Half transparent is half of both.
    assert!((126..=129).contains(&drawing(255, 128).pixels[0]));
    assert_eq!(drawing(255, 255).treatment.background, None);
}

#[test]
fn sixteen_bits_become_the_eight_that_they_are_of() {
    let shape = ImageShape { channels: 1, height: 48, width: 40 };
    let levels: Vec<u8> = (0..shape.dims()).map(|i| (i % 251) as u8).collect();
    let deep: Vec<u16> = levels.iter().map(|level| u16::from(*level) * 257).collect();
    let (deep, flat) = (encode_png16(shape, &deep).unwrap(), encode_png(shape, &levels).unwrap());
    let (deep, flat) = (cropped(&deep, &COLOUR), cropped(&flat, &COLOUR));
    assert_eq!(deep.pixels, flat.pixels);
    assert_eq!((deep.treatment.bits, flat.treatment.bits), (Some(16), None));
    assert_eq!(deep.treatment.colour, Colour::GreyInEach);
}

#[test]
fn of_an_animation_the_first_frame_is_taken() {
    let frame = |level: u8| RgbaImage::from_pixel(50, 50, Rgba([level, level, level, 255]));
    let gif = |levels: &[u8]| {
        let mut bytes = Vec::new();
        let mut encoder = GifEncoder::new(&mut bytes);
        let frames =
            levels.iter().map(|level| GifFrame::from_parts(frame(*level), 0, 0, Delay::from_numer_denom_ms(40, 1)));
        encoder.encode_frames(frames).unwrap();
        drop(encoder);
        bytes
    };
    let moving = cropped(&gif(&[40, 220]), &GREY);
    assert!(moving.pixels.iter().all(|level| level.abs_diff(40) <= 2), "{:?}", &moving.pixels[..4]);
    assert!(moving.treatment.first_frame && moving.treatment.describe().contains("first frame"));
    assert!(!cropped(&gif(&[40]), &GREY).treatment.first_frame);
}

#[test]
fn forty_megapixels_are_cropped_and_scaled() {
    let (width, height) = (8000, 5000);
    let image = GrayImage::from_fn(width, height, |x, _| Luma([if x < width / 2 { 40 } else { 200 }]));
    let mut bytes = Vec::new();
    let encoder = JpegEncoder::new_with_quality(&mut bytes, 60);
    encoder.write_image(image.as_raw(), width, height, ExtendedColorType::L8).unwrap();
    drop(image);
    let found = cropped(&bytes, &GREY);
    assert_eq!(found.treatment.cropped, Some(Cut { x: 1500, y: 0, width: 5000, height: 5000 }));
    let row = &found.pixels[16 * 32..17 * 32];
    assert!(row[..15].iter().all(|level| level.abs_diff(40) <= 2), "{row:?}");
    assert!(row[17..].iter().all(|level| level.abs_diff(200) <= 2), "{row:?}");
    assert!(found.preview.width <= 240 && found.preview.rgb.len() == 3 * found.preview.width * found.preview.height);
}

#[test]
fn what_is_small_enough_is_what_a_dataset_of_it_would_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digit.png");
    for (image, ground) in [
        (DynamicImage::ImageLuma8(DynamicImage::ImageRgb8(scene(28, 28)).to_luma8()), &GREY),
        (DynamicImage::ImageRgb8(scene(27, 32)), &GREY),
        (DynamicImage::ImageRgb8(scene(5, 8)), &COLOUR),
    ] {
        image.save(&path).unwrap();
        let dataset = read_image_files(std::slice::from_ref(&path), None).unwrap();
        let dataset = dataset.to_channels(ground.shape.channels).unwrap().pad_to(32).unwrap();
        for way in [Way::Crop, Way::None] {
            let found = fitted(&read_picture(&path).unwrap(), Fit { way, ..Fit::default() }, ground);
            assert_eq!(found.pixels, dataset.pixels, "{way:?}");
            assert_eq!((found.treatment.scaled, found.treatment.margins), (None, Some([0; 3])));
        }
    }
}

#[test]
fn each_way_does_what_it_says_and_tells_it() {
    let bytes = png(&DynamicImage::ImageRgb8(RgbImage::from_pixel(300, 400, Rgb([10, 20, 30]))));
    let all = |way| fitted(&bytes, Fit { way, ..Fit::default() }, &COLOUR);
    let cropped = all(Way::Crop).treatment;
    assert_eq!(cropped.cropped, Some(Cut { x: 0, y: 50, width: 300, height: 300 }));
    assert_eq!(cropped.scaled.map(|scaling| (scaling.from, scaling.to)), Some(([300, 300], [32, 32])));
    let stretched = all(Way::Stretch).treatment;
    assert_eq!((stretched.cropped, stretched.scaled.map(|scaling| scaling.from)), (None, Some([300, 400])));
    let padded = all(Way::Pad);
    assert_eq!(padded.treatment.scaled.map(|scaling| scaling.to), Some([24, 32]));
    assert_eq!(padded.treatment.margins, Some(COLOUR.border));
    let at = |x: usize, y: usize| [0, 1, 2].map(|c: usize| padded.pixels[c * 1024 + y * 32 + x]);
    assert_eq!([at(3, 9), at(4, 9), at(27, 9), at(28, 9)], [COLOUR.border, [10, 20, 30], [10, 20, 30], COLOUR.border]);
    let none = fit_picture(Path::new("p.png"), &bytes, &Fit { way: Way::None, ..Fit::default() }, &COLOUR).unwrap_err();
    assert!(none.to_string().contains("300×400") && none.to_string().contains("p.png"), "{none}");
    let grey = fitted(&bytes, Fit::default(), &GREY).treatment;
    assert_eq!(grey.colour, Colour::ToGrey);
    for word in ["300×400", "cropped to 300×300 at 0,50", "32×32", "grey"] {
        assert!(grey.describe().contains(word), "{}", grey.describe());
    }
    let kept: Treatment = serde_json::from_str(&serde_json::to_string(&grey).unwrap()).unwrap();
    assert_eq!(kept, grey);
}

#[test]
fn the_frame_is_cut_where_it_stands_and_not_outside() {
    // Ten pixels of the picture are one of the world's: a frame ten to the right is the same one pixel to the left.
    let bytes = png(&DynamicImage::ImageRgb8(scene(640, 480)));
    let framed = |x, y, width| {
        let fit = Fit { frame: Some(Frame { x, y, width }), ..Fit::default() };
        fit_picture(Path::new("p.png"), &bytes, &fit, &COLOUR)
    };
    let (here, right) = (framed(100, 50, 320).unwrap(), framed(110, 50, 320).unwrap());
    for y in 1..31 {
        for x in 1..30 {
            let [a, b] = [(&here, x + 1), (&right, x)].map(|(found, x)| found.pixels[y * 32 + x]);
            assert!(a.abs_diff(b) <= 1, "{x} {y}: {a} {b}");
        }
    }
    assert_eq!(here.treatment.cropped, Some(Cut { x: 100, y: 50, width: 320, height: 320 }));
    assert!(framed(320, 160, 320).is_ok() && framed(0, 0, 1).is_ok());
    for (x, y, width) in [(321, 0, 320), (0, 161, 320), (0, 0, 481), (0, 0, 0), (u32::MAX, 0, 9)] {
        assert!(framed(x, y, width).is_err_and(|why| why.to_string().contains("640×480")), "{x} {y} {width}");
    }
}

#[test]
fn an_inverted_picture_is_the_picture_of_the_inverted_file() {
    let image = scene(200, 100);
    let mut negative = image.clone();
    image::imageops::invert(&mut negative);
    let [image, negative] = [image, negative].map(|image| png(&DynamicImage::ImageRgb8(image)));
    for ground in [GREY, COLOUR] {
        let inverted = fitted(&image, Fit { invert: true, ..Fit::default() }, &ground);
        let other = cropped(&negative, &ground);
        let far = inverted.pixels.iter().zip(&other.pixels).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(far <= 1 && inverted.treatment.inverted && !inverted.treatment.offers_inversion(), "{far}");
    }
}

#[test]
fn inversion_is_offered_where_the_border_is_far_from_the_worlds_and_its_negative_is_near() {
    let paper = |level: u8| png(&DynamicImage::ImageLuma8(GrayImage::from_pixel(40, 40, Luma([level]))));
    let offered = |level: u8, border: u8| {
        cropped(&paper(level), &Ground { border: [border; 3], ..GREY }).treatment.offers_inversion()
    };
    assert!(offered(255, 0) && offered(230, 10) && offered(0, 250));
    assert!(!offered(0, 0) && !offered(255, 250) && !offered(140, 0));
    // Where the world itself is neither light nor dark, nothing is offered.
    assert!((0..=255).step_by(5).all(|level| !offered(level, 128)));
    // The border is what lies at the edges, whatever is in the middle.
    let shape = ImageShape { channels: 1, height: 32, width: 32 };
    let middle = |i: usize| if (2..30).contains(&(i / 32)) && (2..30).contains(&(i % 32)) { 255 } else { 7 };
    let two: Vec<u8> = (0..2048).map(|i| middle(i % 1024)).collect();
    assert_eq!(border(shape, &two), [7; 3]);
}

#[test]
fn what_is_no_picture_is_refused_by_name() {
    let error =
        |bytes: &[u8]| fit_picture(Path::new("odd.bin"), bytes, &Fit::default(), &GREY).unwrap_err().to_string();
    let whole = png(&DynamicImage::ImageRgb8(scene(64, 64)));
    for bytes in [b"".as_slice(), b"no picture", &whole[..whole.len() / 2], &whole[..40]] {
        assert!(error(bytes).contains("odd.bin"));
    }
}
