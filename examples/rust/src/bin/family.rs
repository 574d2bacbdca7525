//! family: every task starts two tasks of this program, receives a message from each, and is then notified of their ends.

use regatta::{EVENT, Ending, Event, Source, Spawn, Task, Watch, event};

const CHILDREN: usize = 2;
const WORD: u32 = 1;
const ENDED: u32 = 2;

/// Sends a number to the parent. In `all` the rank of a task is its id.
fn be_child(task: &Task, parent: u32) -> regatta::Result<()> {
    // A child's world has the tasks that were started with it.
    let word = 10 + task.world().rank() as u32;
    task.all().send(&[word], parent as usize, WORD)
}

fn be_parent(task: &Task) -> regatta::Result<bool> {
    let program = std::env::args_os().next().unwrap_or_default();
    let children = task.spawn(&Spawn::new(program), CHILDREN)?;
    let all = task.all();
    let (mut words, mut well) = (0, 0);
    for child in children {
        let child = child?;
        let mut word = [0u32];
        task.watch(Watch::TaskEnds(child), ENDED, &all)?;
        all.recv(&mut word, child as usize, WORD)?;
        words += word[0];
    }
    // Events are messages, so one receive could also wait for both.
    for _ in 0..CHILDREN {
        let mut message = [0u8; EVENT];
        all.recv(&mut message, Source::Any, ENDED)?;
        let ending = event(&message).map(|(_, event)| event);
        well += matches!(
            ending,
            Some(Event::TaskEnded {
                ending: Ending::Exited(0),
                ..
            })
        ) as usize;
    }
    if task.world().rank() == 0 {
        println!("the children said {words}, and {well} of {CHILDREN} ended well");
    }
    Ok(words == 21 && well == CHILDREN)
}

fn main() -> regatta::Result<()> {
    let task = regatta::init()?;
    let right = match task.parent()? {
        Some(parent) => be_child(&task, parent).map(|()| true)?,
        None => be_parent(&task)?,
    };
    task.finalize()?;
    std::process::exit(i32::from(!right));
}
