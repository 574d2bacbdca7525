//! The life cycle of a link. All its transitions are methods of [`LinkState`]; other files query it (`is_...`) and
//! call transitions.
//!
//! A link has two independent life cycles. *The connection* can be lost and replaced:
//!
//! ```text
//!   from                 transition    to
//!   Idle, Lost, Resting  called        Calling   this task calls the peer
//!   Calling              met           Idle      the connection is authenticated, and is adopted at once
//!   any                  adopted       Resuming  both ends are authenticated; each sends the position it has reached
//!   Resuming             begun         Open      parcels flow; never to a peer that `is_shut_out`
//!   Open                 fell_mute     Open      nothing more can be sent on it; it is read to its end
//!   any                  ended         Lost      it has ended, or must end
//!   Lost                 look_after    Idle      once for each loss
//!   Idle, Lost           retreated     Resting   the next attempt comes later, after each failure by a longer time
//! ```
//!
//! *The peer* comes to its end, and what is known of that is kept over all connections. It answers three questions,
//! and each answer may change before or after the others:
//!
//! ```text
//!   does it exist?           Here -- may_receive_more --> Draining -- go --> Gone
//!                              '------------------- go ------------------>'
//!   who may still send?      Both -- say_bye --> They -- hear_bye -.
//!                              '---- hear_bye --> We -- say_bye --> Nobody
//!                            any of these -- part --> Parted (this task cuts it off)
//!                            all but Disowned -- disown --> Disowned (it cuts this task off; `part` changes nothing then)
//!   does it keep             Sound -- break_protocol --> Broken -- report --> Reported
//!   the protocol?                                          '--- close ---> Closed <-- close --'
//! ```
//!
//! No state is entered again after it was left. `look_after`, `say_bye`, `part` and `go` return whether they have
//! changed anything, so that the follow-up is done once.

use std::time::{Duration, Instant};

use regatta_connection::channel::Channel;
use regatta_connection::handshake::Handshake;

use super::farewell::Farewell;
use super::first_head::FirstHead;

/// The state of the connection of a link.
#[derive(Debug)]
enum Connection {
    /// There is no connection.
    Idle,
    /// The connection has ended, and the loss has not been handled yet.
    Lost,
    /// The last attempt failed.
    Resting {
        /// Time of the next attempt.
        until: Instant,
        /// Whether the peer's host refused the last attempt.
        is_refused: bool,
    },
    /// This task is connecting to the peer.
    Calling(Handshake),
    /// Both ends are authenticated; each sends the position that it has reached on earlier connections.
    Resuming(Resuming),
    /// Parcels flow.
    Open(Open),
}

/// See [`Connection::Resuming`].
#[derive(Debug)]
struct Resuming {
    channel: Channel,
    head: FirstHead,
    /// Whether this task made the connection.
    called: bool,
}

/// See [`Connection::Open`].
#[derive(Debug)]
struct Open {
    channel: Channel,
    /// Whether nothing more can be sent on it. Bytes from before its end can still be received, and then its end.
    is_mute: bool,
    /// Whether the poller notifies when the socket has room.
    awaits_room: bool,
}

/// Whether the peer exists.
#[derive(Debug)]
enum Presence {
    Here,
    /// The job's table says that the peer is gone; more may be received.
    Draining(Farewell),
    /// The peer is gone, and all that it sent has been received.
    Gone,
}

/// Which of the two tasks may still send, over all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speakers {
    Both,
    /// This task has sent that nothing more follows.
    They,
    /// The peer has sent that nothing more follows.
    We,
    Nobody,
    /// The engine has ended the link, because the table says that the peer is dead. If the peer lives, it is
    /// notified.
    Parted,
    /// The peer lives, but its host's table says that this task is dead. Nothing more is received from it.
    Disowned,
}

