//! hello: every task sends a greeting to task 0, which prints them in rank order.
#![forbid(unsafe_code)]

const GREETING: u32 = 1;

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    let (rank, size) = (world.rank(), world.size());

    let mine = format!("hello from task {rank} of {size}");
    // Small messages do not wait for their receiver, so task 0 may send to itself.
    world.send(mine.as_bytes(), 0, GREETING)?;

    if rank == 0 {
        for from in 0..size {
            let (text, _) = world.recv_vec::<u8>(from, GREETING)?;
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            assert_eq!(text, format!("hello from task {from} of {size}"));
        }
    }
    Ok(())
}
