use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

/// A temporary directory of this test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("regatta-trust-{}-{name}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(folder));
        scratch.folder("", 0o755);
        scratch
    }

    fn folder(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        set_mode(&path, mode);
        path
    }

    fn file(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, "#!/bin/sh\n").expect("a file");
        set_mode(&path, mode);
        path
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
        let path = self.0.join(name);
        symlink(target, &path).expect("a link");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("its mode");
}

/// Creates a tree of files, and returns for each whether it may be started.
fn cases(scratch: &Scratch) -> Vec<(PathBuf, bool)> {
    scratch.folder("good", 0o755);
    scratch.folder("open", 0o777);
    scratch.folder("group", 0o775);
    scratch.folder("sticky", 0o1777);
    scratch.folder("sticky/own", 0o700);
    scratch.folder("open/below", 0o755);
    let good = scratch.file("good/regatta", 0o755);
    let open = scratch.file("open/regatta", 0o755);
    let mut cases = vec![
        (good.clone(), true),
        (scratch.file("good/with space", 0o755), true),
        (scratch.0.join("good/../good/./regatta"), true),
        (open.clone(), false),
        (scratch.file("open/below/regatta", 0o755), false),
        (scratch.0.join("open/../good/regatta"), false),
        (scratch.file("group/regatta", 0o755), false),
        (scratch.file("sticky/regatta", 0o755), false),
        (scratch.file("sticky/own/regatta", 0o755), true),
        (scratch.file("good/loose", 0o757), false),
        (scratch.file("good/shared", 0o775), false),
        (scratch.link("good/link", "regatta"), true),
        (scratch.link("good/far", &good), true),
        (scratch.link("good/up", "../good/regatta"), true),
        (scratch.link("good/astray", &open), false),
        (scratch.link("open/link", &good), false),
        (scratch.link("sticky/link", &good), false),
        (scratch.link("good/second", "link"), true),
        (scratch.link("good/over", "../open/link"), false),
        (scratch.link("good/round", "round"), false),
        (scratch.0.join("good"), false),
        (scratch.0.join("good/none"), false),
        (scratch.0.join("good/regatta/x"), false),
        (PathBuf::from("good/regatta"), false),
        (PathBuf::from("/bin/sh"), true),
    ];
    scratch.link("folder", "good");
    cases.push((scratch.0.join("folder/regatta"), true));
    scratch.link("wrong", "open/below/../../good");
    cases.push((scratch.0.join("wrong/regatta"), false));
    if rustix::process::geteuid().is_root() {
        let others = scratch.file("good/others", 0o755);
        chown(&others, Some(54321), None).expect("another owner");
        scratch.folder("theirs", 0o755);
        let below = scratch.file("theirs/regatta", 0o755);
        chown(scratch.0.join("theirs"), Some(54321), None).expect("another owner");
        let link = scratch.link("good/owned", "regatta");
        std::os::unix::fs::lchown(&link, Some(54321), None).expect("another owner");
        cases.extend([(others, false), (below, false), (link, false)]);
    }
    cases
}

#[test]
fn only_files_that_nobody_else_can_have_put_there_may_be_started() {
    let scratch = Scratch::new("rule");
    for (path, allowed) in cases(&scratch) {
        let found = check_program(&path);
        assert_eq!(found.is_ok(), allowed, "{}: {found:?}", path.display());
    }
}

#[test]
fn the_shell_decides_alike() {
    let scratch = Scratch::new("shell");
    let mut shells = vec!["sh", "bash"];
    if Command::new("busybox").arg("true").status().is_ok() {
        shells.push("busybox");
    }
    for shell in shells {
        for (path, allowed) in cases_once(&scratch) {
            let mut command = Command::new(shell);
            if shell == "busybox" {
                command.arg("sh");
            }
            let script = format!("{SHELL}safe \"$1\"");
            let safe = command.args(["-c", &script, "sh"]).arg(&path).status();
            let safe = safe.expect("a shell").success();
            assert_eq!(safe, allowed, "{shell}: {}", path.display());
        }
    }
}

#[test]
fn the_short_form_lets_nothing_pass_that_the_rule_refuses() {
    let scratch = Scratch::new("short");
    let mut passed = 0;
    for (path, allowed) in cases(&scratch) {
        // Only both ends of a chain of links are checked.
        let seen = !path.ends_with("good/over") && !path.ends_with("wrong/regatta");
        let script = format!("{SHORT};s \"$1\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(&path);
        let safe = command.output().expect("a shell").status.success();
        let runs = path.is_file();
        assert!(!safe || allowed || !seen || !runs, "{}", path.display());
        passed += u32::from(safe && allowed);
    }
    assert!(passed >= 5, "{passed}");
}

/// The tree is created by the first call only.
fn cases_once(scratch: &Scratch) -> Vec<(PathBuf, bool)> {
    let _ = std::fs::remove_dir_all(&scratch.0);
    scratch.folder("", 0o755);
    cases(scratch)
}

#[test]
fn what_is_passed_over_is_named_with_the_reason() {
    let scratch = Scratch::new("search");
    let folder = scratch.folder("open", 0o777);
    let bad = scratch.file("open/regatta", 0o755);
    let good = scratch.file("regatta", 0o755);
    let mut search = Search::default();
    assert_eq!(search.first([bad.clone(), scratch.0.join("none")]), None);
    let said = search.passed_over();
    assert!(
        said.starts_with(&format!("{} was not started", bad.display()))
            && said.contains(&format!(
                "others may write to the directory {}",
                folder.display()
            ))
            && said.contains("its mode is 777"),
        "{said}"
    );
    assert_eq!(search.first([bad, good.clone()]), Some(good));
}

#[test]
fn directories_of_path_that_depend_on_where_one_is_are_not_searched() {
    let path: OsString = ":.:bin:/usr/bin:../x::/bin:".into();
    let found = absolute_path(&path);
    assert_eq!(found, [PathBuf::from("/usr/bin"), PathBuf::from("/bin")]);
}
