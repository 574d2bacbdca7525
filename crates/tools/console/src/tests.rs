//! Sessions with a simulated machine: the output for some input.

use std::collections::BTreeMap;

use crate::console::{Console, Next};
use crate::events::{Event, Part, Value};
use crate::machine::{Answer, Class, Code, Entry, Host, Machine, Notice, Order, Output, Task};

const NO_HOST: Code = Code(-6);
const NO_TASK: Code = Code(-31);
const CONSOLE: i32 = 0x40001;

/// A machine with the hosts alpha and beta.
#[derive(Default)]
struct Pretended {
    tasks: Vec<Task>,
    lasting: Vec<i32>,
    ended: Vec<i32>,
    signals: Vec<(i32, i32)>,
    orders: Vec<Order>,
    news: Vec<Notice>,
    boxes: Vec<Class>,
    forgotten: Vec<(String, i32)>,
    variables: BTreeMap<String, String>,
    masks: Vec<String>,
    options: BTreeMap<i32, i32>,
}

fn host(name: &str, tid: i32) -> Host {
    Host {
        tid,
        name: name.into(),
        arch: "LINUX64".into(),
        speed: 1000,
        signature: 0x408c41,
    }
}

fn task(tid: i32, parent: i32, program: &str) -> Task {
    let host = tid & !0x3ffff;
    Task {
        tid,
        parent,
        host,
        flags: 6,
        program: program.into(),
        pid: 7,
    }
}

impl Machine for Pretended {
    fn tid(&self) -> i32 {
        CONSOLE
    }
    fn version(&self) -> String {
        "3.4.6".into()
    }
    fn explain(&self, code: Code) -> String {
        match code {
            NO_HOST => "No such host".into(),
            NO_TASK => "No such task".into(),
            code => format!("error {}", code.0),
        }
    }
    fn hosts(&mut self) -> Answer<(i32, Vec<Host>)> {
        Ok((1, vec![host("alpha", 0x40000), host("beta", 0x80000)]))
    }
    fn add(&mut self, lines: &[String]) -> Answer<Vec<Answer<i32>>> {
        Ok(lines
            .iter()
            .map(|line| {
                if line == "gamma" {
                    Ok(0xc0000)
                } else {
                    Err(NO_HOST)
                }
            })
            .collect())
    }
    fn delete(&mut self, names: &[String]) -> Answer<Vec<Answer<()>>> {
        Ok(names
            .iter()
            .map(|name| if name == "beta" { Ok(()) } else { Err(NO_HOST) })
            .collect())
    }
    fn host_state(&mut self, name: &str) -> Answer<()> {
        if name == "alpha" {
            Ok(())
        } else {
            Err(NO_HOST)
        }
    }
    fn tasks(&mut self, host: i32) -> Answer<Vec<Task>> {
        Ok(self
            .tasks
            .iter()
            .filter(|task| host == 0 || task.host == host)
            .cloned()
            .collect())
    }
    fn task_state(&mut self, tid: i32) -> Answer<()> {
        self.tasks
            .iter()
            .find(|task| task.tid == tid)
            .map(|_| ())
            .ok_or(NO_TASK)
    }
    fn spawn(&mut self, order: &Order) -> Answer<Vec<Answer<i32>>> {
        self.orders.push(order.clone());
        let good = order.program[0] == "hello";
        Ok((0..order.count)
            .map(|count| {
                if good {
                    Ok(0x40010 + count)
                } else {
                    Err(Code(-7))
                }
            })
            .collect())
    }
    fn kill(&mut self, tid: i32) -> Answer<()> {
        self.ended.push(tid);
        Ok(())
    }
    fn signal(&mut self, tid: i32, signal: i32) -> Answer<()> {
        self.signals.push((tid, signal));
        Ok(())
    }
    fn lasting(&mut self) -> Answer<Vec<i32>> {
        Ok(self.lasting.clone())
    }
    fn halt(&mut self) -> Answer<()> {
        Ok(())
    }
    fn names(&mut self, _: &str) -> Answer<Vec<Class>> {
        Ok(self.boxes.clone())
    }
    fn put(&mut self, name: &str, flags: i32, _: i32) -> Answer<i32> {
        let entries = vec![Entry {
            index: 0,
            owner: CONSOLE,
            flags,
        }];
        self.boxes.push(Class {
            name: name.into(),
            entries,
        });
        Ok(0)
    }
    fn forget(&mut self, name: &str, entry: Entry) -> Answer<()> {
        self.forgotten.push((name.into(), entry.index));
        Ok(())
    }
    fn option(&mut self, option: i32) -> i32 {
        *self.options.get(&option).unwrap_or(&1)
    }
    fn set_option(&mut self, option: i32, value: i32) -> i32 {
        self.options.insert(option, value).unwrap_or(1)
    }
    fn set_trace_mask(&mut self, mask: &str) -> Answer<()> {
        self.masks.push(mask.into());
        Ok(())
    }
    fn tickle(&mut self, words: &[i32]) -> Answer<Vec<i32>> {
        Ok(words[1..].to_vec())
    }
    fn dump(&mut self) {}
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
    fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }
    fn now(&self) -> (i32, i32) {
        (3, 4)
    }
    fn news(&mut self) -> Option<Notice> {
        if self.news.is_empty() {
            None
        } else {
            Some(self.news.remove(0))
        }
    }
}

