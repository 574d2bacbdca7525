//! Sockets for Ethernet frames of one type, sent and received without the kernel's TCP/IP, on a segment that this host
//! is on.
//!
//! Frames are received into a ring shared with the kernel, so checking for a new frame costs one memory load. A BPF
//! filter drops frames that do not carry this socket's tag. Opening such a socket requires CAP_NET_RAW. Received frames
//! are not trusted: the reader must verify them.

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
/// Size of a frame's slot in the ring, in bytes, including the kernel's header.
const SLOT_BYTES: usize = 2048;
/// Size of the blocks in which the kernel allocates the ring, in bytes.
const BLOCK_BYTES: usize = 4096;
const RING_BYTES: usize = RING_FRAMES * SLOT_BYTES;
/// Maximum size of a received packet in bytes. With the kernel's header and the Ethernet header it fits into one slot
/// of the ring.
pub const MAX_PACKET_BYTES: usize = 1500;

/// A handle for sending frames on a segment.
#[derive(Clone, Debug)]
pub struct Sender(Arc<OwnedFd>);

/// A socket on a segment, and the ring of received frames.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Sender,
    ring: NonNull<u8>,
    at: usize,
    tag: u32,
    group: u32,
    interface: Interface,
}

/// A network interface of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    index: i32,
    /// Its MAC address.
    pub mac: Mac,
    /// Largest packet that is both sent by this interface and received by this module: the MTU, at most
    /// `MAX_PACKET_BYTES`.
    pub mtu: u16,
}

// SAFETY: this value is the only owner of the ring, and the mapping is not tied to a thread.
unsafe impl Send for PacketSocket {}

impl Sender {
    /// Wraps a socket that sends each buffer as one packet.
    pub fn new(socket: OwnedFd) -> Sender {
        Sender(Arc::new(socket))
    }

    /// Sends a frame. If this returns an error, the frame was not sent.
    #[inline]
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.0, frame, flags)? {
            n if n == frame.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }
}

/// Sets a socket option (setsockopt).
fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives across the call, which reads `size` bytes of it.
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

