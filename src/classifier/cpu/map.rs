//! Linear maps of channels: convolutions, and the linear layers that are convolutions of one place.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Maps, Tape};
use crate::kernels::rows::add_rows;
use crate::kernels::{Buffer, Panels, Real, Threads, add_outer_products, multiply_all};

/// Channels below which an image's neighbourhoods are gathered first: products of three numbers are
/// slow.
const FEW: usize = 16;

/// How a kernel moves over a map, along height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Sides of the kernel.
    pub kernel: [usize; 2],
    /// Pixels from one position to the next.
    pub stride: usize,
    /// Zeros around the map.
    pub padding: [usize; 2],
}

impl Geometry {
    /// One place, moved over every pixel.
    pub const POINT: Self = Self { kernel: [1; 2], stride: 1, padding: [0; 2] };

    /// Sides of the result.
    pub fn out(&self, side: [usize; 2]) -> [usize; 2] {
        let out = |i: usize| (side[i] + 2 * self.padding[i]).saturating_sub(self.kernel[i]) / self.stride + 1;
        [out(0), out(1)]
    }

    /// The pixel along an axis that a place of the kernel meets, unless it meets the padding.
    fn meets(&self, axis: usize, side: usize, out: usize, place: usize) -> Option<usize> {
        (out * self.stride + place).checked_sub(self.padding[axis]).filter(|&at| at < side)
    }

    /// Of every position of the result, row by row: places of the kernel and positions of the
    /// argument they meet.
    pub fn sources(&self, side: [usize; 2]) -> Vec<Vec<(usize, usize)>> {
        let [high, wide] = self.out(side);
        let of = |out: usize| {
            let places = (0..self.kernel[0] * self.kernel[1]).filter_map(|place| {
                let row = self.meets(0, side[0], out / wide, place / self.kernel[1])?;
                let column = self.meets(1, side[1], out % wide, place % self.kernel[1])?;
                Some((place, row * side[1] + column))
            });
            places.collect()
        };
        (0..high * wide).map(of).collect()
    }

    /// Places of the kernel along an axis, from and up to, that meet the map anywhere.
    fn reach(&self, axis: usize, side: [usize; 2]) -> Range<usize> {
        let outs = self.out(side)[axis];
        let meets = |place: &usize| (0..outs).any(|out| self.meets(axis, side[axis], out, *place).is_some());
        let first = (0..self.kernel[axis]).find(meets).unwrap_or(0);
        first..(0..self.kernel[axis]).rev().find(meets).map_or(first, |last| last + 1)
    }
}

/// A map's weight [outputs, inputs, height, width], and where it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapShape {
    inputs: usize,
    outputs: usize,
    kernel: [usize; 2],
    /// Rows and columns of the kernel that meet the map; the others have no effect and no gradient.
    reach: [Range<usize>; 2],
}

impl MapShape {
    fn new([outputs, inputs]: [usize; 2], geometry: Geometry, side: [usize; 2]) -> Self {
        let reach = [geometry.reach(0, side), geometry.reach(1, side)];
        Self { inputs, outputs, kernel: geometry.kernel, reach }
    }

    fn places(&self) -> usize {
        self.reach[0].len() * self.reach[1].len()
    }

    /// Place in the kernel of the place in the reach.
    fn place(&self, index: usize) -> usize {
        let (row, column) = (index / self.reach[1].len(), index % self.reach[1].len());
        (self.reach[0].start + row) * self.kernel[1] + self.reach[1].start + column
    }

    /// The place in the reach of the place in the kernel.
    fn index(&self, place: usize) -> usize {
        let (row, column) = (place / self.kernel[1], place % self.kernel[1]);
        (row - self.reach[0].start) * self.reach[1].len() + column - self.reach[1].start
    }

    /// From [place, inputs, outputs] to [outputs, inputs, height, width].
    pub fn ordered<T: Real>(&self, values: &[T]) -> Vec<T> {
        let (all, places) = (self.kernel[0] * self.kernel[1], self.places());
        let mut ordered = vec![T::ZERO; self.outputs * self.inputs * all];
        let at: Vec<usize> = (0..places).map(|index| self.place(index)).collect();
        ordered.par_chunks_mut((16 * self.inputs * all).max(1)).enumerate().for_each(|(block, ordered)| {
            for input in 0..self.inputs {
                for (index, place) in at.iter().enumerate() {
                    let row = &values[(index * self.inputs + input) * self.outputs + 16 * block..];
                    let column = ordered.iter_mut().skip(input * all + place).step_by(self.inputs * all);
                    column.zip(row).for_each(|(to, from)| *to = *from);
                }
            }
        });
        ordered
    }
}

