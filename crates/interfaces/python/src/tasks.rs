//! Starting, ending and watching tasks, and the hosts that they run on.

use std::ffi::{CString, c_char, c_int};
use std::ptr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use regatta_sys as rg;

use crate::error::{check, raised};
use crate::groups::Group;
use crate::waiting::blocking;

fn text(text: &str) -> PyResult<CString> {
    CString::new(text).map_err(|_| PyValueError::new_err(format!("{text:?} contains a zero byte")))
}

/// A list of texts for C: pointers that end with NULL.
struct List {
    pointers: Vec<*const c_char>,
    #[allow(dead_code, reason = "kept for its memory")]
    texts: Vec<CString>,
}

impl List {
    fn of(texts: &[String]) -> PyResult<List> {
        let texts = texts.iter().map(|it| text(it));
        let texts = texts.collect::<PyResult<Vec<CString>>>()?;
        let pointers = texts.iter().map(|it| it.as_ptr());
        Ok(List {
            pointers: pointers.chain([ptr::null()]).collect(),
            texts,
        })
    }
}

/// Returns the text in an array that may lack a NUL.
fn shown(array: &[c_char]) -> String {
    let bytes = array.iter().map(|byte| byte.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Starts tasks. Returns their ids, with negative codes in place of those that could not be started, and the error for the first of these
/// codes. Raises the error if no task was started.
#[pyfunction]
pub(crate) fn spawn(
    py: Python<'_>,
    program: &str,
    args: Vec<String>,
    count: c_int,
    host: Option<&str>,
    directory: Option<&str>,
    environment: Vec<String>,
) -> PyResult<(Vec<c_int>, Option<Py<PyAny>>)> {
    let room = usize::try_from(count)
        .map_err(|_| PyValueError::new_err("a negative number of tasks cannot be started"))?;
    let (program, args) = (text(program)?, List::of(&args)?);
    let environment = List::of(&environment)?;
    let (host, directory) = (
        host.map(text).transpose()?,
        directory.map(text).transpose()?,
    );
    let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |it| it.as_ptr());
    let options = rg::SpawnOptions {
        host: pointer(&host),
        search: ptr::null(),
        architecture: ptr::null(),
        directory: pointer(&directory),
        environment: environment.pointers.as_ptr(),
        elsewhere: 0,
        output: 0,
        output_tag: 0,
        output_group: rg::ALL,
        orphans: 0,
        on_behalf: 0,
        through: ptr::null(),
        output_to: 0,
        reserved: 0,
    };
    let (mut ids, mut started) = (vec![rg::ERR_ARGUMENT; room], 0);
    // SAFETY: texts and lists outlive the call, and `ids` has room for `count` ids.
    let code = blocking(py, || unsafe {
        let argv = args.pointers.as_ptr().cast();
        rg::rg_spawn(
            program.as_ptr(),
            argv,
            &options,
            count,
            ids.as_mut_ptr(),
            &mut started,
        )
    });
    if code >= 0 {
        return Ok((ids, None));
    }
    let error = raised(py, code);
    match started {
        0 => Err(error),
        _ => Ok((ids, Some(error.into_value(py).into_any()))),
    }
}

/// Sends a signal to a task.
#[pyfunction]
pub(crate) fn signal(py: Python<'_>, task: c_int, signal: c_int) -> PyResult<()> {
    // SAFETY: the function accepts any numbers.
    check(py, blocking(py, || unsafe { rg::rg_signal(task, signal) })).map(drop)
}

/// Kills a task with SIGKILL.
#[pyfunction]
pub(crate) fn kill(py: Python<'_>, task: c_int) -> PyResult<()> {
    // SAFETY: the function accepts any number.
    check(py, blocking(py, || unsafe { rg::rg_kill(task) })).map(drop)
}

/// Ends the job with a status.
#[pyfunction]
pub(crate) fn abort(py: Python<'_>, code: c_int) -> PyResult<()> {
    // SAFETY: the function accepts any number.
    check(py, blocking(py, || unsafe { rg::rg_abort(code) })).map(drop)
}

/// Asks for events as messages. Returns the number of the watch.
#[pyfunction]
pub(crate) fn notify(
    py: Python<'_>,
    kind: c_int,
    what: c_int,
    tag: c_int,
    group: PyRef<'_, Group>,
) -> PyResult<c_int> {
    let (group, mut watch) = (group.handle(), -1);
    // SAFETY: `watch` is valid, and the function checks the other arguments.
    let code = blocking(py, || unsafe {
        rg::rg_notify(kind, what, tag, group, &mut watch)
    });
    check(py, code)?;
    Ok(watch)
}

/// Cancels a watch. Returns False if its event has already been sent.
#[pyfunction]
pub(crate) fn notify_cancel(py: Python<'_>, watch: c_int) -> PyResult<bool> {
    let mut pending = 0;
    // SAFETY: `pending` is valid, and the function checks the number.
    let code = blocking(py, || unsafe { rg::rg_notify_cancel(watch, &mut pending) });
    check(py, code)?;
    Ok(pending != 0)
}

/// Gets a whole list from the C interface: repeats the call with more room until the list fits.
fn all<T: Clone + Send>(
    py: Python<'_>,
    empty: T,
    ask: impl Fn(*mut T, c_int, *mut c_int) -> c_int + Copy,
) -> PyResult<Vec<T>> {
    let mut list = vec![empty.clone(); 64];
    loop {
        let (room, mut count) = (list.len(), 0);
        check(
            py,
            blocking(py, || ask(list.as_mut_ptr(), room as c_int, &mut count)),
        )?;
        list.resize(count as usize, empty.clone());
        if list.len() <= room {
            return Ok(list);
        }
    }
}

type Task = (c_int, Option<c_int>, c_int, c_int, String);

/// Returns the running tasks: id, parent, number of the host, process id, program.
#[pyfunction]
pub(crate) fn tasks(py: Python<'_>) -> PyResult<Vec<Task>> {
    let empty = rg::Task {
        tid: -1,
        parent: rg::NONE,
        host: -1,
        pid: 0,
        program: [0; 240],
    };
    // SAFETY: `list` has room for `room` entries.
    let found = all(py, empty, |list, room, count| unsafe {
        rg::rg_tasks(list, room, count)
    })?;
    let told = |it: &rg::Task| {
        let parent = (it.parent >= 0).then_some(it.parent);
        (it.tid, parent, it.host, it.pid, shown(&it.program))
    };
    Ok(found.iter().map(told).collect())
}

type Host = (c_int, String, c_int, c_int, bool, String);

/// Returns the hosts of the job: number, name, cores, tasks, whether it is alive, architecture.
#[pyfunction]
pub(crate) fn hosts(py: Python<'_>) -> PyResult<Vec<Host>> {
    let empty = rg::Host {
        host: -1,
        cores: 0,
        tasks: 0,
        alive: 0,
        name: [0; 64],
        architecture: [0; 32],
        speed: 0,
        reserved: 0,
    };
    // SAFETY: `list` has room for `room` entries.
    let found = all(py, empty, |list, room, count| unsafe {
        rg::rg_hosts(list, room, count)
    })?;
    let told = |it: &rg::Host| {
        let (name, architecture) = (shown(&it.name), shown(&it.architecture));
        (
            it.host,
            name,
            it.cores,
            it.tasks,
            it.alive != 0,
            architecture,
        )
    };
    Ok(found.iter().map(told).collect())
}
