//! Collectives.

use std::ffi::{c_int, c_void};

use regatta_abi::{self as abi, IN_PLACE, Op as RgOp};
use regatta_process::{
    self as process, Biased, Builtin, Element, Error, Guard, Operator, Parts, Reduction, Result,
    UserCombine, Views,
};

use crate::error::{answer, argument, fail};
use crate::memory::{GroupHandle, RgGroup, RgRequest, block, output, reserve};
use crate::message::started;

/// A place for a user's operator. A freed place is used again under another generation, so that a
/// stale id never reaches somebody else's operator.
struct UserOperator {
    generation: i32,
    operator: Option<Operator>,
}

/// Every reduction by an operator of the user's looks here, so the lock is one that costs its first thread next to nothing.
static USER: Biased<Vec<UserOperator>> = Biased::new(Vec::new());
/// An id is `FIRST_USER + generation * PLACES + place`.
const FIRST_USER: i32 = 100;
const PLACES: i32 = 1 << 12;
const GENERATIONS: i32 = (1 << 18) - 1;

fn users() -> Result<Guard<'static, Vec<UserOperator>>> {
    process::check_process()?;
    // Nobody shuts it.
    USER.lock().map_err(process::refused)
}

/// The place an id names, if its operator has not been freed.
#[inline(always)]
fn place(users: &mut [UserOperator], op: RgOp) -> Option<&mut UserOperator> {
    let number = op
        .id
        .checked_sub(FIRST_USER)
        .filter(|&number| number >= 0)?;
    let slot = users.get_mut((number % PLACES) as usize)?;
    let live = slot.generation == number / PLACES && slot.operator.is_some();
    live.then_some(slot)
}

/// The user's operator of this id.
#[inline(always)]
fn made(op: RgOp) -> Option<Operator> {
    let find = |users: &mut Vec<UserOperator>| place(users, op)?.operator;
    match USER.quick(find) {
        Some(found) => found,
        None => find(&mut *USER.lock().ok()?),
    }
}

fn operator(op: RgOp) -> Result<Operator> {
    let builtin = match op {
        abi::SUM => Builtin::Sum,
        abi::PRODUCT => Builtin::Product,
        abi::MAX => Builtin::Max,
        abi::MIN => Builtin::Min,
        abi::AND => Builtin::And,
        abi::OR => Builtin::Or,
        abi::XOR => Builtin::Xor,
        abi::BAND => Builtin::BitAnd,
        abi::BOR => Builtin::BitOr,
        abi::BXOR => Builtin::BitXor,
        _ => {
            return match made(op) {
                Some(operator) => Ok(operator),
                None => Err(Error::Handle("operator")),
            };
        }
    };
    Ok(Operator::Builtin(builtin))
}

/// The shortest element of bytes; longer ones have higher numbers.
const ONE_BYTE: c_int = abi::bytes(1);

fn element(kind: c_int) -> Result<Element> {
    Ok(match kind {
        abi::INT8 => Element::I8,
        abi::INT16 => Element::I16,
        abi::INT32 => Element::I32,
        abi::INT64 => Element::I64,
        abi::UINT8 => Element::U8,
        abi::UINT16 => Element::U16,
        abi::UINT32 => Element::U32,
        abi::UINT64 => Element::U64,
        abi::FLOAT => Element::F32,
        abi::DOUBLE => Element::F64,
        abi::LONG_DOUBLE => Element::LongDouble,
        ONE_BYTE.. => Element::Bytes((kind - abi::bytes(0)) as usize),
        _ => return Err(Error::Argument(format!("{kind} is not an element type"))),
    })
}

#[unsafe(no_mangle)]
extern "C" fn rg_op_create(
    combine: Option<UserCombine>,
    arg: *mut c_void,
    commutative: c_int,
    op: *mut RgOp,
) -> c_int {
    let made = combine
        .ok_or_else(|| argument("combine is NULL"))
        .and_then(|combine| Ok((combine, output(op, "op")?)));
    let (combine, op) = match made {
        Ok(made) => made,
        Err(error) => return fail(&error),
    };
    // SAFETY: the C contract: the function stays callable until the operator is freed.
    let operator = unsafe { Operator::user(combine, arg, commutative != 0) };
    let mut users = match users() {
        Ok(users) => users,
        Err(error) => return fail(&error),
    };
    let at = match users.iter().position(|slot| slot.operator.is_none()) {
        Some(at) => at,
        None if users.len() == PLACES as usize => {
            return fail(&Error::Memory(format!(
                "all {PLACES} operators are in use; free those that are not needed"
            )));
        }
        None => {
            users.push(UserOperator {
                generation: 0,
                operator: None,
            });
            users.len() - 1
        }
    };
    users[at].operator = Some(operator);
    op.id = FIRST_USER + users[at].generation * PLACES + at as i32;
    0
}

