//! The hosts and addresses of the tasks of a job that runs on several hosts.
//!
//! Each host has its own segment, with the table of *all* tasks of the job in it. Ranks are the same on all hosts,
//! and a host's launcher records in its table the departures and deaths of tasks on other hosts. Rings and collective
//! buffers are only used between tasks of one host. Tasks on other hosts are reached by connections to the addresses
//! in the table, which are entered before any task starts. With the job's key, both ends of a connection prove to
//! each other that they belong to the job. The key lies in the segment, which only the job's own processes can open.
//! No core dump contains it: the segment's page and every [`Key`] are excluded.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use regatta_memory::undumped::{Undumped, erase};
use regatta_wire::Malformed;
use regatta_wire::fields::{Bytes, Field};

use crate::job::{Job, JobError};

/// The secret of the tasks of a job, or of other processes that authenticate each other. Its memory is excluded from
/// core dumps, and overwritten on drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Undumped<[u8; 32]>);

impl Key {
    /// Returns a random key. Fails if the system provides no random numbers.
    pub fn random() -> io::Result<Key> {
        Key::filled(|bytes| {
            rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())?;
            Ok(())
        })
    }

    /// Makes a key of these bytes, and overwrites them.
    pub fn taken(bytes: &mut [u8; 32]) -> Key {
        let mut key = Undumped::new([0; 32]);
        key.copy_from_slice(bytes);
        erase(bytes);
        Key(key)
    }

    /// Makes a key whose bytes `fill` writes in place.
    fn filled<E>(fill: impl FnOnce(&mut [u8; 32]) -> Result<(), E>) -> Result<Key, E> {
        let mut key = Undumped::new([0; 32]);
        fill(&mut key)?;
        Ok(Key(key))
    }
}

impl Deref for Key {
    type Target = [u8; 32];

    fn deref(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A message contains the key in the clear; its memory is not protected.
impl Field for Key {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&**self);
    }

    fn take(from: &mut Bytes) -> Result<Self, Malformed> {
        Key::filled(|bytes| {
            bytes.copy_from_slice(from.split(32)?);
            Ok(())
        })
    }
}

/// The knowledge of a host's launcher about the job before its tasks start.
#[derive(Clone, Debug)]
pub struct Places {
    /// This host's number.
    pub here: u32,
    /// The host of each rank.
    pub host_of: Vec<u32>,
    /// The key that tasks prove to each other to have.
    pub key: Key,
    /// Whether the network is trusted: the tasks prove that they have the key, but do not encrypt.
    pub trusted: bool,
    /// Maximum number of tasks that the job may ever have.
    pub most: u32,
}

/// Opens a socket at which a task accepts connections. Its queue is as long as the system allows: all other tasks of
/// a large job may connect before the task accepts for the first time.
pub fn listen_at(address: IpAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((address, 0))?;
    lengthen_queue(&listener)?;
    Ok(listener)
}

/// Sets the queue of a listening socket to the maximum length that the system allows. A task that computes accepts
/// late, and a connect that finds the queue full is not answered.
fn lengthen_queue(listener: impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(listener, i32::MAX)?)
}

