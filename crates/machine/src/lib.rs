//! The virtual machine of many hosts, as each of its daemons sees it.
#![forbid(unsafe_code)]

mod ballot;
mod bytes;
mod catchup;
mod codec;
mod datagram;
mod decide;
mod detector;
mod event;
mod facts;
mod host;
mod membership;
mod roll;
mod settings;
mod settle;
mod tick;
mod view;

pub use event::{Cause, Event, Input, Output, Standing};
pub use host::{Facts, HostId};
pub use membership::Membership;
pub use roll::{Change, Roll};
pub use settings::Settings;
