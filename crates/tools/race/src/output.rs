//! Reading what a program of the race prints; the words are defined in `programs/primitives/main.c`.

/// One measured point of one launch.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Name of the operation.
    pub operation: String,
    /// Bytes of a message.
    pub bytes: u64,
    /// Operations per batch.
    pub batch: u64,
    /// Microseconds of one operation, per batch.
    pub us: Vec<f64>,
}

/// All that one launch printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The library's own words about its version.
    pub version: String,
    /// Which way messages went, if the library told.
    pub path: String,
    /// Nanoseconds a reading of the clock takes.
    pub clock_ns: f64,
    /// Per task: how many processors it may run on, and the first of them.
    pub processors: Vec<(i32, i32)>,
    /// The points, in the order they were measured.
    pub points: Vec<Point>,
    /// The program came to its end.
    pub done: bool,
}

/// Read a program's standard output. Lines that are not the program's (a library's warnings) are
/// left out, as is a last line cut short.
pub fn parse(text: &str) -> Output {
    let mut output = Output::default();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "version" => output.version = rest.trim().to_owned(),
            "path" => output.path = rest.trim().to_owned(),
            "clock" => output.clock_ns = rest.trim().parse().unwrap_or(0.0),
            "processors" => output.processors = pairs(rest),
            "point" => output.add(point(rest)),
            "done" => output.done = true,
            _ => {}
        }
    }
    output
}

fn pairs(text: &str) -> Vec<(i32, i32)> {
    let numbers: Vec<i32> = text
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    numbers
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .collect()
}

fn point(text: &str) -> Option<Point> {
    let mut words = text.split(' ');
    let point = Point {
        operation: words.next()?.to_owned(),
        bytes: words.next()?.parse().ok()?,
        batch: words.next()?.parse().ok()?,
        us: words.map(str::parse).collect::<Result<_, _>>().ok()?,
    };
    let known = !point.us.is_empty() && point.us.iter().all(|us| us.is_finite());
    known.then_some(point)
}

impl Output {
    /// A point that is printed again is the same point, not one of another launch.
    fn add(&mut self, point: Option<Point>) {
        let Some(point) = point else {
            return;
        };
        let same =
            |kept: &&mut Point| kept.operation == point.operation && kept.bytes == point.bytes;
        match self.points.iter_mut().find(same) {
            Some(kept) => kept.us.extend(point.us),
            None => self.points.push(point),
        }
    }

    /// Has each task one processor of its own?
    pub fn pinned_apart(&self) -> bool {
        let firsts: std::collections::BTreeSet<i32> = self.processors.iter().map(|p| p.1).collect();
        self.processors.iter().all(|p| p.0 == 1) && firsts.len() == self.processors.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_read_and_noise_is_skipped() {
        let output = parse(
            "version Some MPI 1.2\npath \ntasks 2\nclock 19.50\nWarning: something\nprocessors 1 0 1 1\n\
             point one-to-one 8 100 0.1 0.11\npoint barrier 0 10 1 2 3\npoint ring 8 1 0.\u{1}",
        );
        assert_eq!(output.version, "Some MPI 1.2");
        assert_eq!(output.clock_ns, 19.5);
        assert!(output.pinned_apart());
        assert!(!output.done);
        assert_eq!(output.points.len(), 2);
        assert_eq!(output.points[0].us, [0.1, 0.11]);
    }

    #[test]
    fn a_time_that_is_no_number_makes_its_point_worthless() {
        for us in ["inf", "1 nan 2", "-inf", ""] {
            let output = parse(&format!("point ring 8 1 {us}\n"));
            assert!(output.points.is_empty(), "{us}: {output:?}");
        }
    }

    #[test]
    fn a_point_that_is_printed_twice_is_one_point() {
        let output = parse("point ring 8 1 1 2\npoint ring 8 1 3\npoint ring 16 1 4\n");
        let samples: Vec<usize> = output.points.iter().map(|point| point.us.len()).collect();
        assert_eq!(samples, [3, 1]);
    }

    #[test]
    fn tasks_that_share_a_processor_are_noticed() {
        assert!(!parse("processors 1 0 1 0\n").pinned_apart());
        assert!(!parse("processors 2 0 2 0\n").pinned_apart());
    }
}
