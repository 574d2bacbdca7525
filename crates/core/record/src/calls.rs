//! The functions of `regatta.h` that are recorded, and what the time in them is called.

/// Purpose of a call, to which the time in it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Sending.
    Send,
    /// Receiving, the wait for the message included.
    Receive,
    /// Waiting for what was begun, and looking for what has come.
    Wait,
    /// Calls of all members of a group.
    Collective,
    /// Joining, leaving, and what the launcher is asked.
    Other,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [
        Kind::Send,
        Kind::Receive,
        Kind::Wait,
        Kind::Collective,
        Kind::Other,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Send => "sending",
            Kind::Receive => "receiving",
            Kind::Wait => "waiting",
            Kind::Collective => "collective",
            Kind::Other => "other",
        }
    }
}

/// The number of a function: its place in [`CALLS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call(pub u16);

impl Call {
    /// The function of this name, which is in the list.
    pub const fn named(name: &str) -> Call {
        let mut at = 0;
        while at < CALLS.len() {
            if equal(CALLS[at].0.as_bytes(), name.as_bytes()) {
                return Call(at as u16);
            }
            at += 1;
        }
        panic!("no such call");
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        CALLS
            .get(usize::from(self.0))
            .map_or("unknown", |call| call.0)
    }

    /// Its purpose.
    pub fn kind(self) -> Kind {
        CALLS
            .get(usize::from(self.0))
            .map_or(Kind::Other, |call| call.1)
    }
}

/// Are two texts equal? In constants nothing else can compare them.
const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    a.len() == b.len() && at == a.len()
}

