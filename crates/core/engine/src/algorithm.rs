//! The choice of the algorithm of a collective: a pure function of what all members know alike, so that all choose the same.
//!
//! If the caller waits and the members share memory, small collectives use rounds of contributions ([`round`](crate::Round)). All others, and all
//! nonblocking ones, use messages. `regatta doctor --algorithms` prints the choice as a table.

use crate::kind::Kind;
use crate::lanes::MAX_MEMBERS_PER_HOST_UNDIVIDED;

/// The properties on which the choice depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Size of the message, of one member's operands, or of the longest part, in bytes.
    pub bytes: usize,
    /// Number of members of the group.
    pub members: u32,
    /// Number of hosts that the members are on.
    pub hosts: usize,
    /// Number of members on the host that has most of them.
    pub most_on_a_host: usize,
    /// Number of members on the host that has fewest.
    pub fewest_on_a_host: usize,
    /// Maximum size of a member's contribution to a round, in bytes: in the group's collective buffer or, across hosts, in that of each host. `None`
    /// if there is no collective buffer.
    pub contribution: Option<usize>,
    /// Whether the caller waits until the collective is complete.
    pub waits: bool,
    /// Whether operands may be combined in any order.
    pub commutative: bool,
    /// Whether memory is one block and all parts have the same length, so that it can be cut anywhere.
    pub divisible: bool,
}

/// The algorithm of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Contributions to rounds in the group's collective buffer. Contains the number of bytes that each round moves (per other member, if parts are
    /// exchanged).
    Rounds(usize),
    /// Rounds in the collective buffers of the hosts, whose first members exchange between hosts.
    Crossing,
    /// One message between two members.
    Message,
    /// In round `k` each member sends to the member at distance `2^k` above.
    Dissemination,
    /// To the first member of each host, between these, and back.
    Leaders,
    /// Along a tree: between hosts, then within each host.
    Tree,
    /// Up a tree that keeps the order of ranks, to rank 0; then to the other members or the root.
    OrderedTree,
    /// Two members each send all their data.
    Exchange,
    /// Two members each combine one half.
    Halves,
    /// Each member passes data to the next rank, in a ring. A reduction passes partial results, then final ones.
    Ring,
    /// The members of each host divide the operands into shares, and each combines one from all of them. Members with the same share exchange it
    /// between hosts.
    Shares,
    /// Members with the same index on their hosts exchange data between hosts, and each passes it on to the other members of its host.
    Lanes,
    /// Each member receives from the rank below and sends to the rank above.
    Chain,
    /// Each member exchanges data with one other member at a time, at increasing distances.
    Pairwise,
    /// All members send at once, and each combines in rank order.
    RankOrder,
    /// Every message is sent directly to its receiver.
    Direct,
}

impl Algorithm {
    /// Returns a short description.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Rounds(_) => "one round of contributions",
            Algorithm::Crossing => "a round on each host, whose first members exchange",
            Algorithm::Message => "one message",
            Algorithm::Dissemination => "dissemination",
            Algorithm::Leaders => {
                "to the first member of each host, between these members, and back"
            }
            Algorithm::Tree => "a tree",
            Algorithm::OrderedTree => "a tree to rank 0, and back",
            Algorithm::Exchange => "an exchange",
            Algorithm::Halves => "halves: each of the two members combines one half",
            Algorithm::Ring => "a ring",
            Algorithm::Shares => "shares: each member of a host combines one",
            Algorithm::Lanes => "lanes: members with the same index on their hosts exchange",
            Algorithm::Chain => "a chain",
            Algorithm::Pairwise => "pairwise, at increasing distances",
            Algorithm::RankOrder => "all at once, combined in rank order",
            Algorithm::Direct => "straight to each receiver",
        }
    }
}

