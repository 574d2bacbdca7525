//! The commands: their names, and how a word is matched to one.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Add,
    Alias,
    Conf,
    Delete,
    Echo,
    Export,
    Getopt,
    Halt,
    Help,
    Id,
    Idump,
    Jobs,
    Kill,
    Mstat,
    Names,
    Ps,
    Pstat,
    Put,
    Quit,
    Reset,
    Setenv,
    Setopt,
    Sig,
    Spawn,
    Tickle,
    Trace,
    Unalias,
    Unexport,
    Version,
}

/// All commands by name.
pub const ALL: [(&str, Verb); 29] = [
    ("add", Verb::Add),
    ("alias", Verb::Alias),
    ("conf", Verb::Conf),
    ("delete", Verb::Delete),
    ("echo", Verb::Echo),
    ("export", Verb::Export),
    ("getopt", Verb::Getopt),
    ("halt", Verb::Halt),
    ("help", Verb::Help),
    ("id", Verb::Id),
    ("idump", Verb::Idump),
    ("jobs", Verb::Jobs),
    ("kill", Verb::Kill),
    ("mstat", Verb::Mstat),
    ("names", Verb::Names),
    ("ps", Verb::Ps),
    ("pstat", Verb::Pstat),
    ("put", Verb::Put),
    ("quit", Verb::Quit),
    ("reset", Verb::Reset),
    ("setenv", Verb::Setenv),
    ("setopt", Verb::Setopt),
    ("sig", Verb::Sig),
    ("spawn", Verb::Spawn),
    ("tickle", Verb::Tickle),
    ("trace", Verb::Trace),
    ("unalias", Verb::Unalias),
    ("unexport", Verb::Unexport),
    ("version", Verb::Version),
];

/// Commands that users do not need. They must be written in full.
pub const HIDDEN: [Verb; 2] = [Verb::Idump, Verb::Tickle];

impl Verb {
    /// Returns the command's name.
    pub fn name(self) -> &'static str {
        let named = ALL.iter().find(|(_, verb)| *verb == self);
        named.map_or("", |(name, _)| name)
    }

    /// Returns the command with that name, or the only one whose name begins with it. Otherwise fails with all names
    /// that do.
    pub fn meant(word: &str) -> Result<Verb, Vec<&'static str>> {
        if let Some((_, verb)) = ALL.iter().find(|(name, _)| *name == word) {
            return Ok(*verb);
        }
        let begins = |(name, verb): &&(&'static str, Verb)| {
            !word.is_empty() && name.starts_with(word) && !HIDDEN.contains(verb)
        };
        match ALL.iter().filter(begins).collect::<Vec<_>>()[..] {
            [(_, verb)] => Ok(*verb),
            ref several => Err(several.iter().map(|(name, _)| *name).collect()),
        }
    }

    /// Returns the minimum and maximum number of words after the command.
    pub fn takes(self) -> (usize, usize) {
        const UNLIMITED: usize = usize::MAX;
        match self {
            Verb::Conf | Verb::Halt | Verb::Id | Verb::Quit | Verb::Version => (0, 0),
            Verb::Getopt | Verb::Help | Verb::Idump | Verb::Names | Verb::Ps => (0, 1),
            Verb::Setopt => (2, 2),
            Verb::Put => (3, 3),
            Verb::Add | Verb::Delete | Verb::Kill | Verb::Mstat | Verb::Pstat => (1, UNLIMITED),
            Verb::Spawn | Verb::Tickle | Verb::Unalias => (1, UNLIMITED),
            Verb::Sig => (2, UNLIMITED),
            Verb::Alias | Verb::Echo | Verb::Export | Verb::Jobs | Verb::Reset => (0, UNLIMITED),
            Verb::Setenv | Verb::Trace | Verb::Unexport => (0, UNLIMITED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        for (name, verb) in ALL {
            assert_eq!(Verb::meant(name), Ok(verb));
            assert_eq!(verb.name(), name);
        }
    }

    #[test]
    fn a_beginning_is_enough_if_only_one_begins_so() {
        assert_eq!(Verb::meant("con"), Ok(Verb::Conf));
        assert_eq!(Verb::meant("q"), Ok(Verb::Quit));
        assert_eq!(Verb::meant("i"), Ok(Verb::Id));
        assert_eq!(Verb::meant("ps"), Ok(Verb::Ps));
        assert_eq!(Verb::meant("se"), Err(vec!["setenv", "setopt"]));
        assert_eq!(Verb::meant("frob"), Err(vec![]));
        assert_eq!(Verb::meant(""), Err(vec![]));
    }

    #[test]
    fn hidden_commands_are_written_out() {
        assert_eq!(Verb::meant("tickle"), Ok(Verb::Tickle));
        assert_eq!(Verb::meant("tick"), Err(vec![]));
    }
}
