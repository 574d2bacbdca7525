//! libplotix.so.0: pictures of node programs, as Express' library Plotix drew them, on Regatta.
//!
//! The functions are those of `plotix.h`, each in the file of its section; `docs/express.md` says what is known of each
//! original. All nodes draw one picture: each keeps what it draws until all of them call `sendplot`, `erase` or
//! `closepl`, which send it to node 0. Node 0 writes the files. The library is separate from libexpress.so because its
//! names are common words: `line`, `move`, `space`.

mod arc;
mod calls;
mod clip;
mod decode;
mod drawing;
mod files;
mod frames;
mod life;
mod pen;
mod raster;
mod space;
mod vector;