/// Whether the peer keeps the protocol, and if not, how it broke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Sound,
    Broken(&'static str),
    /// The fault has been reported to the engine.
    Reported(&'static str),
    /// This task neither sends nor receives any more.
    Closed(&'static str),
}

/// The life cycle of a link: of its connection and of its peer.
#[derive(Debug)]
pub(crate) struct LinkState {
    connection: Connection,
    /// Number of attempts to connect since the last connection.
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

    /// Returns the state of a link to a peer that is already gone for the engine.
    pub(super) fn gone() -> LinkState {
        LinkState {
            presence: Presence::Gone,
            speakers: Speakers::Parted,
            ..LinkState::new()
        }
    }
}

/// Queries of the connection's state.
impl LinkState {
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.connection, Connection::Open(_))
    }

    /// Returns whether the connection is authenticated and the first parcels are being exchanged.
    pub(crate) fn is_resuming(&self) -> bool {
        matches!(self.connection, Connection::Resuming(_))
    }

    /// Returns whether there is no connection, and none is being made.
    pub(crate) fn is_unconnected(&self) -> bool {
        use Connection::{Idle, Lost, Resting};
        matches!(self.connection, Idle | Lost | Resting { .. })
    }

    /// Returns whether there is no connection, and the next attempt need not wait.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.connection, Connection::Idle | Connection::Lost)
    }

    /// Returns whether a connection has ended and the loss has not been handled.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self.connection, Connection::Lost)
    }

    /// Returns whether the peer's host refused the last attempt, and none has been made since.
    pub(crate) fn is_refused(&self) -> bool {
        let Connection::Resting { is_refused, .. } = self.connection else {
            return false;
        };
        is_refused
    }

    /// Returns whether this task's own attempt to connect is in progress.
    pub(crate) fn is_calling(&self) -> bool {
        match &self.connection {
            // A call whose TCP connection has not been made may never be: it gives way to the peer's own call, which
            // has got through.
            Connection::Calling(shake) => shake.has_sent_hello(),
            Connection::Resuming(resuming) => resuming.called,
            _ => false,
        }
    }

    /// Returns whether this task may connect to the peer now.
    pub(crate) fn may_call(&self) -> bool {
        match self.connection {
            _ if self.is_cut_for_good() => false,
            Connection::Idle | Connection::Lost => true,
            Connection::Resting { until, .. } => Instant::now() >= until,
            _ => false,
        }
    }

    /// Returns whether nothing more can be sent on the open connection.
    #[inline]
    pub(crate) fn is_mute(&self) -> bool {
        matches!(&self.connection, Connection::Open(open) if open.is_mute)
    }

    /// Returns whether the poller notifies when the socket has room.
    pub(crate) fn awaits_room(&self) -> bool {
        matches!(&self.connection, Connection::Open(open) if open.awaits_room)
    }

    /// Returns the connection's channel, if it is open.
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

    /// Returns the connection's channel, if it is open and can be sent on.
    #[inline]
    pub(crate) fn sending_channel(&mut self) -> Option<&mut Channel> {
        match &mut self.connection {
            Connection::Open(open) if !open.is_mute => Some(&mut open.channel),
            _ => None,
        }
    }

    /// Returns the handshake of this task's own call, if it is in progress.
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

    /// Returns the channel of a connection that is authenticated but not open yet.
    pub(crate) fn resuming_channel(&self) -> Option<&Channel> {
        match &self.connection {
            Connection::Resuming(resuming) => Some(&resuming.channel),
            _ => None,
        }
    }

    /// Receives the peer's first parcel as far as it has arrived. Returns the parcel once it is complete.
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
    /// Records that this task is connecting to the peer.
    pub(crate) fn called(&mut self, shake: Handshake) {
        debug_assert!(self.is_unconnected());
        self.connection = Connection::Calling(shake);
    }

    /// Takes an authenticated connection in place of the previous one. `called` says whether this task made it.
    pub(super) fn adopted(&mut self, channel: Channel, called: bool) {
        self.connection = Connection::Resuming(Resuming {
            channel,
            head: FirstHead::default(),
            called,
        });
    }

    /// Opens the connection after both ends have sent their positions. Returns its channel, or `None` if it must not
    /// be used.
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

    /// Resets the count of attempts, as the peer has accepted this side's position.
    pub(super) fn resumed(&mut self) {
        self.attempts = 0;
    }

    /// Records that nothing more can be sent on the connection.
    pub(super) fn fell_mute(&mut self) {
        if let Connection::Open(open) = &mut self.connection {
            open.is_mute = true;
        }
    }

    /// Records whether the poller notifies when the socket has room.
    pub(crate) fn set_awaits_room(&mut self, awaits_room: bool) {
        if let Connection::Open(open) = &mut self.connection {
            open.awaits_room = awaits_room;
        }
    }

    /// Ends the handshake of this task's call, which is authenticated. Returns its channel, which the caller must
    /// adopt.
    pub(crate) fn met(&mut self) -> Option<Channel> {
        match std::mem::replace(&mut self.connection, Connection::Idle) {
            Connection::Calling(shake) => Some(shake.into_channel()),
            others => {
                self.connection = others;
                None
            }
        }
    }

    /// Records that the connection, or the attempt to make one, has ended.
    pub(super) fn ended(&mut self) {
        self.connection = Connection::Lost;
    }

    /// Marks a loss as handled. Returns whether there was one.
    pub(crate) fn look_after(&mut self) -> bool {
        let is_lost = self.is_lost();
        if is_lost {
            self.connection = Connection::Idle;
        }
        is_lost
    }

    /// Records that an attempt failed, and sets the time of the next one.
    pub(crate) fn retreated(&mut self, now: Instant, is_refused: bool) {
        debug_assert!(self.is_unconnected());
        self.connection = Connection::Resting {
            until: now + rest(self.attempts),
            is_refused,
        };
        self.attempts += 1;
    }
}

