//! listen: every task starts two programs that do not use Regatta, and receives their output.

use regatta::{OUTPUT, Source, Spawn, Task, output};

const COUNT: usize = 2;
const WRITTEN: u32 = 1;

/// Returns the number of lines and bytes that the programs write.
fn listen(task: &Task) -> regatta::Result<(usize, usize)> {
    let all = task.all();
    let echo = Spawn::new("echo").arg("one\ntwo").lines_to(WRITTEN, &all);
    for started in task.spawn(&echo, COUNT)? {
        started?;
    }
    // Each program has two streams, and the end of each stream is a message, too.
    let (mut lines, mut bytes, mut ends) = (0, 0, 0);
    while ends < 2 * COUNT {
        let mut message = [0u8; OUTPUT];
        let status = all.recv(&mut message, Source::Any, WRITTEN)?;
        match output(&message[..status.length]) {
            Some((_, _, [])) => ends += 1,
            Some((_, _, text)) => {
                lines += 1;
                bytes += text.len();
            }
            None => {}
        }
    }
    Ok((lines, bytes))
}

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let (lines, bytes) = listen(&task)?;
    if task.world().rank() == 0 {
        println!("{COUNT} programs wrote {lines} lines, {bytes} bytes");
    }
    task.finalize()
}
