//! Records of the crystal router: each a node, a length, and that many bytes, padded to a multiple of the header's
//! size. Pure.

/// Size of the node and the length, in bytes.
pub const HEAD: usize = 8;

/// A record in a buffer: its node and its byte range.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub node: usize,
    pub from: usize,
    pub to: usize,
}

/// Parses the records in a buffer. Fails if a node's number is not below `nodes`, or if a record is incomplete.
pub fn records(bytes: &[u8], nodes: usize) -> Result<Vec<Record>, String> {
    let (mut found, mut from) = (Vec::new(), 0);
    while from < bytes.len() {
        let word = |at: usize| -> Option<i32> {
            let four = bytes.get(from + at..from + at + 4)?;
            Some(i32::from_ne_bytes(four.try_into().ok()?))
        };
        let (Some(node), Some(length)) = (word(0), word(4)) else {
            return Err(format!("the bytes from {from} on are not a record"));
        };
        let node = usize::try_from(node)
            .ok()
            .filter(|&node| node < nodes)
            .ok_or_else(|| {
                format!("the record at byte {from} is for node {node}, and there are {nodes}")
            })?;
        let to = usize::try_from(length)
            .ok()
            .map(|length| from + HEAD + length.next_multiple_of(HEAD))
            .filter(|&to| to <= bytes.len())
            .ok_or_else(|| {
                format!("the record at byte {from} has {length} bytes, which exceeds the buffer")
            })?;
        found.push(Record { node, from, to });
        from = to;
    }
    Ok(found)
}

/// Sorts the records by node, and replaces the node by the sender. Returns the number of bytes for each node.
pub fn sort(
    bytes: &[u8],
    records: &[Record],
    nodes: usize,
    sender: i32,
    sorted: &mut Vec<u8>,
) -> Vec<usize> {
    let mut lengths = vec![0; nodes];
    let mut order: Vec<&Record> = records.iter().collect();
    // The sort is stable: a node's records keep the order in which the program has put them.
    order.sort_by_key(|record| record.node);
    sorted.clear();
    for record in order {
        lengths[record.node] += record.to - record.from;
        sorted.extend_from_slice(&sender.to_ne_bytes());
        sorted.extend_from_slice(&bytes[record.from + 4..record.to]);
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(node: i32, text: &[u8]) -> Vec<u8> {
        let mut bytes = [node.to_ne_bytes(), (text.len() as i32).to_ne_bytes()].concat();
        bytes.extend_from_slice(text);
        bytes.resize(bytes.len().next_multiple_of(HEAD), 0);
        bytes
    }

    #[test]
    fn records_are_sorted_by_node_and_say_who_sent_them() {
        let bytes = [record(2, b"first"), record(0, b""), record(2, b"eight...")].concat();
        let found = records(&bytes, 3).unwrap();
        let mut sorted = vec![1];
        let lengths = sort(&bytes, &found, 3, 7, &mut sorted);
        assert_eq!(lengths, [8, 0, 32]);
        assert_eq!(
            sorted,
            [record(7, b""), record(7, b"first"), record(7, b"eight...")].concat()
        );
    }

    #[test]
    fn no_record_reaches_beyond_its_buffer() {
        let whole = record(1, b"text");
        for cut in 1..whole.len() {
            assert!(records(&whole[..cut], 2).is_err(), "{cut}");
        }
        assert!(records(&record(2, b""), 2).is_err() && records(&record(-1, b""), 2).is_err());
        for length in [-1, i32::MAX, i32::MIN, 9] {
            let mut bytes = record(0, b"");
            bytes[4..8].copy_from_slice(&length.to_ne_bytes());
            bytes.extend_from_slice(&[0; 8]);
            assert!(records(&bytes, 1).is_err(), "{length}");
        }
        assert_eq!(records(&[], 1).unwrap(), []);
    }
}
