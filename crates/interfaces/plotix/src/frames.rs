//! Frames of a picture: parts of all nodes become one drawing at node 0, which writes the files.

use std::ffi::c_int;
use std::path::Path;

use regatta_nodes::fault::{Fault, checked};
use regatta_nodes::place::place;
use regatta_nodes::rg;

use crate::decode::decode;
use crate::drawing::Drawing;
use crate::files::{DEFAULT, Format, of_frame};
use crate::{raster, vector};

/// Names the files of programs that choose no name.
const VARIABLE: &str = "REGATTA_PLOT";

/// Ends that calls can make.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Another frame follows.
    Frame,
    Picture,
}

/// Frames of one picture; all but the counting is node 0's affair.
pub struct Frames {
    name: String,
    /// How many were written under this name.
    written: u32,
    /// Parts that have come for the frame.
    drawing: Drawing,
}

impl Frames {
    /// With the name that the program has chosen, or the user.
    pub fn new(chosen: Option<&str>) -> Frames {
        let name = chosen.map(str::to_owned);
        let name = name.or_else(|| std::env::var(VARIABLE).ok());
        Frames {
            name: name.unwrap_or_else(|| DEFAULT.to_owned()),
            written: 0,
            drawing: Drawing::new(),
        }
    }

    /// Another name, from this frame on.
    pub fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
        self.written = 0;
    }

    /// Brings what each node has drawn to node 0, behind what has come before, and ends the frame there if one is said to be at its `end`.
    /// All nodes call this, and hear whether it went well.
    pub fn together(&mut self, part: &Drawing, end: Option<End>) -> Result<(), Fault> {
        let parts = gather(&part.encode())?;
        let mut outcome = self.take(&parts);
        if let Some(end) = end
            && place().node == 0
        {
            outcome = outcome.and_then(|()| self.end(end));
        }
        let mut failed = c_int::from(outcome.is_err());
        // SAFETY: a number of our own, of the length that is said.
        checked(unsafe {
            rg::rg_broadcast((&raw mut failed).cast(), size_of::<c_int>(), 0, rg::WORLD)
        })?;
        outcome.map_err(Fault::says)?;
        match failed {
            0 => Ok(()),
            _ => Err(Fault::says("node 0 cannot draw the picture")),
        }
    }

    /// Takes the parts of all nodes. Nodes that have drawn the same have drawn it once.
    fn take(&mut self, parts: &[Vec<u8>]) -> Result<(), String> {
        for (node, part) in parts.iter().enumerate() {
            if node > 0 && *part == parts[0] {
                continue;
            }
            let drawing = decode(part);
            let drawing =
                drawing.ok_or_else(|| format!("the part of node {node} is no drawing"))?;
            self.drawing.shapes.extend(drawing.shapes);
        }
        Ok(())
    }

    /// Writes the frame. An empty one is left out, unless the picture would have none.
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

/// The parts of all nodes, at node 0; elsewhere none.
fn gather(part: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let (place, mine) = (place(), part.len());
    if place.node != 0 {
        let (null, none) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: a number and a part of ours; only the root has places for those of others.
        unsafe {
            let len = (&raw const mine).cast();
            checked(rg::rg_gather(len, size_of::<usize>(), null, 0, rg::WORLD))?;
            let from = part.as_ptr().cast();
            checked(rg::rg_gatherv(from, mine, null, none, none, 0, rg::WORLD))?;
        }
        return Ok(Vec::new());
    }
    let mut lens = vec![0_usize; place.nodes as usize];
    // SAFETY: a number of ours, and room for one of each node.
    checked(unsafe {
        let (len, all) = ((&raw const mine).cast(), lens.as_mut_ptr().cast());
        rg::rg_gather(len, size_of::<usize>(), all, 0, rg::WORLD)
    })?;
    // Where there is no memory the program ends: the other nodes wait for this one, and hear that it is gone.
    let (offsets, whole) = offsets(&lens).expect("parts that there can be");
    let mut parts = vec![0_u8; whole];
    // SAFETY: a part of ours, and room for all parts at these places.
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

/// Where parts of these lengths begin, one after the other, and how long they are together.
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
