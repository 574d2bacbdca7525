//! The measured work, as both ends do it: they go through one plan, so neither tells the other what comes.

use std::io;
use std::time::Instant;

use crate::wire::{Connect, Wire};

/// Bytes of the answer to a stream, and of the question after set-up.
const WORD: usize = 8;
/// The longest message.
const LONGEST: usize = 4 << 20;

#[derive(Clone, Copy)]
pub enum Kind {
    /// A message goes and comes back.
    Echo(usize),
    /// Messages go one after the other, and a word comes back for all.
    Stream(usize),
    /// A connection is made, and a word goes and comes back: by then both have proved the key to each other.
    SetUp,
}

pub struct Measure {
    pub name: &'static str,
    pub kind: Kind,
    pub times: usize,
}

const fn measure(name: &'static str, kind: Kind, times: usize) -> Measure {
    Measure { name, kind, times }
}

pub const MEASURES: [Measure; 7] = [
    measure("round trip, 8 B", Kind::Echo(8), 300),
    measure("round trip, 1 KiB", Kind::Echo(1 << 10), 300),
    measure("round trip, 64 KiB", Kind::Echo(64 << 10), 60),
    measure("round trip, 4 MiB", Kind::Echo(LONGEST), 5),
    measure("stream, 64 KiB", Kind::Stream(64 << 10), 400),
    measure("stream, 4 MiB", Kind::Stream(LONGEST), 6),
    measure("set-up", Kind::SetUp, 15),
];

/// One end of every connection, and how more are made.
pub struct Side {
    connects: Vec<Connect>,
    wires: Vec<Box<dyn Wire>>,
    buffer: Vec<u8>,
}

impl Side {
    pub fn new(mut connects: Vec<Connect>) -> io::Result<Side> {
        let wires = connects.iter_mut().map(|connect| connect());
        Ok(Side {
            wires: wires.collect::<io::Result<_>>()?,
            connects,
            buffer: (0..LONGEST).map(|at| ((at * 7) >> 5) as u8).collect(),
        })
    }

    /// The caller's part; the seconds of each message, or of each connection.
    pub fn ask(&mut self, who: usize, measure: &Measure) -> io::Result<Vec<f64>> {
        let mut seconds = Vec::with_capacity(measure.times);
        let wire = &mut self.wires[who];
        match measure.kind {
            Kind::Echo(bytes) => {
                for _ in 0..measure.times {
                    let start = Instant::now();
                    wire.send(&self.buffer[..bytes])?;
                    wire.recv(&mut self.buffer[..bytes])?;
                    seconds.push(start.elapsed().as_secs_f64());
                }
            }
            Kind::Stream(bytes) => {
                let start = Instant::now();
                for _ in 0..measure.times {
                    wire.send(&self.buffer[..bytes])?;
                }
                wire.recv(&mut [0; WORD])?;
                seconds.push(start.elapsed().as_secs_f64() / measure.times as f64);
            }
            Kind::SetUp => {
                for _ in 0..measure.times {
                    let start = Instant::now();
                    let mut wire = (self.connects[who])()?;
                    wire.send(&[1; WORD])?;
                    wire.recv(&mut [0; WORD])?;
                    seconds.push(start.elapsed().as_secs_f64());
                }
            }
        }
        Ok(seconds)
    }

    /// The callee's part.
    pub fn answer(&mut self, who: usize, measure: &Measure) -> io::Result<()> {
        let wire = &mut self.wires[who];
        match measure.kind {
            Kind::Echo(bytes) => {
                for _ in 0..measure.times {
                    wire.recv(&mut self.buffer[..bytes])?;
                    wire.send(&self.buffer[..bytes])?;
                }
            }
            Kind::Stream(bytes) => {
                for _ in 0..measure.times {
                    wire.recv(&mut self.buffer[..bytes])?;
                }
                wire.send(&[1; WORD])?;
            }
            Kind::SetUp => {
                for _ in 0..measure.times {
                    let mut wire = (self.connects[who])()?;
                    let mut word = [0; WORD];
                    wire.recv(&mut word)?;
                    wire.send(&word)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the bytes that went to and fro are still those of the beginning.
    pub fn is_whole(&self) -> bool {
        let mut bytes = self.buffer.iter().enumerate();
        bytes.all(|(at, byte)| *byte == ((at * 7) >> 5) as u8)
    }
}
