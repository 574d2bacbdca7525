//! The console: the same commands have the same output on Regatta and on PVM 3.4, except for numbers of tasks and
//! processes.

use std::process::Command;

use regatta_tests::console::{comparable, converse, talk};
use regatta_tests::lan::{APART, AS_ROOT, make_hosts};
use regatta_tests::programs;
use regatta_tests::pvm_machine::{self, Machine};

/// Returns the path of Regatta's console: the command, under PVM's name.
fn console() -> std::path::PathBuf {
    programs::link(&programs::built("regatta", "regatta-cli"), "pvm").join("pvm")
}

/// Commands whose output has a fixed form.
const COMMANDS: &[&str] = &[
    "version",
    "conf",
    "conf x",
    "ps",
    "ps -a",
    "ps -x",
    "ps -nnosuch",
    "ps -z",
    "names",
    "put many 2 7",
    "put many 2 8",
    "put stone 0 7",
    "names",
    "names stone",
    "put stone",
    "alias hello echo hi",
    "hello there",
    "alias",
    "unalias hello",
    "hello",
    "echo \"a b\" 'c  d' e\\ f a#b",
    "echo x # y",
    "setenv COLOUR blue sky",
    "setenv COLOUR",
    "setenv NOSUCH",
    "export COLOUR",
    "export COLOUR SHAPE",
    "export",
    "unexport COLOUR",
    "export",
    "setopt PvmRoute 3",
    "getopt PvmRoute",
    "getopt nosuch",
    "setopt nosuch 1",
    "trace",
    "trace - *",
    "trace + nosuch",
    "trace",
    "trace buf",
    "mstat",
    "pstat",
    "kill",
    "sig 10",
    "spawn",
    "spawn -2",
    "reset nosuch",
    "jobs",
    "jobs -l",
    "frob",
    "delete",
    "add",
    "kill -y 49999",
];

#[test]
fn commands_have_the_form_of_pvm_s() {
    let machine = Machine::new("pvm-console-forms");
    let original = machine.original();
    let theirs = talk(
        &mut machine.on_original(&original, "/usr/bin/pvm".as_ref()),
        COMMANDS,
    );
    let ours = talk(&mut machine.by_hand(&console()), COMMANDS);
    let (ours, theirs) = (comparable(&ours), comparable(&theirs));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "Regatta's, then PVM's");
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() > 150, "{ours:?}");
    machine.halt();
}

#[test]
fn a_job_s_output_comes_from_its_tasks_and_theirs_until_all_have_ended() {
    let machine = Machine::new("pvm-console-jobs");
    for name in ["hello", "hello_other"] {
        machine.example(name);
    }
    let lines = [
        ("spawn -2 -> hello", "[1] finished"),
        ("jobs", ""),
        ("spawn -1 hello", "t4"),
        ("spawn -> nosuch", "There is no"),
    ];
    let said = converse(&mut machine.by_hand(&console()), &lines);
    let of_job = |part: &str| {
        said.iter()
            .filter(|line| line.starts_with("[1:t4") && line.contains(part))
            .count()
    };
    assert_eq!(
        said[..3],
        ["spawn -2 -> hello", "[1]", "2 successful"],
        "{said:#?}"
    );
    assert_eq!(of_job("] i'm t4"), 2, "{said:#?}");
    assert_eq!(
        of_job(": hello, world from"),
        2,
        "from the tasks that those have started: {said:#?}"
    );
    assert_eq!(of_job("] EOF"), 4, "{said:#?}");
    let end = said.iter().position(|line| line == "[1] finished");
    let last = said.iter().rposition(|line| line.starts_with("[1:"));
    assert!(last < end, "the end comes last: {said:#?}");
    assert!(
        !said.iter().any(|line| line.starts_with(" 1:")),
        "no job is left: {said:#?}"
    );
    assert!(has(&said, "0 successful"), "{said:#?}");
    machine.halt();
}