/// Maximum number of rounds of one exchange in a collective buffer. With more rounds, messages are faster.
const MAX_ROUNDS: usize = 16;
/// Maximum length, in bytes, of a part of a complete exchange of more than two members in a collective buffer. For longer parts, messages are as
/// fast between eight members, and twice as fast between four.
const MAX_EXCHANGED_PART_BYTES: usize = 2 << 10;
/// Minimum size of operands, in bytes, for which members share the work of combining them and pass the parts on in a ring.
const MIN_DIVIDED_BYTES: usize = 64 << 10;
/// Maximum number of members, all on one host, that combine a share each from all others. In a ring of `n` members a member waits `2 (n - 1)` times for
/// a neighbour, and in a crowded job each wait may be a switch between tasks; with shares it waits twice, but receives from all others at once.
const MAX_SHARING_MEMBERS: u32 = 8;
/// Minimum size of operands, in bytes, for which two members on a host share the work.
const MIN_HALVES_BYTES: usize = 16 << 10;

/// Minimum size of operands, in bytes, for which members on several hosts share the work, if the host with most members has two to
/// [`MAX_MEMBERS_PER_HOST_UNDIVIDED`].
const MIN_SHARES_BYTES: usize = 128 << 10;

/// Maximum total size of an allgather that uses leaders where lanes are not possible, in bytes.
const MAX_GATHERED_BY_LEADERS_BYTES: usize = 256 << 10;
/// The same where lanes are possible, which are faster from there on.
const MAX_GATHERED_BEFORE_LANES_BYTES: usize = 64 << 10;
/// Maximum number of bytes that the members of a host give in a complete exchange that uses leaders.
const MAX_EXCHANGED_BY_LEADERS_BYTES: usize = 32 << 10;

/// Returns the algorithm of a collective of this kind.
pub fn choose(kind: Kind, facts: &Facts) -> Algorithm {
    let at_once = facts
        .waits
        .then(|| for_waiting_caller(kind, facts))
        .flatten();
    at_once.unwrap_or_else(|| by_messages(kind, facts))
}

fn for_waiting_caller(kind: Kind, facts: &Facts) -> Option<Algorithm> {
    if facts.members == 2 && kind.is_one_way() {
        return Some(Algorithm::Message);
    }
    let contribution = facts.contribution?;
    if facts.hosts > 1 {
        let crosses = match kind {
            Kind::Barrier => true,
            Kind::Allreduce => facts.commutative,
            _ => false,
        };
        let crosses = crosses && facts.most_on_a_host > 1 && facts.bytes <= contribution;
        return crosses.then_some(Algorithm::Crossing);
    }
    let each = match kind {
        Kind::Gather => None,
        Kind::Scatter | Kind::Alltoall if !facts.divisible => None,
        Kind::Scatter => {
            let whole = facts.bytes.saturating_mul(facts.members as usize);
            (whole <= contribution).then_some(facts.bytes)
        }
        Kind::Allgather | Kind::Alltoall => bytes_of_rounds(kind, facts, contribution),
        _ => (facts.bytes <= contribution).then_some(facts.bytes),
    };
    each.map(Algorithm::Rounds)
}

/// Returns the number of bytes that each member gives each other member in a round, so that there are as few rounds as possible. Returns `None` if
/// rounds cannot be used.
fn bytes_of_rounds(kind: Kind, facts: &Facts, contribution: usize) -> Option<usize> {
    // Rather than several rounds, two members exchange one message each, which are copied directly between their buffers.
    let (shares, rounds) = match (kind, facts.members) {
        (_, 2) => (1, 1),
        (Kind::Alltoall, _) if facts.bytes > MAX_EXCHANGED_PART_BYTES => return None,
        (Kind::Alltoall, members) => (members as usize, MAX_ROUNDS),
        _ => (1, MAX_ROUNDS),
    };
    let mut each = (1..=rounds).map(|count| facts.bytes.div_ceil(count).max(1));
    each.find(|each| each.saturating_mul(shares) <= contribution)
}

