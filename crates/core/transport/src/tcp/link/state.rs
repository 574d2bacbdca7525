//! The life of a link. All its transitions are methods of [`LinkState`]; other files ask (`is_...`) and call transitions.
//!
//! A link has two lives, side by side. *Its connection* comes and goes:
//!
//! ```text
//!   from                 transition    to
//!   Idle, Lost, Resting  called        Calling   this task calls the peer
//!   Calling              met           Idle      the call has got through, and is adopted at once
//!   any                  adopted       Resuming  both ends know each other; each says how far it has come
//!   Resuming             begun         Open      parcels flow; never to a peer that `is_shut_out`
//!   Open                 fell_mute     Open      it takes nothing more, and is read to its end
//!   any                  ended         Lost      it has ended, or must
//!   Lost                 look_after    Idle      once for each loss
//!   Idle, Lost           retreated     Resting   the next attempt comes later, and later after each one in vain
//! ```
//!
//! *The peer* comes to its end, and what is known of that is kept over all connections. These are three questions, as each
//! answer may come before or after the others:
//!
//! ```text
//!   is it there?             Here -- may_receive_more --> Draining -- go --> Gone
//!                              '------------------- go ------------------>'
//!   who goes on speaking?    Both -- say_bye --> They -- hear_bye -.
//!                              '---- hear_bye --> We -- say_bye --> Nobody
//!                            any of these -- part --> Parted (this task cuts it off)
//!                            all but Disowned -- disown --> Disowned (it cuts this task off; `part` changes nothing then)
//!   does it keep             Sound -- break_protocol --> Broken -- report --> Reported
//!   the protocol?                                          '--- close ---> Closed <-- close --'
//! ```
//!
//! No arrow leads back. `look_after`, `say_bye`, `part` and `go` say whether they have changed anything, so that what
//! follows is done once.

use std::time::{Duration, Instant};

use regatta_connection::channel::Channel;
use regatta_connection::handshake::Handshake;

use super::farewell::Farewell;
use super::first_head::FirstHead;

/// The state of the connection of a link.
#[derive(Debug)]
enum Connection {
    /// There is none.
    Idle,
    /// It has ended, and nobody has looked after that yet.
    Lost,
    /// The last attempt came to nothing.
    Resting {
        /// The next attempt comes then.
        until: Instant,
        /// The peer's host has refused the last one.
        is_refused: bool,
    },
    /// This task calls.
    Calling(Handshake),
    /// Both have proved who they are; each says how far it got on the connection before.
    Resuming(Resuming),
    /// Parcels flow.
    Open(Open),
}

/// See [`Connection::Resuming`].
#[derive(Debug)]
struct Resuming {
    channel: Channel,
    head: FirstHead,
    /// This task called.
    called: bool,
}

/// See [`Connection::Open`].
#[derive(Debug)]
struct Open {
    channel: Channel,
    /// It takes nothing more. Bytes from before its end can still be received, and then its end.
    is_mute: bool,
    /// The poller has been asked to tell when the socket takes more.
    awaits_room: bool,
}

/// Whether the peer is there.
#[derive(Debug)]
enum Presence {
    Here,
    /// The table of the job says that it is gone; more may come.
    Draining(Farewell),
    /// It is gone, and all that it sent is here.
    Gone,
}

/// Who of the two goes on speaking, over all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speakers {
    Both,
    /// This task has said that nothing more comes.
    They,
    /// The peer has.
    We,
    Nobody,
    /// The engine is done with the peer, because the table says that it is dead. Should it live, it is told so.
    Parted,
    /// The peer lives, but the table of its host says that this task is dead. Nothing more comes from it.
    Disowned,
}

