//! Options: `pvm_setopt` and `pvm_getopt`.

use std::ffi::c_int;

use crate::life::enrol;
use crate::mailbox;
use crate::message::{codes, error};
use crate::spawn_environment::SpawnEnvironment;
use crate::state::library;
use crate::system::tracer::Wanted;
use crate::trace::{self, calls, ints, traced};

/// Number of options. They are numbered from 1.
const COUNT: usize = 25;

mod option {
    pub const ROUTE: usize = 1;
    pub const DEBUG_MASK: usize = 2;
    pub const AUTO_ERR: usize = 3;
    pub const OUTPUT_TID: usize = 4;
    pub const OUTPUT_CODE: usize = 5;
    pub const TRACE_TID: usize = 6;
    pub const TRACE_CODE: usize = 7;
    pub const FRAGMENT: usize = 10;
    pub const RESERVED: usize = 11;
    pub const SELF_OUTPUT_TID: usize = 12;
    pub const SELF_OUTPUT_CODE: usize = 13;
    pub const SELF_TRACE_TID: usize = 14;
    pub const SELF_TRACE_CODE: usize = 15;
    pub const TRACE_BUFFER: usize = 8;
    pub const SELF_TRACE_BUFFER: usize = 16;
    pub const TRACE_OPTIONS: usize = 9;
    pub const SELF_TRACE_OPTIONS: usize = 17;
    pub const SHOW_TIDS: usize = 18;
    pub const POLL_TYPE: usize = 19;
    pub const POLL_TIME: usize = 20;
    pub const OUTPUT_CONTEXT: usize = 21;
    pub const TRACE_CONTEXT: usize = 22;
    pub const SELF_OUTPUT_CONTEXT: usize = 23;
    pub const SELF_TRACE_CONTEXT: usize = 24;
    pub const NO_RESET: usize = 25;
}

/// The values by option number. The value of `AUTO_ERR` is in the error module.
pub struct Options([i32; COUNT + 1]);

impl Options {
    /// Returns the defaults.
    pub const fn new() -> Options {
        let mut values = [0; COUNT + 1];
        values[option::ROUTE] = 2;
        values[option::FRAGMENT] = 4080;
        values[option::SHOW_TIDS] = 1;
        Options(values)
    }

    /// Inherits the settings of the parent, for this task and its children, except those that have already been set
    /// here.
    pub fn inherit(&mut self, environment: &SpawnEnvironment) {
        for (way, (task, tag, context)) in
            [(OUTPUT, environment.output), (TRACE, environment.trace)]
        {
            if self.0[way[0].1] == 0 {
                self.set_own(way, [task, tag, context]);
            }
        }
    }

    /// Sets the destination of this task's output or trace, and that of its children.
    fn set_own(&mut self, way: RouteOptions, values: [i32; 3]) {
        for ((of_children, own), value) in way.into_iter().zip(values) {
            self.0[of_children] = value;
            self.0[own] = value;
        }
    }

    /// Sets how many bytes of events are buffered and which trace options apply, for this task and its children.
    pub fn trace_so(&mut self, buffer: i32, options: i32) {
        for at in [option::TRACE_BUFFER, option::SELF_TRACE_BUFFER] {
            self.0[at] = buffer;
        }
        for at in [option::TRACE_OPTIONS, option::SELF_TRACE_OPTIONS] {
            self.0[at] = options;
        }
    }

    /// Sets the destination of the children's output: this task, tag and context. Task 0 means none.
    pub fn set_output(&mut self, (task, tag, context): (i32, i32, i32)) {
        self.0[option::OUTPUT_TID] = task;
        self.0[option::OUTPUT_CODE] = tag;
        self.0[option::OUTPUT_CONTEXT] = context;
    }

    /// Returns whether messages may have tags with the sign bit.
    #[inline(always)]
    pub fn reserved(&self) -> bool {
        self.0[option::RESERVED] != 0
    }

    /// Returns the destination of the children's output: a task (0: none in particular), a tag and a context.
    pub fn output(&self) -> (i32, i32, i32) {
        let value = |at: usize| self.0[at];
        (
            value(option::OUTPUT_TID),
            value(option::OUTPUT_CODE),
            value(option::OUTPUT_CONTEXT),
        )
    }

    /// Returns the destination of the children's events.
    pub fn children_trace(&self) -> (i32, i32, i32) {
        let value = |at: usize| self.0[at];
        (
            value(option::TRACE_TID),
            value(option::TRACE_CODE),
            value(option::TRACE_CONTEXT),
        )
    }

    /// Returns the buffer size and the trace options of the children's events.
    pub fn children_trace_way(&self) -> (i32, i32) {
        (self.0[option::TRACE_BUFFER], self.0[option::TRACE_OPTIONS])
    }

    /// Returns the destination of this task's events.
    pub fn trace(&self) -> (i32, i32, i32) {
        let value = |at: usize| self.0[at];
        (
            value(option::SELF_TRACE_TID),
            value(option::SELF_TRACE_CODE),
            value(option::SELF_TRACE_CONTEXT),
        )
    }

    /// Returns the trace options of this task's events.
    pub fn trace_way(&self) -> i32 {
        self.0[option::SELF_TRACE_OPTIONS]
    }

    /// Returns the buffer size of this task's events in bytes.
    pub fn trace_buffer(&self) -> i32 {
        self.0[option::SELF_TRACE_BUFFER]
    }

