//! Turns foca's outputs and notifications into datagrams and events.

use regatta_wire::fields::Rest;

use crate::datagram::Body;
use crate::detector::{GONE, KIND_AT, LEFT};
use crate::event::{Cause, Event, Renewal};
use crate::foca_output::Note;
use crate::host::HostId;
use crate::membership::Membership;

/// The kind of foca's message that tells a host that it is dead.
const TOLD_DEAD: u8 = 10;

impl Membership {
    /// Processes foca's outputs, until no new ones result.
    pub(crate) fn settle(&mut self) {
        loop {
            let notes = std::mem::take(&mut self.detector.sink.notes);
            if notes.is_empty() {
                break;
            }
            notes.into_iter().for_each(|note| self.take_note(note));
        }
        for (to, bytes) in std::mem::take(&mut self.detector.sink.sends) {
            if bytes.get(KIND_AT) == Some(&TOLD_DEAD) {
                self.send_name_is_taken(to);
            }
            self.send(to, &Body::Swim(Rest(bytes)));
        }
        let described = self.book.lock().take_fresh();
        for host in described {
            let facts = self.book.lock().get(&host).cloned();
            if let Some(facts) = facts.filter(|_| self.detector.is_there(&host)) {
                self.notify(Event::Described(host, facts));
            }
        }
    }

    fn take_note(&mut self, note: Note) {
        match note {
            Note::Up(host) => self.host_up(host),
            Note::Down(host) => {
                let cause = self
                    .detector
                    .known_at(&host)
                    .map_or(0, foca::Member::incarnation);
                self.host_down(host, cause);
            }
            Note::Replaced { old, new } => {
                self.outlive(&new);
                if self.view.is_active(&self.roll, &old) {
                    self.view.gone(&self.roll, old);
                    self.notify(Event::Dead(old, Cause::Replaced));
                    self.host_up(new);
                }
                self.book.lock().forget(&old);
            }
            Note::Renewed(new) => self.renewed(new, Renewal::DeclaredDead),
        }
    }

    /// Records that earlier runs of this host's daemon never act again, whichever of them is on the roll.
    pub(crate) fn outlive(&mut self, host: &HostId) {
        let earlier = self.roll.at_place_of(host).filter(|run| host.succeeds(run));
        self.view.certain.extend(earlier);
    }

    fn host_up(&mut self, host: HostId) {
        self.view.come(&self.roll, host);
        self.outlive(&host);
        self.parted.retain(|place| *place != host.address());
        self.undescribed
            .push_back((host, self.now + self.settings.silence));
        self.notify(Event::HostUp(host));
        // Facts may have been received before their host.
        self.book.lock().refresh(host);
    }

    fn host_down(&mut self, host: HostId, cause: u16) {
        self.view.gone(&self.roll, host);
        if cause == GONE && self.roll.contains(&host) {
            self.view.certain.insert(host);
        }
        if cause != LEFT {
            self.remember_place(host.address());
        }
        self.book.lock().forget(&host);
        self.notify(match cause {
            LEFT => Event::Left(host),
            GONE => Event::Dead(host, Cause::DaemonGone),
            _ => Event::Dead(host, Cause::Silent),
        });
    }

    /// Completes a change of this host's identity. The old identity never votes again, which is certain.
    pub(crate) fn renewed(&mut self, new: HostId, why: Renewal) {
        let old = self.voted_as;
        self.voted_as = new;
        if self.roll.contains(&old) {
            self.view.away.insert(old);
            self.view.certain.insert(old);
        }
        self.acceptor = Default::default();
        self.voting = Default::default();
        self.describe_itself();
        self.notify(Event::Renewed { old, new, why });
        self.judge_standing();
    }

    /// Tells a host that its identity is older than a known one at its address, which happens if its host's clock was
    /// set back before the daemon started.
    fn send_name_is_taken(&mut self, to: HostId) {
        if let Some(known) = self
            .detector
            .known_at(&to)
            .map(|member| *member.id())
            .filter(|known| known.succeeds(&to))
        {
            self.send(to, &Body::Taken(known));
        }
    }
}