/// Attaches a BPF filter that passes only frames of our EtherType that are addressed to `tag`, or addressed to `group`
/// with `tag` in the receiver list.
fn attach_filter(socket: &OwnedFd, tag: u32, group: u32) -> io::Result<()> {
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
    // The program has 5 instructions, 2 per receiver, and 2 returns (drop, pass). A BPF jump offset is the number of
    // instructions that it skips.
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
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Creates the receive ring and returns its mapping.
fn make_ring(socket: &OwnedFd) -> io::Result<NonNull<u8>> {
    let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
    let request = libc::tpacket_req {
        tp_block_size: BLOCK_BYTES as u32,
        tp_block_nr: (RING_BYTES / BLOCK_BYTES) as u32,
        tp_frame_size: SLOT_BYTES as u32,
        tp_frame_nr: RING_FRAMES as u32,
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, socket.as_raw_fd());
    // SAFETY: a new mapping, at an address that the kernel chooses.
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
    /// Opens a socket on the segment that has this host's address `local` and `peer`. `group` is the tag of the job's
    /// frames for several tasks. Fails if there is no such segment, or it may not be used.
    pub fn open(local: IpAddr, peer: IpAddr, group: u32) -> io::Result<PacketSocket> {
        let mut tag = [0; 4];
        let random = SystemRandom::new().fill(&mut tag);
        random.map_err(|_| io::Error::other("the system cannot provide random numbers"))?;
        let tag = u32::from_ne_bytes(tag);
        // SAFETY: `socket` takes numbers only. The protocol is 0, so nothing is received before the filter is attached.
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
        // SAFETY: the descriptor was just opened and is not owned elsewhere.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let interface = query_interface(&socket, local, peer)?;
        attach_filter(&socket, tag, group)?;
        let ring = make_ring(&socket)?;
        let packet_socket = PacketSocket {
            socket: Sender::new(socket),
            ring,
            at: 0,
            tag,
            group,
            interface,
        };
        packet_socket.bind()?;
        // If the interface cannot join the multicast group, it misses multicast frames. The TCP connections deliver
        // those messages instead.
        let _ = packet_socket.join_group();
        Ok(packet_socket)
    }

    /// Makes the interface accept frames for the group's multicast address.
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
        set_option(&self.socket.0, level, option, &request)
    }

    fn bind(&self) -> io::Result<()> {
        // SAFETY: an address of zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ETHER_TYPE.to_be();
        address.sll_ifindex = self.interface.index;
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` lives across the call, which reads `size` bytes of it.
        let done =
            unsafe { libc::bind(self.socket.0.as_raw_fd(), (&raw const address).cast(), size) };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the interface by which the segment is reached.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns this socket's tag. Frames with another tag are not received.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// Returns the tag of frames for several tasks of the job.
    pub fn group(&self) -> u32 {
        self.group
    }

    /// Returns whether `peer` is reached on this segment, from this host's address `local`.
    pub fn reaches(&self, local: IpAddr, peer: IpAddr) -> bool {
        interface_for(local, peer).is_ok_and(|(_, index)| index == self.interface.index)
    }

    /// Sends a frame on the segment, as [`Sender::send`] does.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }

    /// Returns a handle for sending frames on the segment.
    pub fn sender(&self) -> Sender {
        self.socket.clone()
    }

    /// Returns the status word of the slot of the next frame.
    #[inline]
    fn status(&self) -> &AtomicU32 {
        // SAFETY: the slot lies in the ring, is aligned, and begins with a word that the kernel may write at the same
        // time.
        unsafe { AtomicU32::from_ptr(self.ring.as_ptr().add(self.at * SLOT_BYTES).cast()) }
    }

    /// Returns whether a frame has been received.
    #[inline]
    pub fn has_frame(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Returns the oldest received frame, or an empty slice if it was truncated. Returns `None` if the ring is empty.
    #[inline]
    pub fn front(&self) -> Option<&[u8]> {
        if !self.has_frame() {
            return None;
        }
        // SAFETY: the slot belongs to this process until `release`, and begins with the kernel's header.
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
        // SAFETY: the bytes lie inside the slot. The kernel does not write to the slot until `release`, which takes
        // `&mut self` and therefore ends this borrow.
        Some(unsafe {
            std::slice::from_raw_parts(self.ring.as_ptr().add(self.at * SLOT_BYTES + begin), length)
        })
    }

    /// Gives the slot of the oldest frame back to the kernel.
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
        // SAFETY: the ring is this value's own mapping, and no reference to it is left.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), RING_BYTES) };
    }
}

/// Returns the bytes of an address.
fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Returns the address in an entry of the kernel's list, if it is IPv4 or IPv6.
fn address(entry: *const libc::sockaddr) -> Option<IpAddr> {
    if entry.is_null() {
        return None;
    }
    // SAFETY: an address in the list is as long as its family says.
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

/// Returns whether two different addresses are in the same network.
fn are_near(local: IpAddr, peer: IpAddr, mask: IpAddr) -> bool {
    let [local, peer, mask] = [local, peer, mask].map(bytes);
    let mut all = mask.iter().zip(local.iter().zip(&peer));
    local != peer
        && local.len() == peer.len()
        && mask.len() == peer.len()
        && all.all(|(mask, (ours, theirs))| ours & mask == theirs & mask)
}

/// Returns the name and the index of the interface that has this host's address `local` and reaches `peer` without a
/// router.
fn interface_for(local: IpAddr, peer: IpAddr) -> io::Result<(String, i32)> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call allocates the list, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let (mut found, mut entry) = (None, list);
    while !entry.is_null() && found.is_none() {
        // SAFETY: the entry belongs to the list, which has not been freed.
        let one = unsafe { &*entry };
        let runs =
            one.ifa_flags & (libc::IFF_UP | libc::IFF_LOOPBACK) as u32 == libc::IFF_UP as u32;
        if runs
            && address(one.ifa_addr) == Some(local)
            && address(one.ifa_netmask).is_some_and(|mask| are_near(local, peer, mask))
        {
            // SAFETY: `ifa_name` is NUL-terminated and lives as long as the list.
            let name = unsafe { CStr::from_ptr(one.ifa_name) };
            // SAFETY: `ifa_name` is NUL-terminated and lives as long as the list.
            let index = unsafe { libc::if_nametoindex(one.ifa_name) };
            found = name
                .to_str()
                .ok()
                .map(|name| (name.to_owned(), index as i32));
        }
        entry = one.ifa_next;
    }
    // SAFETY: the list was allocated above, and no reference into it is left.
    unsafe { libc::freeifaddrs(list) };
    found.ok_or(io::ErrorKind::NotFound.into())
}

/// Returns the packet size to use on an interface with this MTU, or `None` if it is smaller than `MIN_MTU`.
fn longest_packet(mtu: i32) -> Option<u16> {
    let longest = usize::try_from(mtu).unwrap_or(0).min(MAX_PACKET_BYTES) as u16;
    (longest >= MIN_MTU).then_some(longest)
}

fn query_interface(socket: &OwnedFd, local: IpAddr, peer: IpAddr) -> io::Result<Interface> {
    let (name, index) = interface_for(local, peer)?;
    // SAFETY: a request of zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let mut ask = |what: libc::Ioctl| {
        // SAFETY: these requests read and write one `ifreq`.
        match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut request) } {
            0 => Ok(request),
            _ => Err(io::Error::last_os_error()),
        }
    };
    let (hardware, mtu) = (ask(libc::SIOCGIFHWADDR)?, ask(libc::SIOCGIFMTU)?);
    // SAFETY: the kernel has filled in these fields of the union for these requests.
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

    /// Linux allows an MTU as low as 68; the MTU of loopback is larger than a ring slot.
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
