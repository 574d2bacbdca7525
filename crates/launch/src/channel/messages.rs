//! What launcher and agent say to each other.
//!
//! ```text
//! launcher                              agent
//!                                     < Hello          who I am, where I may be reached
//! Probe       reach these hosts       >
//!                                     < Probed         whom I reached, and under which address
//! Prepare     the job, your ranks     >
//!                                     < Prepared       where your ranks listen (or Refused)
//! Start       where all ranks listen  >
//!                                     < Started, Output, Ended, ... Settled
//! Gone, Signal, Credit, Input         >
//! ```
//!
//! Either side sends `Beat` when it has said nothing for a while. The end of the channel is the end of the job on that
//! host: the agent then kills what is left of it.

use std::net::{IpAddr, SocketAddr};

use super::fields::{Bytes, Field, Malformed, fields};
use crate::course::End;
use crate::plan::Bind;
use crate::reach::Interface;
use regatta_transport::job::{Cause, TaskState};

/// A message as the bytes of one frame.
pub(crate) trait Message: Sized {
    fn encode(&self, to: &mut Vec<u8>);
    fn decode(bytes: &[u8]) -> Result<Self, Malformed>;
}

/// An enumeration of messages: a byte that says which, then its fields.
macro_rules! messages {
    ($(#[$about:meta])* $name:ident { $($(#[$text:meta])* $code:literal $kind:ident { $($field:ident: $type:ty),* })* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$text])* $kind { $($field: $type),* },)*
        }

        impl Message for $name {
            fn encode(&self, to: &mut Vec<u8>) {
                match self {
                    $(Self::$kind { $($field),* } => {
                        to.push($code);
                        $(Field::put($field, to);)*
                    })*
                }
            }

            fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
                let (code, rest) = bytes.split_first().ok_or(Malformed)?;
                let mut rest = Bytes(rest);
                let message = match code {
                    $($code => Self::$kind { $($field: Field::take(&mut rest)?),* },)*
                    _ => return Err(Malformed),
                };
                if rest.0.is_empty() { Ok(message) } else { Err(Malformed) }
            }
        }
    };
}

messages! {
    /// From the launcher to an agent.
    Order {
        /// Try to reach these hosts.
        1 Probe { targets: Vec<Target> }
        /// Make everything ready, and start nothing.
        2 Prepare { job: Preparation }
        /// Start the tasks. Where each rank of the job listens.
        3 Start { addresses: Vec<SocketAddr> }
        /// A task on another host is no more; without a cause it left in good order.
        4 Gone { rank: u32, cause: Option<Cause> }
        /// Send a signal to everything that belongs to the job.
        5 Signal { signal: i32 }
        /// So many bytes of output have been dealt with.
        6 Credit { bytes: u32 }
        /// Standard input for task 0; none: its end.
        7 Input { bytes: Vec<u8> }
        /// The launcher is there.
        8 Beat {}
        /// Start no more tasks.
        9 Stop {}
        /// Nobody reads what a task writes to this stream.
        10 Deaf { rank: u32, stream: u32 }
        /// For the starter of a daemon, in its own words.
        20 Charge { bytes: Vec<u8> }
    }
}

messages! {
    /// From an agent to the launcher.
    Report {
        /// The first message of an agent.
        1 Hello { hello: Hello }
        /// The answer to `Probe`.
        2 Probed { seen: Vec<Sight> }
        /// The answer to `Prepare`: where each rank of this host listens.
        3 Prepared { addresses: Vec<(u32, SocketAddr)> }
        /// It cannot be done: the status to exit with, and why.
        4 Refused { status: u32, sentence: String }
        /// A task runs.
        5 Started { rank: u32, pid: u32 }
        /// What a task wrote to its standard output (0) or error (1); no bytes: it has closed it.
        6 Output { rank: u32, stream: u32, bytes: Vec<u8> }
        /// A task has ended.
        7 Ended { rank: u32, pid: u32, end: End, state: TaskState }
        /// All tasks have ended, but not these processes which they started.
        8 Strays { names: String }
        /// Nothing of the job is left here, and everything it wrote has been sent.
        9 Settled {}
        /// So many bytes of input have been dealt with.
        10 Taken { bytes: u32 }
        /// The agent is there.
        11 Beat {}
        /// What the starter of a daemon says to that, in its own words.
        20 Answer { bytes: Vec<u8> }
    }
}