    /// Sends the events of this task and its children to a tracer, unless another destination is set.
    pub fn trace_to(&mut self, wanted: &Wanted) {
        let places = [
            [
                option::SELF_TRACE_TID,
                option::SELF_TRACE_CODE,
                option::SELF_TRACE_CONTEXT,
            ],
            [option::TRACE_TID, option::TRACE_CODE, option::TRACE_CONTEXT],
        ];
        for [task_at, tag_at, context_at] in places {
            if self.0[task_at] == 0 {
                self.0[task_at] = wanted.tracer;
                self.0[tag_at] = wanted.tag;
                self.0[context_at] = wanted.context;
            }
        }
        self.trace_so(wanted.buffer, wanted.options);
    }

    /// Returns whether lines of output are prefixed with their task.
    pub fn shows_tids(&self) -> bool {
        self.0[option::SHOW_TIDS] != 0
    }
}

/// The options of a destination: for each of task, tag and context, the option for children and the one for this task.
type RouteOptions = [(usize, usize); 3];
const OUTPUT: RouteOptions = [
    (option::OUTPUT_TID, option::SELF_OUTPUT_TID),
    (option::OUTPUT_CODE, option::SELF_OUTPUT_CODE),
    (option::OUTPUT_CONTEXT, option::SELF_OUTPUT_CONTEXT),
];
const TRACE: RouteOptions = [
    (option::TRACE_TID, option::SELF_TRACE_TID),
    (option::TRACE_CODE, option::SELF_TRACE_CODE),
    (option::TRACE_CONTEXT, option::SELF_TRACE_CONTEXT),
];

/// Returns whether the option `number` may have this value. The children's destination must be none, this task, or this
/// task's own destination.
fn may_go(way: RouteOptions, number: usize, value: c_int) -> bool {
    let options = &library().options.0;
    let [(task, own_task), (tag, own_tag), _] = way;
    let me = library().tid;
    if number == task {
        let as_ours = value == options[own_task] && options[tag] == options[own_tag];
        return value == 0 || value == me || as_ours;
    }
    let as_ours = |&(at, ours): &(usize, usize)| at == number && value == options[ours];
    options[task] <= 0 || options[task] == me || way.iter().any(as_ours)
}

/// Fails if the option `number` must not have this value.
fn check(number: usize, value: c_int) -> Result<(), i32> {
    let sound = match number {
        option::ROUTE => (1..=3).contains(&value),
        option::OUTPUT_TID | option::OUTPUT_CODE | option::OUTPUT_CONTEXT => {
            may_go(OUTPUT, number, value)
        }
        option::TRACE_TID | option::TRACE_CODE | option::TRACE_CONTEXT => {
            may_go(TRACE, number, value)
        }
        option::FRAGMENT => (64..=1 << 20).contains(&value),
        option::TRACE_OPTIONS | option::SELF_TRACE_OPTIONS => (1..=3).contains(&value),
        _ => true,
    };
    match sound {
        true => Ok(()),
        false => Err(codes::BAD_PARAM),
    }
}

/// Options about polling shared memory: Regatta decides that itself, and PVM has them only on other machines.
const ELSEWHERE: [usize; 2] = [option::POLL_TYPE, option::POLL_TIME];

fn number(what: c_int) -> Result<usize, i32> {
    match usize::try_from(what) {
        Ok(number) if (1..=COUNT).contains(&number) => Ok(number),
        _ => Err(codes::BAD_PARAM),
    }
}

fn set(what: c_int, value: c_int) -> Result<c_int, i32> {
    let before = change(what, value)?;
    trace::settle();
    Ok(before)
}

fn change(what: c_int, value: c_int) -> Result<c_int, i32> {
    let number = number(what)?;
    match number {
        option::SELF_OUTPUT_CODE if library().options.0[option::SELF_OUTPUT_TID] <= 0 => {
            return Ok(library().options.0[number]);
        }
        option::SELF_TRACE_CODE if library().options.0[option::SELF_TRACE_TID] <= 0 => {
            return Ok(library().options.0[number]);
        }
        option::SELF_OUTPUT_CONTEXT | option::SELF_TRACE_CONTEXT => return Err(codes::NOT_IMPL),
        _ if ELSEWHERE.contains(&number) => return Err(codes::NOT_IMPL),
        _ => {}
    }
    check(number, value)?;
    if number == option::AUTO_ERR {
        return Ok(error::set_auto_err(value));
    }
    if number == option::NO_RESET {
        enrol()?;
        mailbox::keep_from_reset(value != 0)?;
    }
    if number == option::DEBUG_MASK {
        crate::miscellaneous::set_debug_mask(value);
    }
    if [option::SELF_TRACE_BUFFER, option::SELF_TRACE_OPTIONS].contains(&number) {
        trace::flush();
    }
    let options = &mut library().options;
    let before = std::mem::replace(&mut options.0[number], value);
    // When this task's own destination changes, that of its children follows.
    for way in [OUTPUT, TRACE] {
        if way.iter().any(|&(_, own)| own == number) {
            options.set_own(way, way.map(|(_, own)| options.0[own]));
        }
    }
    Ok(before)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_setopt(what: c_int, value: c_int) -> c_int {
    let set = || match set(what, value) {
        Ok(before) => before,
        Err(code) => error::result("pvm_setopt", code),
    };
    traced(calls::SETOPT, || ints([what, value]), set, trace::code)
}

#[unsafe(no_mangle)]
extern "C" fn pvm_getopt(what: c_int) -> c_int {
    let known = || match number(what) {
        Ok(option::AUTO_ERR) => error::auto_err(),
        Ok(number) if ELSEWHERE.contains(&number) => error::result("pvm_getopt", codes::BAD_PARAM),
        Ok(number) => library().options.0[number],
        Err(code) => error::result("pvm_getopt", code),
    };
    traced(calls::GETOPT, || ints([what]), known, trace::code)
}
