//! Starting, ending and watching tasks; named groups.

use std::ffi::{CStr, c_char, c_int};

use regatta_abi::{
    HOST_ADDED, HOST_LOST, Host as RgHost, NamedGroup as RgNamedGroup, OUTPUT_BIRTHS,
    OUTPUT_BLOCKS, OUTPUT_JOB, OUTPUT_LINES, SpawnOptions as RgSpawnOptions, TASK_EXIT, TASKS,
    Task as RgTask,
};
use regatta_process::control::{GroupInfo, HostInfo, Output, Place, Spawn, TaskInfo, WatchKind};
use regatta_process::{self as process, Error, Result};

use crate::error::{OK, answer, argument, fail, refusal};
use crate::memory::{GroupHandle, RgGroup, output};
use crate::text::{list, name, optional, put, put_all, required};

/// Returns the hosts that the options of a spawn select.
///
/// # Safety
/// The texts of `options` must be NULL or NUL-terminated.
unsafe fn place(options: Option<&RgSpawnOptions>) -> Result<Place> {
    let Some(options) = options else {
        return Ok(Place::Any);
    };
    // SAFETY: the caller guarantees that the texts are NULL or NUL-terminated.
    let (host, architecture) = unsafe { (optional(options.host), optional(options.architecture)) };
    let text = |text: &CStr| {
        let text = text.to_str();
        text.map(str::to_owned)
            .map_err(|_| argument("the name of a host or an architecture is not UTF-8"))
    };
    let here = host.is_some_and(|host| host == c".");
    Ok(
        match (host.filter(|_| !here), architecture, options.elsewhere != 0) {
            (None, None, true) => Place::Elsewhere(String::new()),
            (None, None, false) if here => Place::Here,
            (None, None, false) => Place::Any,
            (Some(host), None, false) => Place::Host(text(host)?),
            (Some(host), None, true) => Place::Elsewhere(text(host)?),
            (None, Some(architecture), false) => Place::Architecture(text(architecture)?),
            _ => {
                return Err(argument(
                    "an architecture cannot be combined with a host or with elsewhere",
                ));
            }
        },
    )
}

/// Returns the destination of the tasks' output that the options of a spawn select.
fn destination(options: Option<&RgSpawnOptions>) -> Result<Output> {
    let Some(options) = options else {
        return Ok(Output::AsMine);
    };
    let births = options.output & OUTPUT_BIRTHS != 0;
    let lines = match options.output & !OUTPUT_BIRTHS {
        0 if !births => return Ok(Output::AsMine),
        OUTPUT_JOB if !births => return Ok(Output::Job),
        OUTPUT_LINES => true,
        OUTPUT_BLOCKS => false,
        _ => {
            return Err(argument(
                "output must be one of 0, RG_OUTPUT_JOB, RG_OUTPUT_LINES, RG_OUTPUT_BLOCKS",
            ));
        }
    };
    let (tag, group) = (options.output_tag, options.output_group.id());
    match u32::try_from(options.output_to) {
        Ok(0) => process::to_me(tag, group, lines, births),
        Ok(other) => process::to_task(other - 1, tag, group, lines, births),
        Err(_) => Err(argument("output_to is negative")),
    }
}

