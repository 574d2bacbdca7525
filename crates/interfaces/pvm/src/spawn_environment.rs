//! A spawning task's settings for the tasks that it starts: one variable of their environment.

/// The name of the variable.
pub const VARIABLE: &str = "REGATTA_PVM";

/// The settings of a spawning task for its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpawnEnvironment {
    /// The context to begin in.
    pub context: i32,
    /// `pvm_parent` is not to tell who it was.
    pub hides_parent: bool,
    /// As they were given to `pvm_spawn`.
    pub flags: i32,
    /// Where output goes: a task, a tag and a context.
    pub output: (i32, i32, i32),
    /// As `output`, for the events of a tracer.
    pub trace: (i32, i32, i32),
}

impl SpawnEnvironment {
    /// As text.
    pub fn write(&self) -> String {
        let (out, trace) = (self.output, self.trace);
        let hides = i32::from(self.hides_parent);
        format!(
            "{},{hides},{},{},{},{},{},{},{}",
            self.context, self.flags, out.0, out.1, out.2, trace.0, trace.1, trace.2
        )
    }

    /// Reads a text; none if it makes no sense.
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

/// Reads our own environment; none, if no task has spawned us.
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
