//! Properties that hold for any input that another process chooses. The fuzz targets call these with generated inputs.
//! Tests of the crates with the decoders call them with the kept corpus.

mod messages;
mod neighbour;
mod profile;
mod records;
mod slurm;

pub use messages::{control, decoders, join_token, session};
pub use neighbour::neighbour;
pub use profile::profile;
pub use records::records;
pub use regatta_daemon::readers::{seals, speech};
pub use slurm::slurm;
