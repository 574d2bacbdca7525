//! The native module of the Python package `regatta_mpi`: thin functions over the C interface.
//!
//! The module is linked with libregatta.so, so that it shares one engine with mpi4py in a process. Code that need not be fast is in
//! Python, in `packaging/python/regatta_mpi`. A call that may block releases the GIL. Memory of Python objects is used in place.

use pyo3::prelude::*;

mod addressed;
mod collective;
mod dlpack;
mod element;
mod error;
mod groups;
mod life;
mod memory;
mod message;
mod parts;
mod request;
mod tasks;
mod waiting;

/// The functions and types of the module.
#[pymodule]
mod regatta_mpi_native {
    #[pymodule_export]
    use super::groups::Group;
    #[pymodule_export]
    use super::groups::{dup, select, shrink, split};
    #[pymodule_export]
    use super::life::{
        clear_fd, fd, finalize, init, initialized, parent, progress, task, time, version,
    };
    #[pymodule_export]
    use super::message::Status;
    #[pymodule_export]
    use super::parts::{joined, places};
    #[pymodule_export]
    use super::request::{Request, wait_any};
    #[pymodule_export]
    use super::tasks::{abort, hosts, kill, notify, notify_cancel, signal, spawn, tasks};
}
