//! The names of events and of their fields, which are part of PVM's trace format. Programs that read traces read them
//! from the variables `pvmtevinfo` and `pvmtevdidlist`.

use std::ffi::{CStr, c_char, c_int};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::last_results::Kept;

/// The fields of events, by number (`TEV_DID_`): a short name and a description.
pub const MEANINGS: [(&CStr, &CStr); 123] = [
    (c"AN", c"PVM Architecture Name"),
    (c"AC", c"PVM Architecture Code"),
    (c"AS", c"Argument Strings (Argc/Argv)"),
    (c"BF", c"Block Flag"),
    (c"CC", c"Condition Code"),
    (c"CN", c"Class Name"),
    (c"CI", c"Class Index"),
    (c"CF", c"Class Flags"),
    (c"CD", c"Class Data"),
    (c"CR", c"Returned Class Data"),
    (c"CL", c"Returned Class Names"),
    (c"CDA", c"Collective Data Address"),
    (c"CDT", c"Collective Data Type"),
    (c"CDX", c"Collective Data"),
    (c"CDC", c"Collective Count"),
    (c"CGI", c"Collective Group Result Instance"),
    (c"CRF", c"Collective Reduce Function"),
    (c"CXC", c"Current Message Context"),
    (c"CXF", c"Freed Message Context"),
    (c"CXN", c"New Message Context"),
    (c"CXS", c"Set Message Context"),
    (c"ERI", c"PVM Error Identifier"),
    (c"ERR", c"PVM Error String"),
    (c"FDS", c"File Descriptors"),
    (c"FP", c"File Pointer"),
    (c"GN", c"Group Name"),
    (c"GI", c"Group Instance Number"),
    (c"GT", c"Group Task ID"),
    (c"GS", c"Group Size"),
    (c"GBC", c"Group Barrier Count"),
    (c"HN", c"Host Name"),
    (c"HNL", c"Host Name List"),
    (c"HNA", c"Host Name Alias"),
    (c"HPT", c"Host PVMD Task ID"),
    (c"HA", c"Host Architecture"),
    (c"HSP", c"Host Speed"),
    (c"HIS", c"Host Information Structures"),
    (c"HCS", c"Host Clock Seconds"),
    (c"HCU", c"Host Clock Microseconds"),
    (c"HDS", c"Host Delta Seconds"),
    (c"HDU", c"Host Delta Microseconds"),
    (c"HS", c"Host Status"),
    (c"INB", c"Info Number of Message Bytes"),
    (c"IMC", c"Info Message Code"),
    (c"IST", c"Info Message Source Task"),
    (c"MC", c"Message Code"),
    (c"MCX", c"Message Context"),
    (c"MB", c"Message Buffer"),
    (c"MNB", c"Message Number of Bytes"),
    (c"SRC", c"Message Source Task ID"),
    (c"DST", c"Message Destination Task ID"),
    (c"MDL", c"Message Destination Task ID List"),
    (c"MTS", c"Message Timeout Seconds"),
    (c"MTU", c"Message Timeout Microseconds"),
    (c"MRF", c"Message Receive Function"),
    (c"MRB", c"Message Receive Buffer"),
    (c"MSB", c"Message Send Buffer"),
    (c"ME", c"Message Encoding"),
    (c"MHI", c"Message Handler Index"),
    (c"AST", c"Actual Message Sender Task ID"),
    (c"AMC", c"Actual Message Code"),
    (c"AML", c"Actual Message Length"),
    (c"NE", c"Notify Event ID"),
    (c"NMC", c"Notify Message Code"),
    (c"NCT", c"Notify Count"),
    (c"NTL", c"Notify Task ID List"),
    (c"NH", c"Number of Hosts"),
    (c"NA", c"Number of Architectures"),
    (c"OPT", c"PVM Option ID"),
    (c"OPV", c"PVM Option Value"),
    (c"OS", c"Output String"),
    (c"PDA", c"Pack Data Address"),
    (c"PDT", c"Pack Data Type"),
    (c"PC", c"Pack Count"),
    (c"PSD", c"Pack Stride"),
    (c"PSG", c"Pack String"),
    (c"PF", c"Pack Format"),
    (c"PRF", c"Profiling Count"),
    (c"RST", c"Receive Msg Source Task / Wildcard"),
    (c"RMC", c"Receive Msg Code / Wildcard"),
    (c"RCX", c"Receive Msg Context"),
    (c"SN", c"Signal Number"),
    (c"SE", c"Spawn Executable File"),
    (c"SF", c"Spawn Flags"),
    (c"SW", c"Spawn Where"),
    (c"SC", c"Spawn Count"),
    (c"STL", c"Spawned Task ID List"),
    (c"SIB", c"Sibling Task ID List"),
    (c"TID", c"Task ID"),
    (c"PT", c"Parent Task ID"),
    (c"MT", c"My Task ID"),
    (c"TF", c"Task Flags"),
    (c"TN", c"Task Name"),
    (c"PID", c"Task Process ID"),
    (c"TT", c"Target Task ID"),
    (c"TW", c"Tasks Where"),
    (c"TIS", c"Task Information Structures"),
    (c"TNT", c"Task Info - Number of Tasks"),
    (c"TST", c"Task Status"),
    (c"TUS", c"Task User Usage Seconds"),
    (c"TUU", c"Task User Usage Microseconds"),
    (c"TSS", c"Task System Usage Seconds"),
    (c"TSU", c"Task System Usage Microseconds"),
    (c"TES", c"Task Exit Status"),
    (c"TA", c"Tickle Arguments"),
    (c"TR", c"Tickle Responses"),
    (c"TS", c"Time Seconds"),
    (c"TU", c"Time Microseconds"),
    (c"TGS", c"Timing Seconds"),
    (c"TGU", c"Timing Microseconds"),
    (c"TMW", c"Trace Mask Who"),
    (c"TM", c"Trace Mask"),
    (c"TRC", c"Tracer Message Trace Context"),
    (c"TRT", c"Tracer Message Trace Tag"),
    (c"TRX", c"Tracer Message Output Context"),
    (c"TRO", c"Tracer Message Output Tag"),
    (c"TRM", c"Tracer Trace Mask"),
    (c"TRB", c"Tracer Trace Buffering"),
    (c"TRL", c"Tracer Trace Options"),
    (c"VER", c"PVM Version"),
    (c"VCT", c"Trace Event Count"),
    (c"VID", c"Trace Event ID"),
    (c"WID", c"Wait Identifier Number"),
];

