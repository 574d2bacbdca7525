//! Applications and partitions of the Paragon's NX: programs that are started by hand and start themselves or other
//! programs on their nodes.

use regatta_tests::Job;
use regatta_tests::nx::{fortran_application_job, host_in_a_job, host_job, job};

fn application(scenario: &str) -> Job {
    host_job("nx_application", "nx_node", &[scenario])
}

fn passes(scenario: &str) {
    application(scenario).run().passed();
}

#[test]
fn a_program_forks_onto_the_nodes_of_its_application() {
    passes("forked");
}

#[test]
fn the_ends_of_what_was_forked_are_told() {
    passes("ends");
}

#[test]
fn what_is_forked_by_a_second_call_has_made_the_first_one_too() {
    passes("forked-twice");
}

#[test]
fn a_program_that_was_built_anew_forks_all_the_same() {
    passes("renewed");
}

#[test]
fn programs_are_loaded_on_any_nodes_with_arguments_and_settings() {
    passes("loaded");
}

#[test]
fn options_of_the_command_go_before_arguments_and_are_taken_out() {
    passes("options");
    passes("wide-count");
}

#[test]
fn an_application_is_a_rectangle_if_its_program_says_so() {
    passes("rectangle");
    passes("attributes");
}

#[test]
fn an_application_has_the_usual_size_if_nobody_says_one() {
    application("usual").env("NX_DFLT_SIZE", "5").run().passed();
}

#[test]
fn partitions_are_made_told_of_changed_and_taken_away() {
    passes("partitions");
    passes("nested");
    passes("mapped");
}

#[test]
fn an_error_that_nobody_can_read_ends_nothing() {
    passes("unread");
}

#[test]
fn calls_that_fail_return_minus_one_and_end_nothing() {
    let ended = application("wrong").run().passed();
    let ended = ended.said("nx_mkpart: there is no such partition (EPINVALPART)");
    ended.said("No such file or directory");
}

#[test]
fn nodes_that_were_started_together_begin_no_application() {
    job(3, "nx_application", &["in-a-job"]).run().passed();
}

#[test]
fn the_nodes_of_an_application_are_on_the_hosts_of_its_job() {
    for scenario in ["forked", "forked-twice", "loaded"] {
        let job = host_in_a_job("nx_application", "nx_node", &[scenario]);
        job.across("alpha,beta").run().passed();
    }
}

#[test]
fn an_application_in_fortran() {
    let ended = fortran_application_job("nx_fapplication").run().passed();
    ended.said("all of it");
}
