//! A daemon that was left over when its machine ended: it was cut off then, and nobody could tell it.
//!
//! It ends by itself when it reaches the hosts of its machine and finds their daemons ended (`regatta_membership::Event::Ended`). As long as
//! it does not reach them, or they are switched off, it holds the place of a new machine of the same name. So whoever begins one on this
//! host ends it first. A daemon is left over if it belongs to a machine of several hosts, has no majority, and is answered by nobody: it has no
//! work then, and may take on none.

use std::time::Duration;

use regatta_launch::Refusal;
use regatta_launch::place::MachinePlace;

use crate::ask::Report;
use crate::commands;

/// Time a leftover daemon may take to end what it once ran.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Whether the daemon of this place is left over.
pub(crate) fn is_there(place: &MachinePlace) -> bool {
    commands::hosts(place).is_ok_and(|report| is_left_over(&report))
}

/// Ends the daemon of this place if it is left over, and returns a sentence that says so.
pub(crate) fn end(place: &MachinePlace, host: &str) -> Result<Option<String>, Refusal> {
    if !is_there(place) {
        return Ok(None);
    }
    commands::leave(place, END_TIMEOUT)?;
    Ok(Some(format!(
        "on {host} a daemon of an earlier virtual machine {} was left, cut off from all other hosts of that machine: it has been ended",
        place.machine()
    )))
}

fn is_left_over(report: &Report) -> bool {
    let answered = report.hosts.iter().any(|host| host.state == "up");
    report.standing != "majority" && report.known > 1 && !answered
}
