//! The programs of a race: those that its groups need, compiled for each environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};

use crate::build::Sources;
use crate::discover::Competitor;
use crate::operations::{Application, Program};
use crate::plan::{Group, Work};
use crate::process::Supervisor;
use crate::race::NOTHING_YET;

/// Compiled programs. Environments are identified by their index in the race.
#[derive(Debug, Default)]
pub struct Programs {
    /// The primitives' program of each environment, or `None` if it is not needed or did not compile.
    points: Vec<Option<PathBuf>>,
    /// The applications by environment and text, or the compiler's message.
    applications: BTreeMap<(usize, &'static str), Result<PathBuf, String>>,
}

impl Programs {
    /// Returns programs that measure points, one for each environment.
    pub fn of_points(points: Vec<Option<PathBuf>>) -> Programs {
        Programs {
            points,
            applications: BTreeMap::new(),
        }
    }

    /// Compiles what these groups need. Also returns a note for each environment that cannot take part. Fails if the
    /// race is to stop.
    pub fn compile(
        sources: &Sources,
        supervisor: &Supervisor,
        competitors: &[Competitor],
        groups: &[Group],
    ) -> Result<(Programs, Vec<String>)> {
        let mut programs = Programs::of_points(vec![None; competitors.len()]);
        let mut notes = Vec::new();
        for (index, competitor) in competitors.iter().enumerate() {
            let mine = || groups.iter().filter(move |group| group.competitor == index);
            // The program is compiled even if only applications are raced, since it prints the library's version.
            if mine().next().is_some() && !competitor.peer.facts().one_task {
                match sources.compile(supervisor, competitor) {
                    Ok(program) => programs.points[index] = Some(program),
                    Err(error) => {
                        notes.push(format!("{} does not take part: {error:#}", competitor.name));
                    }
                }
            }
            for application in mine().filter_map(|group| application(&group.work)) {
                let place = (index, application.file);
                if supervisor.stop().is_asked() || programs.applications.contains_key(&place) {
                    continue;
                }
                let program = sources.compile_application(supervisor, competitor, application);
                let program = program.map_err(|error| format!("{error:#}"));
                programs.applications.insert(place, program);
            }
            if supervisor.stop().is_asked() {
                bail!("{NOTHING_YET}");
            }
        }
        Ok((programs, notes))
    }

    /// Returns whether a group can be launched. An application whose program did not compile is included, since its row
    /// gives the reason.
    pub fn has(&self, group: &Group) -> bool {
        application(&group.work).is_some() || self.points[group.competitor].is_some()
    }

    /// Returns the program of a group.
    pub fn of(&self, group: &Group) -> Result<&PathBuf> {
        let Some(application) = application(&group.work) else {
            let program = self.points[group.competitor].as_ref();
            return program.ok_or_else(|| anyhow!("its program could not be compiled"));
        };
        let place = (group.competitor, application.file);
        match self.applications.get(&place) {
            Some(Ok(program)) => Ok(program),
            Some(Err(why)) => Err(anyhow!("{why}")),
            None => Err(anyhow!("its program was not compiled")),
        }
    }

    /// Returns any program of an environment.
    pub fn any_of(&self, competitor: usize) -> Option<&PathBuf> {
        let applications = self.applications.iter();
        let mut applications = applications
            .filter(|((index, _), _)| *index == competitor)
            .filter_map(|(_, program)| program.as_ref().ok());
        self.points[competitor]
            .as_ref()
            .or_else(|| applications.next())
    }
}

/// Returns the application of a launch.
fn application(work: &Work) -> Option<&'static Application> {
    match work {
        Work::Application(operation, _) | Work::Counted(operation, _) => match operation.program {
            Program::Application(application) => Some(application),
            Program::Primitive(_) => None,
        },
        Work::Points(_) | Work::Own(_) => None,
    }
}
