//! The commands, grouped by subject.

mod hosts;
mod mailbox;
mod settings;
mod tasks;
mod words;

use crate::console::{Console, Next};
use crate::help;
use crate::machine::Machine;
use crate::verbs::Verb;

/// Executes a command with its words. The number of words has been checked.
pub(crate) fn run<M: Machine>(console: &mut Console<M>, verb: Verb, words: &[String]) -> Next {
    match verb {
        Verb::Add => hosts::add(console, words),
        Verb::Conf => hosts::conf(console),
        Verb::Delete => hosts::delete(console, words),
        Verb::Mstat => hosts::mstat(console, words),
        Verb::Halt => {
            if console.machine.halt().is_ok() {
                return Next::Halted;
            }
        }
        Verb::Jobs => tasks::jobs(console, words),
        Verb::Kill => tasks::kill(console, words),
        Verb::Ps => tasks::ps(console, words),
        Verb::Pstat => tasks::pstat(console, words),
        Verb::Sig => tasks::sig(console, words),
        Verb::Spawn => tasks::spawn(console, words),
        Verb::Reset => match words {
            [] => {
                tasks::reset(console);
                mailbox::clear(console, None, None);
            }
            [info, rest @ ..] => mailbox::reset(console, info, rest),
        },
        Verb::Names => mailbox::names(console, words),
        Verb::Put => mailbox::put(console, words),
        Verb::Getopt => settings::getopt(console, words),
        Verb::Setopt => settings::setopt(console, words),
        Verb::Trace => settings::trace(console, words),
        Verb::Export => words::export(console, words),
        Verb::Unexport => words::unexport(console, words),
        Verb::Setenv => words::setenv(console, words),
        Verb::Alias => words::alias(console, words),
        Verb::Unalias => words.iter().for_each(|name| console.aliases.forget(name)),
        Verb::Echo => console.print(words.join(" ")),
        Verb::Help => help(console, words),
        Verb::Id => console.print(format!("t{:x}", console.machine.tid())),
        Verb::Idump => console.machine.dump(),
        Verb::Tickle => settings::tickle(console, words),
        Verb::Version => console.print(console.machine.version()),
        Verb::Quit => return Next::Quit,
    }
    Next::Line
}

fn help<M: Machine>(console: &mut Console<M>, words: &[String]) {
    match words.first().map(|word| (word, Verb::meant(word))) {
        None => {
            console.print_all(help::about(Verb::Help));
            console.print_all(help::overview());
        }
        Some((_, Ok(verb))) => console.print_all(help::about(verb)),
        Some((word, Err(_))) => console.print(format!("{word}: not found")),
    }
}
