//! The interfaces over Regatta's own whose programs are started by `regatta run`: NX, Express, and MPI with its
//! standard ABI.
//!
//! When they are built, their libraries are beside libregatta.so. When they are installed, each is in a folder of its
//! own there. Their headers are compiled into the command, like the programs. MPI's header is generated from its table.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::regatta::{self, Library};
use super::{Facts, Job, Look, Machine, Peer, lacks_of_mpi, lacks_of_others};
use crate::discover::Competitor;
use crate::operations::Need;
use crate::results::OURS;

/// An interface.
#[derive(Debug)]
pub struct Interface {
    /// Its name in results.
    pub name: &'static str,
    facts: Facts,
    library: Library,
    /// The soname of the library.
    soname: &'static str,
    /// The compiler's argument that links it.
    link: &'static str,
    /// File name of its header, and the function that generates the header.
    header: (&'static str, fn() -> String),
}

/// Programs of Intel's NX.
pub static NX: Interface = Interface {
    name: "regatta-nx",
    facts: Facts {
        looks: &[Look::interface("regatta-nx", "Regatta as NX", "#4c9fd6")],
        adapter: "nx",
        libraries: &["libnx."],
        lacks: lacks_of_nodes,
        loads_nodes: true,
        ..OVER_OURS
    },
    library: Library {
        file: "libnx.so",
        installed: ("regatta-nx", "libnx.so"),
        package: "regatta-nx",
    },
    soname: "libnx.so.0",
    link: "-lnx",
    header: ("nx.h", || {
        include_str!("../../../../interfaces/nx/include/nx.h").to_owned()
    }),
};

/// Programs of Express.
pub static EXPRESS: Interface = Interface {
    name: "regatta-express",
    facts: Facts {
        looks: &[Look::interface(
            "regatta-express",
            "Regatta as Express",
            "#3a9aa5",
        )],
        adapter: "express",
        libraries: &["libexpress."],
        lacks: lacks_of_nodes,
        loads_nodes: true,
        ..OVER_OURS
    },
    library: Library {
        file: "libexpress.so",
        installed: ("regatta-express", "libexpress.so"),
        package: "regatta-express",
    },
    soname: "libexpress.so.0",
    link: "-lexpress",
    header: ("express.h", || {
        include_str!("../../../../interfaces/express/include/express.h").to_owned()
    }),
};

/// Programs of MPI, compiled for its standard ABI.
pub static MPI: Interface = Interface {
    name: "regatta-mpi",
    facts: Facts {
        looks: &[Look::interface("regatta-mpi", "Regatta as MPI", "#5a6bb5")],
        adapter: "mpi",
        libraries: &["libmpi_abi."],
        lacks: lacks_of_mpi,
        loads_nodes: false,
        ..OVER_OURS
    },
    library: Library {
        file: "libmpi_abi.so",
        installed: ("regatta-mpi", "libmpi_abi.so"),
        package: "regatta-mpi-abi",
    },
    soname: "libmpi_abi.so.1",
    link: "-lmpi_abi",
    header: ("mpi.h", regatta_mpi_table::header),
};

/// Facts that all interfaces have in common.
const OVER_OURS: Facts = Facts {
    misses: regatta::misses,
    ours: true,
    profiles: true,
    pinning: regatta::PINNING,
    dealt: regatta::DEALT,
    ..Facts::USUAL
};

impl Peer for Interface {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn find(&'static self, machine: &Machine) -> Vec<Result<Competitor, String>> {
        let regatta = machine.named(OURS).into_iter();
        regatta
            .map(|regatta| self.library.competitor(self.name, self, regatta))
            .collect()
    }

    fn flags(&self, programs: &Path, competitor: &Competitor) -> Result<Vec<String>> {
        regatta::flags(programs, competitor, |links| {
            let library = self.library.get(competitor)?;
            regatta::link(links, &[self.library.file, self.soname], &library)?;
            let (header, text) = self.header;
            fs::write(programs.join(header), text())?;
            Ok(Some(self.link.to_owned()))
        })
    }

    fn launch(&self, job: &Job) -> Command {
        regatta::launch(job)
    }

    fn launch_profiled(&self, job: &Job) -> Option<Command> {
        Some(regatta::launch_profiled(job))
    }
}

/// Returns why interfaces of multicomputers lack this ability, or `None` if they have it.
fn lacks_of_nodes(need: Need) -> Option<&'static str> {
    match need {
        Need::Spawning | Need::Deaths => {
            Some("its programs start tasks as nodes only, which host-broadcast and its like do")
        }
        Need::Packing | Need::PackedTypes | Need::PackedDefault => {
            Some("its messages are bytes, and there is nothing to pack")
        }
        Need::Types => Some("its messages are bytes"),
        need => lacks_of_others(need),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::tests::competitor;
    use crate::peers::regatta::LIBRARY;
    use crate::peers::regatta::Regatta;

    #[test]
    fn libraries_are_found_where_they_are_built_and_where_they_are_installed() {
        let top = std::env::temp_dir().join(format!("regatta-interfaces-{}", std::process::id()));
        for folder in ["regatta-express", "regatta-mpi"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        let regatta = Competitor {
            flags: vec![top.display().to_string()],
            ..competitor(OURS, &Regatta)
        };
        let machine = Machine {
            peers: Path::new("/nonexistent"),
            found: std::slice::from_ref(&regatta),
        };
        let peers: [&'static dyn Peer; 3] = [&NX, &EXPRESS, &MPI];
        let missing = peers[0].find(&machine).remove(0);
        for file in [
            LIBRARY,
            "libnx.so",
            "regatta-express/libexpress.so",
            "regatta-mpi/libmpi_abi.so",
        ] {
            fs::write(top.join(file), "").unwrap();
        }
        let arguments = peers.map(|peer| {
            let found = peer.find(&machine).remove(0).unwrap();
            peer.flags(&top, &found).unwrap()[3].clone()
        });
        let own = Regatta.flags(&top, &regatta).unwrap();
        let links = ["libnx.so.0", "libexpress.so.0", "libmpi_abi.so.1"];
        let links = links.map(|name| top.join("lib").join(name).exists());
        let header = fs::read_to_string(top.join("express.h")).unwrap();
        fs::remove_dir_all(&top).unwrap();
        assert!(missing.unwrap_err().contains("-p regatta-nx"));
        assert_eq!(arguments, ["-lnx", "-lexpress", "-lmpi_abi"]);
        assert_eq!(own[3..], ["-Wl,--as-needed", "-lregatta"]);
        assert_eq!(links, [true; 3]);
        assert!(header.contains("excombine"));
    }
}