#[unsafe(no_mangle)]
extern "C" fn rg_op_free(op: RgOp) -> c_int {
    let freed = users().and_then(|mut users| {
        let slot = place(&mut users, op).ok_or(Error::Handle("operator"))?;
        slot.operator = None;
        slot.generation = (slot.generation + 1) % GENERATIONS;
        Ok(())
    });
    answer(freed)
}

/// Input memory, or `None` for RG_IN_PLACE.
fn input(memory: *const c_void, len: usize) -> Result<Option<Views>> {
    if memory as usize == IN_PLACE {
        return Ok(None);
    }
    block(memory, len).map(Some)
}

fn root(rank: c_int) -> Result<u32> {
    u32::try_from(rank).map_err(|_| Error::Task(rank as i64))
}

fn size(group: RgGroup) -> Result<usize> {
    Ok(process::size(group.id())? as usize)
}

fn total(len: usize, size: usize) -> Result<usize> {
    len.checked_mul(size)
        .ok_or_else(|| Error::Argument(format!("{size} times {len} bytes are more than memory")))
}

/// The parts an array of lengths and offsets describes, and the memory they need.
fn parts(lens: *const usize, offsets: *const usize, size: usize) -> Result<(Parts, usize)> {
    if lens.is_null() || offsets.is_null() {
        return Err(argument("lens or offsets is NULL"));
    }
    let mut list = Vec::new();
    reserve(&mut list, size)?;
    let mut end = 0;
    for rank in 0..size {
        // SAFETY: the C contract: one length and one offset per rank.
        let (len, offset) = unsafe { (*lens.add(rank), *offsets.add(rank)) };
        let last = len.checked_add(offset);
        end = end.max(last.ok_or_else(|| argument("a part ends beyond all memory"))?);
        list.push((len, offset));
    }
    Ok((Parts::Listed(list), end))
}

/// A blocking and a starting form of the same collective, with the same checks.
macro_rules! forms {
    ($name:ident, $iname:ident, ($($arg:ident: $type:ty),*), $checks:expr, $run:expr, $start:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $type,)* group: RgGroup) -> c_int {
            let checks = $checks;
            let run = $run;
            answer(checks(group, $($arg),*).and_then(|given| run(group.id(), given)))
        }

        #[unsafe(no_mangle)]
        extern "C" fn $iname($($arg: $type,)* group: RgGroup, request: *mut RgRequest) -> c_int {
            if let Err(error) = output(request, "request") {
                return fail(&error);
            }
            let checks = $checks;
            let start = $start;
            started(checks(group, $($arg),*).and_then(|given| start(group.id(), given)), request)
        }
    };
}

forms!(
    rg_barrier,
    rg_ibarrier,
    (),
    |_| Ok(()),
    |group, ()| process::barrier(group),
    |group, ()| process::start_barrier(group)
);

forms!(
    rg_broadcast,
    rg_ibroadcast,
    (buf: *mut c_void, len: usize, from: c_int),
    |_, buf, len, from| Ok((root(from)?, block(buf, len)?)),
    |group, (root, views)| process::broadcast(group, root, views),
    |group, (root, views)| process::start_broadcast(group, root, views)
);

type Reduced = (Views, Views, Reduction);

#[inline(always)]
fn reduced(
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
) -> Result<Reduced> {
    let what = Reduction {
        operator: operator(op)?,
        element: element(kind)?,
        count,
    };
    let bytes = total(count, what.element.size())?;
    let output = block(out, bytes)?;
    Ok((
        input(given, bytes)?.unwrap_or_else(|| output.clone()),
        output,
        what,
    ))
}

