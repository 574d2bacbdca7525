//! Streams: by the transport that leads to the peer. Each side of a stream names its transport.

use regatta_engine::{Fault, Flow, Peer, Sent, Streams};
use regatta_memory::views::Views;
use regatta_wire::Route;

use super::{Composite, Far, Near};

/// One side of a stream, tagged with the transport that carries it.
#[derive(Debug)]
pub enum Stream<N, F> {
    /// A stream of the near transport.
    Near(N),
    /// A stream of the far transport.
    Far(F),
}

impl<N: Near, F: Far> Streams for Composite<N, F> {
    type Bulk = Stream<N::Bulk, F::Bulk>;

    fn open(&mut self, to: Peer, message: &Views) -> Result<Option<(Self::Bulk, Route)>, Fault> {
        if let Some(far) = self.far_to(to)? {
            let opened = far.open(to, message)?;
            return Ok(opened.map(|(bulk, route)| (Stream::Far(bulk), route)));
        }
        let opened = self.near.open(to, message)?;
        Ok(opened.map(|(bulk, route)| (Stream::Near(bulk), route)))
    }

    fn open_for(&mut self, from: Peer) -> Result<(Self::Bulk, Route), Fault> {
        if let Some(far) = self.far_to(from)? {
            let (bulk, route) = far.open_for(from)?;
            return Ok((Stream::Far(bulk), route));
        }
        let (bulk, route) = self.near.open_for(from)?;
        Ok((Stream::Near(bulk), route))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault> {
        if let Some(far) = self.far_to(peer)? {
            return Ok(Stream::Far(far.attach(peer, route)?));
        }
        Ok(Stream::Near(self.near.attach(peer, route)?))
    }

    fn attach_to_fill(&mut self, peer: Peer, route: &Route) -> Result<Self::Bulk, Fault> {
        if let Some(far) = self.far_to(peer)? {
            return Ok(Stream::Far(far.attach_to_fill(peer, route)?));
        }
        Ok(Stream::Near(self.near.attach_to_fill(peer, route)?))
    }

    fn decline(&mut self, peer: Peer, route: &Route) -> Result<(), Fault> {
        match self.far_to(peer)? {
            Some(far) => far.decline(peer, route),
            None => self.near.decline(peer, route),
        }
    }

    fn fill(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<Flow, Fault> {
        match bulk {
            Stream::Near(bulk) => self.near.fill(to, bulk, message),
            Stream::Far(bulk) => match self.far.as_deref_mut() {
                Some(far) => far.fill(to, bulk, message),
                None => Ok(Flow::Still),
            },
        }
    }

    fn sent(&self, bulk: &Self::Bulk) -> Option<Sent> {
        match bulk {
            Stream::Near(bulk) => self.near.sent(bulk),
            Stream::Far(bulk) => self
                .far
                .as_ref()
                .map_or(Some(Sent::default()), |far| far.sent(bulk)),
        }
    }

    fn move_to(&mut self, to: Peer, bulk: &mut Self::Bulk, message: &Views) -> Result<bool, Fault> {
        match bulk {
            Stream::Near(bulk) => self.near.move_to(to, bulk, message),
            Stream::Far(bulk) => match self.far.as_deref_mut() {
                Some(far) => far.move_to(to, bulk, message),
                None => Ok(true),
            },
        }
    }

    fn drain(
        &mut self,
        from: Peer,
        bulk: &mut Self::Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        match bulk {
            Stream::Near(bulk) => self.near.drain(from, bulk, into, total),
            Stream::Far(bulk) => match self.far.as_deref_mut() {
                Some(far) => far.drain(from, bulk, into, total),
                None => Ok(Flow::Still),
            },
        }
    }

    fn abandon(&mut self, bulk: Self::Bulk) {
        match (bulk, self.far.as_deref_mut()) {
            (Stream::Near(bulk), _) => self.near.abandon(bulk),
            (Stream::Far(bulk), Some(far)) => far.abandon(bulk),
            (Stream::Far(_), None) => {}
        }
    }

    fn reclaim(&mut self, bulk: Self::Bulk) {
        match (bulk, self.far.as_deref_mut()) {
            (Stream::Near(bulk), _) => self.near.reclaim(bulk),
            (Stream::Far(bulk), Some(far)) => far.reclaim(bulk),
            (Stream::Far(_), None) => {}
        }
    }

    fn retract(&mut self, to: Peer, route: &Route) {
        match self.far_to(to) {
            Ok(Some(far)) => far.retract(to, route),
            _ => self.near.retract(to, route),
        }
    }
}