/// What an agent tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// How many tasks can run at once.
    pub cores: u32,
    /// The same for two agents exactly if they are on one host.
    pub host: String,
    /// Where it may be reached, the likeliest first.
    pub candidates: Vec<Interface>,
    /// From where the launcher came to it, as far as it can tell.
    pub launcher: Option<IpAddr>,
    /// The port of its beacon, and what the beacon says.
    pub port: u16,
    pub token: Token,
}
fields!(Hello {
    cores,
    host,
    candidates,
    launcher,
    port,
    token
});

/// What a beacon says to everybody who connects: it tells hosts apart that have the same address on different networks.
pub(crate) type Token = [u8; 16];

/// A host that is to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub host: u32,
    pub port: u16,
    pub candidates: Vec<IpAddr>,
}
fields!(Target {
    host,
    port,
    candidates
});

/// A beacon that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sight {
    pub host: u32,
    pub address: IpAddr,
    pub token: Token,
}
fields!(Sight {
    host,
    address,
    token
});

/// A job, as one of its hosts needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preparation {
    /// The number of this host, and that of each rank's.
    pub here: u32,
    pub host_of: Vec<u32>,
    pub key: [u8; 32],
    pub trusted: bool,
    /// Where the tasks are to listen.
    pub address: IpAddr,
    pub program: Vec<u8>,
    pub arguments: Vec<Vec<u8>>,
    /// The launcher's environment.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    pub directory: Vec<u8>,
    pub bind: Bind,
    /// So many bytes of output may be on their way.
    pub window: u32,
    /// A launcher that is silent for so many milliseconds is gone.
    pub silence: u32,
}
fields!(Preparation {
    here,
    host_of,
    key,
    trusted,
    address,
    program,
    arguments,
    environment,
    directory,
    bind,
    window,
    silence
});

impl Field for Bind {
    fn put(&self, to: &mut Vec<u8>) {
        let (kind, list) = match self {
            Bind::Auto => (0, Vec::new()),
            Bind::Free => (1, Vec::new()),
            Bind::Core => (2, Vec::new()),
            Bind::List(list) => (3, list.iter().map(|&core| core as u32).collect()),
        };
        (kind, list).put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, list) = <(u32, Vec<u32>)>::take(from)?;
        Ok(match kind {
            0 => Bind::Auto,
            1 => Bind::Free,
            2 => Bind::Core,
            3 => Bind::List(list.into_iter().map(|core| core as usize).collect()),
            _ => return Err(Malformed),
        })
    }
}

impl Field for End {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            End::Exited(status) => (0_u32, status).put(to),
            End::Signalled { signal, core } => (1 + u32::from(core), signal).put(to),
            End::Lost => (3_u32, 0_i32).put(to),
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, value) = <(u32, i32)>::take(from)?;
        Ok(match kind {
            0 => End::Exited(value),
            1 | 2 => End::Signalled {
                signal: value,
                core: kind == 2,
            },
            3 => End::Lost,
            _ => return Err(Malformed),
        })
    }
}

impl Field for Cause {
    fn put(&self, to: &mut Vec<u8>) {
        match *self {
            Cause::Exited(status) => (0_u32, status).put(to),
            Cause::Signalled(signal) => (1_u32, signal).put(to),
            Cause::Lost => (2_u32, 0_i32).put(to),
        }
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        let (kind, value) = <(u32, i32)>::take(from)?;
        Ok(match kind {
            0 => Cause::Exited(value),
            1 => Cause::Signalled(value),
            2 => Cause::Lost,
            _ => return Err(Malformed),
        })
    }
}

impl Field for TaskState {
    fn put(&self, to: &mut Vec<u8>) {
        (*self as u32).put(to);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Ok(match u32::take(from)? {
            0 => TaskState::Expected,
            1 => TaskState::Joined,
            2 => TaskState::Left,
            3 => TaskState::Dead,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests;