/// Whether the peer keeps the protocol, and if not, how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Sound,
    Broken(&'static str),
    /// The engine has been told.
    Reported(&'static str),
    /// This task neither sends nor receives any more.
    Closed(&'static str),
}

/// The life of a link: of its connection, and of its peer.
#[derive(Debug)]
pub(crate) struct LinkState {
    connection: Connection,
    /// Attempts to connect since the last connection.
    attempts: u32,
    presence: Presence,
    speakers: Speakers,
    conduct: Conduct,
}

impl LinkState {
    pub(super) fn new() -> LinkState {
        LinkState {
            connection: Connection::Idle,
            attempts: 0,
            presence: Presence::Here,
            speakers: Speakers::Both,
            conduct: Conduct::Sound,
        }
    }

    /// The state of a link to a peer that was gone for the engine before.
    pub(super) fn gone() -> LinkState {
        LinkState {
            presence: Presence::Gone,
            speakers: Speakers::Parted,
            ..LinkState::new()
        }
    }
}

/// The connection, as it is.
impl LinkState {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_))
    }

    /// Whether each end says how far it got, before parcels flow.
    pub(crate) fn is_resuming(&self) -> bool {
        matches!(self.connection, Connection::Resuming(_))
    }

    /// Whether there is no connection, and none is being made.
    pub(crate) fn is_unconnected(&self) -> bool {
        use Connection::{Idle, Lost, Resting};
        matches!(self.connection, Idle | Lost | Resting { .. })
    }

    /// Whether there is no connection, and the next attempt need not wait.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.connection, Connection::Idle | Connection::Lost)
    }

    /// Whether a connection has ended of which nobody has looked after the loss.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.connection, Connection::Lost)
    }

    /// Whether the last attempt was refused by the peer's host, and none has been made since.
    pub(crate) fn is_refused(&self) -> bool {
        let Connection::Resting { is_refused, .. } = self.connection else {
            return false;
        };
        is_refused
    }

    /// Whether this task's own attempt is under way.
    pub(crate) fn is_calling(&self) -> bool {
        match &self.connection {
            // A call whose TCP connection is not made yet may never be: it gives way to the peer's own call, which has got through.
            Connection::Calling(shake) => shake.has_sent_hello(),
            Connection::Resuming(resuming) => resuming.called,
            _ => false,
        }
    }

    /// Whether the peer may be called now.
    pub(crate) fn may_call(&self) -> bool {
        match self.connection {
            _ if self.is_cut_for_good() => false,
            Connection::Idle | Connection::Lost => true,
            Connection::Resting { until, .. } => Instant::now() >= until,
            _ => false,
        }
    }

    /// Whether the open connection takes nothing more.
    #[inline]
    pub(crate) fn is_mute(&self) -> bool {
        matches!(&self.connection, Connection::Open(open) if open.is_mute)
    }

    /// Whether the poller tells when the socket takes more.
    pub(crate) fn awaits_room(&self) -> bool {
        matches!(&self.connection, Connection::Open(open) if open.awaits_room)
    }

    /// The connection on which parcels flow.
    #[inline]
    pub(crate) fn channel(&self) -> Option<&Channel> {
        match &self.connection {
            Connection::Open(open) => Some(&open.channel),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn channel_mut(&mut self) -> Option<&mut Channel> {
        match &mut self.connection {
            Connection::Open(open) => Some(&mut open.channel),
            _ => None,
        }
    }

    /// The connection, unless it takes nothing more.
    #[inline]
    pub(crate) fn sending_channel(&mut self) -> Option<&mut Channel> {
        match &mut self.connection {
            Connection::Open(open) if !open.is_mute => Some(&mut open.channel),
            _ => None,
        }
    }

    /// This task's call.
    pub(crate) fn call(&self) -> Option<&Handshake> {
        match &self.connection {
            Connection::Calling(shake) => Some(shake),
            _ => None,
        }
    }

    pub(crate) fn call_mut(&mut self) -> Option<&mut Handshake> {
        match &mut self.connection {
            Connection::Calling(shake) => Some(shake),
            _ => None,
        }
    }

    /// The channel of a connection whose ends know each other, before parcels flow.
    pub(crate) fn resuming_channel(&self) -> Option<&Channel> {
        match &self.connection {
            Connection::Resuming(resuming) => Some(&resuming.channel),
            _ => None,
        }
    }

    /// Receives the peer's first parcel as far as it has come; that, once it is whole.
    pub(super) fn read_first_head(&mut self) -> std::io::Result<Option<&FirstHead>> {
        let Connection::Resuming(resuming) = &mut self.connection else {
            return Ok(None);
        };
        let is_whole = resuming.head.read(&mut resuming.channel)?;
        Ok(is_whole.then_some(&resuming.head))
    }
}

/// The connection's transitions.
impl LinkState {
    /// This task calls the peer.
    pub(crate) fn called(&mut self, shake: Handshake) {
        debug_assert!(self.is_unconnected());
        self.connection = Connection::Calling(shake);
    }

    /// Both ends of a connection know each other; `called`: this task called. It takes the place of the one before.
    pub(super) fn adopted(&mut self, channel: Channel, called: bool) {
        self.connection = Connection::Resuming(Resuming {
            channel,
            head: FirstHead::default(),
            called,
        });
    }

    /// Both ends have said how far they are. Returns the channel on which parcels flow from now on.
    pub(super) fn begun(&mut self) -> Option<&mut Channel> {
        if self.is_shut_out() || !self.is_resuming() {
            return None;
        }
        let before = std::mem::replace(&mut self.connection, Connection::Idle);
        if let Connection::Resuming(Resuming { channel, .. }) = before {
            self.connection = Connection::Open(Open {
                channel,
                is_mute: false,
                awaits_room: false,
            });
        }
        self.channel_mut()
    }

    /// The peer has accepted how far this side is: attempts count anew.
    pub(super) fn resumed(&mut self) {
        self.attempts = 0;
    }

    /// The connection takes nothing more.
    pub(super) fn fell_mute(&mut self) {
        if let Connection::Open(open) = &mut self.connection {
            open.is_mute = true;
        }
    }

    /// The poller tells when the socket takes more, or does not.
    pub(crate) fn set_awaits_room(&mut self, awaits_room: bool) {
        if let Connection::Open(open) = &mut self.connection {
            open.awaits_room = awaits_room;
        }
    }

    /// This task's call has got through: the caller gets its channel, to adopt that.
    pub(crate) fn met(&mut self) -> Option<Channel> {
        match std::mem::replace(&mut self.connection, Connection::Idle) {
            Connection::Calling(shake) => Some(shake.into_channel()),
            others => {
                self.connection = others;
                None
            }
        }
    }

    /// The connection, or the attempt to make one, has ended, or must.
    pub(super) fn ended(&mut self) {
        self.connection = Connection::Lost;
    }

    /// Somebody looks after a loss. Returns whether there was one.
    pub(crate) fn look_after(&mut self) -> bool {
        let is_lost = self.is_lost();
        if is_lost {
            self.connection = Connection::Idle;
        }
        is_lost
    }

    /// An attempt came to nothing, and has ended.
    pub(crate) fn retreated(&mut self, now: Instant, is_refused: bool) {
        debug_assert!(self.is_unconnected());
        self.connection = Connection::Resting {
            until: now + rest(self.attempts),
            is_refused,
        };
        self.attempts += 1;
    }
}

/// The peer, as it is.
impl LinkState {
    /// Returns whether the peer is at its end and all that it sent is here. It is at its end if the job's table says that it is gone, or if it
    /// holds this task for dead.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.presence, Presence::Gone)
    }

    /// Whether it lives, and holds this task for dead.
    pub(crate) fn is_disowned(&self) -> bool {
        self.speakers == Speakers::Disowned
    }

    /// Whether there is nobody to connect to, whatever is left to be said.
    pub(crate) fn is_cut_for_good(&self) -> bool {
        matches!(self.speakers, Speakers::Parted | Speakers::Disowned)
    }

    /// How the peer broke the protocol.
    #[inline]
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self.conduct {
            Conduct::Sound => None,
            Conduct::Broken(what) | Conduct::Reported(what) | Conduct::Closed(what) => Some(what),
        }
    }

    /// Whether it did, and the engine has not been told.
    #[inline]
    pub(crate) fn has_news_of_fault(&self) -> bool {
        matches!(self.conduct, Conduct::Broken(_))
    }

    /// Whether this task neither sends nor receives any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.conduct, Conduct::Closed(_))
    }

    /// Whether no connection to the peer is to begin any more.
    pub(crate) fn is_shut_out(&self) -> bool {
        self.fault().is_some() || self.is_cut_for_good()
    }

    /// Returns whether no connection needs to be made to send to the peer: it has said bye, or has broken the protocol.
    pub(crate) fn is_over(&self) -> bool {
        let has_said_bye = matches!(self.speakers, Speakers::We | Speakers::Nobody);
        has_said_bye || self.fault().is_some()
    }
}

