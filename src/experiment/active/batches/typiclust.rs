//! TypiClust (Hacohen, Dekel & Weinshall 2022): the images are parted into as many clusters as there will be
//! labels; from the largest clusters without a label comes the most typical image of each: the one whose
//! nearest neighbours are nearest, among those of its cluster before any is taken. Limits and the order of clusters are
//! those of the authors' program. The mean is of distances, as in the paper (the program's are squared), and features
//! keep their length (the program scales them to 1). The program's are learned without labels by another network
//! (SimCLR); here they are those of the classifier itself.

use rand::Rng;

use super::clusters::clusters;
use super::geometry::{Rows, squared};
use crate::parallel;

/// Clusters, at most.
const MOST: usize = 500;
/// Clusters of at most so many images are left out.
const SMALL: usize = 5;
/// Neighbours that typicality asks.
const NEIGHBOURS: usize = 20;

/// Returns `count` places of `rows` [N, D]; the first `labelled` rows have their labels already.
pub(in super::super) fn typiclust(rows: Rows<'_>, labelled: usize, count: usize, rng: &mut impl Rng) -> Vec<usize> {
    let of = clusters(rows, (labelled + count).min(MOST), rng);
    chosen(rows, &of, labelled, count)
}

/// A cluster.
struct Cluster {
    size: usize,
    labelled: usize,
    /// Its images without a label; in the end the least typical first.
    open: Vec<usize>,
}

fn chosen(rows: Rows<'_>, of: &[usize], labelled: usize, count: usize) -> Vec<usize> {
    let number = of.iter().max().map_or(0, |last| last + 1);
    let mut all: Vec<Cluster> = (0..number).map(|_| Cluster { size: 0, labelled: 0, open: Vec::new() }).collect();
    for (image, &cluster) in of.iter().enumerate() {
        all[cluster].size += 1;
        match image < labelled {
            true => all[cluster].labelled += 1,
            false => all[cluster].open.push(image),
        }
    }
    // Where all are small none is left out.
    if all.iter().any(|cluster| cluster.size > SMALL && !cluster.open.is_empty()) {
        all.iter_mut().filter(|cluster| cluster.size <= SMALL).for_each(|cluster| cluster.open.clear());
    }
    all.sort_by(|a, b| a.labelled.cmp(&b.labelled).then(b.size.cmp(&a.size)));
    // One image of each in turn: the others need no order.
    let asked = all.iter().filter(|cluster| !cluster.open.is_empty()).count().min(count);
    let open = all.iter_mut().filter(|cluster| !cluster.open.is_empty());
    open.take(asked).for_each(|cluster| by_typicality(rows, &mut cluster.open));
    let mut found = Vec::with_capacity(count);
    while found.len() < count {
        let before = found.len();
        for cluster in &mut all {
            if found.len() < count {
                found.extend(cluster.open.pop());
            }
        }
        if found.len() == before {
            break;
        }
    }
    rest(&mut found, labelled, rows.len(), count);
    found
}

/// Fills up from the small clusters, where the others have not enough images: those that come first.
fn rest(found: &mut Vec<usize>, labelled: usize, images: usize, count: usize) {
    let mut taken = vec![false; images];
    found.iter().for_each(|&image| taken[image] = true);
    let more = (labelled..images).filter(|&image| !taken[image]).take(count.saturating_sub(found.len()));
    found.extend(more.collect::<Vec<_>>());
}

/// Sorts images by the distance of their neighbours in the mean, the nearest last; of equals the first is last.
fn by_typicality(rows: Rows<'_>, images: &mut Vec<usize>) {
    let neighbours = NEIGHBOURS.min(images.len() / 2);
    let mean = |image: usize| {
        let others = images.iter().filter(|other| **other != image);
        let mut distances: Vec<f64> = others.map(|&other| squared(rows.row(image), rows.row(other)).sqrt()).collect();
        if neighbours > 0 && neighbours < distances.len() {
            distances.select_nth_unstable_by(neighbours - 1, f64::total_cmp);
        }
        distances.truncate(neighbours);
        distances.sort_by(f64::total_cmp);
        distances.iter().sum::<f64>()
    };
    let mut far = parallel::map(images.len(), |i| (mean(images[i]), images[i]));
    far.sort_by(|(a, i), (b, j)| b.total_cmp(a).then(j.cmp(i)));
    *images = far.into_iter().map(|(_, image)| image).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    #[test]
    fn the_most_typical_of_the_largest_clusters_without_a_label_come_first() {
        // Heaps on a line at 0, 100, 200 and 300 of 8, 12, 20 and 16 images, thinner away from their middle; the
        // first image, at 200, has its label.
        let place = |t: i32| (t * t.abs()) as f32 / 4.0;
        let heap = |at: f32, size: i32| (0..size).map(move |i| at + place(i - size / 2));
        let mut values = vec![200.25f32];
        for (at, size) in [(0.0, 8), (100.0, 12), (200.0, 20), (300.0, 16)] {
            values.extend(heap(at, size));
        }
        let rows = Rows::new(&values, 1);
        let cluster: Vec<usize> = values.iter().map(|value| (value / 100.0).round() as usize).collect();
        let places = chosen(rows, &cluster, 1, 4);
        let chosen: Vec<f32> = places.iter().map(|&i| values[i]).collect();
        // The largest without a label, the next, the smallest, then the one that is covered.
        let heaps: Vec<i32> = chosen.iter().map(|value| (value / 100.0).round() as i32).collect();
        assert_eq!(heaps, [3, 1, 0, 2], "{chosen:?}");
        // The middle of a heap is nearest to its neighbours.
        for (value, middle) in chosen.iter().zip([300.0, 100.0, 0.0, 200.0f32]) {
            assert!((value - middle).abs() <= 1.0, "{value} {middle}");
        }
    }

    #[test]
    fn small_clusters_are_left_out_until_nothing_else_is_left() {
        let values: Vec<f32> = (0..10).map(|i| i as f32).chain([100.0, 101.0]).collect();
        let (rows, of) = (Rows::new(&values, 1), [vec![0; 10], vec![1; 2]].concat());
        assert!(chosen(rows, &of, 0, 4).iter().all(|image| *image < 10));
        let mut all = chosen(rows, &of, 0, 12);
        assert_eq!(all[10..], [10, 11]);
        all.sort_unstable();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        assert_eq!(chosen(rows, &of, 11, 5), [11]);
    }

    #[test]
    fn with_its_own_clusters_every_heap_gets_its_label() {
        let mut rng = Seed(2).rng(0);
        let values: Vec<f32> = (0..60).map(|i| 50.0 * (i % 4) as f32 + rng.random::<f32>()).collect();
        let chosen = typiclust(Rows::new(&values, 1), 1, 3, &mut rng);
        let mut heaps: Vec<usize> = chosen.iter().map(|image| image % 4).collect();
        heaps.sort_unstable();
        // The first image, of heap 0, has its label.
        assert_eq!(heaps, [1, 2, 3]);
    }
}
