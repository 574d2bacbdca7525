//! Settings from a launcher's command line, for the host that leads next.

use regatta_wire::fields;

/// The settings of a job that outlives its launcher's host. Every host gets them before its first task starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailoverPlan {
    /// The job's name.
    pub job: String,
    /// The name of the virtual machine whose daemons carry channels to hosts and report the membership.
    pub machine: String,
    /// Whether the job goes on after the failure of a task.
    pub goes_on: bool,
    /// Time between a signal to the tasks and the next stronger one, in milliseconds.
    pub grace: u32,
    /// Time after the arrival of this plan after which the job is ended, in milliseconds.
    pub timeout: Option<u64>,
    /// How output is written: 0 unchanged, 1 labelled, 2 JSON, 3 journal.
    pub form: u32,
    /// Time that a host may take to answer, in milliseconds.
    pub connect: u32,
    /// The network that the tasks use, as the user wrote it.
    pub interface: Option<String>,
    /// Whether steps are reported to the user.
    pub verbose: bool,
}
fields!(FailoverPlan {
    job,
    machine,
    goes_on,
    grace,
    timeout,
    form,
    connect,
    interface,
    verbose
});
