//! Partitioned messages.

use std::ffi::{c_int, c_void};

use super::send::check_tag;
use crate::abi::*;
use crate::arguments::Out;
use crate::communicator::{get, route};
use crate::datatype::{self, Block};
use crate::error::{Error, Result, not_null};
use crate::info;
use crate::partitioned::{check_count, receive, send};

/// Returns the block of one partition, the number of elements of all partitions, and the block of all partitions.
fn elements(
    buf: *const c_void,
    partitions: c_int,
    count: i64,
    datatype: Datatype,
) -> Result<(Block, i64, Block)> {
    check_count(partitions)?;
    let one = datatype::block(datatype, count)?;
    let total = count.checked_mul(i64::from(partitions)).ok_or_else(|| {
        let text = format!("{partitions} partitions of {count} elements exceed the address space");
        Error::new(ERR_COUNT, text)
    })?;
    let all = datatype::block(datatype, total)?;
    match &all {
        Block::Plain { offset, length } => {
            datatype::address(buf, *offset, *length)?;
        }
        Block::Layout(of) => of.check_buffer(buf, of.packed_size(total)?)?,
    }
    Ok((one, total, all))
}

pub unsafe fn psend_init(
    buf: *const c_void,
    partitions: c_int,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    info: Info,
    request: Out<Request>,
) -> Result {
    let peer = route(comm)?.destination(dest)?;
    check_tag(tag)?;
    info::optional(info)?;
    let (block, ..) = elements(buf, partitions, count, datatype)?;
    let extent = datatype::get(datatype)?.extent();
    let arguments = send::Arguments {
        buffer: buf,
        block,
        count,
        step: extent as isize * count as isize,
        partitions,
        peer,
        tag,
    };
    let made = send::make(arguments, &*get(comm)?)?;
    request.put(made);
    Ok(())
}

pub unsafe fn precv_init(
    buf: *mut c_void,
    partitions: c_int,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag: c_int,
    comm: Comm,
    info: Info,
    request: Out<Request>,
) -> Result {
    let route = route(comm)?;
    if dest == ANY_SOURCE {
        let text = "the source is MPI_ANY_SOURCE; partitioned receives have one source";
        return Err(Error::new(ERR_RANK, text));
    }
    let peer = route.source(dest)?;
    check_tag(tag)?;
    info::optional(info)?;
    let (_, total, block) = elements(buf, partitions, count, datatype)?;
    let arguments = receive::Arguments {
        buffer: buf,
        block,
        count: total,
        partitions,
        peer,
        tag,
    };
    let made = receive::make(arguments, &*get(comm)?)?;
    request.put(made);
    Ok(())
}

pub unsafe fn pready(partition: c_int, request: Request) -> Result {
    send::find(request)?.ready(std::iter::once(partition))
}

pub unsafe fn pready_range(
    partition_low: c_int,
    partition_high: c_int,
    request: Request,
) -> Result {
    let send = send::find(request)?;
    if partition_low > partition_high {
        let text = format!("the first partition is {partition_low}, the last one {partition_high}");
        return Err(Error::new(ERR_ARG, text));
    }
    send.ready(partition_low..=partition_high)
}

pub unsafe fn pready_list(
    length: c_int,
    array_of_partitions: *const c_int,
    request: Request,
) -> Result {
    let send = send::find(request)?;
    let length = usize::try_from(length).map_err(|_| {
        let text = format!("the list has {length} partitions; it has 0 or more");
        Error::new(ERR_ARG, text)
    })?;
    if length == 0 {
        return Ok(());
    }
    not_null(array_of_partitions, "array_of_partitions")?;
    // SAFETY: the caller guarantees that the array has this many elements.
    let list = unsafe { std::slice::from_raw_parts(array_of_partitions, length) };
    send.ready(list.iter().copied())
}

pub fn parrived(request: Request, partition: c_int, flag: Out<c_int>) -> Result {
    let arrived = receive::arrived(request, partition)?;
    flag.put(c_int::from(arrived));
    Ok(())
}
