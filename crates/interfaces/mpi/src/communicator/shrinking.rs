//! A smaller communicator of the processes that have not failed.
//!
//! The engine agrees on the survivors. The other groups of the new communicator are made of theirs, and further processes can
//! fail meanwhile. So the survivors agree at the end whether all have all groups, and begin anew if not.

use std::ffi::c_int;

use regatta_sys as rg;

use super::{Communicator, Made, Members, Remote, making, talk};
use crate::abi::*;
use crate::error::{Error, Result, checked};
use crate::groups;

/// The processes that have not failed, who alone call this.
pub fn shrink(comm: &Communicator) -> Result<Made> {
    loop {
        // All are in this call when this is over: the engine's calls that follow let nothing else advance.
        talk::agree(comm.group, &mut 1)?;
        let survivors = survivors_of(comm.group)?;
        let made = made_of(comm, survivors);
        let mut all_have = c_int::from(made.is_ok());
        let agreed = talk::agree(survivors, &mut all_have);
        if agreed.is_ok() && all_have == 1 {
            return made;
        }
        let failed = match made {
            Ok(made) => {
                let own = made.remote.map(|remote| remote.own);
                [Some(made.hidden), own].into_iter().for_each(making::free);
                None
            }
            Err(error) => Some(error),
        };
        making::free(Some(survivors));
        agreed?;
        // It has not been a failure, and would be there again.
        if let Some(error) = failed.filter(|it| it.class() != MPIX_ERR_PROC_FAILED) {
            return Err(error);
        }
    }
}

fn survivors_of(group: rg::Group) -> Result<rg::Group> {
    let mut out = rg::Group { id: -1 };
    // SAFETY: `out` is written.
    checked(unsafe { rg::rg_group_shrink(group, &mut out) })?;
    Ok(out)
}

/// The communicator of these processes.
fn made_of(comm: &Communicator, survivors: rg::Group) -> Result<Made> {
    let Some(remote) = &comm.remote else {
        return Made::of_group(survivors);
    };
    let all = Members::of_engine(survivors)?;
    let living = |side: &Members| -> Members {
        let living = side.iter().copied().filter(|task| all.contains(task));
        living.collect::<Vec<c_int>>().into()
    };
    let (local, others) = (living(&comm.local), living(&remote.members));
    let own = survivors_of(remote.own)?;
    let made = making::dup_group(survivors);
    let (hidden, side) = match made.and_then(|hidden| Ok((hidden, Members::of_engine(own)?))) {
        Ok(both) => both,
        Err(error) => {
            making::free(Some(own));
            return Err(error);
        }
    };
    if side != local {
        for group in [hidden, own] {
            making::free(Some(group));
        }
        let text = "a process has failed while the communicator was made smaller";
        return Err(Error::new(MPIX_ERR_PROC_FAILED, text));
    }
    let low = comm.base == 0;
    Ok(Made {
        group: survivors,
        hidden,
        rank: groups::own_rank(&local)?,
        base: if low { 0 } else { others.len() as c_int },
        remote: Some(Remote {
            base: if low { local.len() as c_int } else { 0 },
            members: others,
            own,
        }),
        local,
    })
}
