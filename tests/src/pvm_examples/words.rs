//! Extracts from a program's output what two runs have in common: drops task numbers, times, paths and error sentences.

use super::Scenario;

/// Range of task numbers on the first host. Contexts have numbers in the same range.
const TASKS: std::ops::Range<u32> = 0x40000..0x80000;

/// Standard output and standard error.
pub type Texts = (String, String);

/// Returns the lines of a text, with everything replaced that differs from run to run.
pub fn comparable(text: &str, home: &str, scenario: &Scenario) -> Vec<String> {
    let counts = |line: &&str| !scenario.left_out.iter().any(|part| line.contains(part));
    let mut lines: Vec<String> = text
        .lines()
        .filter(counts)
        .map(|line| plain(&line.replace(home, "HOME"), scenario))
        .collect();
    if scenario.any_order {
        lines.sort();
    }
    lines
}

fn plain(line: &str, scenario: &Scenario) -> String {
    let line = without_sentence(line);
    let mut words: Vec<String> = line.split_whitespace().map(without_tasks).collect();
    let line = words.join(" ");
    if !scenario.times.iter().any(|start| line.starts_with(start)) {
        return line;
    }
    for place in 0..words.len() {
        let is_size = place > 0 && words[place - 1].starts_with("size");
        // A number in the output may look like a task number.
        let word = words[place].trim_matches(['(', ')']).replace("TASK", "0");
        let is_figure = word.parse::<f64>().is_ok();
        if is_figure && !is_size {
            words[place] = "FIGURE".to_owned();
        }
    }
    words.join(" ")
}

/// Removes the sentence of an error line. The two libraries word errors differently.
fn without_sentence(line: &str) -> &str {
    let told = line.starts_with("libpvm [");
    match line.rfind(": ").filter(|_| told) {
        Some(end) => &line[..end],
        None => line,
    }
}

/// Replaces the task numbers in a word, in each of their notations.
fn without_tasks(word: &str) -> String {
    let mut plain = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let found = task_at_start(rest).filter(|_| !plain.ends_with(|c: char| c.is_alphanumeric()));
        let length = found.unwrap_or(first.len_utf8());
        plain.push_str(if found.is_some() {
            "TASK"
        } else {
            &rest[..length]
        });
        rest = &rest[length..];
    }
    plain
}

/// Returns the length of the task number at the start of a text: `t40003`, `0x40003`, `40003` or `262147`.
fn task_at_start(text: &str) -> Option<usize> {
    let mark = ["t", "0x"].into_iter().find(|mark| text.starts_with(mark));
    let number = &text[mark.map_or(0, str::len)..];
    let digits = number.len()
        - number
            .trim_start_matches(|c: char| c.is_ascii_hexdigit())
            .len();
    let (number, after) = number.split_at(digits);
    let in_range = |value: Result<u32, _>| value.is_ok_and(|value| TASKS.contains(&value));
    let is_task = in_range(u32::from_str_radix(number, 16))
        || mark.is_none() && in_range(number.parse::<u32>());
    // The name of a mailbox may begin with a number.
    let ends = mark == Some("t") || !after.starts_with(|c: char| c.is_alphanumeric());
    (is_task && ends).then(|| mark.map_or(0, str::len) + digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pvm_examples::PLAIN;

    #[test]
    fn numbers_of_tasks_and_times_go_and_all_else_stays() {
        let scenario = Scenario {
            times: &["Roundtrip"],
            ..PLAIN
        };
        for (line, wanted) in [
            ("from t40003: hello, 40003", "from TASK: hello, TASK"),
            ("[1:t4000f]  262159 ->  4000", "[1:TASK] TASK -> 4000"),
            ("<t40002lmbi0> at 0", "<TASKlmbi0> at 0"),
            ("t40003: 100000 doubles", "TASK: 100000 doubles"),
            ("tffffffff 524287", "tffffffff TASK"),
            ("/tmp/x/pvm3/a 0x40001 x", "HOME/pvm3/a TASK x"),
            (
                "Roundtrip T = 12 (us) (0.1 MB/s) Data size: 80",
                "Roundtrip T = FIGURE (us) FIGURE MB/s) Data size: 80",
            ),
            (
                "Roundtrip T = 0 (us) (-nan MB/s) Data size: 0",
                "Roundtrip T = FIGURE (us) FIGURE MB/s) Data size: 0",
            ),
            (
                "libpvm [t40001]: pvm_x(): Not there",
                "libpvm [TASK]: pvm_x()",
            ),
        ] {
            assert_eq!(plain(&line.replace("/tmp/x", "HOME"), &scenario), wanted);
        }
    }
}
