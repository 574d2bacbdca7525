//! What some tests need besides a C compiler. A test whose need is not met is skipped, with the reason.
//!
//! Each need is checked once per test program. Tests of other crates include this file as a module, beside
//! `skipped.rs`.
#![allow(dead_code, reason = "each program of tests uses a part of this")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use super::skipped::skip;

/// Shell commands that tests run first in namespaces of their own; here they check that it is possible.
const TRIAL: &str =
    "mount -t tmpfs tmpfs /run && ip link set lo up && ip link add bridge type bridge";

/// Requires user, mount, network and process namespaces and a bridge, which the hosts of tests consist of.
pub fn namespaces() {
    static LACKING: LazyLock<Option<String>> = LazyLock::new(|| {
        let command = [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ];
        let output = Command::new(command[0])
            .args(&command[1..])
            .args(["sh", "-c", TRIAL])
            .stdin(Stdio::null())
            .output();
        let said = match output {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr)
                .trim()
                .replace('\n', "; "),
            Err(error) => format!("unshare: {error}"),
        };
        Some(format!("hosts cannot be made of namespaces here ({said})"))
    });
    program("ip", "iproute2");
    if let Some(reason) = &*LACKING {
        leave_out(reason);
    }
}

/// Requires a program of a package, in PATH or in the folders of servers. Returns its path.
pub fn program(name: &str, package: &str) -> PathBuf {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places
        .find(|place| place.exists())
        .unwrap_or_else(|| lacking(name, package))
}

/// Requires a file of a package.
pub fn file(path: impl AsRef<Path>, package: &str) {
    let path = path.as_ref();
    if !path.exists() {
        lacking(&path.display().to_string(), package);
    }
}

fn lacking(name: &str, package: &str) -> ! {
    leave_out(&format!("{name} is not here: apt-get install {package}"))
}

/// Records that the running test is skipped because of `reason`, and ends it.
///
/// To the test harness it has failed, because only a test that returns passes. `scripts/run-test-program`, by which
/// `scripts/test` runs each program, reports it as skipped.
pub fn leave_out(reason: &str) -> ! {
    skip(reason);
    std::panic::resume_unwind(Box::new("left out"))
}
