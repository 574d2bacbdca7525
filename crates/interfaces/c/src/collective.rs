//! Collectives.

use std::ffi::{c_int, c_void};

use regatta_abi::{self as abi, IN_PLACE, Op as RgOp};
use regatta_process::{
    self as process, Biased, Builtin, Element, Error, Guard, Kind, Operation, Operator, Parts,
    Reduction, Result, UserCombine, Views,
};

use crate::error::{answer, argument, fail};
use crate::memory::{GroupHandle, RgGroup, RgRequest, block, output, reserve};
use crate::message::started;

/// A slot for a user's operator. A freed slot is reused with another generation, so that a stale id does not select the new
/// operator.
struct UserOperator {
    generation: i32,
    operator: Option<Operator>,
}

/// The users' operators. Every reduction by a user's operator reads them, so the lock is biased towards its first thread, for
/// which it costs almost nothing.
static USER: Biased<Vec<UserOperator>> = Biased::new(Vec::new());
/// Smallest id of a user's operator. An id is `FIRST_USER + generation * PLACES + slot`.
const FIRST_USER: i32 = 100;
/// Maximum number of users' operators that exist at the same time.
const PLACES: i32 = 1 << 12;
/// Number of generations of a slot, after which they repeat.
const GENERATIONS: i32 = (1 << 18) - 1;

fn users() -> Result<Guard<'static, Vec<UserOperator>>> {
    process::check_process()?;
    // Fails only if the lock was shut, which does not happen.
    USER.lock().map_err(process::refused)
}

/// Returns the slot of an operator. Returns `None` if the operator does not exist or has been freed.
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

/// Returns the user's operator with this id.
#[inline(always)]
fn made(op: RgOp) -> Option<Operator> {
    let find = |users: &mut Vec<UserOperator>| place(users, op)?.operator;
    match USER.as_owner(find) {
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

/// The type of an element of one byte. Types of longer elements have higher numbers.
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
    // SAFETY: the C program guarantees that the function stays callable until the operator is freed.
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

/// Returns the input memory, or `None` for RG_IN_PLACE.
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

/// Returns this task's rank in the group and the group's size.
fn rank_and_size(group: RgGroup) -> Result<(c_int, usize)> {
    let (rank, size) = process::place(group.id())?;
    Ok((rank as c_int, size as usize))
}

fn total(len: usize, size: usize) -> Result<usize> {
    len.checked_mul(size).ok_or_else(|| {
        Error::Argument(format!("{size} times {len} bytes exceed the address space"))
    })
}

/// Returns the parts that arrays of lengths and offsets describe, and the highest end of these parts, in bytes.
fn parts(lens: *const usize, offsets: *const usize, size: usize) -> Result<(Parts, usize)> {
    if lens.is_null() || offsets.is_null() {
        return Err(argument("lens or offsets is NULL"));
    }
    let mut list = Vec::new();
    reserve(&mut list, size)?;
    let mut end = 0;
    for rank in 0..size {
        // SAFETY: the C program guarantees one length and one offset per rank.
        let (len, offset) = unsafe { (*lens.add(rank), *offsets.add(rank)) };
        let last = len.checked_add(offset);
        end = end.max(last.ok_or_else(|| argument("a part ends outside the address space"))?);
        list.push((len, offset));
    }
    Ok((Parts::Listed(list), end))
}

/// Defines a collective of C in its blocking form and in the form with a request. Both run the operation that `$operation` makes
/// from the group and the arguments.
macro_rules! collective {
    ($name:ident, $iname:ident, ($($arg:ident: $type:ty),*), $operation:expr) => {
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $type,)* group: RgGroup) -> c_int {
            let operation = $operation;
            // Without a closure, so that the call is inlined here, where the kind is known.
            match operation(group, $($arg),*) {
                Ok(operation) => answer(process::run(group.id(), operation)),
                Err(error) => fail(&error),
            }
        }

        #[unsafe(no_mangle)]
        extern "C" fn $iname($($arg: $type,)* group: RgGroup, request: *mut RgRequest) -> c_int {
            if let Err(error) = output(request, "request") {
                return fail(&error);
            }
            let operation = $operation;
            started(operation(group, $($arg),*).and_then(|it| process::start(group.id(), &it)), request)
        }
    };
}

collective!(rg_barrier, rg_ibarrier, (), |_| Ok(Operation::of(
    Kind::Barrier
)));

