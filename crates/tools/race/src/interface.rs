//! The environments `regatta-nx`, `regatta-express` and `regatta-mpi`: programs of these interfaces, on Regatta's libraries, started by `regatta run`.
//!
//! Their libraries lie beside libregatta.so, as they are built, or each in a folder of its own there, as they are installed. Their headers
//! are part of the command, like the programs; MPI's is made of its table.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::discover::Competitor;
use crate::settings::Family;

/// The text of a header.
enum Text {
    Here(&'static str),
    Made(fn() -> String),
}

impl Text {
    fn get(&self) -> String {
        match self {
            Text::Here(text) => (*text).to_owned(),
            Text::Made(make) => make(),
        }
    }
}

/// An interface over Regatta's own.
pub struct Interface {
    name: &'static str,
    family: Family,
    /// The library as it is built, and as programs look for it.
    library: &'static str,
    soname: &'static str,
    /// The compiler's argument for it.
    link: &'static str,
    /// Its folder where it is installed.
    folder: &'static str,
    /// The package that makes it.
    package: &'static str,
    header: (&'static str, Text),
}

/// All of them, in the order in which they are shown.
pub const ALL: [Interface; 3] = [
    Interface {
        name: "regatta-nx",
        family: Family::RegattaNx,
        library: "libnx.so",
        soname: "libnx.so.0",
        link: "-lnx",
        folder: "regatta-nx",
        package: "regatta-nx",
        header: (
            "nx.h",
            Text::Here(include_str!("../../../interfaces/nx/include/nx.h")),
        ),
    },
    Interface {
        name: "regatta-express",
        family: Family::RegattaExpress,
        library: "libexpress.so",
        soname: "libexpress.so.0",
        link: "-lexpress",
        folder: "regatta-express",
        package: "regatta-express",
        header: (
            "express.h",
            Text::Here(include_str!(
                "../../../interfaces/express/include/express.h"
            )),
        ),
    },
    Interface {
        name: "regatta-mpi",
        family: Family::RegattaMpi,
        library: "libmpi_abi.so",
        soname: "libmpi_abi.so.1",
        link: "-lmpi_abi",
        folder: "regatta-mpi",
        package: "regatta-mpi-abi",
        header: ("mpi.h", Text::Made(regatta_mpi_table::header)),
    },
];

impl Interface {
    /// The environment, if its library is beside Regatta's; else a sentence.
    pub fn competitor(&self, regatta: &Competitor) -> Result<Competitor, String> {
        let folder = Path::new(&regatta.flags[0]);
        if self.found(folder).is_none() {
            let Interface {
                name,
                library,
                folder: installed,
                package,
                ..
            } = self;
            return Err(format!(
                "{name}: {library} is neither beside libregatta.so in {} nor in {installed} there; build it with `cargo build --release -p {package}`",
                folder.display()
            ));
        }
        Ok(Competitor {
            name: self.name.to_owned(),
            family: self.family,
            on_request: true,
            ..regatta.clone()
        })
    }

    fn found(&self, folder: &Path) -> Option<PathBuf> {
        let files = [
            folder.join(self.library),
            folder.join(self.folder).join(self.library),
        ];
        files.into_iter().find(|file| file.exists())
    }

    /// Gives the loader its library in `links`, beside Regatta's, and the compiler its header in `headers`; the argument that links it.
    fn provide(&self, folder: &Path, links: &Path, headers: &Path) -> Result<String> {
        let library = self
            .found(folder)
            .with_context(|| format!("{} has gone", self.library))?;
        for name in [self.library, self.soname] {
            let link = links.join(name);
            let _ = fs::remove_file(&link);
            symlink(fs::canonicalize(&library)?, &link)?;
        }
        let (name, text) = &self.header;
        fs::write(headers.join(name), text.get())?;
        Ok(self.link.to_owned())
    }
}

/// The compiler's argument for the interface of this environment, which is there afterwards; none of those that have no other library than
/// Regatta's own.
pub fn provide(competitor: &Competitor, links: &Path, headers: &Path) -> Result<Option<String>> {
    let same = |interface: &&Interface| interface.family == competitor.family;
    let folder = Path::new(&competitor.flags[0]);
    let interface = ALL.iter().find(same);
    interface
        .map(|interface| interface.provide(folder, links, headers))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::c_compiler;

    #[test]
    fn libraries_are_found_where_they_are_built_and_where_they_are_installed() {
        let top = std::env::temp_dir().join(format!("regatta-interfaces-{}", std::process::id()));
        let made = top.join("made");
        for folder in [
            &made,
            &top.join("regatta-express"),
            &top.join("regatta-mpi"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        let regatta = Competitor {
            name: "regatta".to_owned(),
            family: Family::Regatta,
            tuned: true,
            compiler: c_compiler(),
            flags: vec![top.display().to_string()],
            launcher: PathBuf::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            on_request: false,
        };
        let missing = ALL[0].competitor(&regatta);
        fs::write(top.join("libnx.so"), "").unwrap();
        fs::write(top.join("regatta-express/libexpress.so"), "").unwrap();
        fs::write(top.join("regatta-mpi/libmpi_abi.so"), "").unwrap();
        let found = ALL.map(|interface| interface.competitor(&regatta));
        let arguments = found.map(|one| provide(&one.unwrap(), &made, &made).unwrap());
        let own = provide(&regatta, &made, &made).unwrap();
        let links = ["libnx.so.0", "libexpress.so.0", "libmpi_abi.so.1"];
        let links = links.map(|name| made.join(name).exists());
        let header = fs::read_to_string(made.join("express.h")).unwrap();
        fs::remove_dir_all(&top).unwrap();
        assert!(missing.unwrap_err().contains("-p regatta-nx"));
        let words = ["-lnx", "-lexpress", "-lmpi_abi"].map(|word| Some(word.to_owned()));
        assert_eq!((arguments, own), (words, None));
        assert_eq!(links, [true; 3]);
        assert!(header.contains("excombine"));
    }
}