/// A weight as the products need it.
#[derive(Debug, Default)]
pub struct Weight<T> {
    /// Whether it is this step's.
    pub loaded: bool,
    /// Inputs to outputs, and the bias.
    forward: Arc<Panels<T>>,
    /// Outputs to inputs.
    back: Arc<Panels<T>>,
}

/// A map's parameters.
#[derive(Debug, Clone, Copy)]
pub struct Linear<'a, T> {
    /// Identity of the weight.
    pub weight: u64,
    /// Identity of the bias.
    pub bias: Option<u64>,
    /// Outputs and inputs.
    pub size: [usize; 2],
    /// Their numbers, weights [outputs, inputs, height, width] first; not needed where
    /// [`Tape::loaded`] has them.
    pub numbers: Option<(&'a [T], &'a [T])>,
}

/// Of every position of the argument: places of the kernel, and positions of the result whose
/// sources it is among by them.
pub fn readers(sources: &[Vec<(usize, usize)>], side: [usize; 2]) -> Vec<Vec<(usize, usize)>> {
    let mut readers = vec![Vec::new(); side[0] * side[1]];
    for (out, sources) in sources.iter().enumerate() {
        for &(place, source) in sources {
            readers[source].push((place, out));
        }
    }
    readers
}

/// Which positions of maps meet by which place of the reach.
struct Meeting {
    /// Of a position of the result: places, and positions of the argument.
    sources: Vec<Vec<(usize, usize)>>,
    /// Of a position of the argument: places, and positions of the result.
    readers: Vec<Vec<(usize, usize)>>,
    /// Of a place: positions of argument and result.
    pairs: Vec<Vec<(usize, usize)>>,
}

impl Meeting {
    fn new(shape: &MapShape, geometry: Geometry, side: [usize; 2]) -> Self {
        let mut sources = geometry.sources(side);
        let mut pairs = vec![Vec::new(); shape.places()];
        for (out, sources) in sources.iter_mut().enumerate() {
            for (place, source) in sources {
                *place = shape.index(*place);
                pairs[*place].push((*source, out));
            }
        }
        Self { readers: readers(&sources, side), sources, pairs }
    }

    /// Every row for itself: all positions are one.
    fn point() -> Self {
        let one = vec![vec![(0, 0)]];
        Self { sources: one.clone(), readers: one.clone(), pairs: one }
    }
}

impl<T: Real> Tape<T> {
    /// Whether a weight was read in this step.
    pub fn loaded(&self, weight: u64) -> bool {
        self.weights.get(&weight).is_some_and(|weight| weight.loaded)
    }

    /// A convolution with bias, where there is one; by [`Geometry::POINT`] a linear map of every
    /// position of every image.
    pub fn map(&mut self, x: Maps, linear: Linear<'_, T>, geometry: Geometry) -> Maps {
        let point = geometry == Geometry::POINT;
        let gathers = !point && !x.slopes && x.channels < FEW;
        let shape = MapShape::new(linear.size, geometry, x.side);
        let side = geometry.out(x.side);
        let all = if point { Meeting::point() } else { Meeting::new(&shape, geometry, x.side) };
        let (meeting, from) = match gathers {
            true => (Meeting::point(), self.gather(x, &all.sources, shape.places(), side)),
            false => (all, x),
        };
        let rows = if point || gathers { from.rows() } else { x.images };
        let panels = self.load(linear, &shape, gathers, x.slopes);
        let value = self.value(from);
        let like = Maps { side, channels: shape.outputs, slopes: true, ..x };
        let mut out = self.take(like.len());
        multiply_all(&value, rows, |position| meeting.sources[position].clone(), &panels, &mut out, false);
        let out = self.push(out, like);
        let step = MapBackward { x, from, rows, meeting, shape, weight: linear.weight, bias: linear.bias };
        self.record(out, move |tape, slope| step.run(tape, slope));
        out
    }

