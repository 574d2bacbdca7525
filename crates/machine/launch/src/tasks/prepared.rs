//! Spawned tasks of one host: prepared, entered into its table, started. [`regatta_job::spawn`] explains the three
//! steps.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use regatta_job::registry::Refused;
use regatta_job::spawn::SpawnedTasks;
use regatta_program::{STATUS_NOT_EXECUTABLE, STATUS_NOT_FOUND};
use regatta_segment::job::JobError;
use regatta_segment::place::listen_at;
use regatta_wire::control::{RequestError, Route, Spawn};
use regatta_wire::world::World;

use crate::resident::join_socket::Arrival;
use crate::resident::newcomers::Newcomer;
use crate::streams::Streams;
use crate::sys::{self, Image, Mask, StartError};
use crate::system::limits;
use crate::tasks::{self, Outlet, Start, Started, Tasks, Unstarted};

/// Maximum number of tasks that are started before the loop checks other events.
const MAX_BATCH: u32 = 16;
/// Number of descriptors for each task: its socket, and the pipes of its output.
const DESCRIPTORS_PER_TASK: u32 = 3;

/// The prepared tasks of a spawn.
struct Prepared {
    image: Image,
    program: PathBuf,
    listeners: VecDeque<TcpListener>,
    /// The task that receives their output, or `None` for the job's output.
    route: Option<Route>,
}

/// Everything that is prepared, and the worlds with tasks on this host.
#[derive(Default)]
pub(crate) struct PreparedTasks {
    /// By the number of the spawn.
    by_spawn: HashMap<u32, Prepared>,
    /// Tasks that are being started. Those with nothing prepared (`None`) are refused.
    starting: VecDeque<(SpawnedTasks, Option<Prepared>)>,
    /// For each spawned task of this host, the first task of its world. For each world, the number of its tasks on this
    /// host that run or will run.
    world_of: HashMap<u32, u32>,
    left: HashMap<u32, u32>,
}

impl PreparedTasks {
    /// Stops starting tasks. Tasks that are to be started are refused one by one, like others with nothing prepared.
    pub(crate) fn stop(&mut self) {
        self.by_spawn.clear();
        let starting = self.starting.iter_mut();
        starting.for_each(|(_, prepared)| *prepared = None);
    }
}

/// A spawned task, and whether it has been started.
pub(crate) type StartOutcome = (u32, Result<Started, Refused>);

