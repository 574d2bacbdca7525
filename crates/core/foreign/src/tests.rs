use super::*;

/// Returns the launcher found in an environment of these variables, written as `NAME=VALUE` and separated by blanks.
fn found(variables: &str) -> Option<Found> {
    of_several(&|name| {
        let mut variables = variables.split(' ');
        variables.find_map(|variable| {
            let (known, value) = variable.split_once('=')?;
            (known == name && !value.is_empty()).then(|| value.to_owned())
        })
    })
}

/// Returns the name of the launcher that is found, and the number of processes.
fn named(variables: &str) -> Option<(&'static str, Option<u32>)> {
    found(variables).map(|found| (found.launcher, found.tasks))
}

/// Environments of launchers that set the number of processes, without that variable.
const SIZED: [(&str, &str, &str); 9] = [
    (
        "OMPI_COMM_WORLD_RANK=0 PMIX_RANK=0 PRTE_LAUNCHED=1",
        "OMPI_COMM_WORLD_SIZE",
        "Open MPI's",
    ),
    (
        "PMI_RANK=1 PMI_FD=9 HYDI_CONTROL_FD=7",
        "PMI_SIZE",
        "PMI launcher",
    ),
    ("MV2_COMM_WORLD_RANK=1", "MV2_COMM_WORLD_SIZE", "MVAPICH"),
    (
        "JSM_NAMESPACE_RANK=0 PMIX_RANK=0",
        "JSM_NAMESPACE_SIZE",
        "jsrun",
    ),
    ("FLUX_TASK_RANK=0", "FLUX_JOB_SIZE", "Flux"),
    ("_CONDOR_PROCNO=0", "_CONDOR_NPROCS", "HTCondor"),
    ("MPIRANK=0", "MPISIZE", "NEC"),
    ("RMS_RANK=2", "RMS_NPROCS", "Quadrics"),
    ("PALS_RANKID=0", "PMI_SIZE", "PMI launcher"),
];

#[test]
fn one_of_several_is_told_from_one_alone_where_the_launcher_says_how_many_there_are() {
    for (variables, size, launcher) in SIZED {
        let several = found(&format!("{variables} {size}=3")).expect(variables);
        assert!(several.launcher.contains(launcher), "{several:?}");
        assert_eq!(several.tasks, Some(3), "{variables}");
        assert_eq!(named(&format!("{variables} {size}=1")), None, "{variables}");
    }
    assert_eq!(named("HOME=/root"), None);
}

#[test]
fn in_doubt_it_is_one_of_several() {
    for (variables, launcher) in [
        (
            "PMIX_RANK=0 PMIX_NAMESPACE=prterun-vm-1@1 PRTE_LAUNCHED=1",
            "prterun",
        ),
        ("PMIX_RANK=0", "PMIx"),
        ("PALS_RANKID=0 PALS_APID=1", "PALS"),
        ("ALPS_APP_PE=0", "aprun"),
        ("MPT_LRANK=0", "HPE MPI"),
        ("PMI_PORT=host:7 PMI_ID=0", "PMI"),
        ("FLUX_TASK_RANK=0 FLUX_JOB_SIZE=x", "Flux"),
    ] {
        let found = found(variables).expect(variables);
        assert!(found.launcher.contains(launcher), "{found:?}");
        assert_eq!(found.tasks, None);
    }
    // A launcher inside a process of another launcher: which of them is the inner one cannot be determined.
    let nested = named("OMPI_COMM_WORLD_SIZE=1 PMI_SIZE=4").expect("both");
    assert_eq!(nested.1, Some(4));
}

const STEP: &str = "SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4";

#[test]
fn what_srun_sets_for_programs_of_other_systems_is_slurms() {
    for mpi in [
        "PMIX_NAMESPACE=slurm.pmix.7.1 PMIX_RANK=2 PMIX_SERVER_URI2=x",
        "PMI_RANK=2 PMI_SIZE=4 PMI_FD=5 PMI_JOBID=7.1",
        "PMI_RANK=2 PMI_SIZE=4 PALS_RANKID=2 PALS_APID=7.1",
    ] {
        assert_eq!(named(&format!("{STEP} {mpi}")), None, "{mpi}");
        assert!(named(mpi).is_some(), "{mpi}");
    }
}

#[test]
fn a_launcher_inside_of_a_step_is_not_slurm() {
    for (mpi, tasks) in [
        (
            "PMIX_NAMESPACE=prterun-n1-5@1 PMIX_RANK=2 PRTE_LAUNCHED=1",
            None,
        ),
        ("PMI_RANK=2 PMI_SIZE=8", Some(8)),
        ("PMI_RANK=2 PMI_SIZE=4 HYDI_CONTROL_FD=7", Some(4)),
        (
            "OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=slurm.pmix.7.1 PMIX_RANK=2",
            Some(2),
        ),
    ] {
        let found = named(&format!("{STEP} {mpi}")).expect(mpi);
        assert_eq!(found.1, tasks, "{mpi}");
    }
}

#[test]
fn the_sentence_says_what_was_noticed_and_what_to_do() {
    let known = found("PMI_RANK=1 PMI_SIZE=3")
        .expect("a launcher")
        .sentence();
    for part in [
        "MPICH's",
        "(PMI_RANK=1)",
        "as one of 3",
        "3 worlds of one task",
        "regatta run -n 3",
        "REGATTA_SINGLETON=allow",
    ] {
        assert!(known.contains(part), "{known}");
    }
    let doubtful = found("PMIX_RANK=0").expect("a launcher").sentence();
    for part in [
        "prterun",
        "(PMIX_RANK=0)",
        "several processes",
        "regatta run -n N",
        "REGATTA_SINGLETON=allow",
    ] {
        assert!(doubtful.contains(part), "{doubtful}");
    }
}

#[test]
fn every_variable_by_which_a_launcher_is_known_is_known_to_be_a_launchers() {
    for launcher in &LAUNCHERS {
        for name in launcher.marks.iter().chain(launcher.sizes) {
            assert!(is_set_by_launcher(name), "{name}");
        }
    }
    assert!(!is_set_by_launcher("PATH") && !is_set_by_launcher("REGATTA_JOB"));
}

#[test]
fn a_step_is_found_with_its_launcher_and_so_is_what_is_wrong_with_it() {
    let step = |variables: &str| {
        step(&|name| {
            let mut variables = variables.split(' ');
            variables.find_map(|variable| {
                Some(
                    variable
                        .split_once('=')
                        .filter(|it| it.0 == name)?
                        .1
                        .to_owned(),
                )
            })
        })
    };
    let rest = "SLURM_NODEID=0 SLURM_STEP_NODELIST=n1 SLURM_GTIDS=0,1,2,3";
    let found = step(&format!("{STEP} {rest}"))
        .expect("sense")
        .expect("a step");
    assert_eq!((found.names.command, found.node_name()), ("srun", "n1"));
    let (names, why) = step(STEP).expect_err("no list of nodes");
    assert_eq!(names.launcher, "Slurm");
    assert!(why.contains("SLURM_STEP_NODELIST"), "{why}");
    assert_eq!(step("PMI_RANK=1 PMI_SIZE=2"), Ok(None));
}
