//! Streams: through a pipe, or through a connection; each side of a stream knows which.

use regatta_engine::{Fault, Flow, Peer, Sent, Streams};
use regatta_memory::views::Views;
use regatta_wire::Route;

use super::Paths;
use crate::shm;
use crate::tcp::engine_streams::Wire;

/// One side of a stream.
#[derive(Debug)]
pub struct Stream(Carrier);

#[derive(Debug)]
enum Carrier {
    Shm(shm::Bulk),
    Tcp(Wire),
}

impl Streams for Paths {
    type Bulk = Stream;

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Stream, Route)>, Fault> {
        let opened = match self.tcp_to(to)? {
            Some(tcp) => tcp
                .open(to, message)?
                .map(|(wire, route)| (Carrier::Tcp(wire), route)),
            None => self
                .shm
                .open(to, message)?
                .map(|(bulk, route)| (Carrier::Shm(bulk), route)),
        };
        Ok(opened.map(|(way, route)| (Stream(way), route)))
    }

    fn open_for(&mut self, from: Peer) -> Result<(Stream, Route), Fault> {
        if let Some(tcp) = self.tcp_to(from)? {
            let (wire, route) = tcp.open_for(from)?;
            return Ok((Stream(Carrier::Tcp(wire)), route));
        }
        let (bulk, route) = self.shm.open_for(from)?;
        Ok((Stream(Carrier::Shm(bulk)), route))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Stream, Fault> {
        if let Some(tcp) = self.tcp_to(peer)? {
            return Ok(Stream(Carrier::Tcp(tcp.attach(peer, route)?)));
        }
        Ok(Stream(Carrier::Shm(self.shm.attach(peer, route)?)))
    }

    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Stream, Fault> {
        if let Some(tcp) = self.tcp_to(peer)? {
            return Ok(Stream(Carrier::Tcp(tcp.attach_to_fill(peer, route)?)));
        }
        Ok(Stream(Carrier::Shm(self.shm.attach_to_fill(peer, route)?)))
    }

    fn decline(&mut self, peer: Peer, route: &Route) -> Result<(), Fault> {
        match self.tcp_to(peer)? {
            Some(tcp) => tcp.decline(peer, route),
            None => self.shm.decline(peer, route),
        }
    }

    fn fill(&mut self, to: Peer, bulk: &mut Stream, message: &Views) -> Result<Flow, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.fill(to, bulk, message),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.fill(to, wire, message),
                None => Ok(Flow::Still),
            },
        }
    }

    fn sent(&self, bulk: &Stream) -> Option<Sent> {
        match &bulk.0 {
            Carrier::Shm(bulk) => self.shm.sent(bulk),
            Carrier::Tcp(wire) => self
                .tcp
                .as_ref()
                .map_or(Some(Sent::default()), |tcp| tcp.sent(wire)),
        }
    }

    fn move_to(&mut self, to: Peer, bulk: &mut Stream, message: &Views) -> Result<bool, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.move_to(to, bulk, message),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.move_to(to, wire, message),
                None => Ok(true),
            },
        }
    }

    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Stream,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        match &mut bulk.0 {
            Carrier::Shm(bulk) => self.shm.drain(from, bulk, into, total),
            Carrier::Tcp(wire) => match self.tcp.as_deref_mut() {
                Some(tcp) => tcp.drain(from, wire, into, total),
                None => Ok(Flow::Still),
            },
        }
    }

    fn abandon(&mut self, bulk: Stream) {
        match (bulk.0, self.tcp.as_deref_mut()) {
            (Carrier::Shm(bulk), _) => self.shm.abandon(bulk),
            (Carrier::Tcp(wire), Some(tcp)) => tcp.abandon(wire),
            (Carrier::Tcp(_), None) => {}
        }
    }

    fn reclaim(&mut self, bulk: Stream) {
        match (bulk.0, self.tcp.as_deref_mut()) {
            (Carrier::Shm(bulk), _) => self.shm.reclaim(bulk),
            (Carrier::Tcp(wire), Some(tcp)) => tcp.reclaim(wire),
            (Carrier::Tcp(_), None) => {}
        }
    }

    fn retract(&mut self, to: Peer, route: &Route) {
        match self.tcp_to(to) {
            Ok(Some(tcp)) => tcp.retract(to, route),
            _ => self.shm.retract(to, route),
        }
    }
}
