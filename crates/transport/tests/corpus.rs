//! The inputs kept for the fuzzer, and what must hold for them, with the ordinary compiler.

use std::path::Path;

#[path = "../../../fuzz/src/messages.rs"]
mod messages;
#[path = "../../../fuzz/src/neighbour.rs"]
mod neighbour;

/// Every file of a folder of the corpus; there must be some.
fn each(folder: &str, property: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files: Vec<_> = std::fs::read_dir(corpus.join(folder)).unwrap().collect();
    assert!(!files.is_empty(), "the corpus is empty");
    for file in files {
        property(&std::fs::read(file.unwrap().path()).unwrap());
    }
}

#[test]
fn frame_bodies_are_decoded_or_refused() {
    each("decoders", messages::decoders);
}

#[test]
fn questions_and_answers_are_decoded_or_refused() {
    each("control", messages::control);
}

#[test]
fn invitations_are_understood_or_refused() {
    each("invitation", messages::invitation);
}

#[test]
fn a_scribbling_neighbour_hurts_nobody() {
    each("neighbour", neighbour::neighbour);
}
