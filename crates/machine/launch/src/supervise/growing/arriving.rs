//! How a host starts to join a running job, and what it is sent. `crates/machine/job/src/hosts.rs` decides the rest.

use std::net::IpAddr;

use regatta_job::hosts::{Admission, Expected};
use regatta_program::Refusal;

use super::Growing;
use super::wishes::Wish;
use crate::channel::membership_feed::Listed;
use crate::channel::messages::{Order, Preparation};
use crate::channel::remote::Remote;
use crate::hosts::arrivals;
use crate::hosts::fleet::DESCRIPTORS_PER_CHANNEL;
use crate::hosts::gather;
use crate::hosts::rsh::Role;
use crate::system::limits;
use crate::system::signals::Signals;

/// A host that has not joined the job yet.
pub(super) struct Arriving {
    pub(super) host: Listed,
    pub(super) step: ArrivalStep,
    /// Its number in the job, if it has one before it arrives.
    pub(super) number: Option<u32>,
    /// The request for it, or `None` if the machine reported it.
    pub(super) wish: Option<Wish>,
}

pub(super) enum ArrivalStep {
    /// The host starter starts the host's agent ([`crate::host_starter`]).
    Starting,
    /// The host arrives through a channel with this id.
    Coming(u32),
}

/// Returns the arriving host with this id.
pub(super) fn coming(arriving: &[Arriving], id: u32) -> Option<&Arriving> {
    let mut arriving = arriving.iter();
    arriving.find(|arriving| matches!(arriving.step, ArrivalStep::Coming(of) if of == id))
}

impl Growing<'_> {
    /// Starts the arrival of a host. If it has a number in the job already, its agent has been connected to and its
    /// channel exists. Otherwise a channel is opened next. Returns its id.
    pub(super) fn begin_way(
        &mut self,
        name: &str,
        admission: Admission,
        number: Option<u32>,
    ) -> u32 {
        let expected = Expected {
            number,
            is_called: number.is_some(),
            ..arrivals::expected(self.across, name, admission)
        };
        let now = self.channels.now();
        self.channels.arrivals.expect(now, expected)
    }

    /// Removes and returns an arriving host.
    pub(super) fn take_coming(&mut self, id: u32) -> Option<Arriving> {
        let is_it =
            |arriving: &Arriving| matches!(arriving.step, ArrivalStep::Coming(of) if of == id);
        let at = self.arriving.iter().position(is_it)?;
        Some(self.arriving.remove(at))
    }

    /// Opens a channel to a host, by the command that leads to its shell.
    pub(super) fn open(&self, id: u32, signals: &Signals) -> Result<Remote, Refusal> {
        let gone = || Refusal::of_regatta("no task waits for the host any more");
        let Arriving { host, wish, .. } = coming(&self.arriving, id).ok_or_else(gone)?;
        // If there is no room, the opening fails with the reason.
        let _ = limits::make_room(
            limits::Files::Hosts(self.channel_count()),
            DESCRIPTORS_PER_CHANNEL,
        );
        let wish = wish.as_ref();
        let (across, target) = match wish {
            Some(wish) => wish.way(self.across),
            None => (self.across.clone(), host.name.clone()),
        };
        let beginning = wish.map(Wish::beginning).unwrap_or_default();
        let mut remote = Remote::open(&across, u32::MAX, &target, signals)?;
        remote.name.clone_from(&host.name);
        let script = gather::script(&across, Role::Agent)?;
        let script = format!("{beginning}{script}");
        remote.link.send_raw(script.as_bytes());
        Ok(remote)
    }

    /// Has a host prepare for tasks that will be started there.
    pub(super) fn prepare(&mut self, id: u32, here: u32, address: IpAddr) {
        let wish = coming(&self.arriving, id).and_then(|arriving| arriving.wish.as_ref());
        let directory = wish.map(|wish| wish.directory().into_bytes());
        let template = self.ground.template.clone();
        let job = Preparation {
            here,
            address,
            directory: directory.unwrap_or_else(|| template.directory.clone()),
            ..template
        };
        self.channels.send(id, &Order::Prepare { job });
    }
}