fn by_messages(kind: Kind, facts: &Facts) -> Algorithm {
    match kind {
        Kind::Barrier if facts.hosts > 1 => Algorithm::Leaders,
        Kind::Barrier => Algorithm::Dissemination,
        Kind::Broadcast => Algorithm::Tree,
        Kind::Reduce if facts.commutative => Algorithm::Tree,
        Kind::Reduce => Algorithm::OrderedTree,
        Kind::Allreduce => allreduce_by_messages(facts),
        Kind::Scan | Kind::Exscan => Algorithm::Chain,
        Kind::ReduceScatter if facts.commutative => Algorithm::Pairwise,
        Kind::ReduceScatter => Algorithm::RankOrder,
        Kind::Allgather if facts.members == 2 => Algorithm::Exchange,
        Kind::Allgather | Kind::Alltoall if leaders_carry(kind, facts) => Algorithm::Leaders,
        Kind::Allgather if has_lanes(facts) => Algorithm::Lanes,
        Kind::Allgather => Algorithm::Ring,
        Kind::Gather | Kind::Scatter | Kind::Alltoall => Algorithm::Direct,
    }
}

/// Returns whether parts are so short that leaders carry those of all members of their hosts.
fn leaders_carry(kind: Kind, facts: &Facts) -> bool {
    let (members, here) = (facts.members as usize, facts.most_on_a_host);
    let carried = facts.bytes.saturating_mul(members);
    facts.hosts > 1
        && match kind {
            Kind::Alltoall => {
                facts.divisible
                    && here > 1
                    && carried.saturating_mul(here) <= MAX_EXCHANGED_BY_LEADERS_BYTES
            }
            _ if has_lanes(facts) => carried <= MAX_GATHERED_BEFORE_LANES_BYTES,
            _ => carried <= MAX_GATHERED_BY_LEADERS_BYTES,
        }
}

/// Returns whether all hosts have the same number of members, more than one, so that each member has a counterpart on every other host.
fn has_lanes(facts: &Facts) -> bool {
    facts.hosts > 1 && facts.most_on_a_host > 1 && facts.fewest_on_a_host == facts.most_on_a_host
}