/// All that are recorded, in the order of their numbers. Others return at once, and are left alone.
pub const CALLS: &[(&str, Kind)] = &[
    ("rg_send", Kind::Send),
    ("rg_ssend", Kind::Send),
    ("rg_rsend", Kind::Send),
    ("rg_bsend", Kind::Send),
    ("rg_isend", Kind::Send),
    ("rg_issend", Kind::Send),
    ("rg_irsend", Kind::Send),
    ("rg_sendv", Kind::Send),
    ("rg_bsendv", Kind::Send),
    ("rg_isendv", Kind::Send),
    ("rg_loan_send", Kind::Send),
    ("rg_loan_share", Kind::Send),
    ("rg_recv", Kind::Receive),
    ("rg_recv_within", Kind::Receive),
    ("rg_recv_passed", Kind::Receive),
    ("rg_recv_masked", Kind::Receive),
    ("rg_recvv", Kind::Receive),
    ("rg_irecv", Kind::Receive),
    ("rg_irecv_masked", Kind::Receive),
    ("rg_irecvv", Kind::Receive),
    ("rg_mrecv", Kind::Receive),
    ("rg_mrecvv", Kind::Receive),
    ("rg_imrecv", Kind::Receive),
    ("rg_imrecvv", Kind::Receive),
    ("rg_sendrecv", Kind::Receive),
    ("rg_loan_recv", Kind::Receive),
    ("rg_loan_open", Kind::Receive),
    ("rg_wait", Kind::Wait),
    ("rg_test", Kind::Wait),
    ("rg_waitall", Kind::Wait),
    ("rg_waitany", Kind::Wait),
    ("rg_testall", Kind::Wait),
    ("rg_testany", Kind::Wait),
    ("rg_probe", Kind::Wait),
    ("rg_iprobe", Kind::Wait),
    ("rg_mprobe", Kind::Wait),
    ("rg_improbe", Kind::Wait),
    ("rg_look", Kind::Wait),
    ("rg_first_arrived", Kind::Wait),
    ("rg_pass_over", Kind::Wait),
    ("rg_cancel", Kind::Wait),
    ("rg_on_complete", Kind::Wait),
    ("rg_progress", Kind::Wait),
    ("rg_clear_fd", Kind::Wait),
    ("rg_raise_fd", Kind::Wait),
    ("rg_barrier", Kind::Collective),
    ("rg_broadcast", Kind::Collective),
    ("rg_reduce", Kind::Collective),
    ("rg_allreduce", Kind::Collective),
    ("rg_scan", Kind::Collective),
    ("rg_exscan", Kind::Collective),
    ("rg_reduce_scatter", Kind::Collective),
    ("rg_gather", Kind::Collective),
    ("rg_gatherv", Kind::Collective),
    ("rg_scatter", Kind::Collective),
    ("rg_scatterv", Kind::Collective),
    ("rg_allgather", Kind::Collective),
    ("rg_allgatherv", Kind::Collective),
    ("rg_alltoall", Kind::Collective),
    ("rg_alltoallv", Kind::Collective),
    ("rg_ibarrier", Kind::Collective),
    ("rg_ibroadcast", Kind::Collective),
    ("rg_ireduce", Kind::Collective),
    ("rg_iallreduce", Kind::Collective),
    ("rg_iscan", Kind::Collective),
    ("rg_iexscan", Kind::Collective),
    ("rg_ireduce_scatter", Kind::Collective),
    ("rg_igather", Kind::Collective),
    ("rg_igatherv", Kind::Collective),
    ("rg_iscatter", Kind::Collective),
    ("rg_iscatterv", Kind::Collective),
    ("rg_iallgather", Kind::Collective),
    ("rg_iallgatherv", Kind::Collective),
    ("rg_ialltoall", Kind::Collective),
    ("rg_ialltoallv", Kind::Collective),
    ("rg_group_dup", Kind::Collective),
    ("rg_group_select", Kind::Collective),
    ("rg_igroup_dup", Kind::Collective),
    ("rg_group_select_tagged", Kind::Collective),
    ("rg_group_split", Kind::Collective),
    ("rg_group_shrink", Kind::Collective),
    ("rg_group_free", Kind::Collective),
    ("rg_agree", Kind::Collective),
    ("rg_iagree", Kind::Collective),
    ("rg_meet", Kind::Collective),
    ("rg_meet_members", Kind::Collective),
    ("rg_init", Kind::Other),
    ("rg_finalize", Kind::Other),
    ("rg_may_end", Kind::Other),
    ("rg_enter", Kind::Other),
    ("rg_halt", Kind::Other),
    ("rg_abort", Kind::Other),
    ("rg_loan", Kind::Other),
    ("rg_loan_free", Kind::Other),
    ("rg_loan_close", Kind::Other),
    ("rg_acknowledge_dead", Kind::Other),
    ("rg_group_revoke", Kind::Other),
    ("rg_group_tie", Kind::Other),
    ("rg_group_tolerate_left", Kind::Other),
    ("rg_spawn", Kind::Other),
    ("rg_signal", Kind::Other),
    ("rg_kill", Kind::Other),
    ("rg_tasks", Kind::Other),
    ("rg_hosts", Kind::Other),
    ("rg_clock", Kind::Other),
    ("rg_add_hosts", Kind::Other),
    ("rg_remove_hosts", Kind::Other),
    ("rg_add_host_file", Kind::Other),
    ("rg_start_others", Kind::Other),
    ("rg_has_ended", Kind::Other),
    ("rg_begin_hosting", Kind::Other),
    ("rg_end_hosting", Kind::Other),
    ("rg_hosts_started", Kind::Other),
    ("rg_notify", Kind::Other),
    ("rg_notify_cancel", Kind::Other),
    ("rg_put", Kind::Other),
    ("rg_get", Kind::Other),
    ("rg_add", Kind::Other),
    ("rg_delete", Kind::Other),
    ("rg_names", Kind::Other),
    ("rg_join", Kind::Other),
    ("rg_leave", Kind::Other),
    ("rg_members", Kind::Other),
    ("rg_named_groups", Kind::Other),
    ("rg_waiting", Kind::Other),
];
