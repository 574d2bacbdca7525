//! The settings that a spawning task passes to the tasks it starts, in one environment variable.

/// The name of the variable.
pub const VARIABLE: &str = "REGATTA_PVM";

/// The settings of a spawning task for its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpawnEnvironment {
    /// The context in which they start.
    pub context: i32,
    /// Whether `pvm_parent` hides the parent in the started tasks.
    pub hides_parent: bool,
    /// The flags of `pvm_spawn`.
    pub flags: i32,
    /// Destination of output: a task, a tag and a context.
    pub output: (i32, i32, i32),
    /// Destination of trace events, likewise.
    pub trace: (i32, i32, i32),
}

impl SpawnEnvironment {
    /// Encodes the settings.
    pub fn write(&self) -> String {
        let (out, trace) = (self.output, self.trace);
        let hides = i32::from(self.hides_parent);
        format!(
            "{},{hides},{},{},{},{},{},{},{}",
            self.context, self.flags, out.0, out.1, out.2, trace.0, trace.1, trace.2
        )
    }

    /// Decodes the settings. Returns `None` if the text is invalid.
    pub fn read(text: &str) -> Option<SpawnEnvironment> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            numbers.push(part.parse::<i32>().ok()?);
        }
        let [context, hides, flags, o0, o1, o2, t0, t1, t2] = numbers[..] else {
            return None;
        };
        Some(SpawnEnvironment {
            context,
            hides_parent: hides != 0,
            flags,
            output: (o0, o1, o2),
            trace: (t0, t1, t2),
        })
    }
}

/// Reads this task's settings. Returns `None` if no task has spawned it.
pub fn of_environment() -> Option<SpawnEnvironment> {
    SpawnEnvironment::read(&std::env::var(VARIABLE).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let environment = SpawnEnvironment {
            context: 7,
            hides_parent: true,
            flags: 65,
            output: (0x40002, 5, 7),
            trace: (-1, -2, 0),
        };
        assert_eq!(
            SpawnEnvironment::read(&environment.write()),
            Some(environment)
        );
        for nonsense in [
            "",
            "1",
            "1,2,3,4,5,6,7,8",
            "1,2,3,4,5,6,7,8,x",
            "1,2,3,4,5,6,7,8,9,10",
        ] {
            assert_eq!(SpawnEnvironment::read(nonsense), None, "{nonsense}");
        }
    }
}