/// The events, by number (`TEV_`).
const EVENTS: [&CStr; 109] = [
    c"addhosts",
    c"barrier",
    c"bcast",
    c"bufinfo",
    c"config",
    c"delete",
    c"delhosts",
    c"exit",
    c"freebuf",
    c"getfds",
    c"getinst",
    c"getopt",
    c"getrbuf",
    c"getsbuf",
    c"gettid",
    c"gsize",
    c"halt",
    c"initsend",
    c"insert",
    c"joingroup",
    c"kill",
    c"lookup",
    c"lvgroup",
    c"mcast",
    c"mkbuf",
    c"mstat",
    c"mytid",
    c"notify",
    c"nrecv",
    c"parent",
    c"perror",
    c"pkbyte",
    c"pkcplx",
    c"pkdcplx",
    c"pkdouble",
    c"pkfloat",
    c"pkint",
    c"pkuint",
    c"pklong",
    c"pkulong",
    c"pkshort",
    c"pkushort",
    c"pkstr",
    c"probe",
    c"pstat",
    c"recv",
    c"recvf",
    c"send",
    c"sendsig",
    c"setopt",
    c"setrbuf",
    c"setsbuf",
    c"spawn",
    c"start_pvmd",
    c"tasks",
    c"tickle",
    c"tidtohost",
    c"trecv",
    c"upkbyte",
    c"upkcplx",
    c"upkdcplx",
    c"upkdouble",
    c"upkfloat",
    c"upkint",
    c"upkuint",
    c"upklong",
    c"upkulong",
    c"upkshort",
    c"upkushort",
    c"upkstr",
    c"version",
    c"reg_hoster",
    c"reg_rm",
    c"reg_tasker",
    c"reg_tracer",
    c"newtask",
    c"endtask",
    c"spntask",
    c"archcode",
    c"catchout",
    c"getmwid",
    c"gettmask",
    c"hostsync",
    c"packf",
    c"precv",
    c"psend",
    c"reduce",
    c"setmwid",
    c"settmask",
    c"unpackf",
    c"gather",
    c"scatter",
    c"putinfo",
    c"getinfo",
    c"delinfo",
    c"getmboxinfo",
    c"newcontext",
    c"freecontext",
    c"setcontext",
    c"getcontext",
    c"siblings",
    c"getminfo",
    c"setminfo",
    c"addmhf",
    c"delmhf",
    c"mhf_invoke",
    c"timing",
    c"profiling",
    c"user_defined",
];

