//! The report on a terminal: one line per finding, wrapped under its column, with colours only on a terminal.

use std::fmt::Write;
use std::io::IsTerminal;

use regatta_launch::words::printable;

use super::finding::{Finding, FindingState};

const STATE: usize = 9;
const NAME: usize = 22;
const MARGIN: usize = 2;
const MIN_COLUMNS: usize = 60;
const MAX_COLUMNS: usize = 120;

/// How the report is shown.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: usize,
    pub colours: bool,
}

impl Look {
    /// Returns the style that suits standard output.
    pub fn of_stdout() -> Self {
        let stdout = std::io::stdout();
        let terminal = stdout.is_terminal();
        let columns =
            rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| usize::from(size.ws_col));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = if columns == 0 {
            100
        } else {
            columns.clamp(MIN_COLUMNS, MAX_COLUMNS)
        };
        Self {
            width,
            colours: terminal && !plain,
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// Returns the whole report.
pub fn report(title: &str, findings: &[Finding], look: Look) -> String {
    let mut page = format!("{}\n", look.paint("1", &printable(title)));
    let mut area = "";
    for finding in findings {
        if finding.area != area {
            area = finding.area;
            let _ = write!(page, "\n{}\n", look.paint("1", area));
        }
        line(&mut page, finding, look);
    }
    let _ = write!(
        page,
        "\n{}\n",
        wrap(&summary(findings), look.width).join("\n")
    );
    page
}

fn line(page: &mut String, finding: &Finding, look: Look) {
    let code = match finding.state {
        FindingState::Ok => "32",
        FindingState::Info => "2",
        FindingState::Slow => "33",
        FindingState::Missing => "31",
    };
    let state = look.paint(code, &format!("{:STATE$}", finding.state.word()));
    let indent = " ".repeat(MARGIN + STATE + NAME);
    let width = look.width - indent.len();
    let _ = write!(
        page,
        "{:MARGIN$}{state}{:NAME$}",
        "",
        printable(&finding.name)
    );
    // A long name takes its own line.
    if finding.name.chars().count() >= NAME {
        let _ = write!(page, "\n{indent}");
    }
    page.push_str(&wrap(&finding.value, width).join(&format!("\n{indent}")));
    page.push('\n');
    if let Some(next) = &finding.next {
        let lines = wrap(&format!("next: {next}"), width);
        let lines: Vec<String> = lines.iter().map(|line| look.paint("36", line)).collect();
        let _ = writeln!(page, "{indent}{}", lines.join(&format!("\n{indent}")));
    }
}

/// Returns the conclusion of the report.
pub fn summary(findings: &[Finding]) -> String {
    let count = |state| {
        findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    };
    let stops: Vec<&str> = findings
        .iter()
        .filter(|f| f.stops_us())
        .map(|f| f.name.as_str())
        .collect();
    let verdict = if stops.is_empty() {
        "Regatta works on this host".to_owned()
    } else {
        format!("Regatta cannot work here without: {}", stops.join(", "))
    };
    match (count(FindingState::Slow), count(FindingState::Missing)) {
        (0, 0) => format!("{verdict}."),
        (slow, missing) => {
            format!("{verdict}. {slow} slow, {missing} missing; each such line says what to do.")
        }
    }
}

/// Breaks a text into lines of at most `width` characters, at spaces where there are any.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in printable(text).split_whitespace() {
        let last = lines.last_mut().expect("at least one line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look {
        width: 60,
        colours: false,
    };

    #[test]
    fn a_line_is_wrapped_under_its_column() {
        let finding = Finding::slow(
            "kernel",
            "single copy",
            "refused because the kernel does not let tasks read each other",
        )
        .next("do this");
        let page = report("title", &[finding], PLAIN);
        assert!(
            page.lines().all(|line| line.chars().count() <= 60),
            "{page}"
        );
        assert!(
            page.contains("  slow     single copy           refused because the kernel"),
            "{page}"
        );
        assert!(
            page.contains(&format!("\n{}next: do this\n", " ".repeat(33))),
            "{page}"
        );
    }

    #[test]
    fn colours_only_when_asked() {
        let finding = [Finding::ok("kernel", "x", "y")];
        assert!(!report("t", &finding, PLAIN).contains('\x1b'));
        assert!(
            report(
                "t",
                &finding,
                Look {
                    colours: true,
                    ..PLAIN
                }
            )
            .contains("\x1b[32m")
        );
    }

    #[test]
    fn the_summary_names_what_stops_us() {
        let findings = [
            Finding::missing("a", "futex", "").essential(),
            Finding::missing("a", "gfortran", ""),
        ];
        let summary = summary(&findings);
        assert!(
            summary.contains("cannot work here without: futex."),
            "{summary}"
        );
        assert!(summary.contains("0 slow, 2 missing"), "{summary}");
    }
}
