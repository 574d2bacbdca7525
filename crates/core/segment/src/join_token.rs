//! The join token: what a launcher passes to a task so that it can join its job.

use std::fmt;

use crate::job::{JobError, VERSION};

/// The join token. A task receives it from its launcher in the environment variable [`JoinToken::VARIABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinToken {
    /// Version of the launcher's job protocol.
    pub version: u32,
    /// Number of the inherited descriptor of the segment.
    pub fd: i32,
    /// The task's number in the job. For the first tasks it is their rank.
    pub rank: u32,
    /// Number of tasks the job began with.
    pub size: u32,
    /// Number of the inherited socket to the launcher, if the launcher takes requests.
    pub control: Option<i32>,
    /// Number of the inherited listening socket, in a job of several hosts.
    pub listener: Option<i32>,
}

impl JoinToken {
    /// Returns a token of this version without sockets, for a task that receives the segment's descriptor directly.
    pub fn handed(rank: u32, size: u32) -> JoinToken {
        JoinToken {
            version: VERSION,
            fd: 0,
            rank,
            size,
            control: None,
            listener: None,
        }
    }

    /// The environment variable in which the launcher passes the token.
    pub const VARIABLE: &'static str = "REGATTA_JOB";

    /// Parses what [`fmt::Display`] wrote.
    pub fn parse(text: &str) -> Result<JoinToken, JobError> {
        let bad = || {
            JobError::JoinToken(format!(
                "{text:?} is not of the form v:fd:rank:size, optionally followed by :control and :listener"
            ))
        };
        let mut parts = text.split(':');
        let mut number = || -> Result<u32, JobError> {
            parts
                .next()
                .and_then(|part| part.parse().ok())
                .ok_or_else(bad)
        };
        let version = number()?;
        if version != VERSION {
            return Err(JobError::Version { launcher: version });
        }
        let fd = number()?.try_into().map_err(|_| bad())?;
        let (rank, size) = (number()?, number()?);
        let mut descriptor = || match parts.next() {
            None => Ok(None),
            Some("-") => Ok(Some(None)),
            Some(part) => {
                let number = part.parse::<u32>().ok().and_then(|n| n.try_into().ok());
                number.map(|number| Some(Some(number))).ok_or_else(bad)
            }
        };
        let control = descriptor()?.flatten();
        let listener = match descriptor()? {
            None => None,
            Some(listener) => Some(listener.ok_or_else(bad)?),
        };
        // A task beyond the first ones exists only if the launcher takes requests.
        if parts.next().is_some() || size == 0 || (rank >= size && control.is_none()) {
            return Err(bad());
        }
        Ok(JoinToken {
            version,
            fd,
            rank,
            size,
            control,
            listener,
        })
    }
}

impl fmt::Display for JoinToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JoinToken {
            version,
            fd,
            rank,
            size,
            control,
            listener,
        } = self;
        write!(f, "{version}:{fd}:{rank}:{size}")?;
        match (control, listener) {
            (None, None) => Ok(()),
            (Some(control), None) => write!(f, ":{control}"),
            (None, Some(listener)) => write!(f, ":-:{listener}"),
            (Some(control), Some(listener)) => write!(f, ":{control}:{listener}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_tokens_round_trip_and_nonsense_is_named() {
        for control in [None, Some(9)] {
            for listener in [None, Some(11)] {
                let token = JoinToken {
                    version: VERSION,
                    fd: 17,
                    rank: 3,
                    size: 4,
                    control,
                    listener,
                };
                let read = JoinToken::parse(&token.to_string());
                assert_eq!(read.unwrap(), token);
            }
        }
        for bad in [
            "",
            "V",
            "V:2:3",
            "V:x:0:1",
            "V:3:4:4",
            "V:3:4:4:-",
            "V:3:0:0:5",
            "V:3:0:1:9:9:9",
            "V:3:0:1:9:-",
            "V:3:0:1:x",
            "V:-3:0:1",
        ] {
            let text = bad.replace('V', &VERSION.to_string());
            let error = JoinToken::parse(&text).unwrap_err().to_string();
            assert!(error.contains("REGATTA_JOB"), "{error}");
        }
        let good = format!("{VERSION}:3:9:4:5");
        assert_eq!(JoinToken::parse(&good).unwrap().rank, 9);
        let error = JoinToken::parse("99:3:0:1").unwrap_err().to_string();
        let ours = format!("version {VERSION}");
        assert!(
            error.contains("version 99") && error.contains(&ours),
            "{error}"
        );
    }
}
