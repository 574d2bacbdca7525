//! A transport inside one thread: every queue tiny, every misuse a panic.
//!
//! A [`Net`] joins any number of [`End`]s. Rings hold few frames and streams few bytes, so that
//! "no room" is the common case; nothing moves unless an engine asks. The net notes which message
//! frames an engine has taken in, in order ([`Net::taken`]): that order is what a reference
//! matcher needs to know to predict every match.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;

use regatta_engine::{
    Arrival, COLLECTIVE_BUFFER_DEPTH, Fault, Flow, Part, Peer, Presence, Transport,
};
use regatta_memory::held::Held;
use regatta_memory::views::{Scratch, Views};
use regatta_wire::{BODY, Frame, Kind, Route};

/// How narrow everything is.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Longest eager payload.
    pub eager: usize,
    /// Frames in a ring.
    pub ring: usize,
    /// Bytes moved at a time.
    pub chunk: usize,
    /// Bytes in a stream.
    pub stream: usize,
    /// Streams a sender may have open of its own accord.
    pub streams: usize,
}

impl Sizes {
    /// The narrowest that can work.
    pub const TINY: Sizes = Sizes {
        eager: 16,
        ring: 2,
        chunk: 5,
        stream: 12,
        streams: 1,
    };
}

/// A message frame an engine has taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub from: Peer,
    pub context: u32,
    pub tag: i32,
}

#[derive(Default)]
struct Stream {
    bytes: VecDeque<u8>,
    put: u64,
    /// Ends that have been handed out and not finished or abandoned: sender, receiver.
    ends: [bool; 2],
    opener: usize,
    attached: bool,
    /// It may be used again.
    returned: bool,
}

/// A member's place in a collective buffer: rounds and bytes.
type Place = [(u32, Vec<u8>); COLLECTIVE_BUFFER_DEPTH as usize];
/// Most bytes of a contribution.
const CONTRIBUTION: usize = 64;

type Ring = VecDeque<(Frame, Vec<u8>)>;

struct Shared {
    sizes: Sizes,
    presence: Vec<Presence>,
    losses: u32,
    rings: HashMap<(Peer, Peer), Ring>,
    streams: Vec<Stream>,
    loans: HashMap<u64, (Scratch, usize)>,
    next_loan: u64,
    taken: Vec<Vec<Taken>>,
    /// Peers whose next frame is damage.
    damaged: Vec<(Peer, Peer)>,
    /// How many more things a peer sends before it dies in the middle of whatever it does.
    fuses: HashMap<Peer, usize>,
    /// Peers whose frames the other one does not want to see.
    closed: Vec<(Peer, Peer)>,
    /// Peers that have given each other up.
    apart: Vec<(Peer, Peer)>,
    /// Peers are dealt to so many hosts.
    hosts: u32,
    buffers: Vec<Vec<Place>>,
    /// A host that has no memory for collective buffers.
    without_buffers: Option<u32>,
}

impl Shared {
    /// Does this peer still send one more thing?
    fn lives_to_send(&mut self, me: Peer) -> bool {
        if self.presence[me as usize] != Presence::Here {
            return false;
        }
        match self.fuses.get_mut(&me) {
            Some(0) => {
                self.presence[me as usize] = Presence::Dead;
                self.losses += 1;
                return false;
            }
            Some(left) => *left -= 1,
            None => {}
        }
        true
    }
}

/// All queues.
#[derive(Clone)]
pub struct Net(Rc<RefCell<Shared>>);

impl Net {
    pub fn new(peers: u32, sizes: Sizes) -> Net {
        Net(Rc::new(RefCell::new(Shared {
            sizes,
            presence: vec![Presence::Here; peers as usize],
            losses: 0,
            rings: HashMap::new(),
            streams: Vec::new(),
            loans: HashMap::new(),
            next_loan: 1,
            taken: vec![Vec::new(); peers as usize],
            damaged: Vec::new(),
            fuses: HashMap::new(),
            closed: Vec::new(),
            apart: Vec::new(),
            hosts: 1,
            buffers: Vec::new(),
            without_buffers: None,
        })))
    }

