//! Which calls of PVM's library are traced: the mask of events, and its display.

/// The events that a user can choose: their names, and their indices in a mask.
#[rustfmt::skip]
const EVENTS: [(&str, usize); 104] = [
    ("addhosts", 0), ("addmhf", 103), ("archcode", 78), ("barrier", 1), ("bcast", 2), ("bufinfo", 3), ("catchout", 79),
    ("config", 4), ("delete", 5), ("delhosts", 6), ("delinfo", 94), ("delmhf", 104), ("exit", 7), ("freebuf", 8),
    ("freecontext", 97), ("gather", 90), ("getcontext", 99), ("getfds", 9), ("getinfo", 93), ("getinst", 10),
    ("getmboxinfo", 95), ("getminfo", 101), ("getmwid", 80), ("getopt", 11), ("getrbuf", 12), ("getsbuf", 13), ("gettid", 14),
    ("gettmask", 81), ("gsize", 15), ("halt", 16), ("hostsync", 82), ("initsend", 17), ("insert", 18), ("joingroup", 19),
    ("kill", 20), ("lookup", 21), ("lvgroup", 22), ("mcast", 23), ("mhf_invoke", 105), ("mkbuf", 24), ("mstat", 25),
    ("mytid", 26), ("newcontext", 96), ("notify", 27), ("nrecv", 28), ("packf", 83), ("parent", 29), ("perror", 30),
    ("pkbyte", 31), ("pkcplx", 32), ("pkdcplx", 33), ("pkdouble", 34), ("pkfloat", 35), ("pkint", 36), ("pklong", 38),
    ("pkshort", 40), ("pkstr", 42), ("pkuint", 37), ("pkulong", 39), ("pkushort", 41), ("precv", 84), ("probe", 43),
    ("psend", 85), ("pstat", 44), ("putinfo", 92), ("recv", 45), ("recvf", 46), ("reduce", 86), ("reg_hoster", 71),
    ("reg_rm", 72), ("reg_tasker", 73), ("reg_tracer", 74), ("scatter", 91), ("send", 47), ("sendsig", 48),
    ("setcontext", 98), ("setminfo", 102), ("setmwid", 87), ("setopt", 49), ("setrbuf", 50), ("setsbuf", 51),
    ("settmask", 88), ("siblings", 100), ("spawn", 52), ("start_pvmd", 53), ("tasks", 54), ("tickle", 55), ("tidtohost", 56),
    ("trecv", 57), ("unpackf", 89), ("upkbyte", 58), ("upkcplx", 59), ("upkdcplx", 60), ("upkdouble", 61), ("upkfloat", 62),
    ("upkint", 63), ("upklong", 65), ("upkshort", 67), ("upkstr", 69), ("upkuint", 64), ("upkulong", 66), ("upkushort", 68),
    ("user_defined", 108), ("version", 70),
];

/// The events that a display of a whole program needs.
const USUAL: [&str; 24] = [
    "addmhf",
    "barrier",
    "bcast",
    "delmhf",
    "exit",
    "joingroup",
    "kill",
    "lvgroup",
    "mcast",
    "mhf_invoke",
    "mytid",
    "nrecv",
    "parent",
    "precv",
    "probe",
    "psend",
    "recv",
    "recvf",
    "send",
    "sendsig",
    "siblings",
    "spawn",
    "trecv",
    "user_defined",
];

/// Number of columns of the table.
const COLUMNS: usize = 4;

/// A set of events. Its text form is the library's mask: 35 characters, each for four events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    chosen: [bool; EVENTS.len()],
}

/// A name without an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchEvent(pub String);

impl Events {
    /// Returns the events that a display needs.
    pub fn usual() -> Events {
        Events {
            chosen: EVENTS.map(|(name, _)| USUAL.contains(&name)),
        }
    }

    /// Adds to or removes from the set: one event by name (with or without the prefix `pvm_`), or all (`*`).
    pub fn set(&mut self, name: &str, chosen: bool) -> Result<(), NoSuchEvent> {
        if name == "*" {
            self.chosen = [chosen; EVENTS.len()];
            return Ok(());
        }
        let plain = name.strip_prefix("pvm_").unwrap_or(name);
        let found = EVENTS.iter().position(|(other, _)| *other == plain);
        self.chosen[found.ok_or_else(|| NoSuchEvent(name.to_owned()))?] = chosen;
        Ok(())
    }

    /// Returns the mask in the library's form.
    pub fn mask(&self) -> String {
        let mut mask = [b'@'; 35];
        for ((_, place), chosen) in EVENTS.iter().zip(self.chosen) {
            mask[place / 4] |= u8::from(chosen) << (place & 3);
        }
        mask.iter().map(|byte| char::from(*byte)).collect()
    }

    /// Returns all events in columns, with a star for those in the set.
    pub fn table(&self) -> Vec<String> {
        let rows = EVENTS.len().div_ceil(COLUMNS);
        let cell = |index: usize| {
            let star = if self.chosen[index] { '*' } else { ' ' };
            format!(" {star} {:<16}", EVENTS[index].0)
        };
        let row = |row: usize| {
            let cells: String = (row..EVENTS.len()).step_by(rows).map(cell).collect();
            cells[..cells.len() - 1].to_owned()
        };
        (0..rows).map(row).collect()
    }
}

/// The amounts of tracing.
pub const AMOUNTS: [(&str, i32); 3] = [("full", 1), ("time", 2), ("count", 3)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_all_events_in_four_columns() {
        let table = Events::usual().table();
        assert_eq!(table.len(), 26);
        assert_eq!(
            table[0],
            "   addhosts           gettid             pkfloat            setopt         "
        );
        assert_eq!(
            table[1],
            " * addmhf             gettmask           pkint              setrbuf        "
        );
        assert_eq!(
            table[25],
            "   getsbuf            pkdouble           setmwid            version        "
        );
    }

    #[test]
    fn a_mask_has_a_bit_for_each_chosen_event() {
        let mut events = Events::usual();
        events.set("*", false).unwrap();
        assert_eq!(events.mask(), "@".repeat(35));
        events.set("barrier", true).unwrap();
        events.set("pvm_addhosts", true).unwrap();
        assert_eq!(events.mask(), format!("C{}", "@".repeat(34)));
        events.set("user_defined", true).unwrap();
        assert_eq!(&events.mask()[27..28], "A");
        assert_eq!(
            events.set("nosuch", true),
            Err(NoSuchEvent("nosuch".into()))
        );
    }

    #[test]
    fn events_are_in_the_order_of_their_names() {
        assert!(EVENTS.is_sorted());
        assert!(
            USUAL
                .iter()
                .all(|name| EVENTS.iter().any(|(other, _)| other == name))
        );
    }
}
