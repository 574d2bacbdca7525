//! Making a smaller communicator of the processes that have not failed (MPIX_Comm_shrink).
//!
//! The engine agrees on the survivors. The other groups of the new communicator are made from theirs, and more
//! processes can fail meanwhile. So the survivors agree at the end whether all have all groups, and start again if not.

use std::ffi::c_int;

use regatta_sys as rg;

use super::{Communicator, Made, Members, Remote, internal_messages, making};
use crate::abi::*;
use crate::error::{Error, PROC_FAILED, Result, checked};
use crate::groups;

/// Flag of processes that have made all groups.
const MADE: c_int = 1;
/// Flag of processes that can start again if another process has failed.
const ABLE: c_int = 2;

/// Returns a communicator of the processes that have not failed. Only these call it.
pub fn shrink(comm: &Communicator) -> Result<Made> {
    loop {
        // All survivors are in this call once the agreement is over. The engine's calls that follow advance nothing
        // else.
        internal_messages::agree(comm.group, &mut 0)?;
        let survivors = survivors_of(comm.group)?;
        let made = made_of(comm, survivors);
        let mut flag = match &made {
            Ok(_) => MADE | ABLE,
            Err(error) if error.class() == PROC_FAILED => ABLE,
            Err(_) => 0,
        };
        let agreed = internal_messages::agree(survivors, &mut flag);
        if agreed.is_ok() && flag & MADE != 0 {
            return made;
        }
        if let Ok(made) = &made {
            let own = made.remote.as_ref().map(|remote| remote.own);
            [Some(made.hidden), own].into_iter().for_each(making::free);
        }
        making::free(Some(survivors));
        agreed?;
        if flag & ABLE == 0 {
            let text = "another process could not create the smaller communicator";
            return Err(made.err().unwrap_or_else(|| Error::new(ERR_OTHER, text)));
        }
    }
}

fn survivors_of(group: rg::Group) -> Result<rg::Group> {
    let mut out = rg::Group { id: -1 };
    // SAFETY: the call may write `out`.
    checked(unsafe { rg::rg_group_shrink(group, &mut out) })?;
    Ok(out)
}

/// Makes the communicator of the survivors.
fn made_of(comm: &Communicator, survivors: rg::Group) -> Result<Made> {
    let Some(remote) = &comm.remote else {
        return Made::around(survivors);
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
        let text = "a process failed while the communicator was shrunk";
        return Err(Error::new(PROC_FAILED, text));
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