fn text(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

impl Tasks {
    /// Prepares `count` tasks of a spawn. Returns the addresses at which they will listen, if they do.
    pub(crate) fn prepare(
        &mut self,
        spawn: u32,
        count: u32,
        order: &Spawn,
        route: Option<Route>,
    ) -> Result<Vec<Option<SocketAddr>>, Refused> {
        if self.stopped {
            return Err((RequestError::State, "the job is being ended".to_owned()));
        }
        self.make_room(count);
        let (image, program) = self.image_for(order)?;
        let (addresses, listeners) = self.listeners(count).map_err(|error| {
            let sentence = format!("a socket cannot be opened for a new task: {error}");
            (RequestError::System, sentence)
        })?;
        self.prepared.by_spawn.insert(
            spawn,
            Prepared {
                image,
                program,
                listeners: listeners.into(),
                route,
            },
        );
        Ok(match addresses.is_empty() {
            true => vec![None; count as usize],
            false => addresses.into_iter().map(Some).collect(),
        })
    }

    /// Returns a socket and its address for each of `count` tasks, or none if the tasks of this host do not listen.
    fn listeners(&self, count: u32) -> std::io::Result<(Vec<SocketAddr>, Vec<TcpListener>)> {
        let Some(address) = self.address else {
            return Ok((Vec::new(), Vec::new()));
        };
        let listeners = (0..count).map(|_| listen_at(address));
        let listeners = listeners.collect::<std::io::Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr);
        Ok((addresses.collect::<std::io::Result<_>>()?, listeners))
    }

    /// Returns the image that the tasks of an order start from, and their program.
    fn image_for(&self, order: &Spawn) -> Result<(Image, PathBuf), Refused> {
        let directory = order.directory.as_deref().map(text);
        let name = text(&order.program);
        let search = order.search.as_ref().map(|search| self.expanded(search));
        let search = search.or_else(|| self.variable("PATH"));
        let program = find(&name, directory.as_deref(), search.as_deref())?;
        if let Some(directory) = &directory
            && !Path::new(directory).is_dir()
        {
            let shown = directory.to_string_lossy();
            return Err((
                RequestError::Program,
                format!("the directory {shown} does not exist"),
            ));
        }
        let added: Vec<(OsString, OsString)> = order
            .environment
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect();
        let arguments: Vec<OsString> = order
            .arguments
            .iter()
            .map(|argument| text(argument))
            .collect();
        let kept = self
            .environment
            .iter()
            .filter(|(name, _)| added.iter().all(|(added, _)| added != name));
        let environment = kept.chain(&added).cloned().collect();
        let environment = regatta_program::with_mpi_for_python(&program, &arguments, environment)
            .map_err(|refusal| (RequestError::Program, refusal.sentence))?;
        let through = order.through.as_deref().map(text);
        let through =
            through.map(|through| Ok((find(&through, None, search.as_deref())?, through)));
        let through = through.transpose()?;
        let own = program.clone().into_os_string();
        let (started, first) = match &through {
            Some((debugger, named)) => (debugger, vec![named, &own]),
            // An order with a search path of its own does not use a shell's search, in which programs get the name
            // unchanged.
            None if order.search.is_some() => (&program, vec![&own]),
            None => (&program, vec![&name]),
        };
        let mut image = tasks::image_of(
            started,
            first.into_iter().chain(&arguments),
            environment.iter(),
        );
        if let Some(directory) = &directory {
            image.set_directory(sys::c_string(directory.as_bytes()));
        }
        Ok((image, program))
    }

    /// Returns the directories of a search path, with variables of this host replaced.
    fn expanded(&self, search: &[u8]) -> OsString {
        match std::str::from_utf8(search) {
            Ok(text) if text.contains('$') => {
                let known = |name: &str| {
                    let own = std::env::var_os(name).or_else(|| self.variable(name));
                    own.map(|value| value.to_string_lossy().into_owned())
                };
                crate::hosts::expand::expand(text, known).into()
            }
            _ => OsString::from_vec(search.to_vec()),
        }
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    }

    /// Raises the limit of open files if more tasks need it. If that fails, the tasks beyond the limit fail to start.
    fn make_room(&mut self, count: u32) {
        let all = self.running_count() + count;
        if let Ok(Some(before)) = limits::make_room(limits::Files::Tasks(all), DESCRIPTORS_PER_TASK)
        {
            self.files.get_or_insert(before);
        }
    }

    /// Drops a spawn that has failed, whose tasks may have numbers.
    pub(crate) fn abandon(&mut self, spawn: u32, first: u32) {
        self.prepared.by_spawn.remove(&spawn);
        if let Ok(world) = self.job().membership(first) {
            self.job().end_world(world.first);
        }
    }

    /// Drops all spawns whose tasks are not being started.
    pub(crate) fn forget_all_prepared(&mut self) {
        self.prepared.by_spawn.clear();
    }

    /// Returns the spawned tasks that are being started.
    pub(crate) fn starting(&self) -> impl Iterator<Item = u32> {
        let starting = self.prepared.starting.iter();
        starting.flat_map(|(share, _)| share.tasks())
    }

    /// Enters tasks of any host into this host's table.
    pub(crate) fn enter(&mut self, world: &World) -> Result<(), JobError> {
        self.job().add_world(world)
    }

    /// Starts the prepared tasks by later calls of [`Tasks::start_some_prepared`].
    pub(crate) fn start_prepared(&mut self, share: SpawnedTasks) {
        let prepared = self.prepared.by_spawn.remove(&share.spawn);
        if let (Some(_), Ok(world)) = (&prepared, self.job().membership(share.first)) {
            *self.prepared.left.entry(world.first).or_default() += share.count;
        }
        self.prepared.starting.push_back((share, prepared));
    }

    /// Takes prepared tasks that another process starts. Returns their program, and the socket at which each will
    /// listen.
    pub(crate) fn hand_over(
        &mut self,
        share: SpawnedTasks,
    ) -> Option<(PathBuf, VecDeque<TcpListener>)> {
        let prepared = self.prepared.by_spawn.remove(&share.spawn)?;
        let first = match self.job().membership(share.first) {
            Ok(world) => world.first,
            Err(_) => return None,
        };
        *self.prepared.left.entry(first).or_default() += share.count;
        for rank in share.tasks() {
            self.later.insert(rank);
            self.prepared.world_of.insert(rank, first);
        }
        Some((prepared.program, prepared.listeners))
    }

    /// Returns whether there are spawned tasks to be started.
    pub(crate) fn are_prepared_to_start(&self) -> bool {
        !self.prepared.starting.is_empty()
    }

    /// Starts the next few spawned tasks, so that the loop can check other events in between.
    pub(crate) fn start_some_prepared(
        &mut self,
        mut streams: Option<&mut Streams>,
        mask: &Mask,
    ) -> Vec<StartOutcome> {
        let Some((mut share, prepared)) = self.prepared.starting.pop_front() else {
            return Vec::new();
        };
        let some = share.first..share.first + share.count.min(MAX_BATCH);
        let Some(mut prepared) = prepared else {
            return self.refuse_to_start(share);
        };
        let world = self.job().membership(share.first);
        let mut outcomes = Vec::with_capacity(MAX_BATCH as usize);
        let mut caught = std::mem::take(&mut self.caught);
        for rank in some.clone() {
            self.later.insert(rank);
            let outlet = match prepared.route {
                Some(route) => Outlet::Caught(&mut caught, route),
                None => Outlet::of(streams.as_deref_mut()),
            };
            let start = Start {
                rank,
                listener: prepared.listeners.pop_front(),
                input: None,
                cores: None,
                outlet,
                mask,
            };
            let started = self.start_from(&mut prepared.image, start);
            if let Ok(world) = &world {
                self.prepared.world_of.insert(rank, world.first);
            }
            match &started {
                Ok(started) => {
                    self.job().count_living(1);
                    self.expect_to_join(*started);
                }
                Err(_) => {
                    caught.forget(rank);
                    self.later_ended(rank);
                }
            }
            outcomes.push((
                rank,
                started.map_err(|why| self.explain(&prepared.program, why)),
            ));
        }
        self.caught = caught;
        share.count -= some.len() as u32;
        share.first = some.end;
        match share.count {
            0 => self.crowding(),
            _ => self.prepared.starting.push_front((share, Some(prepared))),
        }
        outcomes
    }

    /// Refuses to start the tasks of a share. They count as tasks of their world that have ended.
    fn refuse_to_start(&mut self, share: SpawnedTasks) -> Vec<StartOutcome> {
        let world = self.job().membership(share.first).map(|world| world.first);
        let refused = (RequestError::State, "the job is being ended".to_owned());
        let refuse = |rank: u32| {
            if let Some(world) = world.as_ref().ok().copied() {
                self.prepared.world_of.insert(rank, world);
                self.later_ended(rank);
            }
            (rank, Err(refused.clone()))
        };
        share.tasks().map(refuse).collect()
    }

    /// Returns a socket for one more task to listen at, if the tasks of this host listen.
    pub(crate) fn listener(&mut self) -> Result<Option<TcpListener>, Refused> {
        self.make_room(1);
        let listener = self.address.map(listen_at);
        listener.transpose().map_err(|error| {
            let sentence = format!("a socket cannot be opened for a new task: {error}");
            (RequestError::System, sentence)
        })
    }

    /// Makes a process that was not started by this one the task with this number, which all hosts have entered.
    pub(crate) fn admit(
        &mut self,
        rank: u32,
        Newcomer {
            arrival, listener, ..
        }: &Newcomer,
    ) -> Result<Started, Refused> {
        self.later.insert(rank);
        self.prepared.world_of.insert(rank, rank);
        self.prepared.left.insert(rank, 1);
        self.receive(rank, arrival, listener.as_ref())
    }

    /// Makes a process that was not started by this one the task with this number, which has been prepared.
    pub(crate) fn receive(
        &mut self,
        rank: u32,
        arrival: &Arrival,
        listener: Option<&TcpListener>,
    ) -> Result<Started, Refused> {
        let received = self.hand_over_to(rank, arrival, listener);
        if received.is_err() {
            self.later_ended(rank);
        }
        received
    }

    fn hand_over_to(
        &mut self,
        rank: u32,
        arrival: &Arrival,
        listener: Option<&TcpListener>,
    ) -> Result<Started, Refused> {
        let control = self.controls.open(rank).map_err(|errno| {
            let sentence = format!("a socket cannot be opened to a new task: {errno}");
            (RequestError::System, sentence)
        })?;
        let guest = arrival.guest.try_clone().map_err(|error| {
            let sentence = format!("the end of a new task cannot be awaited: {error}");
            (RequestError::System, sentence)
        })?;
        let pid = arrival.guest.pid;
        self.job().announce(rank, pid);
        let size = self.job().first();
        let listener = listener.map(AsFd::as_fd);
        if !arrival.welcome(rank, size, self.segment(), control, listener) {
            self.controls.close(rank);
            return Err((
                RequestError::State,
                "the new task has already ended".to_owned(),
            ));
        }
        self.guests.insert(rank, guest);
        self.job().count_living(1);
        self.crowding();
        Ok(Started { rank, pid })
    }

    /// Records the end of a task that was not a child of this process.
    pub(crate) fn departed(&mut self, rank: u32) {
        self.job().count_living(-1);
        self.controls.close(rank);
        self.later_ended(rank);
    }

    /// Notifies the running tasks, since there may be more tasks than cores now, or no longer.
    fn crowding(&self) {
        for rank in self.running() {
            self.job().announce_quietly(rank);
        }
    }

    fn explain(&self, program: &Path, unstarted: Unstarted) -> Refused {
        let started = self.running_count();
        match unstarted {
            Unstarted::Refused(refusal) => (RequestError::System, refusal.sentence),
            Unstarted::Failed(StartError::NoProcess(errno)) => (
                RequestError::System,
                limits::explain(errno, started).sentence,
            ),
            Unstarted::Failed(StartError::SetUp(errno)) => (
                RequestError::System,
                format!("a new task cannot be set up: {errno}"),
            ),
            Unstarted::Failed(StartError::Execute(errno)) => (
                RequestError::Program,
                regatta_program::explain(program, errno).sentence,
            ),
        }
    }

    /// Records that a spawned task has ended, or was not started. When all tasks of its world on
    /// this host have ended, the memory that the world shared is reused.
    pub(crate) fn later_ended(&mut self, rank: u32) {
        let Some(world) = self.prepared.world_of.remove(&rank) else {
            return;
        };
        if let Some(left) = self.prepared.left.get_mut(&world) {
            *left -= 1;
            if *left == 0 {
                self.prepared.left.remove(&world);
                self.job().end_world(world);
            }
        }
    }
}

