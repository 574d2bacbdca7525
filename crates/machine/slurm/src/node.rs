//! Addresses of nodes.

use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Command, Stdio};

/// Returns the addresses of a node: the one by which Slurm itself reaches it, or those to which its name resolves.
///
/// A name resolves differently on each host: a host's own name often resolves to its loopback address. Slurm's
/// address is the same for all.
pub fn node_address(name: &str) -> Result<Vec<IpAddr>, String> {
    let output = Command::new(regatta_trust::tool("scontrol"))
        .args(["--oneliner", "show", "node", name])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let named = said.as_deref().ok().and_then(told_address).unwrap_or(name);
    let addresses = (named, 0).to_socket_addrs().map_err(|error| {
        format!(
            "the address of the node {name} cannot be found here ({error}){}",
            match &said {
                Ok(_) => String::new(),
                Err(error) => format!(", and Slurm cannot be queried: scontrol: {error}"),
            }
        )
    })?;
    let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
    addresses.dedup();
    Ok(addresses)
}

/// Returns the address in the output of `scontrol show node`.
fn told_address(said: &str) -> Option<&str> {
    said.split_whitespace()
        .find_map(|word| word.strip_prefix("NodeAddr="))
        .filter(|address| !address.is_empty() && *address != "(null)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_stands_among_other_things() {
        let said = "NodeName=n1 Arch=x86_64 NodeAddr=10.0.0.1 NodeHostName=n1 Version=22.05.8";
        assert_eq!(told_address(said), Some("10.0.0.1"));
        assert_eq!(told_address("NodeAddr=(null)"), None);
        assert_eq!(told_address("Node n1 not found"), None);
    }
}
