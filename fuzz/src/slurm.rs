//! Texts of Slurm and munge, and messages of tasks that `srun` has started: rejected, or decoded so that encoding gives
//! the same bytes.

use regatta_foreign::slurm::{counts, names, numbers};
use regatta_slurm::{Allocation, credential};
use regatta_wire::guardian::{Answer, Call, Hello, Letter, RECORD, Record, Reply, versions};

/// Decodes the bytes as each message, as the content of a credential, as lists, and as an environment.
pub fn slurm(bytes: &[u8]) {
    if let Some(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes);
        assert_eq!(versions(bytes), Some(hello.versions));
    }
    if let Some(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes);
    }
    if let Some(letter) = Letter::decode(bytes) {
        assert_eq!(letter.encode(), bytes);
    }
    if let Some(call) = Call::decode(bytes) {
        assert_eq!(call.encode(), bytes);
    }
    if let Some(reply) = Reply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
    }
    for piece in bytes.chunks_exact(RECORD) {
        let piece: &[u8; RECORD] = piece.try_into().expect("a chunk of that length");
        if let Some(record) = Record::decode(piece) {
            assert_eq!(&record.encode(), piece);
        }
    }
    if let Some(content) = credential::content(bytes, 1000) {
        assert!(bytes.ends_with(&content));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        said(text);
    }
}

fn said(text: &str) {
    let _ = (names(text), counts(text), numbers(text));
    let variables: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    let environment = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    if let Ok(Some(allocation)) = Allocation::find(&environment) {
        assert!(allocation.nodes.iter().all(|node| node.slots > 0));
        let _ = allocation.slots();
    }
    let _ = regatta_foreign::step(&environment);
}
