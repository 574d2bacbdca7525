//! Commands for tasks: list, start, signal, end.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::console::{Console, name_of, tid};
use crate::machine::{Machine, Task};
use crate::report;
use crate::sddf;
use crate::spawning::{self, Sink, Spawning};
use crate::tracing::{Heading, Trace};

pub(super) fn ps<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let hosts = console.hosts();
    let own = console.machine.tid();
    // A tid with its low bits zero is that of its host.
    let mut asked = own & !0x3ffff;
    let (mut long, mut all) = (false, false);
    let flags = words
        .first()
        .and_then(|word| word.strip_prefix('-'))
        .unwrap_or_default();
    for (at, flag) in flags.char_indices() {
        let rest = &flags[at + flag.len_utf8()..];
        match flag {
            'a' => asked = 0,
            'l' => long = true,
            'x' => all = true,
            'h' => {
                asked = Some(tid(rest)).filter(|tid| *tid != 0).unwrap_or(asked);
                break;
            }
            'n' => {
                match hosts.iter().find(|host| host.name == rest) {
                    Some(host) => asked = host.tid,
                    None => console.print(format!("unknown host {rest}")),
                }
                break;
            }
            _ => console.print(format!("unknown flag -{flag}")),
        }
    }
    let Ok(tasks) = console.machine.tasks(asked) else {
        return;
    };
    console.print(report::tasks_heading(long));
    for task in tasks.iter().filter(|task| all || is_shown(task)) {
        console.print(report::task(task, name_of(&hosts, task.host), own, long));
    }
}

/// Returns whether a task is shown: consoles and tasks started by hand have no program name.
fn is_shown(task: &Task) -> bool {
    !task.program.is_empty()
}

pub(super) fn jobs<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let long = words.first().is_some_and(|word| word == "-l");
    let jobs: Vec<_> = console.jobs.list().collect();
    if !long {
        for (job, tids) in jobs {
            let tids: String = tids.iter().map(|tid| format!(" t{tid:x}")).collect();
            console.print(format!("{job}:{tids}"));
        }
        return;
    }
    let hosts = console.hosts();
    let Ok(tasks) = console.machine.tasks(0) else {
        return;
    };
    let own = console.machine.tid();
    console.print(report::tasks_heading(false));
    for (job, tids) in jobs {
        console.print(format!("{job}:"));
        for task in tasks.iter().filter(|task| tids.contains(&task.tid)) {
            console.print(report::task(task, name_of(&hosts, task.host), own, false));
        }
    }
}

pub(super) fn pstat<M: Machine>(console: &mut Console<M>, words: &[String]) {
    for word in words {
        let answer = console.machine.task_state(tid(word));
        let line = report::task_state(tid(word), answer, console.explain());
        console.print(line);
    }
}

pub(super) fn sig<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let Ok(signal) = words[0].parse() else {
        console.print(format!("{} is not the number of a signal", words[0]));
        return;
    };
    for word in &words[1..] {
        // The library has reported errors.
        let _ = console.machine.signal(tid(word), signal);
    }
}

pub(super) fn kill<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let mut children = false;
    for word in words {
        match word.strip_prefix('-') {
            Some("c") => children = true,
            Some(flag) => console.print(format!("unknown flag -{flag}")),
            None if children => kill_children(console, tid(word)),
            None if tid(word) == console.machine.tid() => {
                console.print(format!("t{:x}: that's me.", tid(word)))
            }
            None => {
                let _ = console.machine.kill(tid(word));
            }
        }
    }
}

fn kill_children<M: Machine>(console: &mut Console<M>, parent: i32) {
    let own = console.machine.tid();
    let tasks = console.machine.tasks(0).unwrap_or_default();
    for task in tasks
        .iter()
        .filter(|task| task.parent == parent && parent > 0 && task.tid != own)
    {
        let _ = console.machine.kill(task.tid);
    }
}

/// Ends all tasks except consoles and those that have requested to be spared.
pub(super) fn reset<M: Machine>(console: &mut Console<M>) {
    let own = console.machine.tid();
    let lasting = console.machine.lasting().unwrap_or_default();
    let tasks = console.machine.tasks(0).unwrap_or_default();
    for task in tasks
        .iter()
        .filter(|task| task.tid != own && !lasting.contains(&task.tid))
    {
        let _ = console.machine.kill(task.tid);
    }
}

pub(super) fn spawn<M: Machine>(console: &mut Console<M>, words: &[String]) {
    let hosts = console.hosts();
    let is_arch = |word: &str| hosts.iter().any(|host| host.arch == word);
    let Ok(mut spawning) = spawning::read(words, is_arch) else {
        console.print("incorrect arg count");
        return;
    };
    if let Err(sentence) = begin_job(console, &mut spawning) {
        console.print(sentence);
        return;
    }
    let answers = console.machine.spawn(&spawning.order).unwrap_or_default();
    let started: Vec<i32> = answers.iter().filter_map(|answer| answer.ok()).collect();
    if !answers.is_empty() {
        console.print(format!("{} successful", started.len()));
    }
    for answer in &answers {
        let line = answer.map_or_else(console.explain(), |tid| format!("t{tid:x}"));
        console.print(line);
    }
    if let Some(job) = spawning.order.job {
        started
            .iter()
            .for_each(|tid| console.jobs.started(job, *tid));
        if started.is_empty() {
            console.jobs.forget(job);
        }
    }
}

/// Begins the job for the tasks to be started, if their output or events are wanted.
fn begin_job<M: Machine>(console: &mut Console<M>, spawning: &mut Spawning) -> Result<(), String> {
    let heard = spawning.output.is_some();
    let file = spawning.output.as_ref().map_or(Ok(None), open)?;
    let Some(sink) = &spawning.trace else {
        if heard {
            let job = console.jobs.begin(file);
            spawning.order.job = Some(job);
            console.print(format!("[{job}]"));
        }
        return Ok(());
    };
    let trace = Trace::new(open(sink)?);
    // The library has reported errors.
    let _ = console.machine.set_trace_mask(&console.events.mask());
    let job = console.jobs.begin_traced(heard, file, trace);
    (spawning.order.job, spawning.order.traced) = (Some(job), true);
    console.print(format!("[{job}]"));
    let (heading, hosts) = (heading(&console.machine), console.hosts());
    let told = console.jobs.begin_trace(job, &heading, &hosts);
    console.print_bytes(&told);
    Ok(())
}

/// Returns the heading of a job's trace.
fn heading(machine: &impl Machine) -> Heading {
    let (now, version) = (machine.now(), machine.version());
    let about = format!("Console {version} (PVM {version})");
    Heading {
        console: machine.tid(),
        now,
        text: sddf::heading(&sddf::date(now.0.into()), &about),
    }
}

type Paper = Option<Box<dyn Write>>;

fn open(sink: &Sink) -> Result<Paper, String> {
    let opened = |name: &str, file: io::Result<File>| match file {
        Ok(file) => Ok(Some(Box::new(file) as Box<dyn Write>)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(format!("{name}: File exists (->>{name} adds to its end)"))
        }
        Err(error) => Err(format!("{name}: {error}")),
    };
    match sink {
        Sink::Console => Ok(None),
        Sink::New(name) => opened(name, File::create_new(name)),
        Sink::Append(name) => opened(
            name,
            OpenOptions::new().append(true).create(true).open(name),
        ),
    }
}
