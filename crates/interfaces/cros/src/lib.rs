//! libcros.so.0: programs written for CrOS III, the crystalline system of the Caltech hypercubes, on Regatta.
//!
//! The functions are those of `cros.h`, each in the file of its section; `docs/express.md` says what is known of each
//! original. The library is separate from libexpress.so because other libraries have the same names: NX has `cread` and
//! `cwrite`.

mod broadcast;
mod channels;
mod collective;
mod cube;
mod grid;
mod life;
mod records;
mod router;
