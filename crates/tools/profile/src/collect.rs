//! Fetches records from other hosts, by the command that leads to them.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use regatta_launch::bootstrap::is_here;
use regatta_launch::{Across, host_shell, in_parallel};

use crate::folder::{Files, MAX_RECORD_BYTES, is_name};

/// Silence after which a host is given up.
const HOST_TIMEOUT: Duration = Duration::from_secs(20);
/// The line before the records.
const BEGIN: &str = "regatta-records";
/// The line after the records.
const END: &str = "regatta-records-end";
/// Maximum number of bytes that one host may send.
const MAX_HOST_BYTES: u64 = 8 << 30;

/// Adds the records of all other hosts. A record that two hosts share is added once.
pub(crate) fn from_hosts(
    across: &Across,
    folder: &Path,
    files: &mut Files,
    problems: &mut Vec<String>,
) {
    let hosts = across.hosts.iter().map(|host| host.name.as_str());
    let others = hosts.filter(|name| across.rsh.is_some() || !is_here(name));
    let fetched = in_parallel(others, |name| (name, from_host(across, name, folder)));
    for (name, found) in fetched {
        match found {
            Ok(found) => {
                for (name, bytes) in found {
                    files.entry(name).or_insert(bytes);
                }
            }
            Err(problem) => problems.push(format!(
                "the records of the tasks on {name} could not be fetched ({problem}); they are in {} on that host",
                folder.display()
            )),
        }
    }
}

/// Returns the shell commands that write the records, and remove them after they have been received. Another host may
/// share the folder and remove it meanwhile: each record is opened once, and its length is that of the opened file.
fn script(folder: &Path) -> String {
    let folder = folder.display().to_string().replace('\'', r"'\''");
    format!(
        "{{\nprintf '\\n{BEGIN}\\n'\nif cd '{folder}' 2>/dev/null; then\nfor file in *.record; do\n[ -f \"$file\" ] || continue\n\
         (exec 3<\"$file\" || exit\nprintf '%s %s\\n' \"$file\" \"$(wc -c </proc/self/fd/3)\"\ncat <&3) 2>/dev/null\ndone\nfi\nprintf '{END}\\n'\nread -r answer\n\
         [ \"$answer\" != received ] || {{ cd / && rm -rf '{folder}'; }}\nexit 0\n}}\n"
    )
}

fn from_host(across: &Across, host: &str, folder: &Path) -> Result<Files, String> {
    let mut command = host_shell(across, host);
    command.stderr(std::process::Stdio::null());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let fetched = match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => fetch(input, output, folder),
        _ => Err("it has no pipes".to_owned()),
    };
    end(child, fetched.is_ok());
    fetched
}

/// Ends a shell. If everything went well, it has its whole input and ends by itself.
fn end(mut child: Child, well: bool) {
    if !well {
        let _ = child.kill();
    }
    let _ = child.wait();
}

fn fetch(mut input: ChildStdin, output: ChildStdout, folder: &Path) -> Result<Files, String> {
    let text = script(folder);
    let told = input
        .write_all(text.as_bytes())
        .and_then(|()| input.flush());
    told.map_err(|error| format!("its shell accepts no input: {error}"))?;
    // The thread ends with the shell.
    let (sender, receiver) = channel();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut output = output;
        loop {
            let mut piece = vec![0; 1 << 16];
            let Ok(length @ 1..) = output.read(&mut piece) else {
                return;
            };
            piece.truncate(length);
            if sender.send(piece).is_err() {
                return;
            }
        }
    });
    reader.map_err(|error| format!("no thread can be started to read them: {error}"))?;
    let stream = Stream {
        receiver,
        piece: Vec::new(),
        at: 0,
    };
    let files = parse(&mut BufReader::new(stream).take(MAX_HOST_BYTES))?;
    // Without this answer the records are kept there.
    let _ = input.write_all(b"received\n");
    Ok(files)
}

/// The pieces of a host's output, each with a time limit.
struct Stream {
    receiver: std::sync::mpsc::Receiver<Vec<u8>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.piece.len() {
            self.at = 0;
            self.piece = match self.receiver.recv_timeout(HOST_TIMEOUT) {
                Ok(piece) => piece,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(std::io::Error::other("it was silent for too long"));
                }
            };
        }
        let length = into.len().min(self.piece.len() - self.at);
        into[..length].copy_from_slice(&self.piece[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

/// Parses the records that a host sends, after the output of its shell's startup files.
pub(crate) fn parse(from: &mut impl BufRead) -> Result<Files, String> {
    let cut = || "it sent only a part of them".to_owned();
    let line = |from: &mut dyn BufRead| -> Result<String, String> {
        let mut line = Vec::new();
        let read = from.take(4096).read_until(b'\n', &mut line);
        read.map_err(|error| error.to_string())?;
        match line.pop() {
            Some(b'\n') => Ok(String::from_utf8_lossy(&line).into_owned()),
            _ => Err(cut()),
        }
    };
    while line(from)? != BEGIN {}
    let mut files = Files::new();
    loop {
        let said = line(from)?;
        if said == END {
            return Ok(files);
        }
        let (name, size) = said.split_once(' ').unwrap_or_default();
        let size = size
            .trim()
            .parse::<u64>()
            .ok()
            .filter(|&size| size <= MAX_RECORD_BYTES);
        let (true, Some(size)) = (is_name(name), size) else {
            return Err("it sent invalid data".to_owned());
        };
        let mut bytes = Vec::new();
        let read = from.take(size).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        if bytes.len() as u64 != size {
            return Err(cut());
        }
        files.insert(name.to_owned(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// Two hosts may share the folder: the first one that is read completely removes it while the other is being read.
    #[test]
    fn a_record_that_is_removed_while_it_is_sent_is_whole() {
        let place = std::env::temp_dir().join(format!("removed-{}", std::process::id()));
        let folder = place.join("records");
        std::fs::create_dir_all(&folder).expect("a folder");
        let records = [("a.record", vec![7; 100_000]), ("b.record", vec![8; 10])];
        for (name, bytes) in &records {
            std::fs::write(folder.join(name), bytes).expect("a record");
        }
        // Removes everything as soon as the length of the first record is known.
        let wc = place.join("wc");
        let real = "PATH=${PATH#*:}";
        let text = format!(
            "#!/bin/sh\n{real}\nwc \"$@\"\nrm -rf '{}'\n",
            folder.display()
        );
        std::fs::write(&wc, text).expect("a command");
        std::fs::set_permissions(&wc, PermissionsExt::from_mode(0o700)).expect("its mode");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh")
            .env("PATH", format!("{}:{path}", place.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let pipes = shell.stdin.take().zip(shell.stdout.take());
        let (input, output) = pipes.expect("pipes");
        let files = fetch(input, output, &folder).expect("the records");
        end(shell, true);
        let [(name, bytes), _] = records;
        assert_eq!(files, Files::from([(name.to_owned(), bytes)]));
        let _ = std::fs::remove_dir_all(&place);
    }
}
