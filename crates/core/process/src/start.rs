//! Messages about tasks and hosts that a task starts on behalf of the launcher. `rg_start` and `rg_start_hosts` in `regatta.h` describe their bytes.

use regatta_wire::control::HostStart;

/// The first word of such a message, which distinguishes it from others.
pub const MARK: u32 = regatta_abi::START_MARK;

/// Returns the bytes for a task with this number and ticket. Texts are NUL-terminated; one that contains a NUL ends there.
pub(crate) fn bytes(
    task: u32,
    ticket: u32,
    program: &[u8],
    arguments: &[Vec<u8>],
    environment: &[(Vec<u8>, Vec<u8>)],
) -> Vec<u8> {
    let words = [
        MARK,
        task,
        ticket,
        arguments.len() as u32,
        environment.len() as u32,
        0,
    ];
    let mut all: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut text = |parts: &[&[u8]]| {
        let bytes = parts.iter().flat_map(|part| part.iter().copied());
        all.extend(bytes.take_while(|&byte| byte != 0).chain([0]));
    };
    text(&[program]);
    for argument in arguments {
        text(&[argument]);
    }
    for (name, value) in environment {
        text(&[name, b"=", value]);
    }
    all
}

/// The first word of the message about hosts.
pub const HOSTS_MARK: u32 = regatta_abi::HOSTS_MARK;

/// Returns the bytes for hosts whose agents are to be started, as requested under this number.
pub(crate) fn hosts(request: u32, hosts: &[HostStart]) -> Vec<u8> {
    let head = [HOSTS_MARK, request, hosts.len() as u32, 0];
    let numbers = hosts.iter().map(|host| host.host);
    let words = head.into_iter().chain(numbers);
    let mut all: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    for host in hosts {
        for text in [&host.manner, &host.login, &host.command] {
            all.extend(text.bytes().take_while(|&byte| byte != 0).chain([0]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_there_and_ends_once() {
        let environment = [(b"A".to_vec(), b"1\0no".to_vec())];
        let all = bytes(
            7,
            9,
            b"/bin/x",
            &[b"".to_vec(), b"two".to_vec()],
            &environment,
        );
        assert_eq!(all[4..8], 7_u32.to_ne_bytes());
        assert_eq!(all[12..16], 2_u32.to_ne_bytes());
        assert_eq!(&all[24..], b"/bin/x\0\0two\0A=1\0");
    }

    #[test]
    fn hosts_have_their_numbers_first_and_three_texts_each() {
        let host = |host, manner: &str| HostStart {
            host,
            manner: manner.to_owned(),
            login: "joe@beta".to_owned(),
            command: "go".to_owned(),
        };
        let all = hosts(5, &[host(3, ""), host(4, "m\0s")]);
        let words: Vec<u8> = [HOSTS_MARK, 5, 2, 0, 3, 4]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        assert_eq!(all[..24], words);
        assert_eq!(&all[24..], b"\0joe@beta\0go\0m\0joe@beta\0go\0");
    }
}
