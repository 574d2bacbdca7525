//! Streams of few bytes.

use std::collections::VecDeque;

use regatta_engine::{Fault, Flow, Peer, Sent, Streams};
use regatta_memory::views::Views;
use regatta_wire::Route;

use super::End;

#[derive(Default)]
pub(super) struct Stream {
    pub(super) bytes: VecDeque<u8>,
    pub(super) put: u64,
    /// Whether the ends (sender's, receiver's) were handed out and neither finished nor abandoned.
    pub(super) ends: [bool; 2],
    pub(super) opener: usize,
    pub(super) attached: bool,
    /// The stream may be reused.
    pub(super) returned: bool,
}

/// One end of a stream.
#[derive(Debug)]
pub struct Bulk {
    stream: usize,
    /// 0 for the sender's end, 1 for the receiver's.
    side: usize,
    moved: u64,
    counted: bool,
}

fn route_of(stream: usize) -> Route {
    let mut route = Route::default();
    route[..8].copy_from_slice(&(stream as u64 + 1).to_le_bytes());
    route
}

impl Streams for End {
    type Bulk = Bulk;

    fn open(&mut self, _to: Peer, _message: &Views) -> Result<Option<(Bulk, Route)>, Fault> {
        if self.opened >= self.net.0.borrow().sizes.streams {
            return Ok(None);
        }
        self.opened += 1;
        Ok(Some(self.new_stream(0, true)))
    }

    fn open_for(&mut self, _from: Peer) -> Result<(Bulk, Route), Fault> {
        Ok(self.new_stream(1, false))
    }

    fn attach(&mut self, peer: Peer, route: &Route) -> Result<Bulk, Fault> {
        let mut net = self.net.0.borrow_mut();
        let number = u64::from_le_bytes(route[..8].try_into().expect("eight bytes"));
        let index = (number as usize).wrapping_sub(1);
        let Some(stream) = net.streams.get_mut(index) else {
            return Err(Fault::Corrupt {
                peer,
                what: "no such stream",
            });
        };
        assert!(!stream.attached, "a stream has two sides");
        let side = 1 - stream.opener;
        stream.attached = true;
        stream.ends[side] = true;
        Ok(Bulk {
            stream: index,
            side,
            moved: 0,
            counted: false,
        })
    }

    fn fill(&mut self, _to: Peer, bulk: &mut Bulk, message: &Views) -> Result<Flow, Fault> {
        assert_eq!(bulk.side, 0, "only the sender fills");
        let mut net = self.net.0.borrow_mut();
        let sizes = net.sizes;
        let stream = &mut net.streams[bulk.stream];
        assert!(stream.ends[0], "filled after it was finished");
        let room = sizes.stream - stream.bytes.len();
        let left = message.len() - bulk.moved as usize;
        let n = left.min(room).min(sizes.chunk);
        let is_full = n == 0 && left > 0;
        if is_full || n > 0 && !net.lives_to_send(self.me) {
            return Ok(Flow::Still);
        }
        let stream = &mut net.streams[bulk.stream];
        let whole = message.to_vec();
        let from = bulk.moved as usize;
        stream.bytes.extend(&whole[from..from + n]);
        bulk.moved += n as u64;
        stream.put = bulk.moved;
        if n == left {
            stream.ends[0] = false;
            self.opened -= bulk.counted as usize;
            return Ok(Flow::Finished);
        }
        Ok(Flow::Moved)
    }

    fn sent(&self, bulk: &Bulk) -> Option<Sent> {
        Some(Sent::for_good(bulk.moved))
    }

    fn move_to(&mut self, _to: Peer, _bulk: &mut Bulk, _message: &Views) -> Result<bool, Fault> {
        Ok(true)
    }

    fn drain(
        &mut self,
        _from: Peer,
        bulk: &mut Bulk,
        into: &Views,
        total: u64,
    ) -> Result<Flow, Fault> {
        assert_eq!(bulk.side, 1, "only the receiver drains");
        let mut net = self.net.0.borrow_mut();
        let chunk = net.sizes.chunk;
        let stream = &mut net.streams[bulk.stream];
        assert!(stream.ends[1], "drained after it was finished");
        let n = stream.bytes.len().min(chunk);
        let bytes: Vec<u8> = stream.bytes.drain(..n).collect();
        let at = bulk.moved as usize;
        into.fill_from(at, &bytes);
        bulk.moved += n as u64;
        if bulk.moved == total {
            stream.returned = true;
            stream.ends[1] = false;
            return Ok(Flow::Finished);
        }
        Ok(if n > 0 { Flow::Moved } else { Flow::Still })
    }

    fn abandon(&mut self, bulk: Bulk) {
        self.opened -= bulk.counted as usize;
        let mut net = self.net.0.borrow_mut();
        let stream = &mut net.streams[bulk.stream];
        stream.ends[bulk.side] = false;
    }

    fn reclaim(&mut self, bulk: Bulk) {
        self.opened -= bulk.counted as usize;
        let mut net = self.net.0.borrow_mut();
        let stream = &mut net.streams[bulk.stream];
        stream.ends[bulk.side] = false;
        assert!(!stream.ends[1 - bulk.side], "the other side still holds it");
        assert!(!stream.returned, "returned twice");
        stream.returned = true;
    }
}

impl End {
    fn new_stream(&mut self, side: usize, counted: bool) -> (Bulk, Route) {
        let mut net = self.net.0.borrow_mut();
        let stream = net.streams.len();
        net.streams.push(Stream::default());
        net.streams[stream].ends[side] = true;
        net.streams[stream].opener = side;
        let bulk = Bulk {
            stream,
            side,
            moved: 0,
            counted,
        };
        (bulk, route_of(stream))
    }
}
