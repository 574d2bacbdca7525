//! loan: a megabyte is passed around all tasks, and each adds 1 to every byte. It is never copied: the
//! block is borrowed from Regatta once, and then handed from task to task.
#![forbid(unsafe_code)]

const TAG: u32 = 1;
const LENGTH: usize = 1 << 20;

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let world = task.world();
    let (rank, size) = (world.rank(), world.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);

    let mut loan = if rank == 0 {
        let mut loan = task.loan(LENGTH)?;
        loan.fill(0); // the initial contents of a loan are unspecified
        loan
    } else {
        world.recv_loan(left, TAG)?.0
    };
    for byte in loan.iter_mut() {
        *byte = byte.wrapping_add(1);
    }
    println!("task {rank} hands on bytes of {}", loan[LENGTH - 1]);
    // From here on the loan belongs to the receiver.
    world.send_loan(loan, right, TAG)?;

    if rank == 0 {
        let (loan, status) = world.recv_loan(left, TAG)?;
        println!("after {size} tasks: {} bytes of {}", status.length, loan[0]);
        assert!(status.length == LENGTH && loan.iter().all(|&byte| byte == size as u8));
    }
    Ok(())
}
