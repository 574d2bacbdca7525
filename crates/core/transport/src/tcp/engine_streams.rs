//! Streams: the implementation of the engine's trait.

use regatta_engine::{Fault, Flow, Peer, Sent, Streams};
use regatta_memory::views::Views;
use regatta_wire::Route;

use super::Tcp;
use super::link::{Link, Trouble};
use super::stream::OutStream;

/// Maximum number of chunks written in one turn of a stream.
const CHUNKS_PER_TURN: usize = 2;
/// First byte of a route.
const ROUTE_MARK: u8 = 0x54;

/// One side of a stream.
#[derive(Debug)]
pub struct StreamEnd {
    peer: Peer,
    id: u32,
    sends: bool,
}

pub(super) fn route(id: u32) -> Route {
    let mut route = Route::default();
    route[0] = ROUTE_MARK;
    route[4..8].copy_from_slice(&id.to_le_bytes());
    route
}

fn id_of(bytes: &Route) -> Option<u32> {
    let id = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    (*bytes == route(id)).then_some(id)
}

impl Streams for Tcp {
    type Bulk = StreamEnd;

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(StreamEnd, Route)>, Fault> {
        let link = self.link_to(to)?;
        // If no connection exists or is wanted yet, this call reports that none can be started.
        if !link.is_open() && !link.needs_connection() {
            self.reach(to)?;
        }
        let Some(id) = self.link_to(to)?.open_out(message) else {
            return Ok(None);
        };
        let end = StreamEnd {
            peer: to,
            id,
            sends: true,
        };
        Ok(Some((end, route(id))))
    }

    fn open_for(&mut self, from: Peer) -> Result<(StreamEnd, Route), Fault> {
        let id = self.link_to(from)?.streams.open_in();
        let end = StreamEnd {
            peer: from,
            id,
            sends: false,
        };
        Ok((end, route(id)))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<StreamEnd, Fault> {
        let id = self.use_stream(peer, route, Link::attach_in)?;
        let sends = false;
        Ok(StreamEnd { peer, id, sends })
    }

    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<StreamEnd, Fault> {
        let id = self.use_stream(peer, route, Link::attach_out)?;
        let sends = true;
        Ok(StreamEnd { peer, id, sends })
    }

    fn decline(&mut self, peer: Peer, route: &Route) -> Result<(), Fault> {
        self.use_stream(peer, route, Link::decline).map(|_| ())
    }

    fn fill(&mut self, _to: Peer, end: &mut StreamEnd, message: &Views) -> Result<Flow, Fault> {
        self.ensure_called(end.peer)?;
        let link = self.link_to(end.peer)?;
        let Some(stream) = link.streams.out(end.id) else {
            return Ok(Flow::Finished);
        };
        if stream.message.is_none() {
            stream.message = Some(message.clone());
        }
        let is_complete =
            |link: &mut Link| link.streams.out(end.id).is_some_and(|one| one.complete);
        let moved = or_trouble(link, |link| link.try_pump(CHUNKS_PER_TURN));
        let watched = link.stall.is_watched() || !moved;
        if !moved && !is_complete(link) {
            // The peer may have sent credit, or the confirmation that it has received everything.
            link.receive();
        }
        let flow = match moved {
            _ if is_complete(link) => {
                link.end_out(end.id);
                Flow::Finished
            }
            true => Flow::Moved,
            false => Flow::Still,
        };
        if !watched {
            self.begin_watch(end.peer);
        }
        Ok(flow)
    }

    fn sent(&self, end: &StreamEnd) -> Option<Sent> {
        let link = self.links.get(end.peer as usize).and_then(Option::as_deref);
        let mut streams = link.iter().flat_map(|link| link.streams.outs());
        let stream = streams.find(|stream| stream.id == end.id);
        Some(stream.map_or(Sent::for_good(u64::MAX), OutStream::sent))
    }

    fn move_to(&mut self, _to: Peer, end: &mut StreamEnd, message: &Views) -> Result<bool, Fault> {
        let link = self.link_to(end.peer)?;
        link.move_out(end.id, message);
        Ok(true)
    }

    fn drain(
        &mut self,
        _from: Peer,
        end: &mut StreamEnd,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        let flow = self.try_drain(end, into, total);
        self.retry_words(end.peer);
        flow
    }

    fn abandon(&mut self, end: StreamEnd) {
        let dead = self.is_lost(end.peer);
        if let Some(link) = self.link(end.peer) {
            match end.sends {
                true => link.abandon_out(end.id, dead),
                false => link.abandon_in(end.id),
            }
        }
    }

    fn reclaim(&mut self, end: StreamEnd) {
        match end.sends {
            true => self.retract_stream(end.peer, end.id),
            false => self.abandon(end),
        }
    }

    fn retract(&mut self, peer: Peer, route: &Route) {
        if let Some(id) = id_of(route) {
            self.retract_stream(peer, id);
        }
    }
}

impl Tcp {
    fn use_stream(
        &mut self,
        peer: Peer,
        route: &Route,
        by: impl FnOnce(&mut Link, u32) -> Result<(), Trouble>,
    ) -> Result<u32, Fault> {
        let nonsense = Fault::Corrupt {
            peer,
            what: "the route of a message is not valid",
        };
        let id = id_of(route).ok_or(nonsense)?;
        let link = self.link_to(peer)?;
        if let Err(Trouble::Corrupt(what)) = by(link, id) {
            return Err(Fault::Corrupt { peer, what });
        }
        link.pump(0);
        Ok(id)
    }