/// A spawned task uses another libpvm3 than Regatta's. The output must name it, since its parent would otherwise wait
/// for it for ever.
#[test]
fn a_task_that_loads_another_pvm_s_library_is_named() {
    let machine = Machine::new("pvm-console-foreign");
    let load = "unset LD_LIBRARY_PATH\nexport LD_PRELOAD=libpvm3.so.3\n";
    let itself = machine.script("itself", &format!("#!/bin/sh\n{load}exec sleep 1000\n"));
    let below = machine.script("below", &format!("#!/bin/sh\n{load}sleep 1000\nexit 1\n"));
    let here = format!("spawn -> {}", itself.display());
    let there = format!("spawn -h1 -> {}", below.display());
    let named = "regatta: this task has loaded the library of another PVM, /";
    let lines = [
        (here.as_str(), named),
        ("add h1", "80000"),
        (there.as_str(), named),
        ("spawn -> /bin/sleep 1000", "[3]"),
        ("halt", "halt"),
    ];
    let said = converse(&mut on_hosts(&machine, 2), &lines);
    let named = said.iter().filter(|line| line.contains(named));
    let named: Vec<&String> = named.collect();
    assert_eq!(named.len(), 2, "each is named once: {said:#?}");
    assert!(
        named.iter().all(|line| line.contains("libpvm3.so.3")),
        "{named:#?}"
    );
    machine.is_over();
}

#[test]
fn a_console_that_is_quit_leaves_the_machine_and_halt_ends_it() {
    let machine = Machine::new("pvm-console-life");
    let said = talk(&mut machine.by_hand(&console()), &["id"]);
    assert!(
        said.starts_with("pvm> id\nt"),
        "it begins the machine: {said}"
    );
    assert!(
        said.ends_with("pvm> quit\n\nConsole: exit handler called\npvmd still running.\n"),
        "{said}"
    );
    let said = talk(
        &mut machine.by_hand(&console()),
        &["setenv HOME", "halt", "echo never"],
    );
    assert!(
        said.starts_with("pvmd already running.\n"),
        "it finds the machine: {said}"
    );
    assert!(!said.contains("never"), "{said}");
    machine.is_over();
}

#[test]
fn what_the_start_file_says_comes_first() {
    let machine = Machine::new("pvm-console-rc");
    machine.write(".pvmrc", "# mine\nalias hi echo hello\nhi you\n");
    let said = talk(&mut machine.by_hand(&console()), &["hi there"]);
    assert!(
        said.starts_with(
            "# mine\nalias hi echo hello\nhi you\nhello you\npvm> hi there\nhello there\n"
        ),
        "{said}"
    );
    machine.halt();
}

#[test]
fn a_host_file_with_mistakes_keeps_nothing_from_starting_and_each_is_told_with_its_line() {
    let machine = Machine::new("pvm-console-file");
    machine.write("hosts", "localhost sp=600\n& beta zz=1\n\n& gamma sp=x\n");
    for (file, told) in [
        ("hosts", "line 2: there is no option \"zz\""),
        ("hosts", "line 4: sp=x is not a speed"),
        ("nosuch", "the host file cannot be read: No such file"),
    ] {
        let script = "printf 'conf\\nhalt\\n' | \"$@\" 2>&1";
        let mut shell = machine.by_hand("sh".as_ref());
        let shell = shell.args(["-c", script, "sh"]).arg(console()).arg(file);
        // Halting the machine ends the console as well.
        let output = pvm_machine::output(shell);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("1 host, 1 data format"), "{file}: {said}");
        assert!(said.contains(told), "{file}: {said}");
        assert!(
            said.contains(" 600 ") == (file == "hosts"),
            "{file}: {said}"
        );
        machine.is_over();
    }
}

#[test]
fn arguments_that_no_console_takes_start_nothing() {
    let machine = Machine::new("pvm-console-arguments");
    for (arguments, told) in [(&["-s"][..], "ssh"), (&["a", "b"], "only one host file")] {
        let mut console = machine.by_hand(&console());
        let output = console.args(arguments).output().expect("a console");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(told), "{said}");
    }
    assert_eq!(machine.log(), "", "nothing was started");
}