/// At other tasks than the root the output is not looked at and may be anything.
fn reduced_to(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
    to: c_int,
) -> Result<(u32, Reduced)> {
    let at_root = process::rank(group.id())? as c_int == to;
    if !at_root && given as usize == IN_PLACE {
        return Err(argument("RG_IN_PLACE is for the root only"));
    }
    let out = if at_root { out } else { given.cast_mut() };
    Ok((root(to)?, reduced(given, out, count, kind, op)?))
}

forms!(
    rg_reduce,
    rg_ireduce,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp, to: c_int),
    reduced_to,
    |group, (root, (input, output, what))| process::reduce(group, root, input, output, what),
    |group, (root, (input, output, what))| process::start_reduce(group, root, input, output, what)
);

forms!(
    rg_allreduce,
    rg_iallreduce,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    |_, given, out, count, kind, op| reduced(given, out, count, kind, op),
    |group, (input, output, what)| process::allreduce(group, input, output, what),
    |group, (input, output, what)| process::start_allreduce(group, input, output, what)
);

forms!(
    rg_scan,
    rg_iscan,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    |_, given, out, count, kind, op| reduced(given, out, count, kind, op),
    |group, (input, output, what)| process::scan(group, input, output, what),
    |group, (input, output, what)| process::start_scan(group, input, output, what)
);

forms!(
    rg_exscan,
    rg_iexscan,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    reduced_below,
    |group, (input, output, what)| process::exscan(group, input, output, what),
    |group, (input, output, what)| process::start_exscan(group, input, output, what)
);

/// Nothing is below rank 0: its output is not looked at and may be anything.
fn reduced_below(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
) -> Result<Reduced> {
    let first = process::rank(group.id())? == 0 && given as usize != IN_PLACE;
    let out = if first { given.cast_mut() } else { out };
    reduced(given, out, count, kind, op)
}

/// The whole input, this member's part of the result, and the parts in bytes.
fn reduced_parts(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    counts: *const usize,
    kind: c_int,
    op: RgOp,
) -> Result<(Reduced, Parts)> {
    let (rank, size) = (process::rank(group.id())?, size(group)?);
    if counts.is_null() {
        return Err(argument(
            "counts is NULL; it must have a count for each rank",
        ));
    }
    let width = element(kind)?.size();
    let mut list = Vec::new();
    reserve(&mut list, size)?;
    let (mut all, mut end) = (0usize, 0usize);
    for at in 0..size {
        // SAFETY: the C contract: one count per rank.
        let count = unsafe { *counts.add(at) };
        let bytes = total(count, width)?;
        list.push((bytes, end));
        let sum = all.checked_add(count).zip(end.checked_add(bytes));
        (all, end) = sum.ok_or_else(|| argument("the counts together are more than memory"))?;
    }
    let what = Reduction {
        operator: operator(op)?,
        element: element(kind)?,
        count: all,
    };
    let input = match input(given, end)? {
        Some(input) => input,
        None => block(out, end)?,
    };
    let output = block(out, list[rank as usize].0)?;
    Ok(((input, output, what), Parts::Listed(list)))
}

forms!(
    rg_reduce_scatter,
    rg_ireduce_scatter,
    (given: *const c_void, out: *mut c_void, counts: *const usize, kind: c_int, op: RgOp),
    reduced_parts,
    |group, ((input, output, what), parts)| process::reduce_scatter(group, input, output, &parts, what),
    |group, ((input, output, what), parts)| process::start_reduce_scatter(group, input, output, &parts, what)
);

/// At other tasks than the root there is one part: this task's.
fn rooted(
    group: RgGroup,
    whole: *const c_void,
    len: usize,
    at: c_int,
) -> Result<(u32, Views, Parts)> {
    let bytes = total(len, size(group)?)?;
    let here = process::rank(group.id())? as c_int == at;
    let whole = if here {
        block(whole, bytes)?
    } else {
        Views::none()
    };
    Ok((root(at)?, whole, Parts::Even(len)))
}

fn rooted_listed(
    group: RgGroup,
    whole: *const c_void,
    lens: *const usize,
    offsets: *const usize,
    at: c_int,
) -> Result<(u32, Views, Parts)> {
    if process::rank(group.id())? as c_int != at {
        return Ok((root(at)?, Views::none(), Parts::Even(0)));
    }
    let (parts, end) = parts(lens, offsets, size(group)?)?;
    Ok((root(at)?, block(whole, end)?, parts))
}

