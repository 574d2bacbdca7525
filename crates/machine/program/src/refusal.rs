//! A job that cannot be started: the message, and the exit status.

/// Status for an invalid command line.
pub const STATUS_USAGE: u8 = 2;
/// Status if Regatta itself could not do what was requested.
pub const STATUS_REFUSED: u8 = 125;
/// Status for a program that exists but cannot be executed.
pub const STATUS_NOT_EXECUTABLE: u8 = 126;
/// Status for a program that does not exist.
pub const STATUS_NOT_FOUND: u8 = 127;

/// Reason why nothing, or not everything, was started. The statuses are those of `env`, `timeout` and the shells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The message: what happened, what it means, and the remedy.
    pub sentence: String,
    /// The exit status of the command.
    pub status: u8,
}

impl Refusal {
    /// Creates a refusal with any status. [`Refusal::usage`] and [`Refusal::of_regatta`] are shorter for their
    /// statuses.
    pub fn new(status: u8, sentence: impl Into<String>) -> Self {
        let sentence: String = sentence.into();
        // A message of another Regatta command has the prefix already.
        let bare = sentence.strip_prefix("regatta: ").map(str::to_owned);
        Self {
            sentence: bare.unwrap_or(sentence),
            status,
        }
    }

    /// Creates the refusal of an invalid command line.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self::new(STATUS_USAGE, sentence)
    }

    /// Creates a refusal because Regatta itself could not do it.
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
        // Only the command that prints it for the user adds the prefix again.
        assert_eq!(said("regatta: regatta: twice"), "regatta: twice");
    }
}
