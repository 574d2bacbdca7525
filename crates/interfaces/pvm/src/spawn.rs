//! Starting tasks.

use std::ffi::{CStr, CString, c_char, c_int};

use crate::life::enrol;
use crate::message::{codes, error};
use crate::output::Route;
use crate::spawn_environment::{SpawnEnvironment, VARIABLE};
use crate::state::library;
use crate::system::{asking, task_started};
use crate::trace::{self, Value, calls, traced};
use crate::{contexts, rg, search, tid};

mod flag {
    pub const HOST: i32 = 1;
    pub const ARCHITECTURE: i32 = 2;
    pub const DEBUG: i32 = 4;
    pub const COMPLEMENT: i32 = 32;
    pub const NO_PARENT: i32 = 64;
}

/// Converts Regatta's code for a task that was not started.
fn reason(code: c_int) -> i32 {
    match code {
        rg::ERR_PROGRAM => codes::NO_FILE,
        rg::ERR_HOST => codes::NO_HOST,
        rg::ERR_MEMORY => codes::OUT_OF_RES,
        rg::ERR_ARGUMENT => codes::BAD_PARAM,
        rg::ERR_LAUNCHER => codes::SYS_ERR,
        _ => codes::D_SYS_ERR,
    }
}

/// Where tasks are started: the parts of the argument `where`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Where {
    place: Option<CString>,
    directory: Option<CString>,
}

impl Where {
    /// Parses `"host"`, `"host:/directory"` or `":/directory"`.
    fn read(text: &CStr) -> Where {
        let bytes = text.to_bytes();
        let (place, directory) = match bytes.iter().position(|&byte| byte == b':') {
            Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
            None => (bytes, None),
        };
        let own = |bytes: &[u8]| CString::new(bytes).ok().filter(|text| !text.is_empty());
        Where {
            place: own(place),
            directory: directory.and_then(own),
        }
    }
}

