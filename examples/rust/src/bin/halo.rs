//! halo: a grid of numbers is divided into tiles, one per task. In every sweep each number becomes the
//! mean of its four neighbours. For that, each task needs the edges of the adjacent tiles: its halo.
//!
//! The grid starts as u(x, y) = 3x + 5y, where every number already is the mean of its neighbours.
//! So no number changes, unless a halo is wrong.
#![forbid(unsafe_code)]

use regatta::{Shape, ViewMut};

const ROWS: usize = 6;
const COLUMNS: usize = 4;
/// Width of a tile with its halo of width 1.
const WIDTH: usize = COLUMNS + 2;
const SWEEPS: u32 = 10;

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    let (rank, size) = (world.rank(), world.size());

    // Arranges the tiles in a grid that is as square as the number of tasks allows.
    let mut divisors = (1..=size).filter(|n| n * n <= size && size.is_multiple_of(*n));
    let down = divisors.next_back().unwrap_or(1);
    let across = size / down;
    let (row, column) = (rank / across, rank % across);

    // A halo is unknown (NaN) where it belongs to another tile, and given at the border of the grid.
    let above = (row > 0).then(|| rank - across);
    let below = (row < down - 1).then_some(rank + across);
    let left = (column > 0).then(|| rank - 1);
    let right = (column < across - 1).then_some(rank + 1);
    let exact =
        |i: usize, j: usize| 3.0 * (column * COLUMNS + j) as f64 + 5.0 * (row * ROWS + i) as f64;
    let mut u = vec![0.0; (ROWS + 2) * WIDTH];
    for (at, value) in u.iter_mut().enumerate() {
        let (i, j) = (at / WIDTH, at % WIDTH);
        let unknown = (i == 0 && above.is_some())
            || (i == ROWS + 1 && below.is_some())
            || (j == 0 && left.is_some())
            || (j == WIDTH - 1 && right.is_some());
        *value = if unknown { f64::NAN } else { exact(i, j) };
    }

    // A row is one block; a column is ROWS blocks of one number, one row apart.
    let line = |i: usize| Shape::row(i * WIDTH + 1, COLUMNS);
    let pile = |j: usize| Shape::column(WIDTH + j, ROWS, WIDTH);
    let halos = [line(0), line(ROWS + 1), pile(0), pile(WIDTH - 1)];
    let edges = [line(1), line(ROWS), pile(1), pile(COLUMNS)];
    let peers = [above, below, left, right];
    for sweep in 0..SWEEPS {
        let (mut halos, edges) = ViewMut::split_with(&mut u, halos, edges)?;
        world.scope(|s| {
            for (halo, peer) in halos.iter_mut().zip(peers) {
                s.recv(halo, peer, sweep)?;
            }
            for (edge, peer) in edges.iter().zip(peers) {
                s.send(edge, peer, sweep)?;
            }
            Ok(())
        })?;
        let old = u.clone();
        for at in (1..=ROWS).flat_map(|i| (1..=COLUMNS).map(move |j| i * WIDTH + j)) {
            u[at] = (old[at - WIDTH] + old[at + WIDTH] + old[at - 1] + old[at + 1]) / 4.0;
        }
    }

    let inside = || (1..=ROWS).flat_map(|i| (1..=COLUMNS).map(move |j| (i, j)));
    let sum: f64 = inside().map(|(i, j)| u[i * WIDTH + j]).sum();
    println!("tile ({row}, {column}) of {down} x {across} has the sum {sum:.1}");
    assert_eq!(sum, inside().map(|(i, j)| exact(i, j)).sum());
    Ok(())
}
