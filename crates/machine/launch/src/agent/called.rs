//! An agent that the user has started, and that its launcher connects to.

use std::fs::File;

use regatta_connection::calls::Conversation;
use regatta_program::Refusal;

use super::serve;
use crate::channel::Link;
use crate::hosts::host_starter::NewHostStarter;
use crate::sys;

/// Serves the launcher that connects, in the background. Returns at once in the calling process. A child goes on: it
/// gets the connection from `launcher`, and ends if that returns `None`. The caller must be single-threaded.
pub fn serve_caller(
    starter: NewHostStarter,
    launcher: impl FnOnce() -> Option<Conversation>,
) -> Result<u8, Refusal> {
    let failed = |errno| Refusal::of_regatta(format!("the agent cannot continue: {errno}"));
    if sys::fork().map_err(failed)?.is_some() {
        return Ok(0);
    }
    let _ = rustix::process::setsid();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    let _ = rustix::thread::set_name(c"regatta-apart");
    let status = match launcher() {
        Some(conversation) => serve(Link::of_call(conversation), starter),
        None => Ok(1),
    };
    std::process::exit(i32::from(status.unwrap_or_else(|refusal| refusal.status)))
}
