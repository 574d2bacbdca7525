//! Faults in a line about a host.

use std::fmt;

/// A fault in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Options without a host's name.
    NoName,
    /// The name of the host is invalid.
    BadName(String),
    /// A word is not of the form `option=value`.
    NotAnOption(String),
    /// There is no such option.
    Unknown(String),
    /// An option without a value.
    Empty(String),
    /// The speed is invalid.
    Speed(String),
    /// The way to start is invalid.
    Start(String),
    /// The host has been named before.
    Twice(String),
    /// A quotation mark is not closed.
    Quote(char),
    /// The line is longer than `MAX_LINE_BYTES`.
    Long,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoName => write!(
                f,
                "the line names no host; its form is: name [option=value]..."
            ),
            Fault::BadName(name) => write!(f, "{name:?} cannot be the name of a host"),
            Fault::NotAnOption(word) => write!(f, "{word:?} is not of the form option=value"),
            Fault::Unknown(option) => {
                write!(
                    f,
                    "there is no option {option:?}; the options are lo dx ep wd sp bx so ip id"
                )
            }
            Fault::Empty(option) => write!(f, "the option {option:?} has no value"),
            Fault::Speed(value) => write!(
                f,
                "sp={value} is not a speed; it must be a number from 1 to 1000000"
            ),
            Fault::Start(value) => {
                write!(
                    f,
                    "so={value} is not valid; use so=pw (asks for a password) or so=ms (manual startup)"
                )
            }
            Fault::Twice(name) => write!(f, "the host {name:?} is named twice"),
            Fault::Quote(mark) => write!(f, "unmatched {mark}"),
            Fault::Long => write!(
                f,
                "the line is longer than {} bytes",
                crate::line::MAX_LINE_BYTES
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// A fault, and the line that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line number, from 1.
    pub line: usize,
    /// The fault.
    pub fault: Fault,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}
