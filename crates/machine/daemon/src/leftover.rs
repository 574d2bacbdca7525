//! A daemon that was left over when its machine ended, because it was cut off and could not be told.
//!
//! It ends by itself when it reaches the hosts of its machine and finds that their daemons have ended
//! (`regatta_membership::Event::Ended`). As long as it does not reach them, or they are switched off, it occupies the
//! place of a new machine of the same name. So a command that creates one on this host ends it first. A daemon is left
//! over if it belongs to a machine of several hosts, has no majority, and no other host answers it: it has no work
//! then, and may not accept any.

use std::time::Duration;

use regatta_launch::Refusal;
use regatta_launch::place::MachinePlace;

use crate::ask::Report;
use crate::commands;

/// Time that a leftover daemon may take to end what it ran.
const END_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns whether the daemon of this place is left over.
pub(crate) fn is_there(place: &MachinePlace) -> bool {
    commands::hosts(place).is_ok_and(|report| is_left_over(&report))
}

/// Ends the daemon of this place if it is left over, and returns a sentence about it.
pub(crate) fn end(place: &MachinePlace, host: &str) -> Result<Option<String>, Refusal> {
    if !is_there(place) {
        return Ok(None);
    }
    commands::leave(place, END_TIMEOUT)?;
    Ok(Some(format!(
        "on {host}, a daemon was left over from an earlier virtual machine {} and cut off from all its other hosts; it has been ended",
        place.machine()
    )))
}

fn is_left_over(report: &Report) -> bool {
    let answered = report.hosts.iter().any(|host| host.state == "up");
    report.standing != "majority" && report.known > 1 && !answered
}