/// Returns a command that runs the console on the first of `count` hosts. It reaches the others through the command in
/// PVM_RSH.
fn on_hosts(machine: &Machine, count: u32) -> Command {
    machine.write("reach", "#!/bin/sh\nhost=$1\nshift\n[ \"$1\" != -l ] || shift 2\nexec ip netns exec \"$host\" \"$@\"\n");
    let script = format!(
        "set -e\n{}chmod 700 reach\nexec ip netns exec h0 env PVM_RSH=\"$HOME/reach\" {} \"$@\"",
        make_hosts(count),
        console().display()
    );
    let mut command = machine.by_hand("unshare".as_ref());
    command
        .args(AS_ROOT)
        .args(APART)
        .args(["sh", "-c", &script, "sh"]);
    command
}

/// Returns whether a line has this beginning and this end.
fn any(said: &[String], begins: &str, ends: &str) -> bool {
    said.iter()
        .any(|line| line.trim().starts_with(begins) && line.ends_with(ends))
}

fn has(said: &[String], line: &str) -> bool {
    said.iter()
        .any(|said| said.split_whitespace().collect::<Vec<_>>().join(" ") == line)
}

#[test]
fn hosts_join_run_tasks_that_reach_each_other_and_leave() {
    let machine = Machine::new("pvm-console-hosts");
    for name in ["hello", "hello_other"] {
        machine.example(name);
    }
    let lines = [
        ("add h1 \"h2 lo=me sp=500 wd=/usr\"", "c0000"),
        ("add nosuch h1", "h1 "),
        ("conf", " h2 "),
        ("spawn -h1 -> hello", "[1] finished"),
        ("spawn -4 -> hello", "[2] finished"),
        ("mstat h1 h2 h3", " h3 "),
        ("delete h1 h3", " h3 "),
        ("conf", " h2 "),
        ("add h1", " h1 "),
        ("spawn -h1 -> hello", "[3] finished"),
        ("halt", "halt"),
    ];
    let said = converse(&mut on_hosts(&machine, 3), &lines);
    assert!(has(&said, "2 successful"), "{said:#?}");
    assert!(any(&said, "h2 lo=me sp=500 wd=/usr ", "0000"), "{said:#?}");
    assert!(has(&said, "nosuch There is no such host"), "{said:#?}");
    assert!(
        has(&said, "h1 The host is already in the virtual machine"),
        "{said:#?}"
    );
    assert!(has(&said, "3 hosts, 1 data format"), "{said:#?}");
    assert!(any(&said, "h2 ", " 500 0x00408c41"), "{said:#?}");
    let greetings = said
        .iter()
        .filter(|line| line.contains("hello, world from"))
        .count();
    assert_eq!(
        greetings, 6,
        "each of six has a greeting from one it has started: {said:#?}"
    );
    assert!(has(&said, "h3 There is no such host"), "{said:#?}");
    assert!(has(&said, "h1 deleted"), "{said:#?}");
    assert!(has(&said, "2 hosts, 1 data format"), "{said:#?}");
    assert!(
        has(&said, "h1 100000"),
        "a host that comes back is a new one: {said:#?}"
    );
    machine.is_over();
}

#[test]
fn a_host_file_says_who_is_there_from_the_first_and_what_counts_later() {
    let machine = Machine::new("pvm-console-hostfile");
    machine.write(
        "hosts",
        "# ours\nlocalhost sp=600\n* sp=300\nh1\n& h2 sp=700\n* sp=400\n",
    );
    let mut console = on_hosts(&machine, 4);
    let lines = [
        ("conf", " h1 "),
        ("add h2 h3", "h3 "),
        ("conf", " h3 "),
        ("halt", "halt"),
    ];
    let said = converse(console.arg("hosts"), &lines);
    assert!(has(&said, "2 hosts, 1 data format"), "{said:#?}");
    let first = ["40000", "LINUX64", "600", "0x00408c41"];
    let is_first = |line: &String| line.split_whitespace().skip(1).eq(first);
    assert!(said.iter().any(is_first), "{said:#?}");
    assert!(has(&said, "h1 80000 LINUX64 300 0x00408c41"), "{said:#?}");
    assert!(any(&said, "h2 ", " 700 0x00408c41"), "{said:#?}");
    assert!(any(&said, "h3 ", " 400 0x00408c41"), "{said:#?}");
    machine.is_over();
}
