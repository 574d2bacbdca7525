//! Jobs inside an allocation of Slurm: its nodes are the hosts, and `srun` is the remote shell.
//!
//! Each node gets a step of one process, which carries the channel and becomes the agent. The step overlaps other steps
//! and has all processors of the node that belong to the job. So Slurm's binding and control groups apply to the tasks,
//! and `scancel` and time limits end them with everything else of the job.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use regatta_program::Refusal;
use regatta_slurm::{Allocation, Node, OF_ONE_STEP};

use crate::hosts::Host;

/// Time limit for the answer of a node, unless the user sets another. Slurm may make a step wait.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// An allocation of Slurm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Number of tasks that the job has by default.
    pub tasks: u32,
    /// The hosts, or `None` if this is the only one.
    pub hosts: Option<Vec<Host>>,
    /// The command that runs `sh` on one of the hosts.
    pub rsh: Vec<String>,
}

impl Given {
    /// Sets the number of tasks for each host to `each`. Fails if a host has no room for them, unless `oversubscribe`
    /// is set.
    pub fn set_each(&mut self, each: u32, oversubscribe: bool) -> Result<(), Refusal> {
        let hosts = self.hosts.iter_mut().flatten();
        let rooms = hosts.map(|host| host.slots.replace(each).unwrap_or(1));
        let mut rooms: Vec<u32> = rooms.collect();
        if rooms.is_empty() {
            rooms.push(self.tasks);
        }
        let least = rooms.iter().copied().min().unwrap_or(1);
        if each > least && !oversubscribe {
            return Err(Refusal::usage(format!(
                "the Slurm job has room for {} on one of its nodes, and --per-host {each} asks for more: ask Slurm for more (salloc --ntasks-per-node={each}), or use --oversubscribe",
                crate::words::count(least as usize, "task"),
            )));
        }
        self.tasks = each.saturating_mul(rooms.len().try_into().unwrap_or(u32::MAX));
        Ok(())
    }
}

/// Returns the part of the allocation for a job of this many tasks that is started here, or `None` outside an
/// allocation.
///
/// `by_srun` means that the user has named no other way to the nodes.
pub fn given(
    tasks: Option<u32>,
    oversubscribe: bool,
    by_srun: bool,
) -> Result<Option<Given>, Refusal> {
    let environment = &regatta_slurm::environment;
    let Some(allocation) = allocation(environment)? else {
        return Ok(None);
    };
    refuse_many_launchers(environment, "regatta run PROGRAM")?;
    fits(tasks, oversubscribe, &allocation)?;
    let hosts = hosts(&allocation.nodes, environment("SLURMD_NODENAME").as_deref());
    if hosts.is_some() && by_srun {
        require_srun(&allocation)?;
    }
    Ok(Some(Given {
        tasks: allocation.slots(),
        hosts,
        rsh: srun(&allocation.job),
    }))
}

/// Returns the nodes as hosts, seen from the node `here`, or `None` if that is the only one.
fn hosts(nodes: &[Node], here: Option<&str>) -> Option<Vec<Host>> {
    match nodes {
        // The limits that Slurm has set for this process are those of the job on this node.
        [only] if here == Some(&only.name) => None,
        nodes => Some(nodes.iter().map(host).collect()),
    }
}

/// The nodes of a Slurm job, for a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// This host, if it is one of the nodes.
    pub here: Option<Host>,
    /// The other nodes.
    pub others: Vec<Host>,
    /// The command that runs `sh` on one of the nodes.
    pub rsh: Vec<String>,
}

/// Returns the nodes of the Slurm job that this process is in, or `None` outside an allocation. `by_srun` is as for
/// [`given`].
pub fn nodes(by_srun: bool) -> Result<Option<Nodes>, Refusal> {
    let environment = &regatta_slurm::environment;
    let Some(allocation) = allocation(environment)? else {
        return Ok(None);
    };
    refuse_many_launchers(environment, "regatta up")?;
    if by_srun {
        require_srun(&allocation)?;
    }
    let name = environment("SLURMD_NODENAME");
    let is_here = |host: &Host| Some(&host.name) == name.as_ref();
    let (here, others): (Vec<Host>, Vec<Host>) =
        allocation.nodes.iter().map(host).partition(is_here);
    Ok(Some(Nodes {
        here: here.into_iter().next(),
        others,
        rsh: srun(&allocation.job),
    }))
}

