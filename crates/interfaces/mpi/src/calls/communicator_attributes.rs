//! Attributes of communicators, under the current names and those of MPI-1.

use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicI32;
use std::sync::{Arc, OnceLock};

use regatta_sys as rg;

use crate::abi::*;
use crate::arguments::Out;
use crate::attributes::{self, CopyFunction, DeleteFunction};
use crate::communicator::{self, Communicator, get};
use crate::error::{Result, checked, codes};
use crate::tasks;

/// Returns the address of a static value.
fn address(value: &'static c_int) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Returns the value of a predefined attribute; `Some(None)` if it is not set, `None` if the key is not predefined.
fn predefined(keyval: c_int) -> Option<Option<*mut c_void>> {
    static HIGHEST_TAG: c_int = c_int::MAX;
    static ANYBODY: c_int = ANY_SOURCE;
    static NOBODY: c_int = PROC_NULL;
    static ONE_CLOCK: OnceLock<c_int> = OnceLock::new();
    static APPLICATION: OnceLock<c_int> = OnceLock::new();
    static UNIVERSE: OnceLock<Option<c_int>> = OnceLock::new();
    let value = match keyval {
        TAG_UB => address(&HIGHEST_TAG),
        IO => address(&ANYBODY),
        HOST => address(&NOBODY),
        WTIME_IS_GLOBAL => address(ONE_CLOCK.get_or_init(one_clock)),
        APPNUM => address(APPLICATION.get_or_init(communicator::application)),
        LASTUSEDCODE => AtomicI32::as_ptr(&codes::LAST_USED).cast(),
        UNIVERSE_SIZE => return Some(UNIVERSE.get_or_init(universe).as_ref().map(address)),
        _ => return None,
    };
    Some(Some(value))
}

/// Returns 1 if all processes of MPI_COMM_WORLD read the same clock, as processes on one host do, otherwise 0.
fn one_clock() -> c_int {
    let Ok(world) = get(COMM_WORLD) else { return 0 };
    // SAFETY: the call takes a number and no pointers.
    let mut hosts = world
        .local
        .iter()
        .map(|&task| unsafe { rg::rg_host_of(task) });
    let first = hosts.next();
    c_int::from(hosts.all(|host| Some(host) == first))
}

/// The environment variable in which `mpiexec -usize` passes the universe size.
const UNIVERSE_VARIABLE: &str = "MPIEXEC_UNIVERSE_SIZE";

/// Returns the universe size: the number that the user set, otherwise the cores of all hosts, but at least the number
/// of running tasks of the job, which includes those of its other worlds. `None` if the launcher does not report the
/// hosts.
fn universe() -> Option<c_int> {
    let said = std::env::var(UNIVERSE_VARIABLE).ok();
    if let Some(said) = said.and_then(|text| text.parse::<c_int>().ok()) {
        return Some(said);
    }
    let world = get(COMM_WORLD).ok()?.size();
    let tasks = tasks::running().map_or(0, |tasks| tasks.len() as c_int);
    let mut count = 0;
    // SAFETY: the array is empty, so the call writes only the count.
    checked(unsafe { rg::rg_hosts(std::ptr::null_mut(), 0, &mut count) }).ok()?;
    // SAFETY: all-zero bytes are a valid value of this struct of numbers and bytes.
    let nothing: rg::Host = unsafe { std::mem::zeroed() };
    let mut hosts = vec![nothing; count.max(0) as usize];
    // SAFETY: the array has this length.
    checked(unsafe { rg::rg_hosts(hosts.as_mut_ptr(), count, &mut count) }).ok()?;
    let cores = hosts.iter().filter(|host| host.alive != 0);
    Some(
        cores
            .map(|host| host.cores)
            .sum::<c_int>()
            .max(world)
            .max(tasks),
    )
}

pub unsafe fn comm_create_keyval(
    comm_copy_attr_fn: Comm_copy_attr_function,
    comm_delete_attr_fn: Comm_delete_attr_function,
    comm_keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Result {
    let copy: CopyFunction<Comm> = comm_copy_attr_fn;
    let delete: DeleteFunction<Comm> = comm_delete_attr_fn;
    comm_keyval.put(attributes::create::<Comm>(copy, delete, extra_state)?);
    Ok(())
}

pub fn comm_free_keyval(comm_keyval: Out<c_int>) -> Result {
    attributes::free::<Comm>(comm_keyval.get())?;
    comm_keyval.put(KEYVAL_INVALID);
    Ok(())
}

pub fn comm_get_attr(
    comm: Comm,
    comm_keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Result {
    let value = match predefined(comm_keyval) {
        Some(value) => communicator::with(comm, |_| value)?,
        None => communicator::with(comm, |comm| comm.attributes.get(comm_keyval))??,
    };
    flag.put(c_int::from(value.is_some()));
    if let Some(value) = value {
        attribute_val.put(value);
    }
    Ok(())
}

pub unsafe fn comm_set_attr(
    comm: Arc<Communicator>,
    comm_keyval: c_int,
    attribute_val: *mut c_void,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { comm.attributes.set(comm.handle, comm_keyval, attribute_val) }
}

pub unsafe fn comm_delete_attr(comm: Arc<Communicator>, comm_keyval: c_int) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { comm.attributes.delete(comm.handle, comm_keyval) }
}

pub unsafe fn keyval_create(
    copy_fn: Copy_function,
    delete_fn: Delete_function,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { comm_create_keyval(copy_fn, delete_fn, keyval, extra_state) }
}

pub fn keyval_free(keyval: Out<c_int>) -> Result {
    comm_free_keyval(keyval)
}

pub fn attr_get(
    comm: Comm,
    keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Result {
    comm_get_attr(comm, keyval, attribute_val, flag)
}

pub unsafe fn attr_put(
    comm: Arc<Communicator>,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { comm_set_attr(comm, keyval, attribute_val) }
}

pub unsafe fn attr_delete(comm: Arc<Communicator>, keyval: c_int) -> Result {
    // SAFETY: the program guarantees that its attribute callbacks may be called.
    unsafe { comm_delete_attr(comm, keyval) }
}
