//! Programs of Express behave on Regatta as the documents describe the original: nodes and their messages, collective
//! calls of all nodes and of listed nodes.

use regatta_tests::{Ended, Job, express, skip};

/// Runs a scenario of a program on this number of nodes.
fn play(program: &str, nodes: u32, scenario: &str) -> Ended {
    Job::of(nodes, &express::program(program), &[scenario]).run()
}

fn messages(nodes: u32, scenario: &str) -> Ended {
    play("express_messages", nodes, scenario).passed()
}

fn nodes(nodes: u32, scenario: &str) -> Ended {
    play("express_nodes", nodes, scenario).passed()
}

#[test]
fn a_node_knows_its_number_and_how_many_there_are() {
    messages(3, "told");
}

#[test]
fn reads_choose_by_node_and_type_and_tell_what_they_got() {
    messages(2, "types");
}

#[test]
fn writes_do_not_wait_for_reads() {
    messages(3, "room");
}

#[test]
fn nothing_goes_to_a_neighbour_that_is_not_there() {
    messages(1, "nobody");
}

#[test]
fn exchanges_write_and_read() {
    for count in [1, 2, 5] {
        messages(count, "exchanges");
    }
}

#[test]
fn looks_do_not_wait_and_take_nothing() {
    messages(2, "looks");
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let ended = messages(2, "nonsense");
    for said in [
        "express: node 1: exwrite: there is no node 2; there are 2",
        "express: node 0: exwrite: this program has no host program",
        "express: node 0: exwrite: -1 is not a valid type; types start at 0",
        "express: node 0: exwrite: -1 is not a valid length",
        "express: node 0: exread: there is no node -9; there are 2",
        "express: node 0: exsend: the pointer for the status is NULL",
    ] {
        assert!(ended.text.contains(said), "{said}\n{}", ended.story());
    }
}

#[test]
fn numbers_that_are_right_are_not_written() {
    messages(1, "constants");
}

#[test]
fn messages_of_regatta_s_own_calls_are_apart() {
    messages(2, "apart");
}

#[test]
fn vectors_go_from_any_distance_to_any_other() {
    for count in [1, 2] {
        messages(count, "vectors");
    }
}

#[test]
fn a_vector_is_its_items_one_after_the_other() {
    messages(1, "shapes");
}

#[test]
fn what_was_begun_is_told_when_it_is_complete() {
    messages(3, "begun").said("express: node 0: exreceive: ");
}

#[test]
fn many_can_be_begun_at_once() {
    messages(2, "many");
}

#[test]
fn handlers_get_their_messages_while_a_node_waits_for_others() {
    messages(4, "handlers");
}

#[test]
fn handlers_may_begin_to_read_and_may_read_something_else() {
    messages(2, "other-reads");
}

#[test]
fn a_handler_for_a_node_that_has_left_keeps_no_call_from_its_work() {
    messages(3, "left");
}

#[test]
fn calls_that_depend_on_a_dead_node_fail_with_its_name() {
    let program = express::program("express_messages");
    let job = Job::of(3, &program, &["death"]).option("--on-failure=continue");
    let ended = job.run().ended_with(128 + 9);
    for node in [0, 2] {
        for call in ["exread", "exsync"] {
            let said = format!("express: node {node}: {call}: task 1 ");
            assert!(ended.text.contains(&said), "{said}\n{}", ended.story());
        }
    }
}

/// Each host has memory of its own, and messages between hosts take the network's path. (Only on a single host is a
/// message available as soon as a barrier has completed.)
#[test]
fn nodes_on_several_hosts_are_as_those_on_one() {
    const MESSAGES: [&str; 5] = ["types", "room", "vectors", "begun", "handlers"];
    const NODES: [&str; 4] = ["broadcasts", "combines", "concatenations", "lists"];
    let all = [
        ("express_messages", &MESSAGES[..]),
        ("express_nodes", &NODES),
    ];
    for (program, scenarios) in all {
        for scenario in scenarios {
            let job = Job::of(5, &express::program(program), &[scenario]);
            job.across("one:3,two:2").run().passed();
        }
    }
}

/// The rules of the hot paths also hold for the calls of Express, in addition to the calls of Regatta that they make.
#[test]
fn messages_and_combinations_allocate_nothing() {
    let program = express::program("express_rules");
    for (nodes, path) in [(2, "pings"), (2, "combines"), (3, "lists")] {
        Job::of(nodes, &program, &[path, "alloc"]).run().passed();
    }
}

#[test]
fn vectors_are_not_packed() {
    let program = express::program("express_rules");
    Job::of(2, &program, &["vectors", "alloc"]).run().passed();
}