fn console() -> Console<Pretended> {
    Console::new(Pretended::default())
}

/// Returns the console's output for some lines.
fn said(console: &mut Console<Pretended>, lines: &str) -> String {
    for line in lines.lines() {
        assert_eq!(console.line(line), Next::Line, "{line}");
    }
    told(console)
}

fn told(console: &mut Console<Pretended>) -> String {
    let mut out = Vec::new();
    console.flush_to(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_line_without_words_says_nothing() {
    assert_eq!(said(&mut console(), "\n   \n# a comment\n"), "");
}

#[test]
fn what_is_no_command_is_named() {
    assert_eq!(said(&mut console(), "frob x"), "frob: not found\n");
    assert_eq!(
        said(&mut console(), "se"),
        "se: not found; did you mean setenv or setopt?\n"
    );
    assert_eq!(said(&mut console(), "echo \"x"), "unmatched \"\n");
    assert_eq!(
        said(&mut console(), "conf x\nspawn\nsig 1\nput a 1\n"),
        "conf: wrong #args\nspawn: wrong #args\nsig: wrong #args\nput: wrong #args\n"
    );
}

#[test]
fn aliases_stand_for_commands_until_they_are_forgotten() {
    let mut console = console();
    assert_eq!(
        said(
            &mut console,
            "alias hi echo hello\nhi there\nalias\nalias hi"
        ),
        "hello there\nhi\techo hello\nhi\techo hello\n"
    );
    assert_eq!(said(&mut console, "unalias hi\nhi"), "hi: not found\n");
    assert_eq!(
        said(&mut console, "alias a b\nalias b a\na"),
        "alias loop\n"
    );
}

#[test]
fn a_session_ends_by_quit_or_halt() {
    assert_eq!(console().line("quit"), Next::Quit);
    assert_eq!(console().line("halt"), Next::Halted);
    assert_eq!(console().line("q"), Next::Quit);
}

#[test]
fn hosts_are_listed_added_deleted_and_asked_after() {
    let mut console = console();
    assert!(said(&mut console, "conf").starts_with("2 hosts, 1 data format\n"));
    assert_eq!(
        said(&mut console, "add gamma delta"),
        "1 successful\n                    HOST     DTID\n                   gamma    c0000\n                   delta No such host\n"
    );
    assert_eq!(
        said(&mut console, "delete beta x"),
        "1 successful\n                    HOST  STATUS\n                    beta  deleted\n                       x  No such host\n"
    );
    assert_eq!(
        said(&mut console, "mstat alpha x"),
        "                   alpha  ok\n                       x  No such host\n"
    );
}

#[test]
fn ps_shows_this_host_s_tasks_unless_told_otherwise() {
    let mut console = console();
    console.machine.tasks = vec![
        Task {
            program: String::new(),
            flags: 4,
            parent: 0,
            ..task(CONSOLE, 0, "")
        },
        task(0x40002, -35, "here"),
        task(0x80001, 0x40002, "there"),
    ];
    let here = "               alpha    40002     6/c,f here        \n";
    let heading = "                    HOST      TID   FLAG 0x COMMAND\n";
    assert_eq!(said(&mut console, "ps"), format!("{heading}    {here}"));
    assert!(said(&mut console, "ps -a").contains("beta    80001     6/c,f there"));
    assert!(said(&mut console, "ps -x").contains("(cons)"));
    assert!(said(&mut console, "ps -axl").contains("80001    40002      7     6/c,f there"));
    assert!(said(&mut console, "ps -nbeta").contains("there"));
    assert!(said(&mut console, "ps -h80000").contains("there"));
    assert_eq!(
        said(&mut console, "ps -nx"),
        format!("unknown host x\n{heading}    {here}")
    );
    assert_eq!(
        said(&mut console, "ps -z"),
        format!("unknown flag -z\n{heading}    {here}")
    );
    assert_eq!(
        said(&mut console, "pstat t40002 40099"),
        "t   40002  run\nt   40099  No such task\n"
    );
}

#[test]
fn tasks_are_killed_and_signalled_but_not_the_console() {
    let mut console = console();
    console.machine.tasks = vec![
        task(0x40002, -35, "a"),
        task(0x40003, 0x40002, "b"),
        task(0x40004, 0x40002, "c"),
    ];
    assert_eq!(
        said(&mut console, "kill t40002 40003 t40001"),
        "t40001: that's me.\n"
    );
    assert_eq!(
        std::mem::take(&mut console.machine.ended),
        [0x40002, 0x40003]
    );
    said(&mut console, "kill -c t40002");
    assert_eq!(console.machine.ended, [0x40003, 0x40004]);
    said(&mut console, "sig 10 t40002");
    assert_eq!(console.machine.signals, [(0x40002, 10)]);
    assert_eq!(
        said(&mut console, "sig x t40002\nkill -y t40002"),
        "x is not the number of a signal\nunknown flag -y\n"
    );
}

#[test]
fn a_reset_spares_those_who_asked_for_it_and_clears_what_the_dead_have_left() {
    let mut console = console();
    console.machine.tasks = vec![
        task(CONSOLE, 0, ""),
        task(0x40002, -35, "a"),
        task(0x40003, 0, "b"),
    ];
    console.machine.lasting = vec![CONSOLE, 0x40003];
    let entry = |index, owner| Entry {
        index,
        owner,
        flags: 3,
    };
    let class = |name: &str| Class {
        name: name.into(),
        entries: vec![entry(0, 0), entry(1, CONSOLE), entry(2, 0)],
    };
    console.machine.boxes = vec![class("x"), class("y")];
    said(&mut console, "reset info y 2");
    assert_eq!(
        std::mem::take(&mut console.machine.forgotten),
        [("y".to_owned(), 2)]
    );
    said(&mut console, "reset info x");
    assert_eq!(
        std::mem::take(&mut console.machine.forgotten),
        [("x".to_owned(), 0), ("x".to_owned(), 2)]
    );
    assert!(console.machine.ended.is_empty());
    said(&mut console, "reset");
    assert_eq!(console.machine.ended, [0x40002]);
    assert_eq!(console.machine.forgotten.len(), 4);
    assert_eq!(
        said(&mut console, "reset z"),
        "\"z\" arg to reset not valid\n"
    );
}

#[test]
fn a_job_tells_its_tasks_then_their_lines_then_its_end() {
    let mut console = console();
    assert_eq!(
        said(&mut console, "spawn -2 -> hello x"),
        "[1]\n2 successful\nt40010\nt40011\n"
    );
    assert_eq!(console.machine.orders[0].program, ["hello", "x"]);
    assert_eq!(console.machine.orders[0].job, Some(1));
    assert_eq!(said(&mut console, "jobs"), " 1: t40010 t40011\n");
    let news = |tid, what| Notice::Job { job: 1, tid, what };
    console.machine.news = vec![
        news(0x40010, Output::Begun),
        news(0x40010, Output::Text(b"hi\n".to_vec())),
        news(0x40010, Output::End),
        news(0x40011, Output::End),
    ];
    assert_eq!(console.read_news(), Next::Line);
    assert_eq!(
        told(&mut console),
        "[1:t40010] hi\n[1:t40010] EOF\n[1:t40011] EOF\n[1] finished\n"
    );
    assert_eq!(said(&mut console, "jobs"), "");
}

#[test]
fn what_cannot_be_started_is_told_for_each_and_leaves_no_job() {
    let mut console = console();
    assert_eq!(
        said(&mut console, "spawn -2 -> x\njobs\nspawn hello"),
        "[1]\n0 successful\nerror -7\nerror -7\n1 successful\nt40010\n"
    );
    assert_eq!(console.machine.orders[1].job, None);
    assert_eq!(said(&mut console, "spawn -2"), "incorrect arg count\n");
}

#[test]
fn hosts_that_others_add_and_the_end_of_the_machine_are_told() {
    let mut console = console();
    console.machine.news = vec![Notice::Added(vec![0x80000]), Notice::Ended];
    assert_eq!(console.read_news(), Next::Halted);
    assert!(told(&mut console).starts_with("\nConsole: 1 new host added\n                    HOST     DTID     ARCH   SPEED\n                    beta    80000"));
}

#[test]
fn the_mailbox_is_shown_and_filled() {
    let mut console = console();
    assert_eq!(
        said(&mut console, "put x 2 7\nnames"),
        "<x>:\n\tindex=0 owner=0x40001/262145 flags=0x2\n\n"
    );
    assert_eq!(
        said(&mut console, "put x y 7"),
        "put: the flags and the value must be numbers\n"
    );
}

#[test]
fn variables_are_set_shown_and_passed_on() {
    let mut console = console();
    assert_eq!(
        said(&mut console, "setenv A b c\nsetenv A\nsetenv NONE"),
        "b c\n"
    );
    assert_eq!(
        said(&mut console, "export A B\nexport A\nexport"),
        "PVM_EXPORT=A:B\n"
    );
    assert_eq!(said(&mut console, "unexport A\nexport"), "PVM_EXPORT=B\n");
    assert_eq!(
        said(&mut console, "setenv A=B c"),
        "\"A=B\" cannot be the name of a variable\n"
    );
}

#[test]
fn options_and_traces_are_shown_and_changed() {
    let mut console = console();
    assert_eq!(
        said(&mut console, "setopt PvmRoute 3\ngetopt PvmRoute"),
        "PvmRoute Changed from 1 to 3\nPvmRoute Currently Set to 3\n"
    );
    assert_eq!(said(&mut console, "getopt").lines().count(), 23);
    assert_eq!(
        said(&mut console, "getopt x\nsetopt x 1"),
        "PVM Option \"x\" Unknown.\nPVM Option \"x\" Unknown.\n"
    );
    assert_eq!(
        said(&mut console, "trace - *\ntrace + barrier\ntrace frob"),
        "no such event \"frob\"\n"
    );
    assert_eq!(console.machine.masks[1], format!("B{}", "@".repeat(34)));
    assert_eq!(
        said(&mut console, "trace opt time\ntrace opt"),
        "\nTrace Options set to \"time\"\n\n"
    );
    assert_eq!(
        said(&mut console, "trace buf 100\ntrace buf"),
        "\nTrace Buffering set to 100 bytes\n\n"
    );
}

#[test]
fn hidden_commands_answer_too() {
    assert_eq!(
        said(&mut console(), "tickle 6 0x10\ntickle 5\nidump"),
        "( 16 )\n( )\n"
    );
    assert_eq!(said(&mut console(), "id\nversion"), "t40001\n3.4.6\n");
}

#[test]
fn a_traced_job_ends_when_its_tasks_have_and_nothing_comes_of_them() {
    let mut console = console();
    let begun = said(&mut console, "spawn -@ hello");
    assert!(begun.starts_with("[1]\n[T1:t40001] /*\n"), "{begun}");
    assert!(
        begun.contains("[T1:t40000] \"host_add(0)\" { 3, 4, 262144, [6] { \"alpha\" }"),
        "{begun}"
    );
    let order = console.machine.orders.last().expect("an order");
    assert_eq!((order.job, order.traced), (Some(1), true));
    let task = *console
        .jobs
        .list()
        .next()
        .expect("the job")
        .1
        .first()
        .expect("a task");
    let event = |number, name: &str| Notice::Event {
        job: 1,
        event: Event {
            number,
            name: name.into(),
            parts: vec![Part {
                name: "TID".into(),
                words: String::new(),
                value: Value::Int(vec![task]),
                many: false,
            }],
        },
    };
    let output = |what| Notice::Job {
        job: 1,
        tid: task,
        what,
    };
    console.machine.news = vec![
        event(75, "newtask"),
        output(Output::Begun),
        output(Output::Text(b"hi\n".to_vec())),
        output(Output::End),
    ];
    assert_eq!(console.read_news(), Next::Line);
    let heard = told(&mut console);
    assert!(heard.contains("\"newtask(0)\" { "), "{heard}");
    assert!(heard.contains("[3] { \"hi\" } };;"), "{heard}");
    assert!(!heard.contains("finished"), "it has not ended: {heard}");
    assert!(
        !heard.contains("[1:t"),
        "its output was not asked for: {heard}"
    );
    assert_eq!(said(&mut console, "jobs"), "T1:\n");
    console.machine.news = vec![event(76, "endtask")];
    console.read_news();
    assert!(told(&mut console).ends_with("[1] finished\n"));
    assert_eq!(
        said(&mut console, "spawn -> hello").lines().next(),
        Some("[3]")
    );
}
