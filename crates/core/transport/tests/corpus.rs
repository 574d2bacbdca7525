//! Checks with the ordinary toolchain what must hold for the inputs kept for the fuzzer.

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;
#[path = "../../../../fuzz/src/messages.rs"]
mod messages;
#[path = "../../../../fuzz/src/neighbour.rs"]
mod neighbour;

use corpus::each;

#[test]
fn frame_bodies_are_decoded_or_refused() {
    each("decoders", messages::decoders);
}

#[test]
fn questions_and_answers_are_decoded_or_refused() {
    each("control", messages::control);
}

#[test]
fn messages_of_jobs_and_daemons_are_decoded_or_refused() {
    each("session", messages::session);
}

#[test]
fn join_tokens_are_understood_or_refused() {
    each("join_token", messages::join_token);
}

#[test]
fn a_scribbling_neighbour_hurts_nobody() {
    each("neighbour", neighbour::neighbour);
}
