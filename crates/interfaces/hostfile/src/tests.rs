//! Tests with valid and invalid host files.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> File {
    File::read(text).unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn names(hosts: &[Host]) -> Vec<&str> {
    hosts.iter().map(|host| host.name.as_str()).collect()
}

fn problem(text: &str) -> String {
    File::read(text).unwrap_err()[0].to_string()
}

#[test]
fn a_plain_file_is_a_list_of_names() {
    let file = read("# our hosts\n\nthud\n  fred   # the fast one\n\twilma\n   # no host\n");
    assert_eq!(names(&file.hosts), ["thud", "fred", "wilma"]);
    assert!(file.known.is_empty());
}

#[test]
fn all_nine_options_are_read() {
    let file = read(
        "thud lo=joe dx=/opt/d ep=$HOME/bin:/opt/bin wd=/tmp sp=500 bx=/opt/gdb so=ms ip=thud-fast id=second",
    );
    let expected = Options {
        login: Some("joe".into()),
        daemon: Some("/opt/d".into()),
        programs: Some("$HOME/bin:/opt/bin".into()),
        directory: Some("/tmp".into()),
        speed: Some(500),
        debugger: Some("/opt/gdb".into()),
        start: Some(Start::Manual),
        address: Some("thud-fast".into()),
        machine: Some("second".into()),
    };
    assert_eq!(file.hosts[0].options, expected);
    assert_eq!(
        read("thud so=pw").hosts[0].options.start,
        Some(Start::Password)
    );
}

#[test]
fn defaults_are_of_the_lines_that_follow_until_others_are_given() {
    let file = read("one\n* lo=guest sp=10\ntwo\nthree sp=20\n* wd=/tmp\nfour\n");
    let option = |host: usize| {
        (
            file.hosts[host].options.login.as_deref(),
            file.hosts[host].options.speed,
        )
    };
    assert_eq!(option(0), (None, None));
    assert_eq!(option(1), (Some("guest"), Some(10)));
    assert_eq!(option(2), (Some("guest"), Some(20)));
    assert_eq!(option(3), (None, None));
    assert_eq!(file.hosts[3].options.directory.as_deref(), Some("/tmp"));
    assert_eq!(file.defaults.directory.as_deref(), Some("/tmp"));
}

#[test]
fn hosts_behind_an_ampersand_are_known_and_not_started() {
    let file = read("alpha\n& beta lo=guest2\n&gamma sp=3\n* wd=/tmp\n");
    assert_eq!(names(&file.hosts), ["alpha"]);
    assert_eq!(names(&file.known), ["beta", "gamma"]);
    assert_eq!(
        file.added("beta").unwrap().options.login.as_deref(),
        Some("guest2")
    );
}

#[test]
fn a_host_added_later_takes_its_own_options_then_the_file_s_then_the_defaults() {
    let file = read("alpha\n& beta lo=guest sp=5\n* wd=/tmp lo=other sp=9\n");
    let beta = file.added("beta sp=7").unwrap().options;
    assert_eq!(
        (beta.login.as_deref(), beta.speed, beta.directory.as_deref()),
        (Some("guest"), Some(7), Some("/tmp"))
    );
    let stranger = file.added("delta").unwrap().options;
    assert_eq!(
        (stranger.login.as_deref(), stranger.speed),
        (Some("other"), Some(9))
    );
}

#[test]
fn a_dollar_before_a_name_asks_for_another_process_on_a_host_that_has_one() {
    let file = read("alpha\n$alpha\n");
    assert_eq!(names(&file.hosts), ["alpha", "alpha"]);
    assert!(!file.hosts[0].overload && file.hosts[1].overload);
}

#[test]
fn values_may_have_blanks_between_quotation_marks() {
    assert_eq!(
        read("alpha wd='/a b' bx=\"x y\"").hosts[0]
            .options
            .directory
            .as_deref(),
        Some("/a b")
    );
}

#[test]
fn what_is_wrong_is_said_with_the_number_of_its_line() {
    assert!(problem("alpha\nbeta zz=1\n").starts_with("line 2: there is no option \"zz\""));
    assert!(problem("alpha sp=abc").starts_with("line 1: sp=abc is not a speed"));
    assert!(problem("alpha sp=0").contains("1 to 1000000"));
    assert!(problem("alpha sp=1000001").contains("1 to 1000000"));
    assert!(problem("alpha so=xy").contains("so=pw"));
    assert!(problem("\n\n* lo").starts_with("line 3: \"lo\" is not of the form"));
    assert!(problem("&").contains("the line names no host"));
    assert!(problem("lo=joe").contains("the line names no host"));
    assert!(problem("alpha beta").contains("\"beta\" is not of the form"));
    assert!(problem("alpha\nalpha").contains("line 2: the host \"alpha\" is named twice"));
    assert!(problem("alpha wd=").contains("no value"));
    assert!(problem("alpha wd='x").contains("unmatched '"));
    assert!(problem("-oProxyCommand=x").contains("no host"));
    assert!(problem("-x").contains("cannot be the name"));
    assert!(problem("$").contains("cannot be the name"));
    let all = File::read("a\nb zz=1\nc sp=x\n").unwrap_err();
    assert_eq!(
        all.iter().map(|problem| problem.line).collect::<Vec<_>>(),
        [2, 3]
    );
}

#[test]
fn a_file_without_its_faulty_lines_can_be_read() {
    let (left, problems) = without_faults("* sp=7\nalpha zz=1\nbeta\n& gamma ep=\nbeta\ndelta");
    let lines = problems.iter().map(|problem| problem.line);
    assert_eq!(lines.collect::<Vec<_>>(), [2, 4, 5]);
    let file = read(&left);
    assert_eq!(names(&file.hosts), ["beta", "delta"]);
    assert_eq!(file.hosts[1].options.speed, Some(7));
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}", more in "[ -~\n]{0,300}") {
        let _ = File::read(&text);
        prop_assert!(File::read(&without_faults(&text).0).is_ok());
        prop_assert!(File::read(&without_faults(&more).0).is_ok());
        let _ = File::read(&more);
        let _ = host(&more, &Options::default());
    }

    #[test]
    fn what_is_read_comes_from_the_text(names in proptest::collection::btree_set("[a-z]{1,8}", 0..20)) {
        let text: String = names.iter().map(|name| format!("{name} sp=7\n")).collect();
        let file = File::read(&text).unwrap();
        prop_assert_eq!(file.hosts.len(), names.len());
        for (host, name) in file.hosts.iter().zip(&names) {
            prop_assert_eq!(&host.name, name);
            prop_assert_eq!(host.options.speed, Some(7));
        }
    }
}
