//! An Ethernet segment that this host is on: frames of one kind, sent and received past the kernel's TCP/IP.
//!
//! Frames are received into a ring that the kernel and this process share, so a look for one is a load. A filter in the kernel keeps
//! all those away that do not name this socket's tag. It takes the right to open such sockets (CAP_NET_RAW). Nothing that comes
//! is trusted: the reader must verify it.

use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use regatta_wire::bypass::{
    ETHER_TYPE, ETHERNET_HEAD_BYTES, MAX_RECEIVERS, MIN_MTU, Mac, RECEIVERS_AT, group_address,
};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::net::SendFlags;

/// Number of frames that fit into the ring.
pub const RING_FRAMES: usize = 256;
/// Size of a frame's slot in the ring, in bytes, with the kernel's head before it.
const SLOT_BYTES: usize = 2048;
/// Size of the blocks in which the kernel takes the ring's memory, in bytes.
const BLOCK_BYTES: usize = 4096;
const RING_BYTES: usize = RING_FRAMES * SLOT_BYTES;
/// Maximum size of a packet that is received, in bytes: with the kernel's head and an Ethernet head it fits into a place.
pub const MAX_PACKET_BYTES: usize = 1500;

/// A way to send frames on a segment.
#[derive(Clone, Debug)]
pub struct Sender(Arc<OwnedFd>);

/// A socket on a segment, and the ring of frames that have come.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Sender,
    ring: NonNull<u8>,
    at: usize,
    tag: u32,
    group: u32,
    interface: Interface,
}

/// An interface of this host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    index: i32,
    /// Its address.
    pub mac: Mac,
    /// Longest packet, as far as it is received here.
    pub mtu: u16,
}

// SAFETY: the ring belongs to this value alone, which may move to another thread.
unsafe impl Send for PacketSocket {}

impl Sender {
    /// By any socket that sends whole packets.
    pub fn new(socket: OwnedFd) -> Sender {
        Sender(Arc::new(socket))
    }