    /// Two peers give each other up: each counts as dead for the other, and hears nothing more of it.
    pub fn part(&self, one: Peer, other: Peer) {
        let mut net = self.0.borrow_mut();
        for pair in [(one, other), (other, one)] {
            net.apart.push(pair);
            net.rings.remove(&pair);
        }
        net.losses += 1;
    }

    /// Have they given each other up?
    pub fn are_apart(&self, one: Peer, other: Peer) -> bool {
        self.0.borrow().apart.contains(&(one, other))
    }

    /// Deal the peers to `hosts` hosts. Everything else stays as it is.
    pub fn spread(&self, hosts: u32) {
        self.0.borrow_mut().hosts = hosts;
    }

    /// There is no memory for collective buffers on this host.
    pub fn refuse_collective_buffers(&self, host: u32) {
        self.0.borrow_mut().without_buffers = Some(host);
    }

    pub fn end(&self, me: Peer) -> End {
        End {
            net: self.clone(),
            me,
            opened: 0,
        }
    }

    /// A peer dies or leaves. Its engine must not be called any more.
    pub fn lose(&self, peer: Peer, how: Presence) {
        let mut net = self.0.borrow_mut();
        net.presence[peer as usize] = how;
        net.losses += 1;
    }

    /// A peer sends so many frames and pieces of streams, and dies when it comes to the next: then
    /// its engine must not be called any more.
    pub fn die_after(&self, peer: Peer, things: usize) {
        self.0.borrow_mut().fuses.insert(peer, things);
    }

    /// Is it still there?
    pub fn is_here(&self, peer: Peer) -> bool {
        self.0.borrow().presence[peer as usize] == Presence::Here
    }

    /// The next look of `at` at what `from` sent finds nonsense, for ever.
    pub fn damage(&self, from: Peer, at: Peer) {
        self.0.borrow_mut().damaged.push((from, at));
    }

    /// The message frames a peer's engine has taken in since the last call.
    pub fn taken(&self, by: Peer) -> Vec<Taken> {
        std::mem::take(&mut self.0.borrow_mut().taken[by as usize])
    }

    /// Streams with an end that was neither finished nor abandoned.
    pub fn open_streams(&self) -> usize {
        let net = self.0.borrow();
        let open = |stream: &&Stream| stream.ends[0] || stream.ends[1];
        net.streams.iter().filter(open).count()
    }

    /// Streams that nobody will use again.
    pub fn lost_streams(&self) -> usize {
        let net = self.0.borrow();
        net.streams.iter().filter(|stream| !stream.returned).count()
    }

    /// Loans not given back.
    pub fn lent(&self) -> usize {
        self.0.borrow().loans.len()
    }

    /// Is there a frame from one peer to another?
    pub fn front_of(&self, from: Peer, to: Peer) -> bool {
        let net = self.0.borrow();
        let ring = net.rings.get(&(from, to));
        ring.is_some_and(|ring| !ring.is_empty())
    }
}

/// One task's end of the net.
pub struct End {
    net: Net,
    me: Peer,
    opened: usize,
}

/// One side of a stream.
#[derive(Debug)]
pub struct Bulk {
    stream: usize,
    /// 0 the sender's, 1 the receiver's.
    side: usize,
    moved: u64,
    counted: bool,
}

