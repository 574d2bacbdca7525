//! The applications (`programs/applications`) compute correct results with every interface and any number of tasks.

use std::path::Path;

use regatta_tests::applications::{
    FORTRAN_INTERFACES, INTERFACES, application_job, fortran_job, fortran_program, npb_job,
    npb_job_with,
};
use regatta_tests::{Ended, Job};

/// Runs a kernel of the smallest class without an interface, then with each interface and these numbers of tasks. Each
/// run must verify its result.
fn verify(kernel: &str, tasks: &[u32]) {
    let verified = |tasks: u32| format!("npb-{kernel} class S, {tasks} tasks: verified");
    npb_job(kernel, "serial", "S", 1)
        .run()
        .passed()
        .said(&verified(1));
    for interface in INTERFACES {
        for &tasks in tasks {
            npb_job(kernel, interface, "S", tasks)
                .run()
                .passed()
                .said(&verified(tasks));
        }
    }
}

#[test]
fn ep_has_the_published_sums_by_every_interface() {
    verify("ep", &[1, 2, 5, 8]);
}

/// Returns how many of the 256 blocks of class S each task of `ep` has computed.
fn blocks_of_tasks(ended: &Ended) -> Vec<u32> {
    let line = ended
        .text
        .lines()
        .find_map(|line| line.split_once(": blocks of each task: "));
    let (_, numbers) = line.unwrap_or_else(|| panic!("no blocks in {}", ended.text));
    let numbers = numbers.split_whitespace();
    numbers
        .map(|number| number.parse().expect("a number"))
        .collect()
}

#[test]
fn ep_has_the_published_sums_however_its_work_is_dealt() {
    for way in ["pilot", "units"] {
        let alone = npb_job_with("ep", "serial", &["S", way], 1).run().passed();
        alone.said("npb-ep class S, 1 tasks: verified");
        for interface in INTERFACES {
            for tasks in [1, 3, 8] {
                let ended = npb_job_with("ep", interface, &["S", way], tasks)
                    .run()
                    .passed();
                let ended = ended.said(&format!("npb-ep class S, {tasks} tasks: verified"));
                let blocks = blocks_of_tasks(&ended);
                assert_eq!(blocks.len(), tasks as usize, "{way} by {interface}");
                assert_eq!(blocks.iter().sum::<u32>(), 256, "{way} by {interface}");
            }
        }
    }
}

#[test]
fn is_has_the_published_ranks_by_every_interface() {
    verify("is", &[1, 2, 5, 8]);
}

#[test]
fn cg_has_the_published_eigenvalue_by_every_interface() {
    verify("cg", &[1, 2, 8, 9]);
}

#[test]
fn mg_has_the_published_residual_by_every_interface() {
    verify("mg", &[1, 2, 4, 8]);
}

#[test]
fn ft_has_the_published_checksums_by_every_interface() {
    verify("ft", &[1, 2, 4, 8]);
}

/// Runs an application, which must verify its result. Returns the text that follows `said` in its output.
fn answer(job: Job, said: &str) -> String {
    let ended = job.run().passed().said(": verified, ");
    let rest = ended.text.split_once(said).map(|(_, rest)| rest);
    let rest = rest.unwrap_or_else(|| panic!("no {said:?} in {}", ended.text));
    rest.split(',').next().unwrap_or_default().to_owned()
}

/// Runs an application without an interface, then with each interface and these numbers of tasks. The text that follows
/// `said` must be the same in all outputs.
fn agree(name: &str, arguments: &[&str], tasks: &[u32], said: &str) {
    let alone = answer(application_job(name, "serial", arguments, 1), said);
    for interface in INTERFACES {
        for &tasks in tasks {
            let job = application_job(name, interface, arguments, tasks);
            assert_eq!(
                answer(job, said),
                alone,
                "{name} by {interface}, {tasks} tasks"
            );
        }
    }
}

/// Like `agree`, for the Fortran versions. Their answers must be those of the C version.
fn agree_in_fortran(name: &str, arguments: &[&str], said: &str) {
    let in_c = answer(application_job(name, "serial", arguments, 1), said);
    let alone = fortran_job(name, "serial", arguments, 1);
    assert_eq!(answer(alone, said), in_c, "{name} alone");
    for interface in FORTRAN_INTERFACES {
        for tasks in [1, 2, 4] {
            let job = fortran_job(name, interface, arguments, tasks);
            assert_eq!(
                answer(job, said),
                in_c,
                "{name} by {interface}, {tasks} tasks"
            );
        }
    }
}