/// Returns the file that a program's name means. A relative path starts in the directory in which the tasks will run.
fn find(
    name: &OsStr,
    directory: Option<&OsStr>,
    search: Option<&OsStr>,
) -> Result<PathBuf, Refused> {
    let path = Path::new(name);
    let is_path = name.as_bytes().contains(&b'/');
    let found = match directory {
        Some(directory) if is_path && path.is_relative() => {
            regatta_program::find(Path::new(directory).join(path).as_os_str(), search)
        }
        _ => regatta_program::find(name, search),
    };
    // The tasks change into their directory before they execute the program.
    let found = found.map(|path| match directory {
        Some(_) => std::path::absolute(&path).unwrap_or(path),
        None => path,
    });
    found.map_err(|refusal| {
        let why = match refusal.status {
            STATUS_NOT_FOUND | STATUS_NOT_EXECUTABLE => RequestError::Program,
            _ => RequestError::System,
        };
        (why, refusal.sentence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_begins_in_the_directory_in_which_the_tasks_are_to_run() {
        let found = |name: &str, directory: Option<&str>| {
            let search = Some("/nowhere:/bin".as_ref());
            find(name.as_ref(), directory.map(OsStr::new), search)
        };
        assert_eq!(found("./sh", Some("/bin")), Ok("/bin/./sh".into()));
        assert_eq!(found("/bin/sh", Some("/tmp")), Ok("/bin/sh".into()));
        // A name without a slash is searched for, wherever the tasks run.
        assert_eq!(found("sh", Some("/tmp")), Ok("/bin/sh".into()));
        let missing = found("./sh", Some("/tmp")).expect_err("there is none");
        assert_eq!(missing.0, RequestError::Program);
    }

    #[test]
    fn tasks_that_are_to_start_when_the_job_ends_are_kept_to_be_refused() {
        let prepared = || Prepared {
            image: Image::empty(),
            program: PathBuf::new(),
            listeners: VecDeque::new(),
            route: None,
        };
        let share = |spawn, first| SpawnedTasks {
            spawn,
            first,
            count: 2,
        };
        let mut tasks = PreparedTasks::default();
        tasks.by_spawn.insert(1, prepared());
        tasks.starting.push_back((share(2, 4), Some(prepared())));
        tasks.stop();
        assert!(tasks.by_spawn.is_empty());
        // Each of them is reported to the task that waits for the answer.
        let left: Vec<u32> = tasks
            .starting
            .iter()
            .flat_map(|(share, _)| share.tasks())
            .collect();
        assert_eq!(left, [4, 5]);
        assert!(
            tasks
                .starting
                .iter()
                .all(|(_, prepared)| prepared.is_none())
        );
    }
}