forms!(
    rg_gather,
    rg_igather,
    (given: *const c_void, len: usize, out: *mut c_void, to: c_int),
    |group, given, len, out: *mut c_void, to| Ok((input(given, len)?, rooted(group, out, len, to)?)),
    |group, (input, (root, output, parts))| process::gather(group, root, input, output, &parts),
    |group, (input, (root, output, parts))| process::start_gather(group, root, input, output, &parts)
);

forms!(
    rg_gatherv,
    rg_igatherv,
    (given: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, to: c_int),
    |group, given, len, out: *mut c_void, lens, offsets, to| {
        Ok((input(given, len)?, rooted_listed(group, out, lens, offsets, to)?))
    },
    |group, (input, (root, output, parts))| process::gather(group, root, input, output, &parts),
    |group, (input, (root, output, parts))| process::start_gather(group, root, input, output, &parts)
);

forms!(
    rg_scatter,
    rg_iscatter,
    (given: *const c_void, out: *mut c_void, len: usize, from: c_int),
    |group, given, out: *mut c_void, len, from| {
        Ok((input(out, len)?, rooted(group, given, len, from)?))
    },
    |group, (output, (root, input, parts))| process::scatter(group, root, input, &parts, output),
    |group, (output, (root, input, parts))| process::start_scatter(group, root, input, &parts, output)
);

forms!(
    rg_scatterv,
    rg_iscatterv,
    (given: *const c_void, lens: *const usize, offsets: *const usize, out: *mut c_void, len: usize, from: c_int),
    |group, given, lens, offsets, out: *mut c_void, len, from| {
        Ok((input(out, len)?, rooted_listed(group, given, lens, offsets, from)?))
    },
    |group, (output, (root, input, parts))| process::scatter(group, root, input, &parts, output),
    |group, (output, (root, input, parts))| process::start_scatter(group, root, input, &parts, output)
);

forms!(
    rg_allgather,
    rg_iallgather,
    (given: *const c_void, len: usize, out: *mut c_void),
    |group, given, len, out: *mut c_void| {
        let all = total(len, size(group)?)?;
        Ok((input(given, len)?, block(out, all)?, Parts::Even(len)))
    },
    |group, (input, output, parts)| process::allgather(group, input, output, parts),
    |group, (input, output, parts)| process::start_allgather(group, input, output, &parts)
);

forms!(
    rg_allgatherv,
    rg_iallgatherv,
    (given: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize),
    |group, given, len, out: *mut c_void, lens, offsets| {
        let (parts, end) = parts(lens, offsets, size(group)?)?;
        Ok((input(given, len)?, block(out, end)?, parts))
    },
    |group, (input, output, parts)| process::allgather(group, input, output, parts),
    |group, (input, output, parts)| process::start_allgather(group, input, output, &parts)
);

forms!(
    rg_alltoall,
    rg_ialltoall,
    (given: *const c_void, len: usize, out: *mut c_void),
    |group, given, len, out: *mut c_void| {
        let all = total(len, size(group)?)?;
        Ok((block(given, all)?, Parts::Even(len), block(out, all)?, Parts::Even(len)))
    },
    |group, (input, gives, output, gets)| process::alltoall(group, input, gives, output, gets),
    |group, (input, gives, output, gets): (Views, Parts, Views, Parts)| {
        process::start_alltoall(group, input, &gives, output, &gets)
    }
);

forms!(
    rg_alltoallv,
    rg_ialltoallv,
    (given: *const c_void, in_lens: *const usize, in_offsets: *const usize, out: *mut c_void,
     out_lens: *const usize, out_offsets: *const usize),
    |group, given, in_lens, in_offsets, out: *mut c_void, out_lens, out_offsets| {
        let size = size(group)?;
        let (gives, in_end) = parts(in_lens, in_offsets, size)?;
        let (gets, out_end) = parts(out_lens, out_offsets, size)?;
        Ok((block(given, in_end)?, gives, block(out, out_end)?, gets))
    },
    |group, (input, gives, output, gets)| process::alltoall(group, input, gives, output, gets),
    |group, (input, gives, output, gets): (Views, Parts, Views, Parts)| {
        process::start_alltoall(group, input, &gives, output, &gets)
    }
);
