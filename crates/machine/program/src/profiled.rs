//! Profiled tasks: the loader loads the recorder first, so its functions replace those of libregatta.so.

use std::path::Path;

use crate::elf;
use crate::libraries::{Variable, value};
use crate::refusal::Refusal;

/// The variable that makes tasks be profiled. Its value says how, and has the folder for their records.
pub const FOLDER: &str = "REGATTA_PROFILE";
/// The library that records.
pub const RECORDER: &str = "libregatta_recorder.so";
/// The possible directories of the recorder, relative to the command's.
const PLACES: [&str; 2] = ["../lib/regatta", ""];
/// The variable with libraries that the loader loads before those of the program.
const PRELOADED: &str = "LD_PRELOAD";

/// Returns the environment with the recorder in it, if tasks are to be profiled and the recorder is installed beside
/// the command, which is in `folder`.
pub(crate) fn with_recorder(mut environment: Vec<Variable>, folder: &Path) -> Vec<Variable> {
    if value(&environment, FOLDER).is_none() {
        return environment;
    }
    // It may have the recorder of another host, or of a job around this one.
    let before = value(&environment, PRELOADED)
        .unwrap_or_default()
        .to_owned();
    let before = before.to_string_lossy();
    let others = before.split([':', ' ']);
    let mut all: Vec<String> = others
        .filter(|other| !other.is_empty() && !other.ends_with(RECORDER))
        .map(str::to_owned)
        .collect();
    let mut places = PLACES.iter().map(|place| folder.join(place).join(RECORDER));
    let file = places.find_map(|file| regatta_trust::check(&file).ok());
    if let Some(file) = file.as_deref().and_then(Path::to_str) {
        all.insert(0, file.to_owned());
    }
    environment.retain(|(name, _)| name != PRELOADED);
    if !all.is_empty() {
        environment.push((PRELOADED.into(), all.join(":").into()));
    }
    environment
}

/// Refuses to profile if that would fail: the recorder does not exist, or cannot be loaded into the program.
pub(crate) fn check(program: &Path, environment: &[Variable]) -> Result<(), Refusal> {
    if value(environment, FOLDER).is_none() {
        return Ok(());
    }
    let first = value(environment, PRELOADED).and_then(|all| all.to_str());
    let first = first.and_then(|all| all.split(':').next());
    // The loader also separates names at blanks.
    if first.is_none_or(|first| !first.ends_with(RECORDER) || first.contains(' ')) {
        return Err(Refusal::of_regatta(format!(
            "tasks cannot be profiled: {RECORDER}, which records their calls, is not beside the command regatta or in ../lib/regatta there, or its path has a blank or colon, or other users can write to it; install Regatta on that host (make install)"
        )));
    }
    if elf::is_static(program) {
        return Err(Refusal::of_regatta(format!(
            "{} is linked statically, so its calls cannot be recorded: link it with the shared library to profile it",
            program.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, value: &str) -> Variable {
        (name.into(), value.into())
    }

    #[test]
    fn who_is_not_profiled_keeps_the_environment() {
        let before = vec![variable(PRELOADED, "/lib/other.so")];
        assert_eq!(with_recorder(before.clone(), Path::new("/")), before);
        assert_eq!(check(Path::new("/bin/sh"), &before), Ok(()));
    }

    #[test]
    fn the_recorder_of_another_host_is_taken_out_and_its_lack_refused() {
        let before = vec![
            variable(FOLDER, "1:0:/tmp/x"),
            variable(PRELOADED, "/far/libregatta_recorder.so:/lib/other.so"),
        ];
        let after = with_recorder(before, Path::new("/does/not/exist"));
        assert_eq!(after[1], variable(PRELOADED, "/lib/other.so"));
        let refusal = check(Path::new("/bin/sh"), &after).expect_err("no recorder");
        assert!(refusal.sentence.contains("make install"), "{refusal}");
    }
}