/// Returns the environment for started tasks: the variables that PVM_EXPORT names, PVM_EXPORT itself, and the spawn
/// settings.
pub fn environment(flags: i32) -> Vec<CString> {
    let library = library();
    let inherited = SpawnEnvironment {
        context: library.context,
        hides_parent: flags & flag::NO_PARENT != 0,
        flags,
        output: library.options.output(),
        trace: library.options.children_trace(),
    };
    let mut all = vec![format!("{VARIABLE}={}", inherited.write())];
    if let Ok(export) = std::env::var("PVM_EXPORT") {
        for name in export.split(':').filter(|name| !name.is_empty()) {
            if let Ok(value) = std::env::var(name) {
                all.push(format!("{name}={value}"));
            }
        }
        all.push(format!("PVM_EXPORT={export}"));
    }
    if std::env::var_os("PVM_ARCH").is_none() {
        all.push(format!("PVM_ARCH={}", search::architecture()));
    }
    all.push(format!("PVMCTX={:#x}", library.context));
    // The process that starts the task fills in the value.
    all.push("PVMEPID=".to_owned());
    all.extend(crate::trace::variables());
    let texts = all.into_iter().filter_map(|text| CString::new(text).ok());
    texts.collect()
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// Returns Regatta's name for an architecture that a program names in PVM's terms.
fn machine(name: &CStr) -> Option<CString> {
    let known = [
        "x86_64",
        "x86",
        "aarch64",
        "arm",
        "powerpc64",
        "s390x",
        "riscv64",
    ];
    let wanted = name.to_str().ok()?;
    let own = search::architecture();
    let machine = match wanted == own {
        true => std::env::consts::ARCH,
        false => known
            .into_iter()
            .find(|machine| search::of_machine(machine) == wanted)
            .unwrap_or(wanted),
    };
    CString::new(machine).ok()
}

/// The arguments of `rg_spawn`, with the memory to which they point.
#[derive(Default)]
pub struct Order {
    host: Option<CString>,
    architecture: Option<CString>,
    elsewhere: bool,
    directory: Option<CString>,
    pub environment: Vec<CString>,
    search: CString,
    pub output: Route,
    orphans: bool,
    on_behalf: i32,
    /// Command that is started in place of the program, with the program as its first argument.
    debugger: Option<CString>,
}

impl Order {
    /// Starts tasks on this host for another task. `on_behalf` is as in `rg_spawn`.
    pub fn on(host: CString, flags: i32, on_behalf: i32) -> Order {
        Order {
            host: Some(host),
            search: CString::new(search::directories()).unwrap_or_default(),
            orphans: flags & flag::NO_PARENT != 0,
            on_behalf,
            debugger: debugger(flags),
            ..Order::default()
        }
    }
}

/// Returns the command that starts a task under a debugger, if the flags request that.
fn debugger(flags: i32) -> Option<CString> {
    if flags & flag::DEBUG == 0 {
        return None;
    }
    let named = std::env::var("PVM_DEBUGGER").ok();
    let named = named.filter(|name| !name.is_empty());
    CString::new(named.unwrap_or_else(|| format!("{}/lib/debugger", search::root()))).ok()
}

fn order(flags: i32, place: Option<&CStr>) -> Result<Order, i32> {
    let place = place.map(Where::read).unwrap_or_default();
    let wants = |of: i32| flags & of != 0;
    let (mut host, mut architecture) = (None, None);
    if wants(flag::HOST) {
        host = Some(place.place.ok_or(codes::NO_HOST)?);
    } else if wants(flag::ARCHITECTURE) {
        let name = place.place.ok_or(codes::NO_HOST)?;
        architecture = Some(machine(&name).ok_or(codes::NO_HOST)?);
    }
    let elsewhere = wants(flag::COMPLEMENT) && wants(flag::HOST);
    if elsewhere && host.as_deref() == Some(c".") {
        // Without a host, "any host but this one" is meant.
        host = None;
    }
    Ok(Order {
        host,
        architecture,
        elsewhere,
        directory: place.directory,
        environment: environment(flags),
        search: CString::new(search::directories()).unwrap_or_default(),
        output: Route::of(library().options.output()),
        orphans: wants(flag::NO_PARENT),
        on_behalf: 0,
        debugger: debugger(flags),
    })
}

/// Starts tasks. Returns for each its tid or an error; the tids are first.
pub fn spawn(
    program: &CStr,
    arguments: *const *const c_char,
    flags: i32,
    place: Option<&CStr>,
    count: c_int,
) -> Result<Vec<i32>, i32> {
    enrol()?;
    if count < 1 {
        return Err(codes::BAD_PARAM);
    }
    // SAFETY: the arguments are those of `pvm_spawn`.
    if let Some(tids) = unsafe { asking::spawn(program, arguments, flags, place, count) }? {
        return Ok(tids);
    }
    match order(flags, place) {
        Ok(order) => {
            let tids = start(&order, program, arguments, count);
            notify_tracer(&tids, program, flags);
            Ok(tids)
        }
        Err(code) => Ok(vec![code; count as usize]),
    }
}

/// Notifies the task that traces this one's children of the started ones.
fn notify_tracer(tids: &[i32], program: &CStr, flags: i32) {
    let tracer = library().options.children_trace();
    if tracer.0 <= 0 {
        return;
    }
    let parent = match flags & flag::NO_PARENT {
        0 => library().tid,
        _ => codes::PARENT_NOT_SET,
    };
    for &task in tids.iter().filter(|&&tid| tid > 0) {
        task_started::TaskStarted {
            task,
            parent,
            flags,
            name: program.to_bytes(),
        }
        .send_to_tracer(tracer);
    }
}

/// Starts tasks, whose hosts are decided in `order`, and returns tids and errors as [`spawn`] does.
pub fn start(
    order: &Order,
    program: &CStr,
    arguments: *const *const c_char,
    count: c_int,
) -> Vec<i32> {
    let mut environment: Vec<*const c_char> =
        order.environment.iter().map(|text| text.as_ptr()).collect();
    environment.push(std::ptr::null());
    let Route {
        how,
        to,
        tag,
        context,
    } = order.output;
    let options = rg::SpawnOptions {
        host: pointer(&order.host),
        architecture: pointer(&order.architecture),
        directory: pointer(&order.directory),
        environment: environment.as_ptr(),
        elsewhere: order.elsewhere.into(),
        output: how,
        output_to: to,
        output_tag: tag & i32::MAX,
        output_group: contexts::channel(context, tag),
        orphans: order.orphans.into(),
        on_behalf: order.on_behalf,
        through: pointer(&order.debugger),
        search: order.search.as_ptr(),
        reserved: 0,
    };
    let mut tids = vec![0; count as usize];
    let mut started = 0;
    // SAFETY: the strings live until the call returns, and the results have room.
    let code = unsafe {
        rg::rg_spawn(
            program.as_ptr(),
            arguments.cast(),
            &options,
            count,
            tids.as_mut_ptr(),
            &mut started,
        )
    };
    let started = started.max(0) as usize;
    if code != rg::OK && started == 0 {
        tids.fill(code);
    }
    let numbers = tids.iter().enumerate().map(|(index, &task)| {
        if index < started {
            tid::of_task(task).unwrap_or(codes::D_SYS_ERR)
        } else {
            reason(task)
        }
    });
    numbers.collect()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pvm_spawn(
    program: *const c_char,
    arguments: *const *const c_char,
    flags: c_int,
    place: *const c_char,
    count: c_int,
    tids: *mut c_int,
) -> c_int {
    let spawned = || -> Result<i32, i32> {
        if program.is_null() {
            return Err(codes::BAD_PARAM);
        }
        // SAFETY: by the C contract the strings are NUL-terminated; `place` may be NULL.
        let (program, place) = unsafe {
            (
                CStr::from_ptr(program),
                (!place.is_null()).then(|| CStr::from_ptr(place)),
            )
        };
        let numbers = spawn(program, arguments, flags, place, count)?;
        if !tids.is_null() {
            for (index, &number) in numbers.iter().enumerate() {
                // SAFETY: by the C contract the array has room for all numbers.
                unsafe { *tids.add(index) = number };
            }
        }
        Ok(numbers.iter().filter(|&&number| number > 0).count() as i32)
    };
    let spawned = || error::result("pvm_spawn", spawned().unwrap_or_else(|code| code));
    let entry = || {
        // SAFETY: by the C contract the strings are NUL-terminated or NULL.
        let (program, place) = unsafe { (trace::text(program), trace::text(place)) };
        [program, place, Value::Int(flags), Value::Int(count)]
    };
    // SAFETY: by the C contract `tids` has room; the first `code` numbers are the tids of started tasks.
    let exit = |code| [Value::Int(code), unsafe { trace::numbers(tids, code) }];
    traced(calls::SPAWN, entry, spawned, exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_host_and_a_directory_or_one_of_them() {
        let parts = |text: &CStr| {
            let Where { place, directory } = Where::read(text);
            let shown = |text: Option<CString>| text.map(|text| text.into_string().unwrap());
            (shown(place), shown(directory))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts(c"alpha"), (some("alpha"), None));
        assert_eq!(parts(c"alpha:/tmp"), (some("alpha"), some("/tmp")));
        assert_eq!(parts(c":/tmp"), (None, some("/tmp")));
        assert_eq!(parts(c""), (None, None));
    }
}