#[test]
fn all_three_eliminations_find_the_solution_by_every_interface() {
    for way in ["row-block", "column-block", "column-scattered"] {
        agree("gauss", &[way, "96"], &[1, 2, 3, 8], " 96 unknowns");
    }
    // More tasks than rows.
    agree("gauss", &["row-block", "3"], &[5], " 3 unknowns");
    agree("gauss", &["column-scattered", "3"], &[5], " 3 unknowns");
}

#[test]
fn all_three_eliminations_find_the_solution_by_every_interface_in_fortran() {
    for way in ["row-block", "column-block", "column-scattered"] {
        agree_in_fortran("gauss", &[way, "96"], " 96 unknowns");
        // More tasks than rows.
        agree_in_fortran("gauss", &[way, "3"], " 3 unknowns");
    }
}

#[test]
fn bodies_keep_their_energy_by_every_interface() {
    agree("nbody", &["200", "5"], &[1, 2, 3, 8], "energy ");
}

#[test]
fn bodies_keep_their_energy_by_every_interface_in_fortran() {
    // The tasks have unequal numbers of bodies.
    agree_in_fortran("nbody", &["201", "5"], "energy ");
    agree_in_fortran("nbody", &["3", "1"], "energy ");
}

#[test]
fn molecules_keep_their_energy_by_every_interface() {
    agree("md", &["8", "20"], &[1, 2, 3, 5], "energy ");
}

/// Returns the path of a scene of the renderer.
fn scene(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/applications/ribbit");
    folder.join("scenes").join(name).display().to_string()
}

#[test]
fn a_picture_is_the_same_by_every_interface() {
    let still_life = scene("still-life.scene");
    agree(
        "ribbit",
        &[&still_life, "96", "72"],
        &[1, 2, 3, 8],
        " picture ",
    );
    for name in ["flake.scene", "island.scene"] {
        agree("ribbit", &[&scene(name), "96", "72"], &[3], " picture ");
    }
    // The picture is smaller than one tile, so there are more workers than work.
    agree("ribbit", &[&still_life, "17", "9"], &[8], " picture ");
}

/// Returns the CRC-32 of `bytes`.
fn crc(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| (crc >> 1) ^ (0xEDB8_8320 * (crc & 1));
    let byte = |crc: u32, &byte: &u8| (0..8).fold(crc ^ u32::from(byte), |crc, _| bit(crc));
    !bytes.iter().fold(!0, byte)
}

/// Removes a big-endian number from the front of `bytes` and returns it.
fn number(bytes: &mut &[u8]) -> u32 {
    let (number, rest) = bytes.split_first_chunk().expect("a number");
    *bytes = rest;
    u32::from_be_bytes(*number)
}

/// Removes the chunk `name` from the front of a PNG and returns its data.
fn chunk<'a>(png: &mut &'a [u8], name: &str) -> &'a [u8] {
    let length = number(png) as usize;
    let (checked, rest) = png.split_at(4 + length);
    *png = rest;
    assert_eq!(&checked[..4], name.as_bytes());
    assert_eq!(number(png), crc(checked), "the checksum of {name}");
    &checked[4..]
}

/// Returns the content of a zlib stream that consists of stored blocks only.
fn stored(mut stream: &[u8]) -> Vec<u8> {
    assert_eq!(
        u16::from_be_bytes([stream[0], stream[1]]) % 31,
        0,
        "its head"
    );
    stream = &stream[2..];
    let (mut all, mut last) = (Vec::new(), false);
    while !last {
        last = stream[0] == 1;
        let length = u16::from_le_bytes([stream[1], stream[2]]);
        assert_eq!(u16::from_le_bytes([stream[3], stream[4]]), !length);
        let (block, rest) = stream[5..].split_at(usize::from(length));
        all.extend_from_slice(block);
        stream = rest;
    }
    let sums = |(a, b): (u32, u32), &byte: &u8| {
        let a = (a + u32::from(byte)) % 65521;
        (a, (b + a) % 65521)
    };
    let (a, b) = all.iter().fold((1, 0), sums);
    assert_eq!(
        number(&mut stream),
        b << 16 | a,
        "the checksum of its bytes"
    );
    all
}

