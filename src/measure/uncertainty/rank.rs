//! Rank statistics of images drawn so many times each. Orders are found once; a replicate of the
//! bootstrap costs O(n), and O(n log n) for Kendall.
//!
//! Images drawn twice tie with themselves; statistics of counts are those of the list in which
//! every image appears as often as it was drawn.

/// The order of some values.
#[derive(Debug)]
pub(super) struct Ranks {
    /// Group of every image: equal values share one, groups ascend with the values.
    group: Vec<u32>,
    groups: usize,
}

impl Ranks {
    /// Of finite values.
    pub fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut group = vec![0; values.len()];
        let mut last = 0;
        for pair in order.windows(2) {
            // By value: −0 and 0 are ordered by `total_cmp`, and equal.
            last += u32::from(values[pair[0]] < values[pair[1]]);
            group[pair[1]] = last;
        }
        Self { group, groups: last as usize + 1 }
    }

    /// How many drawn images each group has.
    fn sizes(&self, counts: &[u16]) -> Vec<i64> {
        let mut sizes = vec![0; self.groups];
        for (&group, &count) in self.group.iter().zip(counts) {
            sizes[group as usize] += i64::from(count);
        }
        sizes
    }

    /// Twice the rank of each group, ties at their mean, less n + 1: whole numbers that add up to
    /// 0.
    fn centred(&self, counts: &[u16]) -> Vec<i64> {
        let sizes = self.sizes(counts);
        let n: i64 = sizes.iter().sum();
        let mut below = 0;
        let rank = |size: &i64| {
            let twice = 2 * below + size + 1;
            below += size;
            twice - (n + 1)
        };
        sizes.iter().map(rank).collect()
    }

    /// The chance that a drawn `positive` image has a higher value than another, ½ for ties (Mann &
    /// Whitney 1947); NaN without images on either side.
    pub fn auroc(&self, positive: &[bool], counts: &[u16]) -> f64 {
        let mut sizes = vec![[0i64; 2]; self.groups];
        for ((&group, &positive), &count) in self.group.iter().zip(positive).zip(counts) {
            sizes[group as usize][usize::from(positive)] += i64::from(count);
        }
        let (mut below, mut above, mut twice) = (0, 0, 0);
        for [negatives, positives] in sizes {
            twice += positives * (2 * below + negatives);
            below += negatives;
            above += positives;
        }
        twice as f64 / (2 * below * above) as f64
    }
}

/// Two values of each image, ordered.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    x: &'a Ranks,
    y: Ranks,
    /// Images by x, and by y where x ties.
    order: Vec<usize>,
}

impl<'a> Pair<'a> {
    /// Of the same images.
    pub fn new(x: &'a Ranks, y: Ranks) -> Self {
        let mut order: Vec<usize> = (0..x.group.len()).collect();
        order.sort_unstable_by_key(|&i| (x.group[i], y.group[i]));
        Self { x, y, order }
    }

    /// Spearman's ρ: Pearson's correlation of the ranks; NaN where one side is constant.
    pub fn spearman(&self, counts: &[u16]) -> f64 {
        let (x_ranks, y_ranks) = (self.x.centred(counts), self.y.centred(counts));
        let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
        for ((&x, &y), &count) in self.x.group.iter().zip(&self.y.group).zip(counts) {
            let (a, b, times) = (x_ranks[x as usize] as f64, y_ranks[y as usize] as f64, f64::from(count));
            xx += times * a * a;
            yy += times * b * b;
            xy += times * a * b;
        }
        xy / (xx * yy).sqrt()
    }

    /// Kendall's τ_b by Knight's exchanges (Knight 1966), in whole numbers; NaN for a constant
    /// side.
    pub fn kendall(&self, counts: &[u16]) -> f64 {
        let pairs = |size: i64| size * (size - 1) / 2;
        let tied = |sizes: Vec<i64>| sizes.into_iter().map(pairs).sum::<i64>();
        let all = pairs(counts.iter().map(|&c| i64::from(c)).sum());
        let (tied_x, tied_y) = (tied(self.x.sizes(counts)), tied(self.y.sizes(counts)));
        let (discordant, tied_both) = self.discordant(counts);
        let net = all - tied_x - tied_y + tied_both - 2 * discordant;
        net as f64 / ((all - tied_x) as f64 * (all - tied_y) as f64).sqrt()
    }

    /// Pairs ordered one way by x and the other by y, and pairs tied in both.
    fn discordant(&self, counts: &[u16]) -> (i64, i64) {
        let mut seen = Sums::new(self.y.groups);
        let (mut discordant, mut tied_both, mut before) = (0, 0, 0);
        let (mut alike, mut last) = (0, None);
        for &i in &self.order {
            let (key, times) = ((self.x.group[i], self.y.group[i]), i64::from(counts[i]));
            discordant += times * (before - seen.up_to(key.1 as usize));
            alike = if last == Some(key) { alike } else { 0 };
            // Pairs with those alike before, and among the repeats of this image.
            tied_both += times * alike + times * (times - 1) / 2;
            alike += times;
            last = Some(key);
            seen.add(key.1 as usize, times);
            before += times;
        }
        (discordant, tied_both)
    }
}

/// Running sums of a changing list in O(log n) (Fenwick 1994).
struct Sums(Vec<i64>);

impl Sums {
    fn new(length: usize) -> Self {
        Self(vec![0; length + 1])
    }

    fn add(&mut self, at: usize, value: i64) {
        let mut node = at + 1;
        while node < self.0.len() {
            self.0[node] += value;
            node += node & node.wrapping_neg();
        }
    }

    /// The sum of the first entries, `last` included.
    fn up_to(&self, last: usize) -> i64 {
        let (mut node, mut sum) = (last + 1, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}
