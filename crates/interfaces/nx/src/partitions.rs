//! The calls for partitions.
//!
//! The job is one partition, `.compute`. Other partitions are names for numbers of its nodes, known to the program that
//! makes them: an application in one has at most that many nodes. No processors are reserved for it.

use std::ffi::{c_char, c_int, c_long, c_ulong};

use crate::application::{MAX_PRIORITY, application_in, give, text, wanted};
use crate::error::{Answer, EPINVALPRI, EPNOTEMPTY, EQMEM, EQPARAM, Fault};
use crate::forms::value_forms;
use crate::host::usual_nodes;
use crate::options::Size;
use crate::partition::{Partition, Settings, is_within};
use crate::state::library;

/// The types of objects in a partition, as in `nx.h`.
const NX_APPLICATION: c_long = 0;
const NX_PARTITION: c_long = 1;

/// The scheduling types. All of them leave scheduling to the operating system.
const NX_STD: c_long = 1;
const NX_SPS: c_long = 3;

/// Returns the default settings, which are also those of the whole job.
pub fn usual_settings() -> Settings {
    // SAFETY: the calls take plain values only.
    let (owner, group) = unsafe { (libc::getuid(), libc::getgid()) };
    Settings {
        owner: owner.into(),
        group: group.into(),
        mode: 0o755,
        scheduling: NX_STD,
        quantum: 0,
        priority_limit: MAX_PRIORITY,
    }
}

/// Returns the size of the whole job as a partition: that of the application, or the default.
fn whole() -> Result<Size, Fault> {
    match library().nodes {
        0 => usual_nodes().map(Size::Nodes),
        nodes => Ok(Size::Nodes(nodes)),
    }
}

/// Checks the priority, the scheduling type and the time slice.
fn checked(settings: Settings) -> Result<Settings, Fault> {
    if !(0..=MAX_PRIORITY).contains(&settings.priority_limit) {
        let limit = settings.priority_limit;
        return Err(Fault::of(EPINVALPRI, "priority", limit));
    }
    if !(NX_STD..=NX_SPS).contains(&settings.scheduling) {
        let kind = settings.scheduling;
        return Err(Fault::of(EQPARAM, "scheduling", kind));
    }
    if settings.quantum < 0 {
        return Err(Fault::of(EQPARAM, "quantum", settings.quantum));
    }
    Ok(settings)
}

/// Makes a partition. Returns its number of nodes.
///
/// # Safety
/// `name` is a NUL-terminated string or NULL; `map` has as many numbers as the size, or is NULL.
pub unsafe fn make(
    name: *const c_char,
    size: Option<Size>,
    map: *const c_long,
    settings: Settings,
) -> Answer {
    // SAFETY: the caller guarantees that the memory is valid.
    let name = unsafe { text(name) }?;
    let size = size.map_or_else(whole, Ok)?;
    let number = |at: usize| {
        // SAFETY: the caller guarantees that the memory is valid.
        unsafe { map.add(at).read_unaligned() }
    };
    let nodes = (!map.is_null()).then(|| (0..size.count() as usize).map(number).collect());
    let partitions = &mut library().partitions;
    partitions.make(&name, size, nodes, checked(settings)?)?;
    Ok(size.count().into())
}

/// Returns the default settings with this scheduling type.
fn scheduled(scheduling: c_long) -> Settings {
    Settings {
        scheduling,
        ..usual_settings()
    }
}

pub unsafe fn make_sized(name: *const c_char, size: c_long, scheduling: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    unsafe { make(name, wanted(size)?, std::ptr::null(), scheduled(scheduling)) }
}

pub unsafe fn make_rectangle(
    name: *const c_char,
    rows: c_long,
    columns: c_long,
    scheduling: c_long,
) -> Answer {
    let size = Size::rectangle(rows, columns)?;
    // SAFETY: by the C contract the string is NUL-terminated.
    unsafe { make(name, Some(size), std::ptr::null(), scheduled(scheduling)) }
}

pub unsafe fn make_of(
    name: *const c_char,
    number: c_long,
    nodes: *const c_long,
    scheduling: c_long,
) -> Answer {
    if nodes.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    let size = Size::nodes(number)?;
    // SAFETY: by the C contract `name` is NUL-terminated, and `nodes` has `number` entries.
    unsafe { make(name, Some(size), nodes, scheduled(scheduling)) }
}

