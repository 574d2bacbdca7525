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

/// An MPI constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its C type, without `MPI_`.
    pub kind: &'static str,
    /// Its name, with `MPI_`.
    pub name: &'static str,
    /// Its value in C, or the name of another constant.
    pub value: &'static str,
    /// The heading of its section in `table/constants.txt`.
    pub heading: &'static str,
}

/// Returns all constants in the order of the table.
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
