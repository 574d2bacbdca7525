//! The functions of `regatta.h` that are recorded, what the time in them is called, and what else is noted of them.
//!
//! The header says of each function all but this. The recorder is made of both, and its build ends if a function of the header
//! is in no list here.

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

/// What is noted of a call beside its time. Names are those of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Nothing.
    Time,
    /// A message to `to`: `len` bytes, or those of `views`.
    Sent,
    /// The message that `status` is of, also one that is too long for the buffer; and the one sent, if the call sends as well.
    Received,
    /// The message that `status` is of. One that is too long is not received.
    ReceivedIfFits,
    /// A receive whose message is noted when `request` is complete.
    Begun,
    /// The message that a probe has taken out of matching, whose receive is noted later.
    Found,
    /// Whether it has found anything (`found` or `done`): loops of looks would fill the events.
    Looked,
    /// It is no event: programs call it again and again.
    Quiet,
    /// The bytes of this task's that are in it: `len`, or `count` elements.
    Bytes,
    /// Likewise, where members have parts: `lens`, `in_lens`, `counts`, or `len` or `count` for each of them.
    BytesByMember,
    /// The process has become a task.
    Joined,
    /// The task has left.
    Left,
    /// What the recorder's own function for it notes.
    Own,
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

macro_rules! calls {
    ($($kind:ident $note:ident: $($name:ident)*;)*) => {
        /// All that are recorded, in the order of their numbers.
        pub const CALLS: &[(&str, Kind, Note)] =
            &[$($((stringify!($name), Kind::$kind, Note::$note),)*)*];
    };
}

calls! {
    Send Sent: rg_send rg_ssend rg_rsend rg_bsend rg_isend rg_issend rg_irsend rg_sendv rg_bsendv rg_isendv rg_loan_send;
    Send Time: rg_loan_share;
    Receive Received: rg_recv rg_recv_masked rg_recvv rg_mrecv rg_mrecvv rg_sendrecv rg_loan_recv;
    Receive ReceivedIfFits: rg_recv_within rg_recv_passed;
    Receive Begun: rg_irecv rg_irecv_masked rg_irecvv rg_imrecv rg_imrecvv;
    Receive Bytes: rg_loan_open;
    Wait Own: rg_wait rg_test rg_waitall rg_waitany rg_testall rg_testany rg_on_complete;
    Wait Looked: rg_iprobe rg_look;
    Wait Found: rg_mprobe rg_improbe;
    Wait Quiet: rg_progress rg_clear_fd rg_raise_fd;
    Wait Time: rg_probe rg_first_arrived rg_pass_over rg_cancel;
    Collective Time: rg_barrier rg_ibarrier;
    Collective Bytes: rg_broadcast rg_reduce rg_allreduce rg_scan rg_exscan;
    Collective Bytes: rg_gather rg_gatherv rg_scatter rg_scatterv rg_allgather;
    Collective BytesByMember: rg_allgatherv rg_alltoall rg_alltoallv rg_reduce_scatter rg_reduce_scatter_block;
    Collective Bytes: rg_ibroadcast rg_ireduce rg_iallreduce rg_iscan rg_iexscan;
    Collective Bytes: rg_igather rg_igatherv rg_iscatter rg_iscatterv rg_iallgather;
    Collective BytesByMember: rg_iallgatherv rg_ialltoall rg_ialltoallv rg_ireduce_scatter rg_ireduce_scatter_block;
    Collective Time: rg_group_dup rg_igroup_dup rg_group_select rg_group_select_tagged rg_igroup_select rg_group_split rg_group_shrink;
    Collective Time: rg_group_free rg_agree rg_iagree rg_meet rg_meet_members;
    Other Joined: rg_init rg_enter;
    Other Left: rg_finalize;
    Other Time: rg_may_end rg_halt rg_abort rg_loan rg_loan_free rg_loan_close;
    Other Time: rg_acknowledge_dead rg_group_revoke rg_group_tie rg_group_tolerate_left;
    Other Time: rg_spawn rg_signal rg_kill rg_tasks rg_hosts rg_clock rg_add_hosts rg_remove_hosts rg_add_host_file;
    Other Time: rg_start_others rg_has_ended rg_begin_hosting rg_end_hosting rg_hosts_started rg_notify rg_notify_cancel;
    Other Bytes: rg_put;
    Other Time: rg_get rg_add rg_delete rg_names rg_join rg_leave rg_members rg_named_groups rg_waiting;
}

/// Those that are not: they return at once, and tell a program what it is told anyway. The last three have functions of the
/// recorder's, which libregatta.so has only for programs that are not profiled.
pub const LEFT_ALONE: [&str; 23] = [
    "rg_dead",
    "rg_fd",
    "rg_group_is_revoked",
    "rg_host_of",
    "rg_initialized",
    "rg_last_error",
    "rg_last_error_task",
    "rg_op_create",
    "rg_on_wait",
    "rg_op_free",
    "rg_parent",
    "rg_path",
    "rg_rank",
    "rg_rank_of",
    "rg_size",
    "rg_strerror",
    "rg_tid",
    "rg_tid_of",
    "rg_time",
    "rg_version",
    "rg_mark",
    "rg_profile",
    "rg_toggle",
];
