//! Groups, ranks, task ids and paths.

use std::ffi::{c_char, c_int};

use regatta_process::{self as process, Error, GroupId, Result};

use crate::error::{OK, answer, argument, fail, number};
use crate::memory::{GroupHandle, RgGroup, RgRequest, block, output};
use crate::message::started;
use crate::text::put_all;

#[unsafe(no_mangle)]
extern "C" fn rg_rank(group: RgGroup) -> c_int {
    number(process::rank(group.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_size(group: RgGroup) -> c_int {
    number(process::size(group.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_tid() -> c_int {
    number(process::tid())
}

#[unsafe(no_mangle)]
extern "C" fn rg_parent() -> c_int {
    match process::parent() {
        Ok(Some(parent)) => number(Ok(parent)),
        Ok(None) => process::NONE,
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_tid_of(group: RgGroup, rank: c_int) -> c_int {
    number(process::tid_of(group.id(), rank))
}

#[unsafe(no_mangle)]
extern "C" fn rg_rank_of(group: RgGroup, tid: c_int) -> c_int {
    number(process::rank_of(group.id(), tid))
}

fn made(result: Result<Option<GroupId>>, out: *mut RgGroup) -> c_int {
    let result = result.and_then(|made| {
        output(out, "out")?.id = made.map_or(-1, |group| group.0);
        Ok(())
    });
    answer(result)
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_dup(group: RgGroup, out: *mut RgGroup) -> c_int {
    made(process::duplicate(group.id()).map(Some), out)
}

#[unsafe(no_mangle)]
extern "C" fn rg_igroup_dup(group: RgGroup, out: *mut RgGroup, request: *mut RgRequest) -> c_int {
    let places = output(out, "out").and_then(|out| Ok((out, output(request, "request")?)));
    let start = || {
        let (out, _) = places?;
        let (made, handle) = process::start_duplicate(group.id())?;
        out.id = made.0;
        Ok(handle)
    };
    started(start(), request)
}

/// Returns the ranks of an array. Fails if there are none.
///
/// # Safety
/// `ranks` must point to `n` ranks if `n` is positive.
unsafe fn list<'a>(n: c_int, ranks: *const c_int) -> Result<&'a [c_int]> {
    match usize::try_from(n) {
        Ok(n) if n > 0 && !ranks.is_null() => {
            // SAFETY: the caller guarantees that `ranks` points to `n` ranks.
            Ok(unsafe { std::slice::from_raw_parts(ranks, n) })
        }
        _ => Err(argument("a new group needs at least one rank")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_group_select(
    group: RgGroup,
    n: c_int,
    ranks: *const c_int,
    out: *mut RgGroup,
) -> c_int {
    // SAFETY: the C program guarantees that `ranks` points to `n` ranks.
    let ranks = unsafe { list(n, ranks) };
    let selected = ranks.and_then(|ranks| process::select(group.id(), ranks, None));
    made(selected.map(Some), out)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_group_select_tagged(
    group: RgGroup,
    n: c_int,
    ranks: *const c_int,
    tag: c_int,
    out: *mut RgGroup,
) -> c_int {
    // SAFETY: the C program guarantees that `ranks` points to `n` ranks.
    let ranks = unsafe { list(n, ranks) };
    let selected = ranks.and_then(|ranks| process::select(group.id(), ranks, Some(tag)));
    made(selected.map(Some), out)
}

/// Maximum number of groups that one call makes.
const MAX_GROUPS_PER_CALL: usize = 16;

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_igroup_select(
    group: RgGroup,
    n: c_int,
    ranks: *const c_int,
    tag: c_int,
    groups: c_int,
    out: *mut RgGroup,
    request: *mut RgRequest,
) -> c_int {
    let start = || {
        let count = usize::try_from(groups).unwrap_or_default();
        if !(1..=MAX_GROUPS_PER_CALL).contains(&count) {
            let text = format!("groups is {groups}; it must be 1 to {MAX_GROUPS_PER_CALL}");
            return Err(Error::Argument(text));
        }
        output(out, "out")?;
        output(request, "request")?;
        let ranks = match ranks.is_null() && n == 0 {
            true => None,
            // SAFETY: the C program guarantees that `ranks` points to `n` ranks.
            false => Some(unsafe { list(n, ranks)? }),
        };
        let (made, handle) = process::start_select(group.id(), ranks, tag, count)?;
        // SAFETY: the C program guarantees that `out` points to `groups` groups.
        let out = unsafe { std::slice::from_raw_parts_mut(out, count) };
        for (out, made) in out.iter_mut().zip(made) {
            out.id = made.0;
        }
        Ok(handle)
    };
    started(start(), request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_split(
    group: RgGroup,
    colour: c_int,
    key: c_int,
    out: *mut RgGroup,
) -> c_int {
    if colour < 0 && colour != process::NONE {
        return fail(&Error::Argument(format!(
            "colour {colour} is neither 0 or more nor RG_NONE"
        )));
    }
    made(process::split(group.id(), colour, key), out)
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_shrink(group: RgGroup, out: *mut RgGroup) -> c_int {
    made(process::shrink(group.id()).map(Some), out)
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_revoke(group: RgGroup) -> c_int {
    answer(process::revoke(group.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_is_revoked(group: RgGroup) -> c_int {
    number(process::is_revoked(group.id()).map(u32::from))
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_tie(group: RgGroup, other: RgGroup) -> c_int {
    answer(process::tie(group.id(), other.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_tolerate_left(group: RgGroup, threads: c_int) -> c_int {
    answer(process::tolerate_departures(group.id(), threads != 0))
}

#[unsafe(no_mangle)]
extern "C" fn rg_agree(flag: *mut c_int, group: RgGroup) -> c_int {
    let agreed = output(flag, "flag").and_then(|flag| {
        let (agreed, error) = process::agree(group.id(), *flag)?;
        *flag = agreed;
        error.map_or(Ok(()), Err)
    });
    answer(agreed)
}

#[unsafe(no_mangle)]
extern "C" fn rg_iagree(flag: *mut c_int, group: RgGroup, request: *mut RgRequest) -> c_int {
    let places = output(flag, "flag").and_then(|flag| Ok((*flag, output(request, "request")?)));
    let start = || {
        let (own, _) = places?;
        process::start_agree(group.id(), own, block(flag.cast(), size_of::<c_int>())?)
    };
    started(start(), request)
}

#[unsafe(no_mangle)]
extern "C" fn rg_group_free(group: RgGroup) -> c_int {
    answer(process::free(group.id()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_acknowledge_dead(group: RgGroup, dead: *mut c_int) -> c_int {
    match process::acknowledge_dead(group.id()) {
        Ok(count) => {
            if let Ok(place) = output(dead, "dead") {
                *place = count as c_int;
            }
            OK
        }
        Err(error) => fail(&error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_dead(
    group: RgGroup,
    ranks: *mut c_int,
    capacity: c_int,
    count: *mut c_int,
) -> c_int {
    answer(process::dead_members(group.id()).and_then(|dead| {
        let dead = dead.into_iter().map(|rank| rank as c_int);
        // SAFETY: the C program guarantees room for `capacity` ranks; pointers are valid or NULL.
        unsafe { put_all(dead, ranks, capacity, count) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rg_path(group: RgGroup, rank: c_int, text: *mut c_char, size: usize) -> c_int {
    let path = match process::path(group.id(), rank) {
        Ok(path) => path,
        Err(error) => return fail(&error),
    };
    if text.is_null() || size == 0 {
        return fail(&argument("text is NULL or its size 0"));
    }
    let n = path.len().min(size - 1);
    // SAFETY: the C program guarantees that `text` has room for `size` bytes, and `n < size`.
    unsafe {
        std::ptr::copy_nonoverlapping(path.as_ptr(), text.cast(), n);
        text.add(n).write(0);
    }
    OK
}
