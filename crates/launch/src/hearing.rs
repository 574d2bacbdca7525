//! Tasks whose output another task wants to hear: what they write goes there as it comes, and not to the job's output.

use std::collections::HashMap;

use regatta_wire::control::{Hearer, Noise, Tell};

use crate::streams::Heard;

/// Standard output and standard error.
const STREAMS: u8 = 2;

/// Who hears whom.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    of: HashMap<u32, Source>,
}

#[derive(Debug)]
struct Source {
    hearer: Hearer,
    open: u8,
}

impl Hearing {
    /// From now on this task is heard. What its hearer is told at once: that it is new, and who has started it.
    pub(crate) fn begin(
        &mut self,
        task: u32,
        parent: Option<u32>,
        hearer: Hearer,
    ) -> [(u32, Tell); 2] {
        let open = STREAMS;
        self.of.insert(task, Source { hearer, open });
        [Noise::New(parent), Noise::Spawned(parent)].map(|noise| told(hearer, task, noise))
    }

    /// Who hears these tasks, each once for each task it hears.
    pub(crate) fn hearers(&self) -> impl Iterator<Item = u32> + '_ {
        self.of.values().map(|source| source.hearer.task)
    }

    /// What a hearer is to be told of what a task wrote; none: nobody wants to hear that task.
    pub(crate) fn hear(&mut self, heard: &Heard) -> Option<Option<(u32, Tell)>> {
        match *heard {
            Heard::Bytes(task, _, bytes) => {
                let hearer = self.of.get(&task)?.hearer;
                let bytes = bytes.to_vec();
                Some(Some(told(hearer, task, Noise::Text(bytes))))
            }
            Heard::End(task, _) => {
                let source = self.of.get_mut(&task)?;
                source.open = source.open.saturating_sub(1);
                Some(if source.open == 0 {
                    self.end(task)
                } else {
                    None
                })
            }
        }
    }

    /// Nothing more will come of a task: it was lost with its host, or never started.
    pub(crate) fn end(&mut self, task: u32) -> Option<(u32, Tell)> {
        let source = self.of.remove(&task)?;
        Some(told(source.hearer, task, Noise::End))
    }

    /// A task hears no more; what it heard goes where all output goes.
    pub(crate) fn gone(&mut self, hearer: u32) {
        self.of.retain(|_, source| source.hearer.task != hearer);
    }
}

fn told(hearer: Hearer, task: u32, noise: Noise) -> (u32, Tell) {
    (
        hearer.task,
        Tell::Heard {
            hearer,
            task,
            noise,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAR: Hearer = Hearer {
        task: 7,
        context: 3,
        tag: 5,
    };

    #[test]
    fn a_task_is_heard_from_its_beginning_until_both_its_streams_have_ended() {
        let mut hearing = Hearing::default();
        let begun = hearing.begin(1, None, EAR);
        assert!(begun.iter().all(|(to, _)| *to == 7));
        let text = hearing.hear(&Heard::Bytes(1, 0, b"hi")).flatten();
        let bytes = b"hi".to_vec();
        assert_eq!(text, Some(told(EAR, 1, Noise::Text(bytes))));
        assert_eq!(hearing.hear(&Heard::End(1, 0)), Some(None));
        assert_eq!(
            hearing.hear(&Heard::End(1, 1)),
            Some(Some(told(EAR, 1, Noise::End)))
        );
        assert_eq!(hearing.hear(&Heard::Bytes(1, 0, b"hi")), None);
    }

    #[test]
    fn nobody_is_told_of_tasks_nobody_hears() {
        let mut hearing = Hearing::default();
        assert_eq!(hearing.hear(&Heard::Bytes(1, 0, b"hi")), None);
        hearing.begin(1, Some(2), EAR);
        hearing.gone(7);
        assert_eq!(hearing.hear(&Heard::Bytes(1, 0, b"hi")), None);
        assert_eq!(hearing.end(1), None);
    }
}
