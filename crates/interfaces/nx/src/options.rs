//! The command line options of a program that begins an application, such as `-sz 8`. Pure.

use std::ffi::{c_int, c_long};

use crate::error::{EQPARAM, Fault};

/// The size of an application: a number of nodes, or a rectangle of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Nodes(c_int),
    Rectangle { rows: c_int, columns: c_int },
}

/// Upper bound (exclusive) of the number of nodes of an application.
const TOO_MANY_NODES: c_int = 1 << 20;

impl Size {
    /// Returns a number of nodes as a size. Fails if an application cannot have that many.
    pub fn nodes(number: c_long) -> Result<Size, Fault> {
        let checked = c_int::try_from(number).ok();
        let checked = checked.filter(|number| (1..TOO_MANY_NODES).contains(number));
        checked
            .map(Size::Nodes)
            .ok_or(Fault::of(EQPARAM, "size", number))
    }

    /// Returns a rectangle as a size. Fails if an application cannot have that many nodes.
    pub fn rectangle(rows: c_long, columns: c_long) -> Result<Size, Fault> {
        let sides = [rows, columns].map(|side| c_int::try_from(side).ok().filter(|&side| side > 0));
        match sides {
            [Some(rows), Some(columns)]
                if rows
                    .checked_mul(columns)
                    .is_some_and(|all| all < TOO_MANY_NODES) =>
            {
                Ok(Size::Rectangle { rows, columns })
            }
            _ => Err(Fault::of(EQPARAM, "rows", rows)),
        }
    }

    /// Returns the number of nodes.
    pub fn count(self) -> c_int {
        match self {
            Size::Nodes(number) => number,
            Size::Rectangle { rows, columns } => rows * columns,
        }
    }

    /// Returns the rows of a rectangle, or 0 for a number of nodes.
    pub fn rows(self) -> c_int {
        match self {
            Size::Nodes(_) => 0,
            Size::Rectangle { rows, .. } => rows,
        }
    }

    /// Parses the value of the option: a number, or rows and columns separated by an x.
    fn read(text: &str) -> Result<Size, Fault> {
        let number = |text: &str| text.parse().unwrap_or(0);
        match text.split_once('x') {
            Some((rows, columns)) => Size::rectangle(number(rows), number(columns)),
            None => Size::nodes(number(text)),
        }
    }
}

/// The options that were given.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub size: Option<Size>,
    pub partition: Option<String>,
}

/// Options with a value that are ignored: priorities, buffer sizes, nodes for a start without a program.
const WITH_VALUE: [&str; 10] = [
    "-pri", "-pt", "-on", "-pkt", "-mbf", "-mex", "-mea", "-sth", "-sct", "-gth",
];
/// Options without a value that are ignored.
const WITHOUT_VALUE: [&str; 2] = ["-plk", "-rlx"];

/// Parses the options among the words of a command, and returns the indices of the other words. The first word is the
/// command itself.
pub fn take(words: &[String]) -> Result<(Options, Vec<usize>), Fault> {
    let mut options = Options::default();
    let mut others = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let value = words.get(at + 1).map(String::as_str);
        match words[at].as_str() {
            _ if at == 0 => others.push(at),
            "-sz" => options.size = Some(Size::read(value.unwrap_or_default())?),
            "-pn" => options.partition = value.map(str::to_owned),
            word if WITHOUT_VALUE.contains(&word) => {
                at += 1;
                continue;
            }
            word if WITH_VALUE.contains(&word) => {}
            _ => {
                others.push(at);
                at += 1;
                continue;
            }
        }
        at += if at == 0 { 1 } else { 2 };
    }
    Ok((options, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> Result<(Options, Vec<usize>), Fault> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        take(&words)
    }

    #[test]
    fn options_are_taken_out_and_the_others_stay() {
        let (options, others) = taken("prog -sz 4 input -pn mine -plk -pri 5 -v").expect("options");
        assert_eq!(options.size, Some(Size::Nodes(4)));
        assert_eq!(options.partition.as_deref(), Some("mine"));
        assert_eq!(others, [0, 3, 9]);
    }

    #[test]
    fn a_rectangle_has_rows_and_columns() {
        let (options, _) = taken("prog -sz 2x3").expect("options");
        let size = options.size.expect("a size");
        assert_eq!((size.count(), size.rows()), (6, 2));
        assert_eq!(Size::Nodes(6).rows(), 0);
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for line in [
            "prog -sz",
            "prog -sz many",
            "prog -sz 0",
            "prog -sz 2x",
            "prog -sz 99999x99999",
        ] {
            assert_eq!(
                taken(line).map_err(|fault| fault.code),
                Err(EQPARAM),
                "{line}"
            );
        }
    }

    #[test]
    fn the_name_of_a_command_is_no_option() {
        let (options, others) = taken("-sz").expect("options");
        assert_eq!((options, others), (Options::default(), vec![0]));
    }
}