/// Splits `NAME=value`. Fails if there is no `=`, or no name before it.
fn variable(text: Vec<u8>) -> Result<(Vec<u8>, Vec<u8>)> {
    let at = text
        .iter()
        .position(|&byte| byte == b'=')
        .filter(|&at| at > 0);
    let at = at.ok_or_else(|| {
        let shown = String::from_utf8_lossy(&text);
        Error::Argument(format!("{shown:?} is not of the form NAME=value"))
    })?;
    Ok((text[..at].to_vec(), text[at + 1..].to_vec()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_host_of(tid: c_int) -> c_int {
    crate::error::number(process::host_of(tid))
}

/// Makes an order to the launcher from the arguments of a spawn.
///
/// # Safety
/// Pointers must be valid, or NULL where `rg_spawn` allows it.
unsafe fn order(
    program: *const c_char,
    argv: *const *const c_char,
    options: *const RgSpawnOptions,
    count: c_int,
) -> Result<Spawn> {
    // SAFETY: the caller guarantees that the pointers are valid or NULL.
    let (options, program, arguments) =
        unsafe { (options.as_ref(), required(program, "program")?, list(argv)) };
    let count = u32::try_from(count).ok().filter(|&count| count > 0);
    let (search, directory, environment, through) = match options {
        // SAFETY: the caller guarantees that the texts and lists are valid or NULL.
        Some(options) => unsafe {
            (
                optional(options.search),
                optional(options.directory),
                list(options.environment),
                optional(options.through),
            )
        },
        None => (None, None, Vec::new(), None),
    };
    Ok(Spawn {
        program: program.to_bytes().to_vec(),
        arguments,
        count: count.ok_or_else(|| argument("count is not positive"))?,
        // SAFETY: the caller guarantees that the texts are valid or NULL.
        place: unsafe { place(options) }?,
        search: search.map(|search| search.to_bytes().to_vec()),
        directory: directory.map(|directory| directory.to_bytes().to_vec()),
        environment: environment
            .into_iter()
            .map(variable)
            .collect::<Result<_>>()?,
        output: destination(options)?,
        orphans: options.is_some_and(|options| options.orphans != 0),
        through: through.map(|through| through.to_bytes().to_vec()),
        on_behalf: options
            .and_then(|options| u32::try_from(options.on_behalf).ok()?.checked_sub(1)),
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_spawn(
    program: *const c_char,
    argv: *const *const c_char,
    options: *const RgSpawnOptions,
    count: c_int,
    tids: *mut c_int,
    started: *mut c_int,
) -> c_int {
    if let Ok(started) = output(started, "started") {
        *started = 0;
    }
    // SAFETY: the C program guarantees that the pointers are valid, or NULL where that is allowed.
    let order = unsafe { order(program, argv, options, count) };
    let spawned = match order.and_then(process::spawn) {
        Ok(spawned) => spawned,
        Err(error) => return fail(&error),
    };
    let (codes, born, failed) = match spawned.tasks {
        Ok(tasks) => {
            let codes: Vec<c_int> = tasks.iter().map(|&task| task as c_int).collect();
            let born = codes.len();
            (codes, born, None)
        }
        Err(tasks) => {
            let code = |task: &std::result::Result<u32, _>| {
                task.map_or_else(refusal, |task| task as c_int)
            };
            let born = tasks.iter().filter(|task| task.is_ok()).count();
            let why = tasks.iter().find_map(|task| task.err());
            (tasks.iter().map(code).collect(), born, why)
        }
    };
    // SAFETY: the C program guarantees that `tids` is NULL or has room for `count` ids.
    if let Err(error) = unsafe { put_all(codes.into_iter(), tids, count, std::ptr::null_mut()) } {
        return fail(&error);
    }
    if let Ok(started) = output(started, "started") {
        *started = born as c_int;
    }
    match failed {
        None => OK,
        Some(why) => fail(&Error::Refused(why, spawned.sentence)),
    }
}

#[unsafe(no_mangle)]
extern "C" fn rg_signal(tid: c_int, signal: c_int) -> c_int {
    answer(process::signal(tid, signal, false))
}

#[unsafe(no_mangle)]
extern "C" fn rg_kill(tid: c_int) -> c_int {
    answer(process::signal(tid, libc::SIGKILL, true))
}

fn task(info: TaskInfo) -> RgTask {
    RgTask {
        tid: info.task as i32,
        parent: info.parent.map_or(process::NONE, |parent| parent as i32),
        host: info.host as i32,
        pid: info.pid as i32,
        program: put(&info.program),
    }
}

fn host(info: HostInfo) -> RgHost {
    RgHost {
        host: info.host as i32,
        cores: info.cores as i32,
        tasks: info.tasks as i32,
        alive: i32::from(info.lives),
        name: put(info.name.as_bytes()),
        architecture: put(info.architecture.as_bytes()),
        speed: info.speed as i32,
        reserved: 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_tasks(tasks: *mut RgTask, capacity: c_int, count: *mut c_int) -> c_int {
    answer(process::tasks().and_then(|infos| {
        // SAFETY: the C program guarantees room for `capacity` tasks; pointers are valid or NULL.
        unsafe { put_all(infos.into_iter().map(task), tasks, capacity, count) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_hosts(hosts: *mut RgHost, capacity: c_int, count: *mut c_int) -> c_int {
    answer(process::hosts().and_then(|infos| {
        // SAFETY: the C program guarantees room for `capacity` hosts; pointers are valid or NULL.
        unsafe { put_all(infos.into_iter().map(host), hosts, capacity, count) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rg_notify(
    kind: c_int,
    what: c_int,
    tag: c_int,
    group: RgGroup,
    watch: *mut c_int,
) -> c_int {
    let begun = || -> Result<()> {
        let kind = match kind {
            TASK_EXIT => WatchKind::TaskEnds,
            HOST_LOST => WatchKind::HostLost,
            HOST_ADDED => WatchKind::HostAdded,
            TASKS => WatchKind::Tasks,
            _ => {
                return Err(argument(
                    "kind must be one of RG_TASK_EXIT, RG_HOST_LOST, RG_HOST_ADDED, RG_TASKS",
                ));
            }
        };
        let subject = match kind {
            WatchKind::HostAdded | WatchKind::Tasks => 0,
            _ => u32::try_from(what).map_err(|_| Error::Task(what as i64))?,
        };
        let number = process::watch(kind, subject, tag, group.id())?;
        if let Ok(watch) = output(watch, "watch") {
            *watch = number as c_int;
        }
        Ok(())
    };
    answer(begun())
}

#[unsafe(no_mangle)]
extern "C" fn rg_start_others(tag: c_int, group: RgGroup) -> c_int {
    answer(process::start_others(tag, group.id()).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn rg_has_ended(tid: c_int, status: c_int) -> c_int {
    answer(process::has_ended(tid, status))
}

#[unsafe(no_mangle)]
extern "C" fn rg_notify_cancel(watch: c_int, pending: *mut c_int) -> c_int {
    answer(process::unwatch(watch as u32).map(|forgotten| {
        if let Ok(pending) = output(pending, "pending") {
            *pending = c_int::from(forgotten);
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_join(group: *const c_char, number: *mut c_int) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let joined = unsafe { name(group, "group") }.and_then(process::join_named);
    answer(joined.map(|joined| {
        if let Ok(number) = output(number, "number") {
            *number = joined as c_int;
        }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_leave(group: *const c_char) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    answer(unsafe { name(group, "group") }.and_then(process::leave_named))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_members(
    group: *const c_char,
    tids: *mut c_int,
    capacity: c_int,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let members = unsafe { name(group, "group") }.and_then(process::members);
    let tid = |member: Option<u32>| member.map_or(process::NONE, |task| task as c_int);
    answer(members.and_then(|members| {
        // SAFETY: the C program guarantees room for `capacity` ids; pointers are valid or NULL.
        unsafe { put_all(members.into_iter().map(tid), tids, capacity, count) }
    }))
}

/// Returns how many members are to meet, or `None` for all. Fails if `count` is negative and not RG_ANY.
fn so_many(count: c_int) -> Result<Option<u32>> {
    match count {
        process::ANY => Ok(None),
        count => match u32::try_from(count) {
            Ok(count) => Ok(Some(count)),
            Err(_) => Err(argument("the count is negative")),
        },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_meet(group: *const c_char, count: c_int) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let group = unsafe { name(group, "group") };
    let count = so_many(count);
    answer(group.and_then(|group| process::meet_so_many(&group, count?)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_meet_members(
    group: *const c_char,
    count: c_int,
    tids: *mut c_int,
    capacity: c_int,
    members: *mut c_int,
) -> c_int {
    // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
    let group = unsafe { name(group, "group") };
    let count = so_many(count);
    let met = group.and_then(|group| process::meet(&group, count?));
    let tid = |member: Option<u32>| member.map_or(process::NONE, |task| task as c_int);
    answer(met.and_then(|all| {
        let all = all.unwrap_or_default();
        // SAFETY: the C program guarantees room for `capacity` ids; pointers are valid or NULL.
        unsafe { put_all(all.into_iter().map(tid), tids, capacity, members) }
    }))
}

fn named_group(info: GroupInfo) -> RgNamedGroup {
    RgNamedGroup {
        members: info.members.iter().flatten().count() as i32,
        waiting: info.waiting.len() as i32,
        wanted: info.wanted as i32,
        reserved: 0,
        name: put(info.name.as_bytes()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_named_groups(
    groups: *mut RgNamedGroup,
    capacity: c_int,
    count: *mut c_int,
) -> c_int {
    answer(process::named_groups().and_then(|infos| {
        // SAFETY: the C program guarantees room for `capacity` groups; pointers are valid or NULL.
        unsafe { put_all(infos.into_iter().map(named_group), groups, capacity, count) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rg_waiting(
    group: *const c_char,
    tids: *mut c_int,
    capacity: c_int,
    count: *mut c_int,
) -> c_int {
    let waiting = || -> Result<()> {
        // SAFETY: the C program guarantees that the pointer is NULL or leads to a NUL-terminated text.
        let group = unsafe { name(group, "group") }?;
        let mut infos = process::named_groups()?.into_iter();
        let found = infos.find(|info| info.name == group);
        let waiting = found.map_or_else(Vec::new, |info| info.waiting);
        let tids_of = waiting.into_iter().map(|task| task as c_int);
        // SAFETY: the C program guarantees room for `capacity` ids; pointers are valid or NULL.
        unsafe { put_all(tids_of, tids, capacity, count) }
    };
    answer(waiting())
}
