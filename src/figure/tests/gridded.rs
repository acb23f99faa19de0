//! Grids: every square has its colour at its place, in pixels and in words.

use super::*;

const RED: [u8; 3] = [200, 10, 20];
const GREY: [u8; 3] = [90, 90, 90];

/// A picture of two pixels and a map of 2 × 3 numbers, one of which is none.
fn figure() -> Figure {
    let numbers = Cells::Numbers {
        values: vec![-2.0, 1.0, 0.0, f64::NAN, 0.5, -0.25],
        unit: "nats".into(),
        sides: ["nine".into(), "four".into()],
    };
    let picture = Grid { columns: 1, cells: Cells::Pixels(vec![RED, GREY]) };
    let map = Grid { columns: 3, cells: numbers };
    Figure {
        id: "map".into(),
        title: "A picture and its map".into(),
        ..Figure::of_grids([("picture".into(), picture), ("map".into(), map)])
    }
}

#[test]
fn every_square_has_its_colour_at_its_place() {
    for dark in [false, true] {
        let look = RenderOptions { dark, ..RenderOptions::default() };
        let scene = super::super::layout::scene(&figure(), &look);
        let [left, top, right, bottom] = scene.plot;
        let side = (right - left) / 2.0;
        assert!((side - (bottom - top)).abs() < 1e-9, "{:?}", scene.plot);
        let painted = pixels(&figure(), &look, 1.0).unwrap();
        // The pixel so many sides of a place from its middle.
        let at = |place: f64, x: f64, y: f64| {
            let [x, y] = [left + side * (place + 0.5 + x), f64::midpoint(top, bottom) + side * y];
            let start = 3 * (y as usize * painted.width as usize + x as usize);
            [0, 1, 2].map(|c| painted.rgb[start + c])
        };
        assert_eq!([at(0.0, 0.0, -0.24), at(0.0, 0.0, 0.24)], [RED, GREY]);
        let third = 0.96 / 3.0;
        let row = |y: f64| [-1.0, 0.0, 1.0].map(|column| at(1.0, column * third, y * third / 2.0));
        let colour = |share: f64| diverging(share, dark);
        assert_eq!(row(-1.0), [colour(-1.0), colour(0.5), colour(0.0)]);
        let [r, g, b] = scene.ground.rgb;
        assert_eq!(row(1.0), [[r, g, b], colour(0.25), colour(-0.125)]);
    }
}

#[test]
fn the_scale_and_the_squares_are_said_in_words() {
    let figure = figure();
    let picture = svg(&figure, &RenderOptions::default());
    for said in ["−2 nats (nine)", "+2 nats (four)", "row 1 column 1: ", "row 2 column 3: ", ">picture<", ">map<"] {
        assert!(picture.contains(said), "{said}");
    }
    assert!(!picture.contains("row 2 column 1"), "a number that is none has no square");
    let lines = csv(&figure);
    for line in ["grid,row,column,value", "picture,2,1,#5a5a5a", "map,1,1,-2", "map,2,1,NaN", "map,2,3,-0.25"] {
        assert!(lines.lines().any(|one| one == line), "{line}\n{lines}");
    }
    let json = serde_json::to_string(&Figure { grids: figure.grids[..1].to_vec(), ..figure.clone() }).unwrap();
    assert_eq!(serde_json::from_str::<Figure>(&json).unwrap().grids, figure.grids[..1]);
    assert!(!serde_json::to_string(&Figure::default()).unwrap().contains("grids"));
}

#[test]
fn a_grid_of_anything_is_drawn() {
    let mut rng = rng(0x0067_7269_6400);
    for _ in 0..200 {
        let values = (0..rng.random_range(0..12)).map(|_| any_number(&mut rng)).collect();
        let cells = Cells::Numbers { values, unit: "nats".into(), sides: Default::default() };
        let grid = Grid { columns: rng.random_range(0..5), cells };
        let figure = Figure::of_grids([("map".to_owned(), grid)]);
        let look = RenderOptions { width: any_number(&mut rng).clamp(0.0, 900.0), ..RenderOptions::default() };
        let finite = super::super::layout::scene(&figure, &look).shapes.iter().all(|shape| match shape {
            super::super::scene::Shape::Path(path) => path.points.iter().flatten().all(|at| at.is_finite()),
            super::super::scene::Shape::Text(text) => text.at.iter().all(|at| at.is_finite()),
        });
        assert!(finite, "{figure:?}");
        assert!(!pdf(&figure, &look).unwrap().is_empty() && svg(&figure, &look).ends_with("</svg>\n"));
    }
}
