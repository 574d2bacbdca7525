//! Discovery of the environments on this machine, and how programs are compiled and started for each.

use std::env;
use std::path::{Path, PathBuf};

use crate::peers::{self, Machine, Peer};

/// An environment that can take part.
#[derive(Debug, Clone)]
pub struct Competitor {
    /// Its name in results: `openmpi`, `openmpi-default`, ...
    pub name: String,
    /// How programs are compiled and started for it, and its settings.
    pub peer: &'static dyn Peer,
    /// Whether it runs with its best settings, not with its defaults.
    pub tuned: bool,
    /// The compiler, or the library's compiler wrapper.
    pub compiler: PathBuf,
    /// The compiler's arguments besides the program.
    pub flags: Vec<String>,
    /// The launcher, or the daemon of its virtual machine. Empty if its programs need neither.
    pub launcher: PathBuf,
    /// The launcher's arguments in every launch.
    pub arguments: Vec<String>,
    /// Environment variables of every launch.
    pub variables: Vec<(String, String)>,
    /// Whether it is raced only when named with `--environment`.
    pub on_request: bool,
}

impl Competitor {
    /// Returns an environment without library and launcher, whose programs need the compiler alone.
    pub fn bare(name: &str, peer: &'static dyn Peer) -> Competitor {
        Competitor {
            name: name.to_owned(),
            peer,
            tuned: true,
            compiler: c_compiler(),
            flags: Vec::new(),
            launcher: PathBuf::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            on_request: false,
        }
    }
}

/// The peers that were found, and sentences about the missing ones.
#[derive(Debug, Default)]
pub struct Found {
    /// The environments, in the order in which they are shown.
    pub competitors: Vec<Competitor>,
    /// Sentences that say which parts are missing and how to get them.
    pub missing: Vec<String>,
}

/// Returns the default folder of peers that were installed for the race only.
pub fn default_peers() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let cache =
        cache.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    cache
        .unwrap_or_else(env::temp_dir)
        .join("regatta")
        .join("peers")
}

/// Finds all known environments.
pub fn discover(peers: &Path) -> Found {
    let mut found = Found::default();
    for &peer in peers::ALL {
        let machine = Machine {
            peers,
            found: &found.competitors,
        };
        for one in peer.find(&machine) {
            match one {
                Ok(competitor) => found.competitors.push(competitor),
                Err(why) => found.missing.push(why),
            }
        }
    }
    found
}

/// Returns the C compiler for environments without a compiler wrapper of their own.
pub fn c_compiler() -> PathBuf {
    PathBuf::from(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns an environment of this peer for tests.
    pub(crate) fn competitor(name: &str, peer: &'static dyn Peer) -> Competitor {
        Competitor {
            name: name.to_owned(),
            peer,
            tuned: true,
            compiler: PathBuf::from("cc"),
            flags: Vec::new(),
            launcher: PathBuf::from("/launcher"),
            arguments: Vec::new(),
            variables: Vec::new(),
            on_request: false,
        }
    }

    #[test]
    fn without_peers_the_limit_is_still_here_and_the_rest_is_named() {
        let found = discover(Path::new("/nonexistent"));
        assert!(found.competitors.iter().any(|c| c.name == "limit"));
        assert!(
            found
                .missing
                .iter()
                .any(|m| m.starts_with("openmpi") && m.contains("prepare"))
        );
    }
}
