//! How each environment is started on the hosts.

use std::path::Path;
use std::process::Command;

use super::Network;
use super::hosts::Hosts;
use crate::discover::Competitor;
use crate::plan::Group;
use crate::settings::Family;

/// The launcher with the hosts and the number of tasks, its settings and the program; the program's arguments are to follow.
pub fn command(hosts: &Hosts, competitor: &Competitor, group: &Group, program: &Path) -> Command {
    let tasks = group.tasks.to_string();
    let (slots, rsh) = (hosts.slots(group.tasks), hosts.file("rsh"));
    let loopback = hosts.network == Network::Loopback;
    let mut command = match competitor.family {
        // Of those without a launcher the program itself; `regatta-pvm`, `regatta-nx`, `regatta-express` and `regatta-mpi` are not raced between hosts.
        Family::Limit | Family::RegattaPvm => Command::new(program),
        Family::Pvm if loopback => Command::new(program),
        // The first task joins the daemon of its own host.
        Family::Pvm => {
            let mut command = Command::new(hosts.file("enter"));
            command.arg(hosts.each[0].name).arg(program);
            command
        }
        _ => Command::new(&competitor.launcher),
    };
    match competitor.family {
        Family::Limit | Family::Pvm | Family::RegattaPvm => {
            command.env("RACE_TASKS", &tasks);
            if competitor.family == Family::Limit || !loopback {
                command.env("RACE_HOSTS", hosts.words(false));
            }
            return command;
        }
        Family::Regatta | Family::RegattaNx | Family::RegattaExpress | Family::RegattaMpi => {
            let reach = match loopback {
                true => hosts.file("pretend").display().to_string(),
                false => format!("{} {{host}}", hosts.file("enter").display()),
            };
            command.args(["run", "-n", &tasks, "--host", &slots, "--rsh", &reach]);
            command.args(["--connect-timeout", "30"]);
        }
        // One host, and no shared memory by its settings.
        _ if loopback => {
            command.args(["-n", &tasks]);
        }
        Family::OpenMpi => {
            command.args(["-n", &tasks, "--host", &slots, "--prtemca", "plm_ssh_agent"]);
            command.arg(rsh);
        }
        Family::Mpich | Family::Mpich4 => {
            command.args([
                "-n",
                &tasks,
                "-hosts",
                &slots,
                "-launcher",
                "ssh",
                "-launcher-exec",
            ]);
            command.arg(rsh);
        }
    }
    command.args(&competitor.arguments);
    command.args(&group.settings.arguments).arg(program);
    command
}