fn allocation(environment: regatta_slurm::Environment) -> Result<Option<Allocation>, Refusal> {
    Allocation::find(environment).map_err(|error| {
        Refusal::of_regatta(format!(
            "Slurm's description of this job is not valid: {error}. Name the hosts with --host"
        ))
    })
}

fn require_srun(allocation: &Allocation) -> Result<(), Refusal> {
    match is_in_path("srun") {
        true => Ok(()),
        false => Err(Refusal::of_regatta(format!(
            "this is Slurm job {}, but srun, which reaches the nodes, is not in PATH: add it, name another command with --rsh, or run on this host only with --host localhost",
            allocation.job
        ))),
    }
}

fn host(node: &Node) -> Host {
    Host {
        name: node.name.clone(),
        slots: Some(node.slots),
        processors: Some(node.processors),
    }
}

/// Fails if `srun` has started several launchers: each would start the whole job.
fn refuse_many_launchers(
    environment: regatta_slurm::Environment,
    command: &str,
) -> Result<(), Refusal> {
    let count = environment("SLURM_STEP_NUM_TASKS").and_then(|text| text.parse::<u32>().ok());
    let Some(count) = count.filter(|&count| count > 1 && environment("SLURM_STEP_ID").is_some())
    else {
        return Ok(());
    };
    Err(Refusal::usage(match command.strip_suffix(" PROGRAM") {
        Some(short) => format!(
            "srun has started `{short}` {count} times, and each would start the whole job: use `srun -n {count} PROGRAM` without `{short}`, or `{command}` without srun"
        ),
        None => format!(
            "srun has started `{command}` {count} times, and each would start the whole machine: use `{command}` without srun"
        ),
    }))
}

fn fits(tasks: Option<u32>, oversubscribe: bool, allocation: &Allocation) -> Result<(), Refusal> {
    let room = allocation.slots();
    match tasks.filter(|&tasks| tasks > room && !oversubscribe) {
        None => Ok(()),
        Some(tasks) => Err(Refusal::usage(format!(
            "Slurm job {} has room for {room} tasks on {}, and -n {tasks} asks for more: ask Slurm for more (salloc -n {tasks}), or use --oversubscribe",
            allocation.job,
            crate::words::count(allocation.nodes.len(), "node"),
        ))),
    }
}

/// Returns the command that runs `sh` on a node of the job.
fn srun(job: &str) -> Vec<String> {
    let words = [
        "srun",
        &format!("--jobid={job}"),
        "--nodes=1",
        "--ntasks=1",
        "--nodelist={host}",
        "--cpus-per-task={cpus}",
        // Run beside other steps of the job.
        "--overlap",
        "--mpi=none",
        // Otherwise srun holds back text without a newline.
        "--unbuffered",
        "--quiet",
    ];
    words.map(str::to_owned).to_vec()
}

fn is_in_path(name: &str) -> bool {
    regatta_program::find(name.as_ref(), std::env::var_os("PATH").as_deref()).is_ok()
}

pub(crate) fn is_srun(program: &str) -> bool {
    Path::new(program).file_name() == Some("srun".as_ref())
}

/// Removes variables that describe other steps from the environment of `srun`.
pub(crate) fn forget_shape(command: &mut Command) {
    for name in OF_ONE_STEP {
        command.env_remove(name);
    }
}

