//! A host's cube: its nodes, and the processes loaded there. Pure, without calls of Regatta.

use std::ffi::{c_int, c_long};

/// The state of a loaded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Runs,
    /// Ended with this code; `waitone` has not reported it yet.
    Ended(c_long),
}

/// A loaded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub task: c_int,
    pub node: c_int,
    pub pid: c_int,
    pub state: State,
}

/// A cube. Running processes are in the order of loading, ended ones in the order of their ends.
#[derive(Debug, Default)]
pub struct Cube {
    pub name: String,
    /// The pid with which all nodes were loaded last; before that, the pid of the first process.
    pub loaded: Option<c_int>,
    pub processes: Vec<Process>,
}

/// Returns whether a process matches a node and a pid, where -1 matches all.
pub fn is_meant(process: &Process, node: c_long, pid: c_long) -> bool {
    let matches = |number: c_int, wanted: c_long| wanted == -1 || c_long::from(number) == wanted;
    matches(process.node, node) && matches(process.pid, pid)
}

impl Cube {
    /// Returns a running process that matches.
    pub fn running(&self, node: c_long, pid: c_long) -> Option<&Process> {
        let runs = |process: &&Process| process.state == State::Runs;
        self.processes
            .iter()
            .filter(runs)
            .find(|process| is_meant(process, node, pid))
    }

    /// Records a loaded process.
    pub fn add(&mut self, task: c_int, node: c_int, pid: c_int) {
        self.loaded.get_or_insert(pid);
        self.processes.push(Process {
            task,
            node,
            pid,
            state: State::Runs,
        });
    }

    /// Records the end of a process, and moves it behind those that ended before.
    pub fn end(&mut self, task: c_int, code: c_long) {
        let runs = |process: &Process| process.task == task && process.state == State::Runs;
        if let Some(at) = self.processes.iter().position(runs) {
            let mut process = self.processes.remove(at);
            process.state = State::Ended(code);
            self.processes.push(process);
        }
    }

    /// Removes and returns, with its code, the first matching process that has ended.
    pub fn take_ended(&mut self, node: c_long, pid: c_long) -> Option<(Process, c_long)> {
        let ended = self.processes.iter().enumerate().find_map(|(at, process)| {
            match (process.state, is_meant(process, node, pid)) {
                (State::Ended(code), true) => Some((at, code)),
                _ => None,
            }
        });
        ended.map(|(at, code)| (self.processes.remove(at), code))
    }

    /// Returns whether any process, running or ended, matches.
    pub fn knows(&self, node: c_long, pid: c_long) -> bool {
        let mut all = self.processes.iter();
        all.any(|process| is_meant(process, node, pid))
    }
}

/// Returns the number of nodes that a cube's type means: a number, or d and a dimension. Letters after it name types of
/// nodes and are ignored.
pub fn nodes_of(kind: &str) -> Option<c_int> {
    let kind = kind.trim();
    let (digits, cube) = match kind.strip_prefix(['d', 'D']) {
        Some(rest) => (rest, true),
        None => (kind, false),
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let number: c_int = digits[..end].parse().ok()?;
    match cube {
        true => (number < 20).then(|| 1 << number),
        false => (1..1 << 20).contains(&number).then_some(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cube() -> Cube {
        let mut cube = Cube::default();
        for (task, node, pid) in [(5, 0, 1), (6, 1, 1), (9, 1, 2)] {
            cube.add(task, node, pid);
        }
        cube
    }

    #[test]
    fn a_type_says_how_many_nodes() {
        let nodes = ["4", "16m8", "d3", "d0rx", "1"].map(nodes_of);
        assert_eq!(nodes, [Some(4), Some(16), Some(8), Some(1), Some(1)]);
        for kind in ["", "rx", "0", "d", "d99", "-3"] {
            assert_eq!(nodes_of(kind), None, "{kind}");
        }
    }

    #[test]
    fn minus_one_stands_for_all_nodes_and_all_pids() {
        let cube = cube();
        assert_eq!(cube.running(1, -1).map(|process| process.task), Some(6));
        assert_eq!(cube.running(-1, 2).map(|process| process.task), Some(9));
        assert_eq!(cube.running(0, 2), None);
        assert!(cube.knows(-1, -1) && !cube.knows(2, -1));
    }

    #[test]
    fn ends_are_told_once_in_their_order() {
        let mut cube = cube();
        cube.end(9, 3);
        cube.end(5, -9);
        cube.end(77, 1);
        assert_eq!(cube.running(-1, -1).map(|process| process.task), Some(6));
        let told = |ended: Option<(Process, c_long)>| ended.map(|(one, code)| (one.task, code));
        assert_eq!(told(cube.take_ended(0, -1)), Some((5, -9)));
        assert_eq!(told(cube.take_ended(-1, -1)), Some((9, 3)));
        assert_eq!(told(cube.take_ended(-1, -1)), None);
        assert!(cube.knows(1, 1));
    }
}
