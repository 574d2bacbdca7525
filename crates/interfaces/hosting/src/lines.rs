//! Converts requests for hosts, in the form of PVM's host files, to the launcher's terms.

use regatta_hostfile::{Fault, File, Host, Options, Start};
use regatta_launch::host_starter::{
    HostChange, HostSettings, Reached, Refused, Requester, WantedHost, Way,
};
use regatta_wire::control::RequestError;

/// Returns the hosts of a request, in order. A host file replaces the earlier one.
pub(crate) fn read(
    known: &mut File,
    change: HostChange,
    way: impl Fn(&Host) -> Result<Way, Refused>,
) -> Result<Vec<Result<WantedHost, Refused>>, Refused> {
    let hosts: Vec<Result<Host, Fault>> = match change {
        HostChange::Remove(_) => Vec::new(),
        HostChange::Add(lines) => lines.iter().map(|line| known.added(line)).collect(),
        HostChange::File(text) => {
            *known = File::read(&text).map_err(|problems| {
                let first = problems.first().map(ToString::to_string);
                let sentence = format!("the host file, {}", first.unwrap_or_default());
                (RequestError::Argument, sentence)
            })?;
            known.hosts.iter().cloned().map(Ok).collect()
        }
    };
    let wanted = |host: Result<Host, Fault>| {
        let host = host.map_err(|fault| (RequestError::Argument, fault.to_string()))?;
        let way = way(&host);
        Ok(wanted(host, way))
    };
    Ok(hosts.into_iter().map(wanted).collect())
}

fn wanted(host: Host, way: Result<Way, Refused>) -> WantedHost {
    let Options {
        login,
        daemon,
        programs,
        directory,
        speed,
        debugger,
        start,
        address,
        machine: _,
    } = host.options;
    WantedHost {
        name: host.name,
        address,
        login,
        program: daemon,
        directory,
        again: host.overload,
        manner: match start {
            None => "",
            Some(Start::Password) => "pw",
            Some(Start::Manual) => "ms",
        }
        .to_owned(),
        way,
        settings: HostSettings {
            speed,
            programs,
            debugger,
        },
    }
}

/// Returns how a host's agent is started: by a hoster, if there is one; by a person, if the host's options request
/// that; otherwise by the launcher's shell command.
pub(crate) fn way(
    host: &Host,
    by_task: bool,
    reached: Reached,
    requester: &Requester,
) -> Result<Way, Refused> {
    let terminal = requester.terminal.as_ref();
    match (host.options.start, terminal) {
        _ if by_task => Ok(Way::Starter),
        (None, _) => Ok(Way::Shell { asks_at: None }),
        (Some(Start::Manual), Some(_)) => Ok(Way::Starter),
        // Commands other than ssh may ask for a password in another way.
        (Some(Start::Password), Some(terminal)) if reached.by_ssh => Ok(Way::Shell {
            asks_at: Some(terminal.clone()),
        }),
        (Some(Start::Manual), None) => Err(nobody(&host.name, "a manual start (so=ms)")),
        (Some(Start::Password), _) => Err(nobody(&host.name, "a password (so=pw)")),
    }
}

/// Returns the refusal of a host that needs a person when there is no terminal.
fn nobody(name: &str, what: &str) -> Refused {
    let sentence = format!(
        "the host {name} needs {what}, but the launcher has no terminal to ask at; set up ssh without prompts (`ssh-copy-id {name}`)"
    );
    (RequestError::System, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSH: Reached = Reached {
        in_machine: false,
        by_ssh: true,
    };

    fn requester(terminal: Option<&str>) -> Requester {
        Requester {
            by: 3,
            id: 9,
            terminal: terminal.map(str::to_owned),
        }
    }

    fn of(
        line: &str,
        by_task: bool,
        reached: Reached,
        terminal: Option<&str>,
    ) -> Result<Way, RequestError> {
        let host = regatta_hostfile::host(line, &Options::default()).expect("a line");
        let way = way(&host, by_task, reached, &requester(terminal));
        way.map_err(|(why, _)| why)
    }

    fn shell(asks_at: Option<&str>) -> Result<Way, RequestError> {
        let asks_at = asks_at.map(str::to_owned);
        Ok(Way::Shell { asks_at })
    }

    #[test]
    fn a_host_is_started_by_whoever_its_line_and_the_job_allow() {
        let other = Reached {
            by_ssh: false,
            ..SSH
        };
        assert_eq!(of("beta", false, SSH, Some("/dev/pts/1")), shell(None));
        assert_eq!(
            of("beta so=ms", false, SSH, Some("/dev/pts/1")),
            Ok(Way::Starter)
        );
        assert_eq!(
            of("beta so=ms", false, SSH, None),
            Err(RequestError::System)
        );
        let password = shell(Some("/dev/pts/1"));
        assert_eq!(of("beta so=pw", false, SSH, Some("/dev/pts/1")), password);
        assert_eq!(
            of("beta so=pw", false, other, Some("/dev/pts/1")),
            Err(RequestError::System)
        );
        assert_eq!(
            of("beta so=pw", false, SSH, None),
            Err(RequestError::System)
        );
        // A hoster starts all hosts.
        for line in ["beta", "beta so=ms", "beta so=pw"] {
            assert_eq!(of(line, true, other, None), Ok(Way::Starter), "{line}");
        }
    }

    #[test]
    fn what_a_file_says_of_a_host_counts_when_it_is_added_later() {
        let mut known = File::default();
        let shell = |_: &Host| Ok(Way::Shell { asks_at: None });
        let text =
            "alpha sp=500\n& beta lo=joe dx=/opt/r ep=/bin bx=gdb wd=/w ip=beta-fast so=ms\n";
        let file = HostChange::File(text.to_owned());
        let hosts = read(&mut known, file, shell).expect("a file");
        let names: Vec<String> = hosts.into_iter().flatten().map(|host| host.name).collect();
        assert_eq!(names, ["alpha"]);
        let lines = ["beta", "gamma zz=1", "$alpha"].map(str::to_owned).to_vec();
        let added = read(&mut known, HostChange::Add(lines), shell).expect("lines");
        let beta = added[0].as_ref().expect("beta");
        assert_eq!(
            (beta.login.as_deref(), beta.target()),
            (Some("joe"), "beta-fast")
        );
        assert_eq!(beta.program.as_deref(), Some("/opt/r"));
        assert_eq!(
            (beta.directory.as_deref(), &*beta.manner),
            (Some("/w"), "ms")
        );
        assert_eq!(beta.settings.programs.as_deref(), Some("/bin"));
        assert_eq!(beta.settings.debugger.as_deref(), Some("gdb"));
        assert!(matches!(added[1], Err((RequestError::Argument, _))));
        let alpha = added[2].as_ref().expect("alpha");
        assert!(alpha.again && alpha.settings.speed == Some(500));
        // A file with a fault changes nothing.
        let wrong = HostChange::File("delta\n=\n".to_owned());
        assert!(matches!(
            read(&mut known, wrong, shell),
            Err((RequestError::Argument, _))
        ));
        assert_eq!(known.hosts.len(), 1);
    }
}
