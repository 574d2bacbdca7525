//! Frames of a picture: the parts of all nodes are gathered into one drawing at node 0, which writes the files.

use std::ffi::c_int;
use std::path::Path;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::decode::decode;
use crate::drawing::Drawing;
use crate::files::{DEFAULT, Format, of_frame};
use crate::{raster, vector};

/// The variable with the name of the files, if the program sets none.
const VARIABLE: &str = "REGATTA_PLOT";

/// What a call ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The frame: another one follows.
    Frame,
    Picture,
}

/// Frames of one picture. Only node 0 uses more than the frame count.
pub struct Frames {
    name: String,
    /// Number of frames written under this name.
    written: u32,
    /// Parts that have been gathered for the frame.
    drawing: Drawing,
}

impl Frames {
    /// Starts a picture with the name that the program or the user has chosen.
    pub fn new(chosen: Option<&str>) -> Frames {
        let name = chosen.map(str::to_owned);
        let name = name.or_else(|| std::env::var(VARIABLE).ok());
        Frames {
            name: name.unwrap_or_else(|| DEFAULT.to_owned()),
            written: 0,
            drawing: Drawing::new(),
        }
    }

    /// Sets another name, from this frame on.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.written = 0;
    }

    /// Gathers what each node has drawn at node 0, after what was gathered before, and there ends the frame if `end` is
    /// given. Collective; all nodes get the result.
    pub fn together(&mut self, part: &Drawing, end: Option<End>) -> Result<(), Fault> {
        let parts = gather(&part.encode())?;
        let mut outcome = self.take(&parts);
        if let Some(end) = end
            && place().node == 0
        {
            outcome = outcome.and_then(|()| self.end(end));
        }
        let mut failed = c_int::from(outcome.is_err());
        // SAFETY: `failed` is a local number of the given length.
        checked(unsafe {
            rg::rg_broadcast((&raw mut failed).cast(), size_of::<c_int>(), 0, rg::WORLD)
        })?;
        outcome.map_err(Fault::says)?;
        match failed {
            0 => Ok(()),
            _ => Err(Fault::says("node 0 cannot draw the picture")),
        }
    }

    /// Adds the parts of all nodes. A part that equals node 0's is skipped.
    fn take(&mut self, parts: &[Vec<u8>]) -> Result<(), String> {
        for (node, part) in parts.iter().enumerate() {
            if node > 0 && *part == parts[0] {
                continue;
            }
            let drawing = decode(part);
            let drawing =
                drawing.ok_or_else(|| format!("the part of node {node} is not a drawing"))?;
            self.drawing.shapes.extend(drawing.shapes);
        }
        Ok(())
    }

    /// Writes the frame. An empty one is skipped, unless the picture would have no frame at all.
    fn end(&mut self, end: End) -> Result<(), String> {
        let drawing = std::mem::take(&mut self.drawing);
        if drawing.shapes.is_empty() && (end == End::Frame || self.written > 0) {
            return Ok(());
        }
        self.written += 1;
        write(&self.name, self.written, &drawing)
    }
}

/// Writes the files of a frame.
fn write(name: &str, frame: u32, drawing: &Drawing) -> Result<(), String> {
    for (format, path) in of_frame(name, frame) {
        match format {
            Format::Svg => put(&path, vector::draw(drawing).as_bytes())?,
            Format::Png => put(&path, &raster::draw(drawing)?)?,
        }
    }
    Ok(())
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = std::fs::write(path, bytes);
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Gathers the parts of all nodes at node 0; returns an empty list elsewhere.
fn gather(part: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let (place, mine) = (place(), part.len());
    if place.node != 0 {
        let (null, none) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: `mine` and `part` are local; only the root receives.
        unsafe {
            let len = (&raw const mine).cast();
            checked(rg::rg_gather(len, size_of::<usize>(), null, 0, rg::WORLD))?;
            let from = part.as_ptr().cast();
            checked(rg::rg_gatherv(from, mine, null, none, none, 0, rg::WORLD))?;
        }
        return Ok(Vec::new());
    }
    let mut lens = vec![0_usize; place.nodes as usize];
    // SAFETY: `mine` is a local number, and `lens` has an element for each node.
    checked(unsafe {
        let (len, all) = ((&raw const mine).cast(), lens.as_mut_ptr().cast());
        rg::rg_gather(len, size_of::<usize>(), all, 0, rg::WORLD)
    })?;
    // If there is not enough memory, the program ends. The other nodes, which wait for this one, get an error.
    let (offsets, whole) = offsets(&lens).expect("parts that can exist");
    let mut parts = vec![0_u8; whole];
    // SAFETY: `part` is a local slice, and `parts` has room for all parts at these offsets.
    checked(unsafe {
        let (from, to) = (part.as_ptr().cast(), parts.as_mut_ptr().cast());
        let (lens, offsets) = (lens.as_ptr(), offsets.as_ptr());
        rg::rg_gatherv(from, mine, to, lens, offsets, 0, rg::WORLD)
    })?;
    let places = offsets.iter().zip(&lens);
    Ok(places
        .map(|(&at, &len)| parts[at..at + len].to_vec())
        .collect())
}

/// Returns the offsets of parts of these lengths, and their total length.
fn offsets(lens: &[usize]) -> Option<(Vec<usize>, usize)> {
    let (mut offsets, mut whole) = (Vec::with_capacity(lens.len()), 0_usize);
    for &len in lens {
        offsets.push(whole);
        whole = whole.checked_add(len)?;
    }
    Some((offsets, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(offsets(&[3, 0, 4]), Some((vec![0, 3, 3], 7)));
        assert_eq!(offsets(&[1, usize::MAX]), None);
    }
}