/// Removes a partition. With `force`, ends an application in it.
pub fn remove(name: &str, force: bool, with_those_inside: bool) -> Answer {
    let library = library();
    library.partitions.find_made(name)?;
    if !with_those_inside && !library.partitions.inside(name).is_empty() {
        return Err(Fault::plain(EPNOTEMPTY));
    }
    let own = library.application.as_deref();
    if own.is_some_and(|own| is_within(own, name)) {
        if !force {
            return Err(Fault::plain(EPNOTEMPTY));
        }
        if library.cube.is_some() {
            crate::host::kill_loaded(-1, -1);
        }
    }
    library.partitions.remove(name, with_those_inside)?;
    Ok(0)
}

unsafe fn remove_partition(name: *const c_char, force: c_long, recursive: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    remove(&unsafe { text(name) }?, force != 0, recursive != 0)
}

/// Changes settings of a partition. Fails if they are invalid.
pub fn change(name: &str, with: impl FnOnce(&mut Settings)) -> Answer {
    let made = library().partitions.find_made(name)?;
    let mut settings = made.settings;
    with(&mut settings);
    made.settings = checked(settings)?;
    Ok(0)
}

unsafe fn change_limit(name: *const c_char, priority: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    change(&unsafe { text(name) }?, |it| it.priority_limit = priority)
}

unsafe fn change_mode(name: *const c_char, mode: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    change(&unsafe { text(name) }?, |it| it.mode = mode)
}

unsafe fn change_quantum(name: *const c_char, quantum: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    change(&unsafe { text(name) }?, |it| it.quantum = quantum)
}

unsafe fn change_scheduling(name: *const c_char, kind: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    change(&unsafe { text(name) }?, |it| it.scheduling = kind)
}

unsafe fn change_owner(name: *const c_char, owner: c_long, group: c_long) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    let name = unsafe { text(name) }?;
    change(&name, |it| (it.owner, it.group) = (owner, group))
}

/// Renames a partition. An application in it, or in one inside it, follows.
pub fn rename(name: &str, new: &str) -> Answer {
    let library = library();
    let renamed = library.partitions.rename(name, new)?;
    if let Some(own) = library
        .application
        .as_deref()
        .and_then(|own| renamed.of(own))
    {
        library.application = Some(own);
    }
    Ok(0)
}

unsafe fn change_name(name: *const c_char, new: *const c_char) -> Answer {
    // SAFETY: by the C contract both strings are NUL-terminated.
    let (name, new) = unsafe { (text(name)?, text(new)?) };
    rename(&name, &new)
}

/// `nx_part_info_t` of `nx.h`.
#[repr(C)]
struct PartitionInformation {
    owner: c_long,
    group: c_long,
    mode: c_long,
    scheduling: c_long,
    quantum: c_long,
    priority_limit: c_long,
    nodes: c_long,
    /// Rows and columns of a rectangle, otherwise 0; and those of the enclosing rectangle.
    sides: [c_long; 2],
    sides_around: [c_long; 2],
}

fn information(size: Size, settings: Settings) -> PartitionInformation {
    let nodes = size.count();
    let sides = match size.rows() {
        0 => [0, 0],
        rows => [rows.into(), (nodes / rows).into()],
    };
    PartitionInformation {
        owner: settings.owner,
        group: settings.group,
        mode: settings.mode,
        scheduling: settings.scheduling,
        quantum: settings.quantum,
        priority_limit: settings.priority_limit,
        nodes: nodes.into(),
        sides,
        sides_around: sides,
    }
}

unsafe fn tell(name: *const c_char, place: *mut PartitionInformation) -> Answer {
    if place.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: by the C contract the string is NUL-terminated.
    let name = unsafe { text(name) }?;
    let made = library().partitions.find(&name)?;
    let made = made.map(|made| (made.size, made.settings));
    let (size, settings) = match made {
        Some(made) => made,
        None => (whole()?, usual_settings()),
    };
    // SAFETY: by the C contract the result is writable.
    unsafe { place.write_unaligned(information(size, settings)) };
    Ok(0)
}

