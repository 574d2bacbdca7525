//! Joining a resident job at its launcher's join socket, and starting the job if it does not exist.

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use regatta_connection::private_directory::{self, PrivateDirectory};
use regatta_engine::{Error, Result};
use regatta_memory::uncancelled::Uncancelled;
use regatta_segment::job::{Job, JoinToken, VERSION};
use regatta_wire::framing::{self, FrameReader};
use regatta_wire::join_request::{JoinReply, JoinRequest};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SocketFlags};

use crate::join::{Joined, join_error};
use crate::launcher_on_demand::program;

/// Maximum time to wait for the launcher's answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts to join. A process that asks while a job is being ended waits until it has ended, and then asks the next one.
const MAX_JOIN_ATTEMPTS: u32 = 4;
/// Maximum number of descriptors in a reply.
const MAX_DESCRIPTORS: usize = 3;

fn failed(name: &str, why: impl std::fmt::Display) -> Error {
    Error::Launcher(format!("the job {name} cannot be joined: {why}"))
}

/// Joins the job with this name. If there is none and `start` is true, starts it.
pub(crate) fn join(name: &str, start: bool) -> Result<Joined> {
    join_with_ticket(name, None, start)
}

/// Returns the job and the ticket in the join token of a process that already has a task number and has to join at the join socket.
pub(crate) fn ticket(text: &str) -> Option<(&str, u32)> {
    let (name, ticket) = text.split_once('?')?;
    Some((name, ticket.parse().ok()?))
}

/// Joins the job with this name, with a ticket if the process has one.
pub(crate) fn join_with_ticket(name: &str, ticket: Option<u32>, start: bool) -> Result<Joined> {
    for _ in 0..MAX_JOIN_ATTEMPTS {
        let stream = match connect(name)? {
            None if !start => return Err(failed(name, "there is no such job")),
            None => {
                begin(name)?;
                connect(name)?
            }
            there => there,
        };
        let entered = stream
            .map(|stream| ask_to_join(name, ticket, stream))
            .transpose()?;
        if let Some(joined) = entered.flatten() {
            return Ok(joined);
        }
    }
    Err(failed(
        name,
        "each attempt failed because the job ended before this process could join",
    ))
}

/// Returns whether there is a job with this name.
pub fn is_there(name: &str) -> Result<bool> {
    let _whole = Uncancelled::begin();
    Ok(connect(name)?.is_some())
}

/// Starts a job with this name, unless there is one.
pub fn begin(name: &str) -> Result<()> {
    let _whole = Uncancelled::begin();
    let unfounded = |error: io::Error| {
        failed(
            name,
            format!(
                "its launcher cannot be started: {error}. Put the command regatta in a directory of PATH"
            ),
        )
    };
    let mut command = Command::new(program().map_err(unfounded)?);
    command.args(["resident", name]).stdin(Stdio::null());
    // The command continues after this process has ended. Its messages about starting are for this process.
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(unfounded)?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim();
            Err(failed(name, said.strip_prefix("regatta: ").unwrap_or(said)))
        }
    }
}

fn connect(name: &str) -> Result<Option<UnixStream>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        let why = "names consist of letters, digits, `.`, `-` and `_`";
        return Err(Error::Argument(format!(
            "{name:?} is not the name of a job: {why}"
        )));
    }
    let path = private_directory::path();
    let directory = PrivateDirectory::open(&path).map_err(|why| {
        failed(
            name,
            format!(
                "the directory {} is not used, because {why}: remove it, or name another one by XDG_RUNTIME_DIR",
                path.display()
            ),
        )
    })?;
    let Some(directory) = directory else {
        return Ok(None);
    };
    let socket = format!("{name}.job.socket");
    directory
        .connect(&socket, SocketFlags::empty())
        .map_err(|refused| {
            let socket = path.join(&socket);
            failed(name, format!("at {}, {refused}", socket.display()))
        })
}

/// Asks to join. Returns `None` if the job has ended first.
fn ask_to_join(name: &str, ticket: Option<u32>, mut stream: UnixStream) -> Result<Option<Joined>> {
    let own = std::env::current_exe().unwrap_or_default();
    let request = JoinRequest::Enter {
        version: VERSION,
        program: own.into_os_string().into_encoded_bytes(),
        ticket,
    };
    let mut bytes = Vec::new();
    framing::put(&request, &mut bytes)
        .map_err(|_| failed(name, "the program's name is too long"))?;
    let io = |error: io::Error| failed(name, error);
    stream.set_read_timeout(Some(REPLY_TIMEOUT)).map_err(io)?;
    let answered = stream.write_all(&bytes).and_then(|()| answer(&stream));
    let (reply, handed) = match answered {
        Err(error) if is_end(&error) => return Ok(None),
        answered => answered.map_err(io)?,
    };
    let (rank, size) = match reply {
        JoinReply::Task { rank, size } => (rank, size),
        JoinReply::Refused { sentence } => return Err(failed(name, sentence)),
    };
    let mut handed = handed.into_iter();
    let (Some(segment), Some(control)) = (handed.next(), handed.next()) else {
        return Err(failed(
            name,
            "its launcher did not send the descriptors that a task needs",
        ));
    };
    let token = JoinToken {
        // Numbers of descriptors matter only to processes that inherit them.
        control: Some(0),
        ..JoinToken::handed(rank, size)
    };
    Ok(Some(Joined {
        job: Job::join(segment, token).map_err(join_error)?,
        rank,
        control: Some(control),
        listener: handed.next(),
    }))
}

/// Returns whether the error means that the launcher is gone.
fn is_end(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error.kind())
}

/// Returns the launcher's answer and the descriptors that came with it.
fn answer(stream: &UnixStream) -> io::Result<(JoinReply, Vec<OwnedFd>)> {
    let mut frames = FrameReader::default();
    let mut handed = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut piece)];
        let got =
            match rustix::net::recvmsg(stream, &mut slices, &mut with, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => continue,
                got => got?,
            };
        for message in with.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                handed.extend(fds);
            }
        }
        if got.bytes == 0 || got.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        frames.push(&piece[..got.bytes]);
        let reply = frames.next_message();
        if let Some(reply) = reply.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))? {
            return Ok((reply, handed));
        }
    }
}
