//! Whether jobs can run on some hosts, for `regatta doctor --host`.

use std::collections::HashMap;
use std::net::IpAddr;

use regatta_job::hosts::Admission;
use regatta_program::Refusal;

use crate::hosts;
use crate::hosts::gather::{Gathering, Outcome};
use crate::hosts::rsh::Role;
use crate::plan::Across;
use crate::supervise::owner::Owner;
use crate::system::signals::Signals;

/// The findings about a host.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The host's name, as the user gave it.
    pub host: String,
    /// The agent there, or the reason why there is none.
    pub agent: Result<Agent, String>,
}

/// A host that has an agent.
#[derive(Debug, Clone)]
pub struct Agent {
    /// Number of tasks that can run at once.
    pub cores: u32,
    /// How this program got there, if it was sent.
    pub sent: Option<String>,
    /// The address at which all other hosts reach it, with its interface, or why they do not.
    pub address: Result<String, String>,
}

/// Opens channels to the hosts and has them connect to each other. Starts no tasks.
pub fn examine(across: &Across) -> Result<Vec<Examined>, Refusal> {
    hosts::distinct(&across.hosts).map_err(Refusal::usage)?;
    let signals = Signals::catch()?;
    let mut owner = Owner {
        leash: None,
        group: crate::sys::process_group(),
    };
    let part = (Role::Agent, Admission::survey(across.connect));
    let mut gathering = Gathering::open(across, part, None, &signals, &mut owner)?;
    let refusals = gathering.settle().into_iter();
    let refusals = refusals.filter_map(|(number, outcome)| Some((number, outcome.err()?.sentence)));
    let refusals: HashMap<u32, String> = refusals.collect();
    gathering.dismiss(|number| !refusals.contains_key(&number));
    gathering.check_distinct()?;
    let addresses = gathering.find_addresses()?;
    let examined = (0..).zip(&across.hosts).map(|(number, host)| {
        let agent = match refusals.get(&number) {
            Some(sentence) => Err(sentence.clone()),
            None => Ok(agent(&gathering, number, &addresses)),
        };
        Examined {
            host: host.name.clone(),
            agent,
        }
    });
    Ok(examined.collect())
}

fn agent(gathering: &Gathering, number: u32, addresses: &[Outcome<IpAddr>]) -> Agent {
    let hello = gathering
        .hellos()
        .find(|(host, _)| *host == number)
        .map(|(_, hello)| hello);
    let found = addresses
        .iter()
        .find(|(host, _)| *host == number)
        .map(|(_, address)| address.as_ref().map_err(|refusal| refusal.sentence.clone()));
    let prefix = format!("the host {} has no regatta", gathering.name(number));
    let address = found
        .unwrap_or_else(|| Err("its address was not looked for".to_owned()))
        .map(|address| {
            let candidates = hello.map_or(&[][..], |hello| &hello.candidates);
            let interface = candidates
                .iter()
                .find(|candidate| candidate.address == *address);
            match interface {
                Some(interface) => format!("{address} of the interface {}", interface.name),
                None => address.to_string(),
            }
        });
    Agent {
        cores: hello.map_or(0, |hello| hello.cores),
        sent: gathering
            .notes
            .iter()
            .find(|note| note.starts_with(&prefix))
            .cloned(),
        address,
    }
}
