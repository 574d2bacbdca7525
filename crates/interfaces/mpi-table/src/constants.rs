//! Constants.

/// Kinds of handles. In C each is a pointer in the standard ABI and an int in MPICH's.
pub(crate) const HANDLES: [&str; 11] = [
    "Comm",
    "Datatype",
    "Errhandler",
    "File",
    "Group",
    "Info",
    "Message",
    "Op",
    "Request",
    "Session",
    "Win",
];

/// Handles of the tool interface.
pub(crate) const TOOL_HANDLES: [&str; 6] = [
    "T_enum",
    "T_cvar_handle",
    "T_pvar_handle",
    "T_pvar_session",
    "T_event_registration",
    "T_event_instance",
];

/// A constant of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its type in C, without `MPI_`.
    pub kind: &'static str,
    /// Its name, with `MPI_`.
    pub name: &'static str,
    /// Its value, as C has it, or the name of another one.
    pub value: &'static str,
    /// The heading it stands under.
    pub heading: &'static str,
}

/// All constants in their order.
pub fn constants() -> Vec<Constant> {
    let mut heading = "";
    let mut all = Vec::new();
    for line in include_str!("../table/constants.txt").lines() {
        if let Some(text) = line.strip_prefix("# ") {
            heading = text;
        } else if !line.is_empty() {
            let mut words = line.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_else(|| panic!("{line}"));
            all.push(Constant {
                kind: word(),
                name: word(),
                value: word(),
                heading,
            });
        }
    }
    all
}
