//! A job that cannot be started: the sentence, and the status to exit with.

/// The command line makes no sense.
pub const STATUS_USAGE: u8 = 2;
/// Regatta itself could not do what it was asked to.
pub const STATUS_REFUSED: u8 = 125;
/// The program is there, but cannot be executed.
pub const STATUS_NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub const STATUS_NOT_FOUND: u8 = 127;

/// Why nothing (or not everything) was started. The statuses are those of `env`, `timeout` and the shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The event, its meaning, and the remedy.
    pub sentence: String,
    /// The status that the command exits with.
    pub status: u8,
}

impl Refusal {
    /// Makes a refusal with any status. [`Refusal::usage`] and [`Refusal::of_regatta`] are shorter for theirs.
    pub fn new(status: u8, sentence: impl Into<String>) -> Self {
        let sentence: String = sentence.into();
        // A sentence of another of our commands has its prefix already.
        let bare = sentence.strip_prefix("regatta: ").map(str::to_owned);
        Self {
            sentence: bare.unwrap_or(sentence),
            status,
        }
    }

    /// The command line makes no sense.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self::new(STATUS_USAGE, sentence)
    }

    /// Regatta itself could not do it.
    pub fn of_regatta(sentence: impl Into<String>) -> Self {
        Self::new(STATUS_REFUSED, sentence)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_of_another_of_our_commands_loses_its_prefix_and_no_other_does() {
        let said = |sentence: &str| Refusal::of_regatta(sentence).sentence;
        assert_eq!(said("regatta: no such host"), "no such host");
        assert_eq!(said("ssh: no such host"), "ssh: no such host");
        // Only the command that tells the user puts it there again.
        assert_eq!(said("regatta: regatta: twice"), "regatta: twice");
    }
}
