//! The options of PVM's library, as `getopt` and `setopt` name them.

/// Names and numbers, in the order of display.
pub const ALL: [(&str, i32); 23] = [
    ("PvmRoute", 1),
    ("PvmDebugMask", 2),
    ("PvmAutoErr", 3),
    ("PvmOutputTid", 4),
    ("PvmOutputCode", 5),
    ("PvmTraceTid", 6),
    ("PvmTraceCode", 7),
    ("PvmTraceBuffer", 8),
    ("PvmTraceOptions", 9),
    ("PvmFragSize", 10),
    ("PvmResvTids", 11),
    ("PvmSelfOutputTid", 12),
    ("PvmSelfOutputCode", 13),
    ("PvmSelfTraceTid", 14),
    ("PvmSelfTraceCode", 15),
    ("PvmSelfTraceBuffer", 16),
    ("PvmSelfTraceOptions", 17),
    ("PvmShowTids", 18),
    ("PvmOutputContext", 21),
    ("PvmTraceContext", 22),
    ("PvmSelfOutputContext", 23),
    ("PvmSelfTraceContext", 24),
    ("PvmNoReset", 25),
];

pub(crate) const OUTPUT_TID: i32 = 4;
pub(crate) const OUTPUT_CODE: i32 = 5;
pub(crate) const TRACE_TID: i32 = 6;
pub(crate) const TRACE_CODE: i32 = 7;
pub(crate) const TRACE_BUFFER: i32 = 8;
pub(crate) const TRACE_OPTIONS: i32 = 9;
pub(crate) const OUTPUT_CONTEXT: i32 = 21;
pub(crate) const TRACE_CONTEXT: i32 = 22;
pub(crate) const NO_RESET: i32 = 25;

/// Returns the number of an option.
pub fn number(name: &str) -> Option<i32> {
    ALL.iter()
        .find(|(other, _)| *other == name)
        .map(|(_, number)| *number)
}
