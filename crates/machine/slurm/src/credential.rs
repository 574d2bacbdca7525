//! Credentials of munge: sealed messages to the same user on another node.
//!
//! Slurm's nodes trust each other through munge (in its usual configuration). Where they do, a process can seal bytes
//! that only processes of the same user can open, on any node of the cluster and nowhere else, and munge tells the
//! opener who sealed them. A credential can be opened once on each node, and only for some minutes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Maximum size of a sealed credential, in bytes, so that a peer cannot make us pass arbitrary amounts to munge.
const MAX_CREDENTIAL_BYTES: usize = 1 << 20;

/// Seals bytes for processes of the user `uid`.
pub fn seal(bytes: &[u8], uid: u32) -> Result<String, String> {
    let mut command = Command::new(regatta_trust::tool("munge"));
    command.arg(format!("--restrict-uid={uid}"));
    let output = ask(command, bytes)?;
    let letter = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match output.status.success() && !letter.is_empty() {
        true => Ok(letter),
        false => Err(complaint("munge", &output)),
    }
}

/// Opens a credential that a process of the user `uid` has sealed for that user.
pub fn open(letter: &str, uid: u32) -> Result<Vec<u8>, String> {
    if letter.len() > MAX_CREDENTIAL_BYTES {
        return Err("a credential is too long".to_owned());
    }
    // unmunge prints the metadata of the credential and, after an empty line, its content.
    let mut command = Command::new(regatta_trust::tool("unmunge"));
    command.args(["--keys=STATUS,UID,UID_RESTRICTION", "--numeric"]);
    let output = ask(command, letter.as_bytes())?;
    if !output.status.success() {
        return Err(complaint("unmunge", &output));
    }
    content(&output.stdout, uid)
        .ok_or_else(|| "a credential was not made by this user for this user only".to_owned())
}

/// Returns the content of a credential from the output of `unmunge`, or `None` unless it is from this user to this
/// user.
pub fn content(said: &[u8], uid: u32) -> Option<Vec<u8>> {
    let end = said.windows(2).position(|pair| pair == b"\n\n")?;
    let heads = std::str::from_utf8(&said[..end]).ok()?;
    let head = |name: &str| {
        heads
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim())
    };
    let is_ours = |text: &str| {
        let digits = text.rsplit_once('(').map_or(text, |(_, rest)| rest);
        digits.trim_end_matches(')').parse() == Ok(uid)
    };
    let right = is_ours(head("UID")?) && is_ours(head("UID_RESTRICTION")?);
    right.then(|| said[end + 2..].to_vec())
}

fn ask(mut command: Command, input: &[u8]) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy();
    let name = name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the command `{name}` cannot be run: {error}"))?;
    let mut pipe = child.stdin.take();
    // The command reads all of its input before it writes anything.
    let written = pipe.as_mut().map(|pipe| pipe.write_all(input));
    drop(pipe);
    let output = child.wait_with_output();
    match (written, output) {
        (Some(Err(error)), _) | (_, Err(error)) => Err(format!("`{name}` cannot be used: {error}")),
        (_, Ok(output)) => Ok(output),
    }
}

fn complaint(name: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("it reported no error").trim();
    match last.starts_with(name) {
        true => last.to_owned(),
        false => format!("{name}: {last}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_letters_from_us_to_us_are_opened() {
        let said = |uid: &str, to: &str| {
            format!(
                "STATUS:           Success (0)\nUID:              {uid}\nUID_RESTRICTION:  {to}\n\nkey\n\nmore"
            )
        };
        let open = |uid, to| content(said(uid, to).as_bytes(), 1000);
        assert_eq!(open("1000", "1000"), Some(b"key\n\nmore".to_vec()));
        assert_eq!(
            open("me (1000)", "me (1000)"),
            Some(b"key\n\nmore".to_vec())
        );
        assert_eq!(open("1001", "1000"), None);
        assert_eq!(open("1000", "1001"), None);
        assert_eq!(open("x", "1000"), None);
        assert_eq!(content(b"UID: 1000\n\nkey", 1000), None);
        assert_eq!(content(b"\n\n", 1000), None);
        assert_eq!(content(b"", 1000), None);
    }
}
