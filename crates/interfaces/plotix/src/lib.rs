//! libplotix.so.0: pictures of node programs, as Express' library Plotix drew them, on Regatta.
//!
//! The functions are those of `plotix.h`, each in the file of its section; `docs/express.md` says of each what is known of the original. All
//! nodes draw one picture: what a node draws is kept by it until the nodes call `sendplot`, `erase` or `closepl` together, and goes to node 0
//! then, which writes the files. The library is apart from libexpress.so because its names are common words: `line`, `move`, `space`.

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