collective!(
    rg_broadcast,
    rg_ibroadcast,
    (buf: *mut c_void, len: usize, from: c_int),
    |_, buf, len, from| {
        Ok(Operation {
            root: root(from)?,
            output: Some(block(buf, len)?),
            ..Operation::of(Kind::Broadcast)
        })
    }
);

#[inline(always)]
fn reduction(
    of: Kind,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
) -> Result<Operation> {
    let what = Reduction {
        operator: operator(op)?,
        element: element(kind)?,
        count,
    };
    let bytes = total(count, what.element.size())?;
    let output = block(out, bytes)?;
    Ok(Operation {
        input: input(given, bytes)?,
        output: Some(output),
        reduction: Some(what),
        ..Operation::of(of)
    })
}

/// Makes a reduce. `out` is used only at the root, and may be any pointer at other members.
fn reduce(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
    to: c_int,
) -> Result<Operation> {
    let at_root = process::rank(group.id())? as c_int == to;
    if !at_root && given as usize == IN_PLACE {
        return Err(argument("RG_IN_PLACE is for the root only"));
    }
    let out = if at_root { out } else { given.cast_mut() };
    Ok(Operation {
        root: root(to)?,
        ..reduction(Kind::Reduce, given, out, count, kind, op)?
    })
}

collective!(
    rg_reduce,
    rg_ireduce,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp, to: c_int),
    reduce
);

collective!(
    rg_allreduce,
    rg_iallreduce,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    |_, given, out, count, kind, op| reduction(Kind::Allreduce, given, out, count, kind, op)
);

collective!(
    rg_scan,
    rg_iscan,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    |_, given, out, count, kind, op| reduction(Kind::Scan, given, out, count, kind, op)
);

/// Makes an exclusive scan. At rank 0 `out` is not used, and may be any pointer, unless the input is RG_IN_PLACE.
fn exscan(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
) -> Result<Operation> {
    let first = process::rank(group.id())? == 0 && given as usize != IN_PLACE;
    let out = if first { given.cast_mut() } else { out };
    reduction(Kind::Exscan, given, out, count, kind, op)
}

collective!(
    rg_exscan,
    rg_iexscan,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    exscan
);

/// Makes a reduce-scatter. The input has the elements for all members, the output those of this member's part of the result.
fn reduce_scatter(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    counts: *const usize,
    kind: c_int,
    op: RgOp,
) -> Result<Operation> {
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
        // SAFETY: the C program guarantees one count per rank.
        let count = unsafe { *counts.add(at) };
        let bytes = total(count, width)?;
        list.push((bytes, end));
        let sum = all.checked_add(count).zip(end.checked_add(bytes));
        (all, end) =
            sum.ok_or_else(|| argument("the sum of the counts exceeds the address space"))?;
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
    Ok(Operation {
        input: Some(input),
        output: Some(block(out, list[rank as usize].0)?),
        gives: Parts::Listed(list),
        reduction: Some(what),
        ..Operation::of(Kind::ReduceScatter)
    })
}

collective!(
    rg_reduce_scatter,
    rg_ireduce_scatter,
    (given: *const c_void, out: *mut c_void, counts: *const usize, kind: c_int, op: RgOp),
    reduce_scatter
);

/// Makes a reduce-scatter with parts of `count` elements each.
fn reduce_scatter_block(
    group: RgGroup,
    given: *const c_void,
    out: *mut c_void,
    count: usize,
    kind: c_int,
    op: RgOp,
) -> Result<Operation> {
    let (element, size) = (element(kind)?, size(group)?);
    let own = total(count, element.size())?;
    let all = total(own, size)?;
    let what = Reduction {
        operator: operator(op)?,
        element,
        count: count * size,
    };
    let input = match input(given, all)? {
        Some(input) => input,
        None => block(out, all)?,
    };
    Ok(Operation {
        input: Some(input),
        output: Some(block(out, own)?),
        gives: Parts::Even(own),
        reduction: Some(what),
        ..Operation::of(Kind::ReduceScatter)
    })
}

collective!(
    rg_reduce_scatter_block,
    rg_ireduce_scatter_block,
    (given: *const c_void, out: *mut c_void, count: usize, kind: c_int, op: RgOp),
    reduce_scatter_block
);

/// Returns the root's memory for all members, and its parts. Other members have no such memory.
fn rooted(
    group: RgGroup,
    whole: *const c_void,
    len: usize,
    at: c_int,
) -> Result<(Option<Views>, Parts)> {
    let (rank, size) = rank_and_size(group)?;
    let bytes = total(len, size)?;
    let here = rank == at;
    let whole = here.then(|| block(whole, bytes)).transpose()?;
    Ok((whole, Parts::Even(len)))
}