    /// Panels of a weight, read once in a step; of one place where what all places meet is
    /// gathered. `slopes`: whether those of the way back are needed, too.
    fn load(&mut self, linear: Linear<'_, T>, shape: &MapShape, gathered: bool, slopes: bool) -> Arc<Panels<T>> {
        let weight = self.weights.entry(linear.weight).or_default();
        if let Some((values, bias)) = linear.numbers {
            let all = shape.kernel[0] * shape.kernel[1];
            let (places, inputs, outputs) = (shape.places(), shape.inputs, shape.outputs);
            let at: Vec<usize> = (0..places).map(|index| shape.place(index)).collect();
            let of_input = |place: usize, input: usize| input * all + at[place];
            let mut forward = Arc::try_unwrap(std::mem::take(&mut weight.forward)).unwrap_or_default();
            let mut back = Arc::try_unwrap(std::mem::take(&mut weight.back)).unwrap_or_default();
            if gathered {
                forward.size(1, places * inputs, outputs);
                forward.fill(values, |_, input| of_input(input / inputs, input % inputs), inputs * all, Threads::All);
            } else {
                forward.size(places, inputs, outputs);
                forward.fill(values, of_input, inputs * all, Threads::All);
            }
            if slopes {
                back.size(places, outputs, inputs);
                back.fill(values, |place, output| output * inputs * all + at[place], all, Threads::All);
            }
            forward.set_bias(bias);
            (weight.forward, weight.back) = (Arc::new(forward), Arc::new(back));
            weight.loaded = true;
        }
        Arc::clone(&weight.forward)
    }

    /// What every place meets at every position, [position, image, place, channel].
    fn gather(&mut self, x: Maps, sources: &[Vec<(usize, usize)>], places: usize, side: [usize; 2]) -> Maps {
        let (c, n, value) = (x.channels, x.images, self.value(x));
        let like = Maps { side, channels: places * c, ..x };
        let mut out = self.zeros(like.len());
        let positions = out.par_chunks_mut((n * places * c).max(1)).zip(sources);
        positions.for_each(|(out, sources)| {
            for &(place, source) in sources {
                let from = &value[source * n * c..][..n * c];
                match c {
                    1 => spread::<T, 1>(from, &mut out[place * c..], places),
                    3 => spread::<T, 3>(from, &mut out[place * c..], places),
                    _ => {
                        let rows = out.chunks_exact_mut(places * c).map(|row| &mut row[place * c..][..c]);
                        rows.zip(from.chunks_exact(c)).for_each(|(to, from)| to.copy_from_slice(from));
                    }
                }
            }
        });
        self.push(out, like)
    }
}

/// Writes rows of `C` numbers `places` rows apart.
fn spread<T: Copy, const C: usize>(from: &[T], out: &mut [T], places: usize) {
    let (out, _) = out.as_chunks_mut::<C>();
    let (from, _) = from.as_chunks::<C>();
    out.iter_mut().step_by(places).zip(from).for_each(|(to, from)| *to = *from);
}

/// The way back of a map.
struct MapBackward {
    x: Maps,
    /// The first factor: x, or what was gathered of it.
    from: Maps,
    rows: usize,
    meeting: Meeting,
    shape: MapShape,
    weight: u64,
    bias: Option<u64>,
}

impl MapBackward {
    fn run<T: Real>(self, tape: &mut Tape<T>, slope: Buffer<T>) {
        let Self { x, from, rows, meeting, shape, weight, bias } = self;
        let outputs = shape.outputs;
        let value = tape.value(from);
        let mut sum = tape.sum(weight, shape.places() * shape.inputs * outputs, Some(shape));
        let mut bias = bias.map(|bias| (bias, tape.sum(bias, outputs, None)));
        let panels = tape.weights.get(&weight).map(|weight| Arc::clone(&weight.back));
        let mut input = panels.filter(|_| x.slopes).map(|panels| (panels, tape.slope(x)));
        let of_parameters = || {
            add_outer_products((&value, from.channels), (&slope, outputs), rows, &meeting.pairs, &mut sum.values);
            if let Some((_, sum)) = &mut bias {
                add_rows(&slope, &mut sum.values);
            }
        };
        let of_input = || {
            if let Some((panels, (into, add))) = &mut input {
                let readers = |position: usize| meeting.readers[position].clone();
                multiply_all(&slope, rows, readers, panels, into, *add);
            }
        };
        rayon::join(of_parameters, of_input);
        tape.sums.insert(weight, sum);
        if let Some((bias, sum)) = bias {
            tape.sums.insert(bias, sum);
        }
        if let Some((_, (into, _))) = input {
            tape.slopes[x.at] = Some(into);
        }
        tape.give(slope);
    }
}
