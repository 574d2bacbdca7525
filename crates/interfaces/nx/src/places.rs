//! Which task is which process (node and pid) that a host has loaded.
//!
//! The host stores each process under a name of the job, which the others look up when they need it.

use std::ffi::{CString, c_int, c_long, c_void};

use crate::rg;
use crate::state::NOBODY;

/// The variable from which a loaded process gets its place.
pub const VARIABLE: &str = "REGATTA_NX";

/// The place of a loaded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host's task, and its pid, or `NOBODY` if it has none yet.
    pub host: c_int,
    pub host_pid: c_int,
    /// Number of nodes of the cube.
    pub nodes: c_int,
    /// The first node of the processes that were loaded together, and their pid.
    pub node: c_int,
    pub pid: c_int,
    /// Number of the `nx_nfork` call with which the program has started itself again, from 1; 0 for a program that was
    /// loaded.
    pub fork: c_int,
    /// Rows of the rectangle of nodes; 0 if not given.
    pub rows: c_int,
}

impl Place {
    /// Encodes the variable with its name.
    pub fn write(self) -> String {
        let Place {
            host,
            host_pid,
            nodes,
            node,
            pid,
            fork,
            rows,
        } = self;
        format!("{VARIABLE}={host} {host_pid} {nodes} {node} {pid} {fork} {rows}")
    }

    /// Parses the variable's value. Returns `None` if it is invalid.
    pub fn read(text: &str) -> Option<Place> {
        let mut numbers = text.split(' ').map(|word| word.parse::<c_int>().ok());
        let mut from = |least| numbers.next().flatten().filter(|&number| number >= least);
        let place = Place {
            host: from(0)?,
            host_pid: from(NOBODY)?,
            nodes: from(0)?,
            node: from(0)?,
            pid: from(0)?,
            fork: from(0)?,
            rows: from(0)?,
        };
        (place.node < place.nodes && numbers.next().is_none()).then_some(place)
    }
}

/// A process and its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    task: c_int,
    node: c_int,
    pid: c_long,
}

/// The processes that this process knows, and its host.
pub struct Places {
    host: c_int,
    host_pid: c_long,
    known: Vec<Known>,
}

impl Places {
    pub const fn new() -> Places {
        Places {
            host: NOBODY,
            host_pid: NOBODY as c_long,
            known: Vec::new(),
        }
    }

    /// Sets the host.
    pub fn set_host(&mut self, task: c_int, pid: c_long) {
        (self.host, self.host_pid) = (task, pid);
    }

    /// Returns the host's pid. A host that has begun an application has none until it calls `setptype`.
    pub fn host_pid(&mut self) -> c_long {
        if self.host_pid == c_long::from(NOBODY)
            && self.host != NOBODY
            && let Some([pid, ..]) = get(&host_name(self.host), 0)
        {
            self.host_pid = pid.into();
        }
        self.host_pid
    }

    /// Stores the host's new pid under its name, so that all processes can look it up.
    pub fn tell_host_pid(&mut self, pid: c_int) {
        self.host_pid = pid.into();
        put(&host_name(self.host), [pid, 0]);
    }

    /// Returns the node and the pid of a task; -1 for what is unknown.
    #[cold]
    pub fn process_of(&mut self, task: c_int, nodes: c_int) -> (c_long, c_long) {
        if task == self.host {
            return (c_long::from(nodes), self.host_pid());
        }
        let known = self.known.iter().find(|known| known.task == task).copied();
        match known.or_else(|| self.look_up_task(task)) {
            Some(known) => (c_long::from(known.node), known.pid),
            None => (-1, -1),
        }
    }

    /// Returns the task of a node and a pid. If `awaits`, waits for a process that has not been loaded yet.
    pub fn task_of(
        &mut self,
        node: c_int,
        pid: c_long,
        nodes: c_int,
        awaits: bool,
    ) -> Option<c_int> {
        if node == nodes {
            // A host without a pid matches any pid.
            let its = self.host_pid();
            let is_meant = pid == its || its == c_long::from(NOBODY);
            return (self.host != NOBODY && is_meant).then_some(self.host);
        }
        let known = |known: &&Known| (known.node, known.pid) == (node, pid);
        if let Some(known) = self.known.iter().rev().find(known) {
            return Some(known.task);
        }
        let flags = if awaits { rg::AWAIT } else { 0 };
        self.look_up(node, pid, flags)
    }