impl Job {
    /// Makes this host's segment of a job that runs on several hosts. The addresses are set with [`Job::set_address`]
    /// before the tasks start.
    pub fn create_across(places: &Places) -> Result<Job, JobError> {
        let tasks = u32::try_from(places.host_of.len()).unwrap_or(u32::MAX);
        let here = places.host_of.iter().filter(|&&host| host == places.here);
        let job = Job::create_part(tasks, here.count() as u32, places.most)?;
        let header = job.header();
        header.here.store(places.here, Ordering::Relaxed);
        header
            .trusted
            .store(places.trusted as u32, Ordering::Relaxed);
        for (word, bytes) in header.key.iter().zip(places.key.chunks_exact(8)) {
            let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
        for (rank, &host) in places.host_of.iter().enumerate() {
            let place = &job.slot(rank as u32).place;
            place.host.store(host, Ordering::Release);
        }
        let elsewhere = places.host_of.iter().any(|&host| host != places.here);
        header
            .scattered
            .store(u32::from(elsewhere), Ordering::Relaxed);
        Ok(job)
    }

    /// Sets the address at which a task listens.
    pub fn set_address(&self, rank: u32, address: SocketAddr) {
        let place = &self.slot(rank).place;
        let ip = match address.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let bits = ip.to_bits();
        place.address[0].store((bits >> 64) as u64, Ordering::Relaxed);
        place.address[1].store(bits as u64, Ordering::Relaxed);
        place.port.store(address.port() as u32, Ordering::Release);
    }

    /// Returns the address at which a task listens. Returns `None` if it does not listen, or if the table's entry is
    /// invalid.
    pub fn address(&self, rank: u32) -> Option<SocketAddr> {
        let place = &self.slot(rank).place;
        let port = u16::try_from(place.port.load(Ordering::Acquire)).ok()?;
        let half = |n: usize| place.address[n].load(Ordering::Relaxed) as u128;
        let ip = Ipv6Addr::from_bits(half(0) << 64 | half(1)).to_canonical();
        (port != 0).then_some(SocketAddr::new(ip, port))
    }

    /// Returns the number of a task's host.
    pub fn host_of(&self, rank: u32) -> u32 {
        self.slot(rank).place.host.load(Ordering::Relaxed)
    }

    /// Returns whether a task runs on this host and thus shares this memory.
    pub fn is_here(&self, rank: u32) -> bool {
        self.host_of(rank) == self.header().here.load(Ordering::Relaxed)
    }

    /// Returns whether there is, or ever was, a task on another host, so that messages may arrive by other paths than
    /// shared memory.
    pub fn is_scattered(&self) -> bool {
        self.header().scattered.load(Ordering::Relaxed) != 0
    }

    /// Returns how many of the first tasks run on this host.
    pub fn tasks_here(&self) -> u32 {
        self.header().tasks_here.load(Ordering::Relaxed)
    }

    /// Returns the job's key, and whether its network is trusted.
    pub fn key(&self) -> (Key, bool) {
        let header = self.header();
        let mut key = Undumped::new([0; 32]);
        for (word, bytes) in header.key.iter().zip(key.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        (Key(key), header.trusted.load(Ordering::Relaxed) != 0)
    }
}

#[cfg(test)]
mod tests {
    use regatta_memory::undumped::is_undumped;

    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        let places = Places {
            here: 1,
            host_of: vec![0, 1, 1],
            key: Key::taken(&mut std::array::from_fn(|n| n as u8)),
            trusted: true,
            most: 9,
        };
        let job = Job::create_across(&places).unwrap();
        assert_eq!((job.tasks(), job.tasks_here()), (3, 2));
        assert!(!job.is_here(0) && job.is_here(1) && job.is_here(2));
        assert_eq!(job.key(), (places.key, true));
        assert_eq!(job.address(0), None);
        for text in ["10.0.0.7:4000", "[fe80::1]:65535"] {
            let address = text.parse().unwrap();
            job.set_address(0, address);
            assert_eq!(job.address(0), Some(address));
        }
    }

    #[test]
    fn no_core_dump_has_the_key_and_it_is_a_field_like_its_bytes() {
        let made = Key::random().unwrap();
        let copies = [made.clone(), Key::taken(&mut made.0.clone())];
        let bytes = regatta_wire::fields::bytes_of(&made);
        assert_eq!(bytes, *made);
        let read: Key = regatta_wire::fields::whole(&bytes).unwrap();
        assert!(regatta_wire::fields::whole::<Key>(&bytes[1..]).is_err());
        for key in copies.iter().chain([&made, &read]) {
            assert_eq!(key, &made);
            assert_eq!(is_undumped(key.as_ptr() as usize), Some(true));
        }
        assert_ne!(made, Key::random().unwrap());
        let mut bytes = *made;
        Key::taken(&mut bytes);
        assert_eq!(bytes, [0; 32]);
    }

    #[test]
    fn no_core_dump_has_the_page_of_the_segment_with_the_key() {
        let job = Job::create(3).unwrap();
        let joined = Job::open(job.fd().try_clone_to_owned().unwrap()).unwrap();
        for job in [&job, &joined] {
            job.keep_from_children();
            let key = job.header().key.as_ptr() as usize;
            assert_eq!(is_undumped(key), Some(true));
            // The rest of the segment is in dumps, since it helps to understand them.
            let behind = job.segment().at(8192, 1).unwrap();
            assert_eq!(is_undumped(behind.as_ptr() as usize), Some(false));
        }
    }

    #[test]
    fn on_one_host_everybody_is_here() {
        let job = Job::create(3).unwrap();
        assert!((0..3).all(|rank| job.is_here(rank)));
        assert_eq!(job.tasks_here(), 3);
    }
}
