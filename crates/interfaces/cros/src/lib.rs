//! libcros.so.0: programs written for CrOS III, the crystalline system of the Caltech hypercubes, on Regatta.
//!
//! The functions are those of `cros.h`, each in the file of its section; `docs/express.md` says of each what is known of the original. The
//! library is apart from libexpress.so because its names are others' as well: NX has `cread` and `cwrite`.

mod broadcast;
mod channels;
mod collective;
mod cube;
mod grid;
mod life;
mod records;
mod router;