fn route_of(stream: usize) -> Route {
    let mut route = Route::default();
    route[..8].copy_from_slice(&(stream as u64 + 1).to_le_bytes());
    route
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

impl Transport for End {
    type Bulk = Bulk;
    type CollectiveBuffer = usize;

    fn me(&self) -> Peer {
        self.me
    }
    fn peers(&self) -> u32 {
        self.net.0.borrow().presence.len() as u32
    }
    fn presence(&self, peer: Peer) -> Presence {
        match self.net.are_apart(self.me, peer) {
            true => Presence::Dead,
            false => self.net.0.borrow().presence[peer as usize],
        }
    }
    fn losses(&self) -> u32 {
        self.net.0.borrow().losses
    }
    fn close(&mut self, peer: Peer) {
        let mut net = self.net.0.borrow_mut();
        net.closed.push((peer, self.me));
        net.damaged.push((self.me, peer));
    }
    fn host(&self, peer: Peer) -> u32 {
        peer % self.net.0.borrow().hosts
    }
    fn eager_limit(&self) -> usize {
        self.net.0.borrow().sizes.eager
    }

    fn send(&mut self, to: Peer, frame: Frame, payload: &Views) -> Result<bool, Fault> {
        assert_ne!(to, self.me, "messages to oneself never reach a transport");
        let mut net = self.net.0.borrow_mut();
        let longest = match frame.kind {
            Kind::Eager => net.sizes.eager,
            _ => BODY,
        };
        assert!(payload.len() <= longest, "longer than a frame may be");
        let room = net.sizes.ring;
        let ring = net.rings.entry((self.me, to)).or_default();
        if ring.len() >= room {
            return Ok(false);
        }
        let lives = net.lives_to_send(self.me) && !net.apart.contains(&(self.me, to));
        let ring = net.rings.entry((self.me, to)).or_default();
        if lives {
            ring.push_back((frame, payload.to_vec()));
        }
        Ok(true)
    }

    fn send_body(&mut self, to: Peer, frame: Frame, body: &[u8]) -> Result<bool, Fault> {
        let held = Scratch::new(body.len())
            .expect("memory")
            .part(0, body.len());
        held.fill(body);
        self.send(to, frame, &held)
    }

    fn front(&mut self, from: Peer) -> Result<Option<Arrival>, Fault> {
        let net = self.net.0.borrow();
        if net.closed.contains(&(from, self.me)) {
            return Ok(None);
        }
        if net.damaged.contains(&(from, self.me)) {
            return Err(Fault::Corrupt {
                peer: from,
                what: "damage",
            });
        }
        let front = net.rings.get(&(from, self.me)).and_then(VecDeque::front);
        Ok(front.map(|(frame, payload)| Arrival {
            frame: *frame,
            length: payload.len(),
        }))
    }

    fn accept(&mut self, from: Peer, into: &Views) {
        into.fill(&self.accept_bytes(from));
    }

    fn accept_bytes(&mut self, from: Peer) -> Held {
        let mut net = self.net.0.borrow_mut();
        let ring = net.rings.get_mut(&(from, self.me));
        let (frame, payload) = ring
            .and_then(VecDeque::pop_front)
            .expect("only a frame that is at the front is accepted");
        if matches!(frame.kind, Kind::Eager | Kind::Offer | Kind::Loan) {
            net.taken[self.me as usize].push(Taken {
                from,
                context: frame.context,
                tag: frame.tag,
            });
        }
        payload.into()
    }

    fn next_ready(&mut self, cursor: &mut usize) -> Option<Peer> {
        let net = self.net.0.borrow();
        while *cursor < net.presence.len() {
            let peer = *cursor as Peer;
            *cursor += 1;
            let ring = net.rings.get(&(peer, self.me));
            if net.closed.contains(&(peer, self.me)) {
                continue;
            }
            let damaged = net.damaged.contains(&(peer, self.me));
            if damaged || ring.is_some_and(|ring| !ring.is_empty()) {
                return Some(peer);
            }
        }
        None
    }

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
        if n > 0 && !net.lives_to_send(self.me) {
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
        Ok(if n > 0 { Flow::Moved } else { Flow::Still })
    }

    fn sent(&self, bulk: &Bulk) -> Option<u64> {
        Some(bulk.moved)
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
        into.part(at, n).fill(&bytes);
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

    fn lend(&mut self, len: usize) -> Result<(u64, Views), Fault> {
        let mut net = self.net.0.borrow_mut();
        let place = net.next_loan;
        net.next_loan += 1;
        let memory = Scratch::new(len).expect("memory");
        let views = memory.part(0, len);
        net.loans.insert(place, (memory, len));
        Ok((place, views))
    }

    fn loan_came(&mut self, _peer: Peer, _place: u64) -> Result<(), Fault> {
        Ok(())
    }

    fn borrowed(&mut self, peer: Peer, place: u64, len: u64) -> Result<Views, Fault> {
        let net = self.net.0.borrow();
        let what = "no such loan";
        let (memory, size) = net.loans.get(&place).ok_or(Fault::Corrupt { peer, what })?;
        if len > *size as u64 {
            return Err(Fault::Corrupt { peer, what });
        }
        Ok(memory.part(0, len as usize))
    }

    fn loan_at(&self, _address: usize) -> Option<(u64, usize)> {
        None
    }

    fn give_back(&mut self, place: u64) {
        self.net.0.borrow_mut().loans.remove(&place);
    }

    fn shares_memory(&self, _peer: Peer) -> bool {
        false
    }
    fn world_collective_buffer(&mut self) -> Option<usize> {
        None
    }
    fn new_collective_buffer(&mut self, members: u32) -> Result<Option<(usize, u64)>, Fault> {
        let host = self.host(self.me);
        let mut net = self.net.0.borrow_mut();
        if net.without_buffers == Some(host) {
            return Ok(None);
        }
        net.buffers.push(vec![Place::default(); members as usize]);
        let number = net.buffers.len();
        Ok(Some((number - 1, number as u64)))
    }
    fn enter_collective_buffer(&mut self, name: u64, members: u32) -> Result<usize, Fault> {
        let number = name as usize - 1;
        assert_eq!(
            self.net.0.borrow().buffers[number].len(),
            members as usize,
            "the members disagree about their collective buffer"
        );
        Ok(number)
    }
    fn leave_collective_buffer(&mut self, _name: u64, _members: u32) {}
    fn collective_buffer_capacity(&self, _buffer: &usize) -> usize {
        CONTRIBUTION
    }
    fn contribution_limit(&self, _members: u32) -> usize {
        CONTRIBUTION
    }
    fn contribute(
        &self,
        buffer: &usize,
        index: u32,
        round: u32,
        from: &Views,
        _: Range<u32>,
        _: &impl Fn(u32) -> Peer,
    ) {
        let mut net = self.net.0.borrow_mut();
        let place = &mut net.buffers[*buffer][index as usize];
        place[(round % COLLECTIVE_BUFFER_DEPTH) as usize] = (round, from.to_vec());
    }
    fn contributed(&self, buffer: &usize, index: u32, round: u32) -> bool {
        self.contributed_round(buffer, index, round) == round
    }
    fn contributed_round(&self, buffer: &usize, index: u32, round: u32) -> u32 {
        let net = self.net.0.borrow();
        net.buffers[*buffer][index as usize][(round % COLLECTIVE_BUFFER_DEPTH) as usize].0
    }
    fn collect(&self, buffer: &usize, index: u32, round: u32, part: Part, into: &Views) {
        let net = self.net.0.borrow();
        let (contributed, bytes) =
            &net.buffers[*buffer][index as usize][(round % COLLECTIVE_BUFFER_DEPTH) as usize];
        assert_eq!(
            *contributed, round,
            "a contribution is read that is not there"
        );
        assert_eq!(
            bytes.len(),
            part.total,
            "a contribution is read that has another length"
        );
        into.fill(&bytes[part.offset..part.offset + into.len()]);
    }
    fn await_contribution(&self, _buffer: &usize, _index: u32, _target: Option<u32>) -> bool {
        true
    }
}