    /// Sends a frame. An error: it was not sent.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.0, frame, flags)? {
            n if n == frame.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// An option of a socket.
fn set<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives across the call, which reads this many bytes of it.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets through the frames of our type for the task with this tag: for it alone, or for several tasks of the group with it among the receivers.
fn keep_others_out(socket: &OwnedFd, tag: u32, group: u32) -> io::Result<()> {
    let step = |code: u32, jt: usize, jf: usize, k| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: jf as u8,
        k,
    };
    let (load, equal, end) = (
        libc::BPF_LD | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    // Five steps, two for each receiver, and the two ends. A jump passes over so many steps.
    let (drop, pass) = (5 + 2 * MAX_RECEIVERS, 6 + 2 * MAX_RECEIVERS);
    let jump = |from: usize, to: usize| to - from - 1;
    let mut steps = vec![
        step(load | libc::BPF_H, 0, 0, 12),
        step(equal, 0, jump(1, drop), ETHER_TYPE.into()),
        step(load | libc::BPF_W, 0, 0, ETHERNET_HEAD_BYTES as u32),
        step(equal, jump(3, pass), 0, tag),
        step(equal, 0, jump(4, drop), group),
    ];
    for receiver in 0..MAX_RECEIVERS {
        let place = RECEIVERS_AT + 4 * receiver;
        steps.push(step(load | libc::BPF_W, 0, 0, place as u32));
        steps.push(step(equal, jump(steps.len(), pass), 0, tag));
    }
    steps.push(step(end, 0, 0, 0));
    steps.push(step(end, 0, 0, u32::MAX));
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Has the kernel make the ring; its memory.
fn make_ring(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
    set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
    let request = libc::tpacket_req {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
        tp_frame_size: SLOT_BYTES as u32,
        tp_frame_nr: RING_FRAMES as u32,
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, socket.as_raw_fd());
    // SAFETY: a new mapping, at a place that the kernel chooses.
    let ring = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RING_BYTES,
            access,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    match ring {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        ring => NonNull::new(ring.cast()).ok_or(io::ErrorKind::OutOfMemory.into()),
    }
}

impl PacketSocket {
    /// Opens the segment on which this host's address `local` and `peer` are. `group` is the tag of the job's frames for several tasks.
    /// An error: there is no such segment, or it may not be used.
    pub fn open(local: IpAddr, peer: IpAddr, group: u32) -> io::Result<PacketSocket> {
        let mut tag = [0; 4];
        let random = SystemRandom::new().fill(&mut tag);
        random.map_err(|_| io::Error::other("no random numbers"))?;
        let tag = u32::from_ne_bytes(tag);
        // SAFETY: a plain system call. No protocol: nothing is received before the filter is there.
        let fd = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                0,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that has just been made, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let interface = find(&socket, local, peer)?;
        keep_others_out(&socket, tag, group)?;
        let ring = make_ring(&socket)?;
        let segment = PacketSocket {
            socket: Sender::new(socket),
            ring,
            at: 0,
            tag,
            group,
            interface,
        };
        segment.bind()?;
        // An interface that cannot join misses frames for several tasks, which the connections make good.
        let _ = segment.join_group();
        Ok(segment)
    }

    /// Has the interface take frames for the group.
    fn join_group(&self) -> io::Result<()> {
        let mac = group_address(self.group);
        let mut request = libc::packet_mreq {
            mr_ifindex: self.interface.index,
            mr_type: libc::PACKET_MR_MULTICAST as u16,
            mr_alen: mac.len() as u16,
            mr_address: [0; 8],
        };
        request.mr_address[..mac.len()].copy_from_slice(&mac);
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        set(&self.socket.0, level, option, &request)
    }

    fn bind(&self) -> io::Result<()> {
        // SAFETY: all zeros is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHER_TYPE.to_be();
        address.sll_ifindex = self.interface.index;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address lives across the call, which reads this many bytes of it.
        let done =
            unsafe { libc::bind(self.socket.0.as_raw_fd(), (&raw const address).cast(), size) };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The interface by which it is reached.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Frames that do not name it are not received.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The tag of frames for several tasks of the job.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Is `peer` reached on this segment, from this host's address `local`?
    pub fn reaches(&self, local: IpAddr, peer: IpAddr) -> bool {
        name_of(local, peer).is_ok_and(|(_, index)| index == self.interface.index)
    }

    /// Sends a frame there, as [`Sender::send`] does.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }

    /// A way to send frames there.
    pub fn sender(&self) -> Sender {
        self.socket.clone()
    }

    /// The state of the place where the next frame goes.
    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the place lies in the ring, aligned, and begins with a word that the kernel writes at the same time.
        unsafe { AtomicU32::from_ptr(self.ring.as_ptr().add(self.at * SLOT_BYTES).cast()) }
    }

    /// Has a frame come?
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The oldest frame that has come, as far as it has come whole.
    #[inline]
    pub fn front(&self) -> Option<&[u8]> {
        if !self.has_frame() {
            return None;
        }
        // SAFETY: the place is this process's until it is given back, and begins with the kernel's head.
        let head = unsafe {
            self.ring
                .as_ptr()
                .add(self.at * SLOT_BYTES)
                .cast::<libc::tpacket2_hdr>()
                .read()
        };
        let (begin, length) = (head.tp_mac as usize, head.tp_snaplen as usize);
        if head.tp_len != head.tp_snaplen || begin + length > SLOT_BYTES {
            return Some(&[]);
        }
        // SAFETY: inside the place, which stays as it is until it is given back, as this borrow is over then.
        Some(unsafe {
            std::slice::from_raw_parts(self.ring.as_ptr().add(self.at * SLOT_BYTES + begin), length)
        })
    }

    /// Is done with the oldest frame.
    #[inline]
    pub fn release(&mut self) {
        self.status()
            .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at = (self.at + 1) % RING_FRAMES;
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.0.as_fd()
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: the ring's own mapping, which nobody refers to any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), RING_BYTES) };
    }
}

/// The bytes of an address.
fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The address in an entry of the kernel's list.
fn address(entry: *const libc::sockaddr) -> Option<IpAddr> {
    if entry.is_null() {
        return None;
    }
    // SAFETY: an address of the list is as long as its family says.
    unsafe {
        match i32::from((*entry).sa_family) {
            libc::AF_INET => {
                let address = (*entry.cast::<libc::sockaddr_in>()).sin_addr.s_addr;
                Some(IpAddr::from(address.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let address = (*entry.cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr;
                Some(IpAddr::from(address))
            }
            _ => None,
        }
    }
}

/// Are two addresses in one network?
fn are_near(local: IpAddr, peer: IpAddr, mask: IpAddr) -> bool {
    let [local, peer, mask] = [local, peer, mask].map(bytes);
    let mut all = mask.iter().zip(local.iter().zip(&peer));
    local != peer
        && local.len() == peer.len()
        && mask.len() == peer.len()
        && all.all(|(mask, (ours, theirs))| ours & mask == theirs & mask)
}

/// The name and the index of the interface with this host's address `local` by which `peer` is reached without a router.
fn name_of(local: IpAddr, peer: IpAddr) -> io::Result<(String, i32)> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the list is made by the call, and freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut entry) = (None, list);
    while !entry.is_null() && found.is_none() {
        // SAFETY: an entry of the list, which has not been freed.
        let one = unsafe { &*entry };
        let runs =
            one.ifa_flags & (libc::IFF_UP | libc::IFF_LOOPBACK) as u32 == libc::IFF_UP as u32;
        if runs
            && address(one.ifa_addr) == Some(local)
            && address(one.ifa_netmask).is_some_and(|mask| are_near(local, peer, mask))
        {
            // SAFETY: the name of an entry ends, and lives as long as that.
            let name = unsafe { CStr::from_ptr(one.ifa_name) };
            // SAFETY: as above.
            let index = unsafe { libc::if_nametoindex(one.ifa_name) };
            found = name
                .to_str()
                .ok()
                .map(|name| (name.to_owned(), index as i32));
        }
        entry = one.ifa_next;
    }
    // SAFETY: the list of above, of which nothing is used any more.
    unsafe { libc::freeifaddrs(list) };
    found.ok_or(io::ErrorKind::NotFound.into())
}

/// The longest packet that goes by an interface and is received; `None`: no packet is long enough for an offer that makes sense.
fn longest_packet(mtu: i32) -> Option<u16> {
    let longest = usize::try_from(mtu).unwrap_or(0).min(MAX_PACKET_BYTES) as u16;
    (longest >= MIN_MTU).then_some(longest)
}

fn find(socket: &OwnedFd, local: IpAddr, peer: IpAddr) -> io::Result<Interface> {
    let (name, index) = name_of(local, peer)?;
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let mut ask = |what: libc::Ioctl| {
        // SAFETY: these questions read and write one request.
        match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) } {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let (hardware, mtu) = (ask(libc::SIOCGIFHWADDR)?, ask(libc::SIOCGIFMTU)?);
    // SAFETY: the kernel has answered with this part of the request.
    let (hardware, mtu) = unsafe { (hardware.ifr_ifru.ifru_hwaddr, mtu.ifr_ifru.ifru_mtu) };
    if hardware.sa_family != libc::ARPHRD_ETHER {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut mac = [0; 6];
    for (place, byte) in mac.iter_mut().zip(hardware.sa_data) {
        *place = byte as u8;
    }
    let mtu = longest_packet(mtu).ok_or(io::ErrorKind::Unsupported)?;
    Ok(Interface {
        name,
        index,
        mac,
        mtu,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_near_within_their_mask_alone() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mask = ip("255.255.255.0");
        assert!(are_near(ip("10.0.0.1"), ip("10.0.0.2"), mask));
        assert!(!are_near(ip("10.0.0.1"), ip("10.0.1.2"), mask));
        assert!(!are_near(ip("10.0.0.1"), ip("10.0.0.1"), mask), "itself");
        assert!(!are_near(ip("10.0.0.1"), ip("fe80::1"), mask));
        let wide = ip("ffff:ffff:ffff:ffff::");
        assert!(are_near(ip("fe80::1"), ip("fe80::2"), wide));
        assert!(!are_near(ip("fe80::1"), ip("fe81::2"), wide));
    }

    /// Linux lets an interface have packets of 68 bytes, and loopback has longer ones than a place of the ring.
    #[test]
    fn no_interface_is_used_whose_packets_are_too_short_for_an_offer() {
        let longest = [-1, 0, 68, 255, 256, 1500, 65_536].map(longest_packet);
        let (none, least) = (None, Some(MIN_MTU));
        assert_eq!(
            longest,
            [none, none, none, none, least, Some(1500), Some(1500)]
        );
    }

    #[test]
    fn there_is_no_segment_within_a_host() {
        let here = IpAddr::from([127, 0, 0, 1]);
        assert!(PacketSocket::open(here, here, 1).is_err());
        assert!(PacketSocket::open(here, IpAddr::from([127, 0, 0, 2]), 1).is_err());
    }
}