    /// Looks up the task of a node and a pid under the name that the host has stored.
    fn look_up(&mut self, node: c_int, pid: c_long, flags: c_int) -> Option<c_int> {
        if self.host == NOBODY {
            return None;
        }
        let [task, ..] = get(&process_name(self.host, node, pid), flags)?;
        self.remove(task);
        self.known.push(Known { task, node, pid });
        Some(task)
    }

    /// Returns the task of a node and a pid, if it is no longer `old`.
    pub fn look_again(&mut self, node: c_int, pid: c_long, old: c_int) -> Option<c_int> {
        if node < 0 || old == self.host {
            return None;
        }
        self.look_up(node, pid, 0).filter(|&task| task != old)
    }

    fn look_up_task(&mut self, task: c_int) -> Option<Known> {
        if self.host == NOBODY {
            return None;
        }
        let [node, pid] = get(&task_name(self.host, task), 0)?;
        let known = Known {
            task,
            node,
            pid: c_long::from(pid),
        };
        self.known.push(known);
        Some(known)
    }

    /// Stores a process that this host has loaded, so that all processes can look it up.
    pub fn add(&mut self, task: c_int, node: c_int, pid: c_int) {
        self.known.push(Known {
            task,
            node,
            pid: c_long::from(pid),
        });
        put(
            &process_name(self.host, node, c_long::from(pid)),
            [task, node],
        );
        put(&task_name(self.host, task), [node, pid]);
    }

    /// Removes a process that has ended.
    pub fn remove(&mut self, task: c_int) {
        self.known.retain(|known| known.task != task);
    }
}

fn process_name(host: c_int, node: c_int, pid: c_long) -> String {
    format!("nx.{host}.process.{node}.{pid}")
}

fn host_name(host: c_int) -> String {
    format!("nx.{host}.pid")
}

fn task_name(host: c_int, task: c_int) -> String {
    format!("nx.{host}.task.{task}")
}

/// Stores two numbers under a name.
fn put(name: &str, value: [c_int; 2]) {
    let Ok(name) = CString::new(name) else {
        return;
    };
    let flags = rg::PERSISTENT | rg::OVERWRITABLE;
    // SAFETY: the name is NUL-terminated, and the value has the given size. An error is ignored: without a launcher
    // there are no names, and no processes to look up.
    unsafe {
        rg::rg_put(
            name.as_ptr(),
            value.as_ptr().cast::<c_void>(),
            size_of_val(&value),
            0,
            flags,
            std::ptr::null_mut(),
        );
    }
}

fn get(name: &str, flags: c_int) -> Option<[c_int; 2]> {
    let name = CString::new(name).ok()?;
    let (mut value, mut length) = ([0; 2], 0);
    // SAFETY: the name is NUL-terminated, and `value` has the given size.
    let code = unsafe {
        rg::rg_get(
            name.as_ptr(),
            0,
            flags,
            value.as_mut_ptr().cast::<c_void>(),
            size_of_val(&value),
            &mut length,
            std::ptr::null_mut(),
        )
    };
    (code == rg::OK && length == size_of_val(&value)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let place = Place {
            host: 4,
            host_pid: 100,
            nodes: 8,
            node: 3,
            pid: 7,
            fork: 0,
            rows: 2,
        };
        let without_pid = Place {
            host_pid: NOBODY,
            fork: 1,
            ..place
        };
        for place in [place, without_pid] {
            let text = place.write();
            let value = text.strip_prefix("REGATTA_NX=").expect("the variable");
            assert_eq!(Place::read(value), Some(place));
        }
    }

    #[test]
    fn nonsense_is_no_place() {
        for text in [
            "",
            "1",
            "1 2 3 0 5 0",
            "1 2 3 3 5 0 0",
            "1 2 3 0 -5 0 0",
            "1 -2 3 0 5 0 0",
            "1 2 3 0 5 0 0 0",
            "a 2 3 0 5 0 0",
        ] {
            assert_eq!(Place::read(text), None, "{text}");
        }
    }
}
