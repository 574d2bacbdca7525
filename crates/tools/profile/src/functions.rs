//! Processor time by function.

use std::collections::BTreeMap;

use regatta_launch::RECORDER;
use regatta_record::{Module, Record};

use crate::profile::{Profile, weight};
use crate::symbols::Symbols;

/// The functions of a job.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Functions, sorted by time, the largest first.
    pub rows: Vec<Row>,
    /// The tasks, in the order of the times in the rows. Processes that are not tasks have no number.
    pub tasks: Vec<Option<u32>>,
    /// Number of samples in all.
    pub samples: u64,
}

/// A function, or a call of Regatta.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    /// Its name.
    pub name: String,
    /// Its file. Empty for calls of Regatta.
    pub file: String,
    /// Processor time in each task, in nanoseconds.
    pub times: Vec<f64>,
}

impl Row {
    /// Returns the time in all tasks, in nanoseconds.
    pub(crate) fn time(&self) -> f64 {
        self.times.iter().sum()
    }
}

/// Sums up the samples of all tasks.
pub(crate) fn of(profile: &Profile) -> Functions {
    let tasks = profile.tasks.iter().map(|task| &task.record);
    let records: Vec<&Record> = tasks.chain(&profile.never_joined).collect();
    let mut symbols = Symbols::default();
    let mut sums: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for (number, record) in records.iter().enumerate() {
        let Some(weight) = weight(record) else {
            continue;
        };
        let mut add = |name: String, file: String, count: u64| {
            let times = sums.entry((file, name)).or_default();
            times.resize(records.len(), 0.0);
            times[number] += count as f64 * weight;
        };
        for sample in &record.samples {
            let (name, file) = place(&mut symbols, &record.modules, sample.address);
            add(name, file, sample.count);
        }
        let calls = record.threads.iter().flat_map(|thread| &thread.calls);
        for call in calls.filter(|call| call.busy > 0) {
            add(call.call.name().to_owned(), String::new(), call.busy);
        }
    }
    let rows = sums.into_iter();
    let mut rows: Vec<Row> = rows
        .map(|((file, name), times)| Row { name, file, times })
        .collect();
    rows.sort_by(|a, b| b.time().total_cmp(&a.time()));
    Functions {
        rows,
        tasks: records.iter().map(|record| record.head.task).collect(),
        samples: records.iter().fold(0, |sum: u64, record| {
            sum.saturating_add(record.head.samples)
        }),
    }
}

/// Returns the function and the file of an address.
fn place(symbols: &mut Symbols, modules: &[Module], address: u64) -> (String, String) {
    let inside = |module: &&Module| (module.begin..module.end).contains(&address);
    let Some(module) = modules.iter().find(inside) else {
        return ("(unknown)".to_owned(), "(unknown)".to_owned());
    };
    let file = module.path.rsplit('/').next().unwrap_or_default();
    if file == RECORDER {
        return ("(recording)".to_owned(), file.to_owned());
    }
    let name = symbols.name(&module.path, address.wrapping_sub(module.base));
    let name = name.unwrap_or_else(|| "(no name)".to_owned());
    (name, file.to_owned())
}