#[test]
fn messages_lock_nothing_that_regatta_does_not() {
    if !cfg!(target_arch = "x86_64") {
        return skip("locked instructions are counted on x86-64");
    }
    let program = express::program("express_rules");
    Job::of(1, &program, &["locks"]).run().passed();
}

#[test]
fn broadcasts_reach_all_nodes() {
    for count in [1, 2, 5] {
        nodes(count, "broadcasts");
    }
}

#[test]
fn items_are_combined_by_a_function_of_the_program() {
    for count in [1, 2, 5] {
        nodes(count, "combines");
    }
}

#[test]
fn parts_of_any_length_are_concatenated() {
    let ended = nodes(5, "concatenations");
    ended.said("express: node 1: exconcat: all parts are 28 bytes long, and the buffer has 2");
}

#[test]
fn nodes_of_a_list_act_by_themselves() {
    for count in [2, 5, 6] {
        nodes(count, "lists");
    }
}

#[test]
fn lists_that_make_no_sense_are_refused_with_a_sentence() {
    let ended = nodes(2, "nonsense");
    for said in [
        "excombine: the function is NULL",
        "excombine: 0 is not a valid size of an item",
        "excombine: 0 nodes, but the list is NULL",
        "excombine: there is no node 64; there are 2",
        "excombine: this node is not in the list",
        "exbroadcast: this program has no host program",
    ] {
        assert!(ended.text.contains(said), "{said}\n{}", ended.story());
    }
}

#[test]
fn nobody_is_through_a_barrier_before_all_have_come() {
    nodes(4, "barriers");
}

#[test]
fn semaphores_are_counts_that_all_nodes_share() {
    for count in [1, 4] {
        let ended = nodes(count, "semaphores");
        ended
            .said("express: node 0: exsemaphore: -1 is not a valid semaphore; semaphores start at 0")
            .said("exsemaphore: a change of -2 is too large: only one unit can be taken from a semaphore at a time")
            .said("exsemaphore: a change of 2147483647 is too large: at most 65536 units can be added to a semaphore at a time");
    }
    let program = express::program("express_nodes");
    let job = Job::of(4, &program, &["semaphores"]);
    job.across("one:2,two:2").run().passed();
}

fn grid(nodes: u32, scenario: &str) -> Ended {
    play("express_grid", nodes, scenario).passed()
}

#[test]
fn neighbours_in_a_grid_find_each_other() {
    for count in [1, 6, 8] {
        grid(count, "grids");
    }
}

#[test]
fn each_point_of_a_domain_is_one_node_s() {
    for count in [1, 3, 4] {
        grid(count, "domains");
    }
}

#[test]
fn grids_that_make_no_sense_are_refused_with_a_sentence() {
    let ended = grid(2, "nonsense");
    for said in [
        "exgridnode: there is no grid yet: call exgridinit first",
        "exgridinit: the grid has 3 nodes, and there are 2",
        "exgridcoord: node 1 is not in the grid",
    ] {
        assert!(ended.text.contains(said), "{said}\n{}", ended.story());
    }
}

#[test]
fn a_program_on_the_host_starts_nodes_and_talks_with_them() {
    let program = express::program("express_host");
    for count in ["1", "4"] {
        let ended = Job::at(&program, &[count]).run().passed();
        ended
            .said("host done")
            .said("express: host: exsync: the host program is not a node");
    }
    // In a job as well as started by hand.
    Job::of(1, &program, &["3"])
        .run()
        .passed()
        .said("host done");
}

#[test]
fn a_host_program_loads_one_set_of_nodes_after_the_other() {
    let program = express::program("express_host");
    for count in ["1", "3"] {
        let job = Job::of(1, &program, &[count, "again"]).env("AGAIN", "");
        job.run().passed().said("host done");
    }
}

#[test]
fn a_host_program_does_not_wait_for_anybody_when_all_nodes_have_died() {
    let program = express::program("express_host");
    let job = Job::at(&program, &["3", "alone"]).limit(30);
    let ended = job.run().ended_with(0).said("alone no more");
    ended.said("was killed by signal 9; this operation cannot complete without it");
}

#[test]
fn fortran_calls_every_routine_by_all_its_names() {
    let program = express::fortran_program("express_fortran");
    for count in [1, 2, 5] {
        Job::of(count, &program, &[]).run().passed().said("OK");
    }
}

#[test]
fn fortran_has_host_programs_too() {
    let program = express::fortran_program("express_fhost");
    Job::at(&program, &["host"]).run().passed().said("OK");
}