/// The peer's transitions.
impl LinkState {
    /// Whether more may come from a peer whose end is known, of which so many bytes have come.
    pub(crate) fn may_receive_more(&mut self, now: Instant, heard_bytes: u64) -> bool {
        if !self.is_open() && !self.is_resuming() {
            return false;
        }
        if matches!(self.presence, Presence::Here) {
            self.presence = Presence::Draining(Farewell::begin(now, heard_bytes));
        }
        match &mut self.presence {
            Presence::Draining(farewell) => farewell.has_time(now, heard_bytes),
            _ => false,
        }
    }

    /// All that the peer sent is here. Returns whether it was not gone before.
    pub(crate) fn go(&mut self) -> bool {
        !matches!(
            std::mem::replace(&mut self.presence, Presence::Gone),
            Presence::Gone
        )
    }

    /// This task sends nothing more. Returns whether that is to be said now, for the first time.
    pub(crate) fn say_bye(&mut self) -> bool {
        self.speakers = match self.speakers {
            Speakers::Both if self.is_open() => Speakers::They,
            Speakers::We if self.is_open() => Speakers::Nobody,
            _ => return false,
        };
        true
    }

    /// The peer sends nothing more.
    pub(super) fn hear_bye(&mut self) {
        self.speakers = match self.speakers {
            Speakers::Both => Speakers::We,
            Speakers::They => Speakers::Nobody,
            others => others,
        };
    }

