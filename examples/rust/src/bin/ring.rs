//! ring: a number is passed around all tasks, and each adds its rank to it.
#![forbid(unsafe_code)]

const TOKEN: u32 = 1;

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    let (rank, size) = (world.rank(), world.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);

    let mut token = 0u64;
    // Task 0 starts the round. All other tasks first wait for the number.
    if rank > 0 {
        world.recv(&mut token, left, TOKEN)?;
    }
    token += rank as u64;
    println!("task {rank} passes on {token}");
    world.send(&token, right, TOKEN)?;

    if rank == 0 {
        world.recv(&mut token, left, TOKEN)?;
        println!("the ranks add up to {token}");
        assert_eq!(token, (size * (size - 1) / 2) as u64);
    }
    Ok(())
}
