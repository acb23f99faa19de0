//! The assignment problem: one column for every row at the least total cost (Kuhn 1955; Munkres
//! 1957), by shortest augmenting paths with potentials (Jonker & Volgenant 1987), O(K³).

/// The column of each row that makes Σ cost[row, column] least; `cost` is [size, size], row-major
/// and finite. Of equal assignments the one nearest to row = column is not guaranteed.
pub(super) fn assign(cost: &[f64], size: usize) -> Vec<usize> {
    // Rows and columns count from 1; column 0 is where each search starts.
    let (mut of_row, mut of_column) = (vec![0.0; size + 1], vec![0.0; size + 1]);
    let mut row_at = vec![0; size + 1];
    for row in 1..=size {
        row_at[0] = row;
        let before = search(cost, size, &mut of_row, &mut of_column, &row_at);
        let (mut column, before) = before;
        while column != 0 {
            row_at[column] = row_at[before[column]];
            column = before[column];
        }
    }
    let mut column_of = vec![0; size];
    for column in 1..=size {
        column_of[row_at[column] - 1] = column - 1;
    }
    column_of
}

/// The free column of the shortest augmenting path from column 0's row; all predecessors.
fn search(
    cost: &[f64],
    size: usize,
    of_row: &mut [f64],
    of_column: &mut [f64],
    row_at: &[usize],
) -> (usize, Vec<usize>) {
    let mut distance = vec![f64::INFINITY; size + 1];
    let mut before = vec![0; size + 1];
    let mut done = vec![false; size + 1];
    let mut column = 0;
    loop {
        done[column] = true;
        let row = row_at[column];
        let (mut nearest, mut step) = (0, f64::INFINITY);
        for next in (1..=size).filter(|&next| !done[next]) {
            let reduced = cost[(row - 1) * size + next - 1] - of_row[row] - of_column[next];
            if reduced < distance[next] {
                (distance[next], before[next]) = (reduced, column);
            }
            if distance[next] < step {
                (nearest, step) = (next, distance[next]);
            }
        }
        for at in 0..=size {
            if done[at] {
                of_row[row_at[at]] += step;
                of_column[at] -= step;
            } else {
                distance[at] -= step;
            }
        }
        column = nearest;
        if row_at[column] == 0 {
            return (column, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;
    use rand::RngExt;

    fn total(cost: &[f64], size: usize, columns: &[usize]) -> f64 {
        columns.iter().enumerate().map(|(row, column)| cost[row * size + column]).sum()
    }

    /// Least cost over all permutations.
    fn brute(cost: &[f64], size: usize, row: usize, taken: &mut Vec<bool>) -> f64 {
        if row == size {
            return 0.0;
        }
        let mut least = f64::INFINITY;
        for column in 0..size {
            if !taken[column] {
                taken[column] = true;
                least = least.min(cost[row * size + column] + brute(cost, size, row + 1, taken));
                taken[column] = false;
            }
        }
        least
    }

    #[test]
    fn costs_are_the_least_of_all_permutations() {
        for size in 1..=6 {
            for trial in 0..50 {
                let mut rng = Seed(size as u64).rng(trial);
                let cost: Vec<f64> = (0..size * size).map(|_| rng.random::<f64>() - 0.5).collect();
                let columns = assign(&cost, size);
                let mut sorted = columns.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..size).collect::<Vec<_>>());
                let least = brute(&cost, size, 0, &mut vec![false; size]);
                assert!((total(&cost, size, &columns) - least).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_hidden_permutation_of_many_classes_comes_back() {
        let size = 200;
        let hidden = |row: usize| (row * 7 + 3) % size;
        let cost: Vec<f64> =
            (0..size * size).map(|at| if at % size == hidden(at / size) { -1.0 } else { (at % 13) as f64 }).collect();
        assert_eq!(assign(&cost, size), (0..size).map(hidden).collect::<Vec<_>>());
    }
}
