//! Splitting a task's output into complete lines.

/// Length at which a line is split, in bytes, so that a task that never ends its line cannot fill the memory.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The beginning of a line without its end.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes output, and calls `line` for each line that is complete now, without its newline.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (rest, after) = (&bytes[..end], &bytes[end + 1..]);
            if self.begun.is_empty() {
                line(rest);
            } else {
                self.begun.extend_from_slice(rest);
                line(&self.begun);
                self.begun.clear();
            }
            bytes = after;
        }
        self.begun.extend_from_slice(bytes);
        while self.begun.len() > MAX_LINE_BYTES {
            line(&self.begun[..MAX_LINE_BYTES]);
            self.begun.drain(..MAX_LINE_BYTES);
        }
    }

    /// Handles the end of the output: calls `line` for a last line without a newline.
    pub(crate) fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            line(&std::mem::take(&mut self.begun));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut keep = |line: &[u8]| found.push(String::from_utf8_lossy(line).into_owned());
        for piece in pieces {
            lines.push(piece.as_bytes(), &mut keep);
        }
        lines.finish(keep);
        found
    }

    #[test]
    fn a_line_is_whole_however_it_arrives() {
        for pieces in [
            &["one\ntwo\n"][..],
            &["o", "ne", "\ntw", "o", "\n"],
            &["one\ntwo"],
        ] {
            assert_eq!(cut(pieces), ["one", "two"]);
        }
        assert_eq!(cut(&["\n\nx\n"]), ["", "", "x"]);
        assert!(cut(&[]).is_empty());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = "x".repeat(2 * MAX_LINE_BYTES + 7);
        let lengths: Vec<usize> = cut(&[&long]).iter().map(String::len).collect();
        assert_eq!(lengths, [MAX_LINE_BYTES, MAX_LINE_BYTES, 7]);
    }
}
