//! The calls that a tracer can trace, and the values that it gets at the begin and at the end of each.
//!
//! Names and meanings are those of `pvmtev.h`. In every event the time and the task precede these values.

use crate::system::events;

/// A call that can be traced.
pub struct Call {
    pub event: usize,
    /// The meanings of its values at the begin, and at the end.
    pub entry: &'static [i32],
    pub exit: &'static [i32],
}

macro_rules! calls {
    ($($name:ident $event:ident [$($entry:ident)*] [$($exit:ident)*];)*) => { $(
        pub const $name: &Call = &Call {
            event: events::number(stringify!($event)),
            entry: &[$(events::meaning(stringify!($entry))),*],
            exit: &[$(events::meaning(stringify!($exit))),*],
        };
    )* };
}

calls! {
    // Tasks.
    MYTID mytid [] [MT];
    EXIT exit [] [];
    PARENT parent [] [PT];
    SPAWN spawn [SE SW SF SC] [CC STL];
    KILL kill [TT] [CC];
    SENDSIG sendsig [TT SN] [CC];
    PSTAT pstat [TT] [TST];
    TASKS tasks [TW] [CC TNT];
    SIBLINGS siblings [] [SIB];
    NOTIFY notify [NE NMC NTL] [CC];

    // Hosts, options.
    CONFIG config [] [NH NA CC];
    ADDHOSTS addhosts [HNL] [CC];
    DELHOSTS delhosts [HNL] [CC];
    HALT halt [] [];
    TICKLE tickle [TA] [CC TR];
    MSTAT mstat [HN] [HS];
    ARCHCODE archcode [AN] [AC];
    GETOPT getopt [OPT] [OPV];
    SETOPT setopt [OPT OPV] [OPV];
    START_PVMD start_pvmd [BF AS] [CC];
    GETFDS getfds [] [CC FDS];

    // Calls of daemons.
    REG_HOSTER reg_hoster [] [CC];
    REG_RM reg_rm [] [CC];
    REG_TASKER reg_tasker [] [CC];
    REG_TRACER reg_tracer [TRC TRT TRX TRO TRM TRB TRL] [CC];

    // Sending and receiving.
    SEND send [MNB DST MC MCX] [CC];
    MCAST mcast [MNB MC MCX MDL] [CC];
    PSEND psend [DST MC MCX PDA PC PDT] [CC];
    RECV recv [RST RMC RCX] [MB MNB MC MCX SRC];
    NRECV nrecv [RST RMC RCX] [MB MNB MC MCX SRC];
    TRECV trecv [RST RMC RCX MTS MTU] [MB MNB MC MCX SRC];
    PROBE probe [RST RMC RCX] [CC];
    PRECV precv [RST RMC RCX PDA PC PDT] [CC MNB MC MCX SRC];
    RECVF recvf [] [];
    ADDMHF addmhf [RST RMC RCX] [MHI];
    DELMHF delmhf [MHI] [CC];
    MHF_INVOKE mhf_invoke [RST RMC RCX MB MNB MC MCX SRC] [];
    NEWCONTEXT newcontext [] [CXN];
    FREECONTEXT freecontext [CXF] [CC];
    SETCONTEXT setcontext [CXS] [CC];
    GETCONTEXT getcontext [] [CXC];

    // Buffers.
    MKBUF mkbuf [ME] [MB];
    INITSEND initsend [ME] [MSB];
    FREEBUF freebuf [MB] [CC];
    GETSBUF getsbuf [] [MSB];
    GETRBUF getrbuf [] [MRB];
    SETSBUF setsbuf [MB] [MSB];
    SETRBUF setrbuf [MB] [MRB];
    BUFINFO bufinfo [MB] [CC INB IMC IST];
    GETMINFO getminfo [MB] [CC];
    SETMINFO setminfo [MB] [CC];

    // Packing.
    PKBYTE pkbyte [PDA PC PSD] [CC];
    PKSHORT pkshort [PDA PC PSD] [CC];
    PKINT pkint [PDA PC PSD] [CC];
    PKLONG pklong [PDA PC PSD] [CC];
    PKUSHORT pkushort [PDA PC PSD] [CC];
    PKUINT pkuint [PDA PC PSD] [CC];
    PKULONG pkulong [PDA PC PSD] [CC];
    PKFLOAT pkfloat [PDA PC PSD] [CC];
    PKDOUBLE pkdouble [PDA PC PSD] [CC];
    PKCPLX pkcplx [PDA PC PSD] [CC];
    PKDCPLX pkdcplx [PDA PC PSD] [CC];
    PKSTR pkstr [PDA] [CC];
    UPKBYTE upkbyte [PDA PC PSD] [CC];
    UPKSHORT upkshort [PDA PC PSD] [CC];
    UPKINT upkint [PDA PC PSD] [CC];
    UPKLONG upklong [PDA PC PSD] [CC];
    UPKUSHORT upkushort [PDA PC PSD] [CC];
    UPKUINT upkuint [PDA PC PSD] [CC];
    UPKULONG upkulong [PDA PC PSD] [CC];
    UPKFLOAT upkfloat [PDA PC PSD] [CC];
    UPKDOUBLE upkdouble [PDA PC PSD] [CC];
    UPKCPLX upkcplx [PDA PC PSD] [CC];
    UPKDCPLX upkdcplx [PDA PC PSD] [CC];
    UPKSTR upkstr [PDA] [CC];
    PACKF packf [PF] [CC];
    UNPACKF unpackf [PF] [CC];

    // Groups.
    JOINGROUP joingroup [GN] [CC];
    LVGROUP lvgroup [GN] [CC];
    GSIZE gsize [GN] [GS];
    GETTID gettid [GN GI] [GT];
    GETINST getinst [GN GT] [GI];
    BARRIER barrier [GN GBC] [CC];
    BCAST bcast [GN MC] [CC MDL];
    REDUCE reduce [GN MC] [CC];
    GATHER gather [GN MC] [CC];
    SCATTER scatter [GN MC] [CC];

    // Mailboxes.
    PUTINFO putinfo [CN CI CF CD] [CC];
    GETINFO getinfo [CN CI CF] [CC CR];
    DELINFO delinfo [CN CI CF] [CC];
    GETMBOXINFO getmboxinfo [CN] [CC];
    INSERT insert [CN CI CD] [CC];
    LOOKUP lookup [CN CI] [CC];
    DELETE delete [CN CI] [CC];
}
