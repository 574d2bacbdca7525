use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use rustix::process::{Gid, Uid};

use super::*;

#[path = "../../../../../tests/src/skipped.rs"]
mod skipped;

/// A user id other than that of the tests.
const OTHER: u32 = 54321;

/// A directory of this test, and what the test creates in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = format!("regatta-private-{}-{name}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(folder));
        make(&scratch.0);
        scratch
    }

    /// Creates a private directory in it.
    fn folder(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        make(&path);
        path
    }
}

fn make(path: &Path) {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .expect("a directory");
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn opened(path: &Path) -> PrivateDirectory {
    PrivateDirectory::open(path)
        .expect("a private directory")
        .expect("a directory")
}

fn connect(directory: &PrivateDirectory) -> Result<Option<UnixStream>, Refused> {
    directory.connect("s", SocketFlags::empty())
}

/// Listens on a socket at this path as another user, which only root can do.
fn listen_as_other(path: &Path) -> UnixListener {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None);
    let socket = socket.expect("a socket");
    let address = SocketAddrUnix::new(path.join("s")).expect("an address");
    rustix::net::bind(&socket, &address).expect("a free name");
    // Each thread has its own user id, and the kernel records that of the listening thread.
    let other = std::thread::spawn(move || {
        let (user, group) = (Uid::from_raw(OTHER), Gid::from_raw(OTHER));
        rustix::thread::set_thread_res_gid(group, group, group).expect("another group");
        rustix::thread::set_thread_res_uid(user, user, user).expect("another user");
        rustix::net::listen(&socket, 1).expect("a socket");
        socket
    });
    UnixListener::from(other.join().expect("its end"))
}

#[test]
fn a_directory_that_others_own_or_enter_is_refused_and_none_is_none() {
    let scratch = Scratch::new("refused");
    let absent = PrivateDirectory::open(&scratch.0.join("none"));
    assert!(absent.expect("an answer").is_none());
    let said = |path: &Path| match PrivateDirectory::open(path) {
        Err(Refused::NotPrivate(why)) => why,
        other => panic!("{other:?}"),
    };
    let path = scratch.folder("directory");
    opened(&path);
    for mode in [0o701, 0o770, 0o707, 0o1777] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its mode");
        assert_eq!(said(&path), "others can enter it");
    }
    let link = scratch.0.join("link");
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("its mode");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    assert_eq!(said(&link), "it is not a directory");
    std::fs::write(scratch.0.join("file"), "").expect("a file");
    assert_eq!(said(&scratch.0.join("file")), "it is not a directory");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(OTHER), None).expect("its owner");
        assert_eq!(said(&path), "it belongs to the user 54321");
    }
}

#[test]
fn a_directory_that_is_put_in_its_place_is_never_entered() {
    let scratch = Scratch::new("swapped");
    let path = scratch.folder("regatta");
    let directory = opened(&path);
    let ours = directory.listen("s").expect("a socket");
    // An attacker prepares a directory, and exchanges the two.
    let evil = scratch.folder("evil");
    let theirs = UnixListener::bind(evil.join("s")).expect("a socket");
    theirs.set_nonblocking(true).expect("a mode");
    std::fs::rename(&path, scratch.0.join("aside")).expect("a name");
    std::fs::rename(&evil, &path).expect("a name");
    assert!(!directory.is_at_its_path());

    let call = connect(&directory).expect("an answer").expect("a listener");
    ours.accept().expect("the call");
    drop(call);
    directory.append_to("log").expect("a log");
    directory.remove("s").expect("our socket");
    drop(directory.listen("s").expect("a socket"));
    assert_eq!(
        theirs.accept().expect_err("nobody").kind(),
        io::ErrorKind::WouldBlock
    );
    assert!(path.join("s").exists());
    assert!(!path.join("log").exists());
    assert!(scratch.0.join("aside/log").exists());
}

#[test]
fn a_socket_at_which_another_user_listens_is_refused() {
    let scratch = Scratch::new("other");
    if !rustix::process::geteuid().is_root() {
        skipped::skip("only root can listen as another user");
        return;
    }
    let path = scratch.folder("regatta");
    let _listener = listen_as_other(&path);
    match connect(&opened(&path)) {
        Err(Refused::OtherUser(other)) => assert!(other.to_string().contains("54321"), "{other}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_socket_that_nobody_listens_at_is_as_none() {
    let scratch = Scratch::new("left");
    let directory = opened(&scratch.0);
    assert!(connect(&directory).expect("an answer").is_none());
    drop(directory.listen("s").expect("a socket"));
    assert!(directory.file("s").is_ok());
    assert!(connect(&directory).expect("an answer").is_none());
}

#[test]
fn a_log_is_reached_through_no_link_and_is_a_file() {
    let scratch = Scratch::new("log");
    let directory = opened(&scratch.0);
    let victim = scratch.0.join("victim");
    std::fs::write(&victim, "precious").expect("a file");
    std::os::unix::fs::symlink(&victim, scratch.0.join("link")).expect("a link");
    assert!(directory.append_to("link").is_err());
    drop(directory.listen("socket").expect("a socket"));
    assert!(directory.append_to("socket").is_err());
    drop(directory.append_to("victim").expect("a file"));
    assert_eq!(std::fs::read(&victim).expect("the file"), b"precious");
}

#[test]
fn a_path_longer_than_an_address_of_a_socket_is_no_obstacle() {
    let scratch = Scratch::new("long");
    let path = scratch.folder(&"x".repeat(150));
    let directory = opened(&path);
    let _listener = directory.listen("s").expect("a socket");
    assert!(connect(&directory).expect("an answer").is_some());
}
