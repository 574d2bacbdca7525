//! The other end of a [`crate::bootstrap`]: the starter of a daemon, using standard input and output.
//!
//! It sends a greeting like an agent, looks for other hosts on request, and passes on the messages of the bootstrap.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use regatta_program::Refusal;
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;

use crate::channel::Link;
use crate::channel::messages::{Order, Report};
use crate::channel::remote::BEAT_INTERVAL;
use crate::hosts::gather;
use crate::hosts::reach::{self, Beacon};
use crate::hosts::rsh;

/// Silence after which the bootstrap is considered gone.
const BOOTSTRAP_TIMEOUT: Duration = Duration::from_secs(30);

/// The starter of a daemon, with its channel to the bootstrap.
pub struct BootstrapPeer {
    link: Link,
    beacon: Option<Beacon>,
    heard: Instant,
    spoken: Instant,
}

/// The result of waiting for the bootstrap.
#[derive(Debug, PartialEq, Eq)]
pub enum Word {
    /// A message in the caller's format.
    Charge(Vec<u8>),
    /// No message yet; something else may have happened.
    Nothing,
    /// The channel has ended.
    End,
}

impl BootstrapPeer {
    /// Sends the greeting of this program. `temporary` means that this program is a copy made for this purpose, which
    /// is removed.
    pub fn open(temporary: bool) -> Result<BootstrapPeer, Refusal> {
        let by_hand = "`regatta daemon` is started by `regatta up` and `regatta add`, not by hand";
        let link = rsh::channel_to_starter(temporary, by_hand)?;
        let beacon = gather::light()?;
        let mut peer = BootstrapPeer {
            link,
            beacon: None,
            heard: Instant::now(),
            spoken: Instant::now(),
        };
        let ready = format!("\n{} {}\n", rsh::READY, rsh::identity());
        peer.link.send_raw(ready.as_bytes());
        let hello = gather::hello(&beacon, gather::connection().as_deref());
        peer.beacon = Some(beacon);
        peer.send_report(&Report::Hello { hello });
        Ok(peer)
    }

    /// Waits until the bootstrap sends a message, or `other` is readable.
    pub fn next(&mut self, other: Option<BorrowedFd<'_>>) -> Word {
        // Data that was read before and not handled does not wake `poll`.
        let mut said = self.link.next();
        if matches!(said, Ok(None)) {
            self.wait(other);
            while self.link.read() > 0 {
                self.heard = Instant::now();
            }
            self.link.flush();
            if self.spoken.elapsed() >= BEAT_INTERVAL {
                self.send_report(&Report::Beat {});
            }
            said = self.link.next();
        }
        match said {
            Ok(Some(Order::Probe { targets })) => {
                let seen = reach::look_for(&targets);
                self.send_report(&Report::Probed { seen });
                Word::Nothing
            }
            Ok(Some(Order::Charge { bytes })) => {
                self.beacon = None;
                Word::Charge(bytes)
            }
            Ok(Some(Order::Beat {})) => Word::Nothing,
            Ok(None) if !self.link.is_ended() && self.heard.elapsed() < BOOTSTRAP_TIMEOUT => {
                Word::Nothing
            }
            _ => Word::End,
        }
    }

    fn wait(&self, other: Option<BorrowedFd<'_>>) {
        let mut fds: Vec<PollFd> = self.link.polls().collect();
        fds.extend(
            other
                .iter()
                .map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)),
        );
        let timeout = BEAT_INTERVAL.saturating_sub(self.spoken.elapsed());
        let _ =
            regatta_connection::ready::poll(&mut fds, Timespec::try_from(timeout).ok().as_ref());
    }

    /// Sends the answer to a message.
    pub fn answer(&mut self, bytes: Vec<u8>) {
        self.send_report(&Report::Answer { bytes });
    }

    /// Sends the reason why a message cannot be carried out.
    pub fn refuse(&mut self, refusal: &Refusal) {
        self.send_report(&Report::Refused {
            status: u32::from(refusal.status),
            sentence: refusal.sentence.clone(),
        });
    }

    fn send_report(&mut self, report: &Report) {
        self.spoken = Instant::now();
        // No report here reaches the frame limit.
        let _ = self.link.send(report);
    }
}