/// Returns a description of Slurm on this host for `regatta doctor`, with the present job and its room, or `None` if
/// there is no `srun`.
pub fn describe() -> Option<String> {
    if !is_in_path("srun") {
        return None;
    }
    let munge = match is_in_path("munge") && is_in_path("unmunge") {
        true => "",
        false => {
            "; munge is missing, so `srun` starts jobs on one node only; `regatta run` starts them on all nodes"
        }
    };
    let place = match Allocation::find(&regatta_slurm::environment) {
        Ok(Some(allocation)) => format!(
            "srun is available; this is job {} with room for {} on {}",
            allocation.job,
            crate::words::count(allocation.slots() as usize, "task"),
            crate::words::count(allocation.nodes.len(), "node")
        ),
        Ok(None) => "srun is available; this is not in a job".to_owned(),
        Err(error) => {
            format!("srun is available, but Slurm's description of this job is not valid: {error}")
        }
    };
    Some(format!("{place}{munge}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_tasks_for_each_node_are_taken_where_each_has_room() {
        let host = |name: &str, slots| Host {
            name: name.to_owned(),
            slots: Some(slots),
            processors: None,
        };
        let given = Given {
            tasks: 7,
            hosts: Some(vec![host("a", 4), host("b", 3)]),
            rsh: Vec::new(),
        };
        let each = |each, oversubscribe| {
            let mut given = given.clone();
            given.set_each(each, oversubscribe).map(|()| given)
        };
        let two = each(2, false).expect("room");
        let slots: Vec<_> = two.hosts.iter().flatten().map(|host| host.slots).collect();
        assert_eq!((two.tasks, slots), (4, vec![Some(2), Some(2)]));
        let refusal = each(4, false).expect_err("no room");
        assert!(refusal.sentence.contains("room for 3 tasks"), "{refusal}");
        assert_eq!(each(4, true).expect("forced").tasks, 8);
        let mut only = Given {
            hosts: None,
            ..given.clone()
        };
        only.set_each(5, false).expect("room");
        assert_eq!(only.tasks, 5);
    }

    fn node(name: &str, slots: u32) -> Node {
        Node {
            name: name.to_owned(),
            slots,
            processors: slots,
        }
    }

    fn job(slots: &[u32]) -> Allocation {
        let names = (1..).map(|number| format!("n{number}"));
        let nodes = names.zip(slots).map(|(name, &slots)| node(&name, slots));
        Allocation {
            job: "7".to_owned(),
            nodes: nodes.collect(),
        }
    }

    #[test]
    fn only_a_job_of_the_node_where_we_are_needs_no_step() {
        let one = [node("n1", 2)];
        assert_eq!(hosts(&one, Some("n1")), None);
        // On a login node, or on a node of another job.
        for here in [None, Some("login")] {
            assert_eq!(hosts(&one, here).map(|hosts| hosts.len()), Some(1));
        }
        let two = [node("n1", 2), node("n2", 2)];
        assert_eq!(hosts(&two, Some("n1")).map(|hosts| hosts.len()), Some(2));
    }

    #[test]
    fn more_tasks_than_there_is_room_for_are_refused_unless_they_are_asked_for() {
        let job = job(&[2, 1]);
        assert_eq!(fits(Some(3), false, &job), Ok(()));
        assert_eq!(fits(None, false, &job), Ok(()));
        assert_eq!(fits(Some(4), true, &job), Ok(()));
        let refused = fits(Some(4), false, &job).expect_err("no room for 4");
        assert_eq!(refused.status, crate::STATUS_USAGE);
        assert!(
            refused.sentence.contains("room for 3 tasks on 2 nodes"),
            "{refused}"
        );
    }

    #[test]
    fn a_launcher_is_refused_only_where_srun_has_started_several_of_it() {
        let refused = |tasks: Option<&str>, step: Option<&str>, command: &str| {
            let environment = |name: &str| match name {
                "SLURM_STEP_NUM_TASKS" => tasks.map(str::to_owned),
                "SLURM_STEP_ID" => step.map(str::to_owned),
                _ => None,
            };
            refuse_many_launchers(&environment, command).err()
        };
        for (tasks, step) in [(None, None), (Some("4"), None), (Some("1"), Some("0"))] {
            assert_eq!(refused(tasks, step, "regatta up"), None);
        }
        let run = refused(Some("4"), Some("0"), "regatta run PROGRAM").expect("four launchers");
        assert!(
            run.sentence
                .contains("use `srun -n 4 PROGRAM` without `regatta run`"),
            "{run}"
        );
        let up = refused(Some("4"), Some("0"), "regatta up").expect("four machines");
        assert!(
            up.sentence.ends_with("use `regatta up` without srun"),
            "{up}"
        );
    }

    #[test]
    fn a_step_is_of_this_job_and_holds_back_no_other() {
        let words = srun("7");
        assert!(is_srun(&words[0]) && is_srun("/opt/slurm/bin/srun"));
        assert!(!is_srun("/opt/srun/ssh"));
        for word in ["--jobid=7", "--overlap", "--nodelist={host}"] {
            assert!(words.iter().any(|known| known == word), "{word}");
        }
    }
}