#[test]
fn a_picture_is_written_as_a_png_of_its_pixels() {
    let file = std::env::temp_dir().join(format!("ribbit-{}.png", std::process::id()));
    let name = file.display().to_string();
    let flake = scene("flake.scene");
    let arguments = [flake.as_str(), "150", "151", &name];
    let job = application_job("ribbit", "pvm", &arguments, 3);
    let said = job.run().passed().text;
    let png = std::fs::read(&file).expect("the picture");
    std::fs::remove_file(&file).expect("the picture is there");

    let mut rest = png.strip_prefix(b"\x89PNG\r\n\x1a\n").expect("a PNG");
    let mut header = chunk(&mut rest, "IHDR");
    assert_eq!([number(&mut header), number(&mut header)], [150, 151]);
    assert_eq!(header, [8, 2, 0, 0, 0], "three colours of 8 bits");
    let rows = stored(chunk(&mut rest, "IDAT"));
    chunk(&mut rest, "IEND");
    let rows = rows.chunks(1 + 3 * 150).map(|row| row.strip_prefix(&[0]));
    let pixels: Vec<u8> = rows
        .flat_map(|row| row.expect("no filter"))
        .copied()
        .collect();
    assert_eq!(pixels.len(), 150 * 151 * 3);
    assert!(
        said.contains(&format!("picture {:08x},", crc(&pixels))),
        "{said}"
    );
}

#[test]
fn a_scene_that_is_wrong_is_refused_by_its_line() {
    let refuses = |line: &str, reason: &str| {
        let text = format!("# a test\ncamera 0 1 -5  0 0 0  40\n{line}\n");
        let name = format!("ribbit-{}.scene", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, text).expect("a scene");
        let arguments = [file.display().to_string(), "8".to_owned(), "8".to_owned()];
        let arguments = arguments.each_ref().map(String::as_str);
        for (interface, tasks) in [("serial", 1), ("regatta", 3), ("pvm", 2)] {
            let job = application_job("ribbit", interface, &arguments, tasks);
            job.run().ended_with(2).said(reason);
        }
        std::fs::remove_file(&file).expect("the scene is there");
    };
    refuses("ball 1", "line 3: there is no statement `ball`");
    refuses("sphere 1", "line 3: a primitive needs a material");
    refuses("sky 1 0.5", "line 3: `sky` takes 9 numbers, not 2");
    refuses("samples many", "line 3: `many` is not a number");
    refuses("material red plain 1 0 0\nsphere -1", "line 4: a radius");
    refuses(
        "material red plain 1 0 0 shiny 2",
        "line 3: a material has no `shiny`",
    );
    refuses("begin", "line 3: the scene ends with a `begin`");
    for interface in INTERFACES {
        let job = application_job("ribbit", interface, &["none.scene", "8", "8"], 2);
        job.run()
            .ended_with(2)
            .said("cannot open the scene none.scene");
    }
}

#[test]
fn an_application_refuses_what_it_cannot_compute() {
    let refuses = |name: &str, arguments: &[&str], tasks: u32, reason: &str| {
        let job = application_job(name, "regatta", arguments, tasks);
        job.run().ended_with(2).said(reason);
    };
    refuses("gauss", &["diagonal"], 1, "the algorithm must be one of");
    refuses("gauss", &["row-block", "0"], 2, "the number of unknowns");
    refuses("nbody", &["1"], 1, "the number of bodies");
    refuses("md", &["4", "10"], 5, "narrower than the cutoff");
    refuses("ribbit", &[], 2, "say which scene");
    refuses(
        "ribbit",
        &[&scene("flake.scene"), "0", "9"],
        1,
        "the width and",
    );
}

#[test]
fn an_application_in_fortran_refuses_what_it_cannot_compute() {
    let refuses = |name: &str, interface: &str, arguments: &[&str], reason: &str| {
        let job = fortran_job(name, interface, arguments, 2);
        job.run().ended_with(2).said(reason);
    };
    for interface in ["nx", "express", "mpi"] {
        refuses(
            "gauss",
            interface,
            &["diagonal"],
            "the algorithm must be one of",
        );
        refuses(
            "gauss",
            interface,
            &["row-block", "0"],
            "number of unknowns",
        );
        refuses("nbody", interface, &["1"], "the number of bodies");
    }
    // With PVM, the last argument is the number of tasks.
    let job = Job::of(1, &fortran_program("nbody", "pvm"), &["512", "many"]);
    job.run().ended_with(2).said("the number of tasks");
}

#[test]
fn a_kernel_refuses_what_it_cannot_compute() {
    for (kernel, reason) in [("mg", "a power of two"), ("ft", "a power of two")] {
        npb_job(kernel, "regatta", "S", 3)
            .run()
            .ended_with(2)
            .said(reason);
    }
    npb_job("ep", "regatta", "X", 1)
        .run()
        .ended_with(2)
        .said("one of S, W, A, B");
    npb_job_with("ep", "regatta", &["S", "guessed"], 1)
        .run()
        .ended_with(2)
        .said("one of equal, pilot, units");
}