fn allreduce_by_messages(facts: &Facts) -> Algorithm {
    let (is_pair, is_across) = (facts.members == 2, facts.hosts > 1);
    let has_few = (2..=MAX_MEMBERS_PER_HOST_UNDIVIDED).contains(&facts.most_on_a_host);
    match facts.bytes {
        _ if !facts.commutative || facts.members < 2 => Algorithm::OrderedTree,
        MIN_HALVES_BYTES.. if is_pair && facts.divisible && !is_across => Algorithm::Halves,
        ..MIN_DIVIDED_BYTES if is_pair => Algorithm::Exchange,
        ..MIN_SHARES_BYTES if is_across && has_few => Algorithm::Leaders,
        MIN_DIVIDED_BYTES.. if is_across || facts.members <= MAX_SHARING_MEMBERS => {
            Algorithm::Shares
        }
        MIN_DIVIDED_BYTES.. => Algorithm::Ring,
        _ if is_across => Algorithm::Leaders,
        _ => Algorithm::OrderedTree,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns properties of all sorts: sizes around every bound, groups on one host or several, with a collective buffer or without.
    fn all_facts() -> impl Iterator<Item = Facts> {
        let sizes = [
            0,
            1,
            63,
            64,
            65,
            255,
            1024,
            4096,
            4097,
            16383,
            16384,
            16385,
            65535,
            65536,
            1 << 20,
        ];
        let groups = [1u32, 2, 3, 8, 64, 65, 1024].into_iter();
        let groups = groups.flat_map(|members| [1, 2, 3].map(|hosts| (members, hosts)));
        let groups = groups.filter(|&(members, hosts)| hosts <= members as usize);
        groups.flat_map(move |(members, hosts)| {
            sizes.into_iter().flat_map(move |bytes| {
                [None, Some(64), Some(4096), Some(16384)]
                    .into_iter()
                    .flat_map(move |contribution| {
                        (0..8).map(move |bits| Facts {
                            bytes,
                            members,
                            hosts,
                            most_on_a_host: (members as usize).div_ceil(hosts),
                            fewest_on_a_host: members as usize / hosts,
                            contribution,
                            waits: bits & 1 != 0,
                            commutative: bits & 2 != 0,
                            divisible: bits & 4 != 0,
                        })
                    })
            })
        })
    }

    #[test]
    fn what_is_chosen_can_be_done() {
        for (facts, kind) in all_facts().flat_map(|facts| Kind::ALL.map(|kind| (facts, kind))) {
            let chosen = choose(kind, &facts);
            let pair = facts.members == 2;
            let can_be_done = match chosen {
                Algorithm::Rounds(each) => {
                    let shares = match kind {
                        Kind::Scatter | Kind::Alltoall if !pair => facts.members as usize,
                        _ => 1,
                    };
                    let moves_all = match kind {
                        Kind::Allgather | Kind::Alltoall => each * MAX_ROUNDS >= facts.bytes,
                        _ => each == facts.bytes,
                    };
                    let fits = facts.contribution.is_some_and(|most| each * shares <= most);
                    facts.waits && facts.hosts == 1 && fits && moves_all
                }
                Algorithm::Crossing => {
                    let is_large = facts.contribution.is_none_or(|most| facts.bytes > most);
                    facts.waits
                        && facts.hosts > 1
                        && facts.commutative | (kind == Kind::Barrier)
                        && !is_large
                }
                Algorithm::Message => facts.waits && pair,
                Algorithm::Exchange => pair,
                Algorithm::Halves => pair && facts.commutative && facts.divisible,
                Algorithm::Leaders => {
                    let combines = kind == Kind::Allreduce;
                    let cuts = kind == Kind::Alltoall;
                    facts.hosts > 1 && facts.commutative | !combines && facts.divisible | !cuts
                }
                Algorithm::Lanes => {
                    facts.hosts > 1 && facts.fewest_on_a_host == facts.most_on_a_host
                }
                Algorithm::Shares => facts.commutative,
                Algorithm::Ring => facts.commutative || kind == Kind::Allgather,
                Algorithm::Tree => facts.commutative || kind == Kind::Broadcast,
                Algorithm::Pairwise => facts.commutative,
                Algorithm::RankOrder => !facts.commutative,
                _ => true,
            };
            assert!(can_be_done, "{kind:?} by {chosen:?}: {facts:?}");
        }
    }

    #[test]
    fn what_is_started_goes_by_messages() {
        for facts in all_facts().filter(|facts| !facts.waits) {
            for chosen in Kind::ALL.map(|kind| choose(kind, &facts)) {
                let needs_a_caller = matches!(
                    chosen,
                    Algorithm::Rounds(_) | Algorithm::Crossing | Algorithm::Message
                );
                assert!(!needs_a_caller, "{chosen:?}: {facts:?}");
            }
        }
    }

    #[test]
    fn members_that_wait_and_share_memory_send_no_small_message() {
        let facts = Facts {
            bytes: 8,
            members: 4,
            hosts: 1,
            most_on_a_host: 4,
            fewest_on_a_host: 4,
            contribution: Some(4096),
            waits: true,
            commutative: true,
            divisible: true,
        };
        for kind in Kind::ALL {
            let expected = match kind {
                Kind::Gather => Algorithm::Direct,
                _ => Algorithm::Rounds(8),
            };
            assert_eq!(choose(kind, &facts), expected, "{kind:?}");
        }
    }

    #[test]
    fn few_members_of_a_host_share_a_large_sum_and_many_pass_it_round() {
        let facts = |members: u32| Facts {
            bytes: MIN_DIVIDED_BYTES,
            members,
            hosts: 1,
            most_on_a_host: members as usize,
            fewest_on_a_host: members as usize,
            contribution: None,
            waits: false,
            commutative: true,
            divisible: true,
        };
        let chosen = |members| choose(Kind::Allreduce, &facts(members));
        assert_eq!(chosen(3), Algorithm::Shares);
        assert_eq!(chosen(MAX_SHARING_MEMBERS), Algorithm::Shares);
        assert_eq!(chosen(MAX_SHARING_MEMBERS + 1), Algorithm::Ring);
    }
}