/// Queries of the peer's state.
impl LinkState {
    /// Returns whether the peer has ended and all that it sent has been received. It has ended if the job's table
    /// says that it is gone, or if it considers this task dead.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.presence, Presence::Gone)
    }

    /// Returns whether the peer lives and considers this task dead.
    pub(crate) fn is_disowned(&self) -> bool {
        self.speakers == Speakers::Disowned
    }

    /// Returns whether no connection is to be made, even if something is left to be sent.
    pub(crate) fn is_cut_for_good(&self) -> bool {
        matches!(self.speakers, Speakers::Parted | Speakers::Disowned)
    }

    /// Returns how the peer broke the protocol, if it did.
    #[inline]
    pub(crate) fn fault(&self) -> Option<&'static str> {
        match self.conduct {
            Conduct::Sound => None,
            Conduct::Broken(what) | Conduct::Reported(what) | Conduct::Closed(what) => Some(what),
        }
    }

    /// Returns whether the peer broke the protocol and the engine has not been notified.
    #[inline]
    pub(crate) fn has_news_of_fault(&self) -> bool {
        matches!(self.conduct, Conduct::Broken(_))
    }

    /// Returns whether this task neither sends nor receives any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.conduct, Conduct::Closed(_))
    }

    /// Returns whether no new connection to the peer may be used.
    pub(crate) fn is_shut_out(&self) -> bool {
        self.fault().is_some() || self.is_cut_for_good()
    }

    /// Returns whether no connection needs to be made to send to the peer: it has said bye, or has broken the protocol.
    pub(crate) fn is_over(&self) -> bool {
        let has_said_bye = matches!(self.speakers, Speakers::We | Speakers::Nobody);
        has_said_bye || self.fault().is_some()
    }
}

/// Transitions of the peer's state.
impl LinkState {
    /// Returns whether more may be received from a peer whose end is known. `heard_bytes` have been received so far.
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

    /// Records that the peer is gone and all that it sent has been received. Returns whether that is new.
    pub(crate) fn go(&mut self) -> bool {
        !matches!(
            std::mem::replace(&mut self.presence, Presence::Gone),
            Presence::Gone
        )
    }

    /// Records that this task sends nothing more. Returns whether to send that now, for the first time.
    pub(crate) fn say_bye(&mut self) -> bool {
        self.speakers = match self.speakers {
            Speakers::Both if self.is_open() => Speakers::They,
            Speakers::We if self.is_open() => Speakers::Nobody,
            _ => return false,
        };
        true
    }

    /// Records that the peer sends nothing more.
    pub(super) fn hear_bye(&mut self) {
        self.speakers = match self.speakers {
            Speakers::Both => Speakers::We,
            Speakers::They => Speakers::Nobody,
            others => others,
        };
    }

    /// Records that the engine has ended the link to a peer that is dead according to the table. Returns whether that
    /// is new, so that this task has to notify the peer.
    pub(crate) fn part(&mut self) -> bool {
        let is_new = !self.is_cut_for_good();
        if is_new {
            self.speakers = Speakers::Parted;
        }
        is_new
    }

    /// Records that the peer considers this task dead.
    pub(super) fn disown(&mut self) {
        self.speakers = Speakers::Disowned;
    }

    /// Records that the peer has broken the protocol. Only the first fault counts.
    pub(super) fn break_protocol(&mut self, what: &'static str) {
        if self.conduct == Conduct::Sound {
            self.conduct = Conduct::Broken(what);
        }
    }

    /// Records that the fault has been reported to the engine.
    #[cold]
    pub(crate) fn report(&mut self) {
        if let Conduct::Broken(what) = self.conduct {
            self.conduct = Conduct::Reported(what);
        }
    }

    /// Ends sending to and receiving from a peer that broke the protocol.
    pub(crate) fn close(&mut self) {
        if let Some(what) = self.fault() {
            self.conduct = Conduct::Closed(what);
        }
    }
}

/// Returns the time to wait after this many failed attempts.
fn rest(attempts: u32) -> Duration {
    const MIN_REST: Duration = Duration::from_millis(10);
    const MAX_REST: Duration = Duration::from_millis(500);
    (MIN_REST * (1 << attempts.min(6))).min(MAX_REST)
}