/// `struct Pvmtevdid`: the names of a field.
#[repr(C)]
struct Meaning {
    name: *const c_char,
    words: *const c_char,
}

/// `struct Pvmtevinfo`: the name of an event, and its counters.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Counted {
    name: *const c_char,
    described: c_int,
    mark: libc::timeval,
    total: libc::timeval,
    count: c_int,
}

impl Counted {
    pub fn name(&self) -> &'static [u8] {
        // SAFETY: the names are constants.
        unsafe { CStr::from_ptr(self.name) }.to_bytes()
    }

    pub fn seconds(&self) -> i32 {
        self.total.tv_sec as i32
    }

    pub fn microseconds(&self) -> i32 {
        self.total.tv_usec as i32
    }

    pub fn count(&self) -> i32 {
        self.count
    }
}

const NEVER: libc::timeval = libc::timeval {
    tv_sec: 0,
    tv_usec: 0,
};

#[unsafe(no_mangle)]
static pvmtevdidlist: Kept<[Meaning; MEANINGS.len()]> = Kept::new({
    let mut all = [const {
        Meaning {
            name: c"".as_ptr(),
            words: c"".as_ptr(),
        }
    }; MEANINGS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at].name = MEANINGS[at].0.as_ptr();
        all[at].words = MEANINGS[at].1.as_ptr();
        at += 1;
    }
    all
});

#[unsafe(no_mangle)]
static pvmtevinfo: Kept<[Counted; EVENTS.len()]> = Kept::new({
    let mut all = [const {
        Counted {
            name: c"".as_ptr(),
            described: 0,
            mark: NEVER,
            total: NEVER,
            count: 0,
        }
    }; EVENTS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at].name = EVENTS[at].as_ptr();
        at += 1;
    }
    all
});

/// Returns the number of an event, given its name.
pub const fn number(name: &str) -> usize {
    let mut at = 0;
    while !same(EVENTS[at], name) {
        at += 1;
    }
    at
}

/// Returns the number of a field, given its short name.
pub const fn meaning(name: &str) -> i32 {
    let mut at = 0;
    while !same(MEANINGS[at].0, name) {
        at += 1;
    }
    at as i32
}

const fn same(text: &CStr, name: &str) -> bool {
    let (text, name) = (text.to_bytes(), name.as_bytes());
    let mut at = 0;
    while at < text.len() && at < name.len() && text[at] == name[at] {
        at += 1;
    }
    at == text.len() && at == name.len()
}

/// The bits in an event's number that say whether the call begins or ends.
const SIDES: i32 = 0xc000;

/// Returns the name of an event, ignoring the bits of [`SIDES`].
pub fn name(event: i32) -> Option<&'static CStr> {
    EVENTS.get((event & !SIDES) as usize).copied()
}

/// Returns whether the event has been described to the tracer for this side of a call, and marks it as described.
pub fn describe(event: usize, side: i32) -> bool {
    let known = &mut pvmtevinfo.get()[event].described;
    let described = *known & side != 0;
    *known |= side;
    described
}

/// Resets the counters and the marks of described events, for a new tracer.
pub fn begin() {
    let all = pvmtevinfo.get();
    for event in all.iter_mut() {
        event.described = 0;
    }
    forget_counted(all);
}

/// Counts an event.
pub fn count(event: usize) {
    pvmtevinfo.get()[event].count += 1;
}

/// Counts an event, and its time: notes the time when a call begins, and adds the duration when it ends.
pub fn time(event: usize, begins: bool) {
    const SECOND: i64 = 1_000_000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_micros() as i64);
    let of = |time: libc::timeval| time.tv_sec * SECOND + time.tv_usec;
    let counted = &mut pvmtevinfo.get()[event];
    counted.count += 1;
    let (place, value) = if begins {
        (&mut counted.mark, now)
    } else {
        // The duration is negative if the clock was set back.
        let took = (now - of(counted.mark)).max(0);
        let all = of(counted.total) + took;
        (&mut counted.total, all)
    };
    place.tv_sec = value / SECOND;
    place.tv_usec = value % SECOND;
}

/// Returns the events that were counted, and resets the counters.
pub fn counted() -> Vec<Counted> {
    let all = pvmtevinfo.get();
    let counted = all.iter().filter(|event| event.count > 0);
    let counted = counted.copied().collect();
    forget_counted(all);
    counted
}

fn forget_counted(all: &mut [Counted]) {
    for event in all {
        event.count = 0;
        event.mark = NEVER;
        event.total = NEVER;
    }
}