fn rooted_listed(
    group: RgGroup,
    whole: *const c_void,
    lens: *const usize,
    offsets: *const usize,
    at: c_int,
) -> Result<(Option<Views>, Parts)> {
    let (rank, size) = rank_and_size(group)?;
    if rank != at {
        return Ok((None, Parts::Listed(Vec::new())));
    }
    let (parts, end) = parts(lens, offsets, size)?;
    Ok((Some(block(whole, end)?), parts))
}

fn gather(
    given: Result<Option<Views>>,
    to: c_int,
    all: Result<(Option<Views>, Parts)>,
) -> Result<Operation> {
    let (input, (output, gets)) = (given?, all?);
    Ok(Operation {
        root: root(to)?,
        input,
        output,
        gets,
        ..Operation::of(Kind::Gather)
    })
}

collective!(
    rg_gather,
    rg_igather,
    (given: *const c_void, len: usize, out: *mut c_void, to: c_int),
    |group, given, len, out: *mut c_void, to| {
        gather(input(given, len), to, rooted(group, out, len, to))
    }
);

collective!(
    rg_gatherv,
    rg_igatherv,
    (given: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize, to: c_int),
    |group, given, len, out: *mut c_void, lens, offsets, to| {
        gather(input(given, len), to, rooted_listed(group, out, lens, offsets, to))
    }
);

fn scatter(
    all: Result<(Option<Views>, Parts)>,
    from: c_int,
    out: Result<Option<Views>>,
) -> Result<Operation> {
    let (output, (input, gives)) = (out?, all?);
    Ok(Operation {
        root: root(from)?,
        input,
        output,
        gives,
        ..Operation::of(Kind::Scatter)
    })
}

collective!(
    rg_scatter,
    rg_iscatter,
    (given: *const c_void, out: *mut c_void, len: usize, from: c_int),
    |group, given, out: *mut c_void, len, from| {
        scatter(rooted(group, given, len, from), from, input(out, len))
    }
);

collective!(
    rg_scatterv,
    rg_iscatterv,
    (given: *const c_void, lens: *const usize, offsets: *const usize, out: *mut c_void, len: usize, from: c_int),
    |group, given, lens, offsets, out: *mut c_void, len, from| {
        scatter(rooted_listed(group, given, lens, offsets, from), from, input(out, len))
    }
);

#[inline(always)]
fn allgather(given: Option<Views>, all: Views, gets: Parts) -> Result<Operation> {
    Ok(Operation {
        input: given,
        output: Some(all),
        gets,
        ..Operation::of(Kind::Allgather)
    })
}

collective!(
    rg_allgather,
    rg_iallgather,
    (given: *const c_void, len: usize, out: *mut c_void),
    |group, given, len, out: *mut c_void| {
        let all = total(len, size(group)?)?;
        allgather(input(given, len)?, block(out, all)?, Parts::Even(len))
    }
);

collective!(
    rg_allgatherv,
    rg_iallgatherv,
    (given: *const c_void, len: usize, out: *mut c_void, lens: *const usize, offsets: *const usize),
    |group, given, len, out: *mut c_void, lens, offsets| {
        let (parts, end) = parts(lens, offsets, size(group)?)?;
        allgather(input(given, len)?, block(out, end)?, parts)
    }
);

#[inline(always)]
fn alltoall((input, gives): (Views, Parts), (output, gets): (Views, Parts)) -> Result<Operation> {
    Ok(Operation {
        input: Some(input),
        output: Some(output),
        gives,
        gets,
        ..Operation::of(Kind::Alltoall)
    })
}

collective!(
    rg_alltoall,
    rg_ialltoall,
    (given: *const c_void, len: usize, out: *mut c_void),
    |group, given, len, out: *mut c_void| {
        let all = total(len, size(group)?)?;
        let even = || Parts::Even(len);
        alltoall((block(given, all)?, even()), (block(out, all)?, even()))
    }
);

collective!(
    rg_alltoallv,
    rg_ialltoallv,
    (given: *const c_void, in_lens: *const usize, in_offsets: *const usize, out: *mut c_void,
     out_lens: *const usize, out_offsets: *const usize),
    |group, given, in_lens, in_offsets, out: *mut c_void, out_lens, out_offsets| {
        let size = size(group)?;
        let (gives, in_end) = parts(in_lens, in_offsets, size)?;
        let (gets, out_end) = parts(out_lens, out_offsets, size)?;
        alltoall((block(given, in_end)?, gives), (block(out, out_end)?, gets))
    }
);
