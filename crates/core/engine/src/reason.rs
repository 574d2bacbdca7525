//! Why a member cannot complete a collective, as in its notice to the other members: the class of its error, as a number.
//!
//! The other members do not know the details of the error, but their own error has the same class.

use regatta_wire::control::RequestError;

use crate::error::Error;

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// As [`Error::Left`].
    Left,
    /// As [`Error::Memory`].
    Memory,
    /// As [`Error::Dead`].
    Dead,
    /// As [`Error::Argument`].
    Argument,
    /// As [`Error::Task`].
    Task,
    /// As [`Error::Tag`].
    Tag,
    /// As [`Error::Handle`].
    Handle,
    /// As [`Error::Truncated`].
    Truncated,
    /// As [`Error::Cycle`].
    Cycle,
    /// As [`Error::Cancelled`].
    Cancelled,
    /// As [`Error::Corrupt`].
    Corrupt,
    /// As [`Error::State`].
    State,
    /// As [`Error::Launcher`].
    Launcher,
    /// As [`Error::Version`].
    Version,
    /// As [`Error::System`].
    System,
    /// As [`Error::Refused`].
    Refused(RequestError),
}

/// The reasons without details. A reason's number is its index here; add new ones at the end.
const NUMBERED: [Reason; 15] = [
    Reason::Left,
    Reason::Memory,
    Reason::Dead,
    Reason::Argument,
    Reason::Task,
    Reason::Tag,
    Reason::Handle,
    Reason::Truncated,
    Reason::Cycle,
    Reason::Cancelled,
    Reason::Corrupt,
    Reason::State,
    Reason::Launcher,
    Reason::Version,
    Reason::System,
];
/// The number of a refusal for the first [`RequestError`]. The others follow.
const FIRST_REFUSAL: u32 = 256;

impl Reason {
    /// Returns all reasons.
    pub fn all() -> impl Iterator<Item = Reason> {
        let refusals = RequestError::ALL.into_iter().map(Reason::Refused);
        NUMBERED.into_iter().chain(refusals)
    }

    /// Returns the class of an error. Returns `None` for a revoked group: its members are notified in another way.
    pub fn of(error: &Error) -> Option<Reason> {
        Some(match error {
            Error::Revoked => return None,
            Error::Left(_) => Reason::Left,
            Error::Memory(_) => Reason::Memory,
            Error::Dead(_) => Reason::Dead,
            Error::Argument(_) => Reason::Argument,
            Error::Task(_) => Reason::Task,
            Error::Tag(_) => Reason::Tag,
            Error::Handle(_) => Reason::Handle,
            Error::Truncated { .. } => Reason::Truncated,
            Error::Cycle(_) => Reason::Cycle,
            Error::Cancelled => Reason::Cancelled,
            Error::Corrupt { .. } => Reason::Corrupt,
            Error::State(_) => Reason::State,
            Error::Launcher(_) => Reason::Launcher,
            Error::Version(_) => Reason::Version,
            Error::System(_) => Reason::System,
            Error::Refused(why, _) => Reason::Refused(*why),
            Error::Member { reason, .. } => *reason,
        })
    }

    pub(crate) fn number(self) -> u32 {
        let place = |of: Option<usize>| of.unwrap_or_default() as u32;
        match self {
            Reason::Refused(why) => {
                FIRST_REFUSAL + place(RequestError::ALL.iter().position(|&one| one == why))
            }
            plain => place(NUMBERED.iter().position(|&one| one == plain)),
        }
    }

    pub(crate) fn from_number(number: u32) -> Option<Reason> {
        match number.checked_sub(FIRST_REFUSAL) {
            Some(place) => RequestError::ALL
                .get(place as usize)
                .copied()
                .map(Reason::Refused),
            None => NUMBERED.get(number as usize).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_reason_has_a_number_of_its_own() {
        for reason in Reason::all() {
            assert_eq!(Reason::from_number(reason.number()), Some(reason));
        }
    }

    proptest! {
        #[test]
        fn a_number_is_that_of_one_reason_or_of_none(number: u32) {
            for number in [number, number % 512] {
                if let Some(reason) = Reason::from_number(number) {
                    prop_assert_eq!(reason.number(), number);
                }
            }
        }
    }
}