    fn try_drain(&mut self, end: &StreamEnd, into: &Views, total: u64) -> Result<Flow, Fault> {
        self.ensure_called(end.peer)?;
        let (peer, id) = (end.peer, end.id);
        let link = self.link_to(peer)?;
        let Some(stream) = link.streams.in_stream(id) else {
            return Ok(Flow::Finished);
        };
        // The sender can continue while the bytes received are handled.
        stream.extend(total);
        if stream.announce {
            link.pump(0);
        }
        let Some(stream) = link.streams.in_stream(id) else {
            return Ok(Flow::Finished);
        };
        let before = stream.received;
        let mut moved = !stream.is_empty();
        if moved {
            stream.release(into);
        }
        if stream.received < total {
            or_trouble(link, |link| link.pull(id, into));
        }
        let Some(stream) = link.streams.in_stream(id) else {
            return Ok(Flow::Finished);
        };
        if !stream.is_empty() {
            stream.release(into);
        }
        moved |= stream.received != before;
        if stream.cancelled && stream.received < total {
            // Right behind follows the engine's frame that the message was withdrawn or that its sender left.
            return Ok(if moved { Flow::Moved } else { Flow::Still });
        }
        if stream.received > total || stream.total.is_some_and(|end| end != total) {
            let what = "a stream and its message differ in length";
            link.trouble(Trouble::Corrupt(what));
            return Err(Fault::Corrupt { peer, what });
        }
        stream.extend(total);
        let (announce, finished) = (stream.announce, stream.total.is_some());
        if finished {
            link.streams.release_in(id);
        }
        if announce || link.streams.owe_release() {
            link.pump(0);
        }
        if finished {
            return Ok(Flow::Finished);
        }
        Ok(if moved { Flow::Moved } else { Flow::Still })
    }

    fn retract_stream(&mut self, peer: Peer, id: u32) {
        let dead = self.is_lost(peer);
        if let Some(link) = self.link(peer) {
            link.retract(id, dead);
        }
    }

    /// Connects to a peer that is not connected, because a stream needs a connection.
    fn ensure_called(&mut self, peer: Peer) -> Result<(), Fault> {
        if !self.link_to(peer)?.is_open() {
            if self.link_to(peer)?.needs_connection() {
                self.reach(peer)?;
            }
            self.poll();
        }
        Ok(())
    }
}

/// Runs `work` on a link, and handles its trouble. Returns whether anything moved.
fn or_trouble(link: &mut Link, work: impl FnOnce(&mut Link) -> Result<bool, Trouble>) -> bool {
    match work(link) {
        Ok(moved) => moved,
        Err(trouble) => {
            link.trouble(trouble);
            false
        }
    }
}
