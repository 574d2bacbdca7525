//! Pictures of node programs with Plotix: all nodes draw one picture, and node 0 writes it as SVG and as PNG.

use std::path::{Path, PathBuf};

use regatta_tests::{Ended, Job, express};

/// Creates a folder for a scenario's files.
fn folder(scenario: &str) -> PathBuf {
    let name = format!("regatta-plotix-{}-{scenario}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn play(nodes: u32, scenario: &str, folder: &Path) -> Ended {
    let place = folder.display().to_string();
    let program = express::plotix_program("plotix");
    Job::of(nodes, &program, &[scenario, &place]).run().passed()
}

/// Returns the names of the files in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    names
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("a picture")
}

fn is_png(folder: &Path, name: &str) -> bool {
    let bytes = std::fs::read(folder.join(name)).expect("a picture");
    bytes.starts_with(b"\x89PNG\r\n\x1a\n")
}

fn times(part: &str, text: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn all_nodes_draw_one_picture() {
    for nodes in [1_usize, 3] {
        let folder = folder(&format!("picture-{nodes}"));
        play(nodes as u32, "picture", &folder);
        let text = read(&folder, "picture.svg");
        // The common frame appears once, every other shape once per node.
        assert_eq!(
            times("d=\"M0 1000L1000 1000L1000 0L0 0L0 1000\"", &text),
            1,
            "{text}"
        );
        assert_eq!(times("stroke-dasharray=\"2 4\"", &text), nodes, "{text}");
        assert_eq!(times("<circle", &text), 2 * nodes, "{text}");
        let mut behind = 0;
        for node in 0..nodes {
            let left = 100 * (node + 1);
            for part in [
                format!("d=\"M{left} 900L{left} 800L{} 700\"", left + 10),
                format!("&lt;node {node}&gt;"),
            ] {
                let at = text.find(&part).unwrap_or_else(|| panic!("{part}\n{text}"));
                assert!(
                    at > behind,
                    "the parts come in the order of the nodes\n{text}"
                );
                behind = at;
            }
        }
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}

#[test]
fn nodes_that_draw_the_same_draw_it_once() {
    let folder = folder("same");
    play(3, "same", &folder);
    let text = read(&folder, "same.svg");
    assert_eq!(times("<path", &text), 2, "{text}");
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn each_frame_has_a_file_unless_it_is_empty() {
    let folder = folder("frames");
    play(2, "frames", &folder);
    let expected = ["empty.png", "empty.svg", "frames-2.png", "frames.png"];
    assert_eq!(files(&folder), expected);
    for name in ["empty.png", "frames-2.png", "frames.png"] {
        assert!(is_png(&folder, name), "{name}");
    }
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn the_user_chooses_the_name_or_it_is_the_usual_one() {
    let program = express::plotix_program("plotix");
    for (name, expected) in [
        ("", &["plot.png", "plot.svg"][..]),
        ("REGATTA_PLOT=other.svg", &["other.svg"]),
    ] {
        let folder = folder(&format!("named-{}", name.len()));
        let within = format!("cd {} && exec env {name} \"$@\"", folder.display());
        let job = Job::of(2, &program, &["named"]);
        job.around(&["sh", "-c", &within, "sh"]).run().passed();
        assert_eq!(files(&folder), expected);
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let program = express::plotix_program("plotix");
    let ended = Job::of(2, &program, &["nonsense"]).run().passed();
    for said in [
        "plotix: node 1: move: no picture is open; call openpl first",
        "plotix: node 0: openpl: a picture is already open; call closepl first",
        "plotix: node 0: line: the coordinate NaN is not finite",
        "plotix: node 0: cont: the coordinate inf is not finite",
        "plotix: node 0: space: a space from (1, 1) to (1, 2) has no area to draw in",
        "plotix: node 0: linemod: there is no line style wavy; the styles are solid, ",
        "plotix: node 0: label: the text is NULL",
        "plotix: node 0: closepl: cannot write /no/such/folder/picture.svg: No such file or directory",
        "plotix: node 1: closepl: node 0 cannot draw the picture",
    ] {
        assert!(ended.text.contains(said), "{said}\n{}", ended.story());
    }
    assert!(
        ended
            .text
            .contains("is too far from the space that is drawn")
    );
}

#[test]
fn a_picture_that_is_left_open_is_told_of() {
    let program = express::plotix_program("plotix");
    let ended = Job::of(2, &program, &["left"]).run().passed();
    ended.said(
        "plotix: node 0: exit: a picture is still open and is not written; call closepl to write it",
    );
}

#[test]
fn a_picture_of_a_dead_node_fails_with_its_name() {
    let program = express::plotix_program("plotix");
    let job = Job::of(3, &program, &["death"]).option("--on-failure=continue");
    let ended = job.run().ended_with(128 + 9);
    ended.said("plotix: node 0: closepl: task 1 ");
}

#[test]
fn nodes_on_several_hosts_draw_one_picture() {
    let folder = folder("hosts");
    let (place, program) = (
        folder.display().to_string(),
        express::plotix_program("plotix"),
    );
    let job = Job::of(3, &program, &["picture", &place]);
    job.across("one:2,two:1").run().passed();
    assert_eq!(times("<circle", &read(&folder, "picture.svg")), 6);
    std::fs::remove_dir_all(folder).expect("the folder");
}

#[test]
fn fortran_calls_every_routine_by_both_kinds_of_names() {
    let program = express::fortran_program("plotix_fortran");
    for nodes in [1_usize, 3] {
        let folder = folder(&format!("fortran-{nodes}"));
        let place = folder.display().to_string();
        Job::of(nodes as u32, &program, &[&place])
            .run()
            .passed()
            .said("OK");
        assert_eq!(files(&folder), ["integers.svg", "reals.svg"]);
        for (name, dashed) in [("integers", "2 4"), ("reals", "none")] {
            let text = read(&folder, &format!("{name}.svg"));
            assert_eq!(times("<circle", &text), 2 * nodes, "{text}");
            // Each node draws two lines, an arc, a box and a circle.
            let shapes = format!("stroke-dasharray=\"{dashed}\"");
            assert_eq!(times(&shapes, &text), 5 * nodes, "{text}");
            assert_eq!(
                times(&format!(">{name}<"), &text) + times(&format!("\n{name}\n"), &text),
                nodes,
                "{text}"
            );
        }
        std::fs::remove_dir_all(folder).expect("the folder");
    }
}