    /// The engine is done with a peer that is dead by the table. Returns whether that is new, and this task is to say so.
    pub(crate) fn part(&mut self) -> bool {
        let is_new = !self.is_cut_for_good();
        if is_new {
            self.speakers = Speakers::Parted;
        }
        is_new
    }

    /// The peer says that this task is dead, or is given up by it.
    pub(super) fn disown(&mut self) {
        self.speakers = Speakers::Disowned;
    }

    /// The peer has broken the protocol. The first fault counts.
    pub(super) fn break_protocol(&mut self, what: &'static str) {
        if self.conduct == Conduct::Sound {
            self.conduct = Conduct::Broken(what);
        }
    }

    /// The engine is told of the fault.
    #[cold]
    pub(crate) fn report(&mut self) {
        if let Conduct::Broken(what) = self.conduct {
            self.conduct = Conduct::Reported(what);
        }
    }

    /// This task neither sends to a peer that broke the protocol nor receives from it any more.
    pub(crate) fn close(&mut self) {
        if let Some(what) = self.fault() {
            self.conduct = Conduct::Closed(what);
        }
    }
}

/// Time to rest after so many attempts in vain.
fn rest(attempts: u32) -> Duration {
    const MIN_REST: Duration = Duration::from_millis(10);
    const MAX_REST: Duration = Duration::from_millis(500);
    (MIN_REST * (1 << attempts.min(6))).min(MAX_REST)
}