/// Returns the nodes of a partition, by their numbers in the enclosing partition.
pub fn nodes_of(name: &str) -> Result<Vec<c_long>, Fault> {
    let made = library().partitions.find(name)?;
    let made = made.map(|made| made.nodes.clone());
    match made {
        Some(nodes) => Ok(nodes),
        None => Ok((0..whole()?.count().into()).collect()),
    }
}

unsafe fn tell_nodes(name: *const c_char, list: *mut *mut c_long, size: *mut c_ulong) -> Answer {
    // SAFETY: by the C contract the string is NUL-terminated.
    let nodes = nodes_of(&unsafe { text(name) }?)?;
    // SAFETY: by the C contract the results are writable.
    unsafe { give(&nodes, list, size) }?;
    Ok(0)
}

/// `nx_pspart_t` of `nx.h`: an object in a partition.
#[repr(C)]
#[derive(Clone, Copy)]
struct Inside {
    kind: c_long,
    /// The process group of an application, or the index of a partition in the list.
    id: c_long,
    owner: c_long,
    group: c_long,
    size: c_long,
    priority: c_long,
    quantum: c_long,
    active: c_long,
}

fn inside(at: usize, made: &Partition) -> Inside {
    Inside {
        kind: NX_PARTITION,
        id: at as c_long,
        owner: made.settings.owner,
        group: made.settings.group,
        size: made.size.count().into(),
        priority: made.settings.priority_limit,
        quantum: made.settings.quantum,
        active: 0,
    }
}

fn running(nodes: c_int) -> Inside {
    let settings = usual_settings();
    Inside {
        kind: NX_APPLICATION,
        // SAFETY: the call takes plain values only.
        id: unsafe { libc::getpgrp() }.into(),
        owner: settings.owner,
        group: settings.group,
        size: nodes.into(),
        priority: settings.priority_limit,
        quantum: 0,
        active: 1,
    }
}

/// Lists the contents of a partition: partitions, and the application, if it is in this one.
unsafe fn list(name: *const c_char, place: *mut *mut Inside, count: *mut c_ulong) -> Answer {
    if place.is_null() || count.is_null() {
        return Err(Fault::plain(EQPARAM));
    }
    // SAFETY: by the C contract the string is NUL-terminated.
    let name = unsafe { text(name) }?;
    let partitions = &mut library().partitions;
    partitions.find(&name)?;
    let mut all: Vec<Inside> = partitions
        .inside(&name)
        .into_iter()
        .enumerate()
        .map(|(at, made)| inside(at, made))
        .collect();
    all.extend(application_in(&name).map(running));
    // SAFETY: the memory has room for all entries (at least one), and by the C contract the results are writable.
    unsafe {
        let memory = libc::malloc(size_of_val(&all[..]).max(size_of::<Inside>()));
        if memory.is_null() {
            return Err(Fault::plain(EQMEM));
        }
        std::ptr::copy_nonoverlapping(all.as_ptr(), memory.cast(), all.len());
        place.write_unaligned(memory.cast());
        count.write_unaligned(all.len() as c_ulong);
    }
    Ok(0)
}

value_forms! {
    c_long, std::convert::identity;
    nx_mkpart: (name: *const c_char, size: c_long, scheduling: c_long) = make_sized;
    nx_mkpart_rect: (name: *const c_char, rows: c_long, columns: c_long, scheduling: c_long) = make_rectangle;
    nx_mkpart_map: (name: *const c_char, number: c_long, nodes: *const c_long, scheduling: c_long) = make_of;
    nx_rmpart: (name: *const c_char, force: c_long, recursive: c_long) = remove_partition;
    nx_chpart_epl: (name: *const c_char, priority: c_long) = change_limit;
    nx_chpart_mod: (name: *const c_char, mode: c_long) = change_mode;
    nx_chpart_name: (name: *const c_char, new: *const c_char) = change_name;
    nx_chpart_owner: (name: *const c_char, owner: c_long, group: c_long) = change_owner;
    nx_chpart_rq: (name: *const c_char, quantum: c_long) = change_quantum;
    nx_chpart_sched: (name: *const c_char, kind: c_long) = change_scheduling;
    nx_part_attr: (name: *const c_char, place: *mut PartitionInformation) = tell;
    nx_part_nodes: (name: *const c_char, list: *mut *mut c_long, size: *mut c_ulong) = tell_nodes;
    nx_pspart: (name: *const c_char, place: *mut *mut Inside, count: *mut c_ulong) = list;
}
