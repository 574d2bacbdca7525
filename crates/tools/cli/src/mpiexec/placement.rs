//! Placements of processes by the names of other launchers, as far as Regatta supports them.

use super::parse::Request;

/// Takes one of these options with its value.
pub fn option(name: &str, value: &str, request: &mut Request) -> Result<(), String> {
    match name {
        "map-by" => map(value, request)?,
        "rank-by" => rank(value, request),
        _ => bind(value, request),
    }
    Ok(())
}

/// Takes the cores of the processes: `none`, `core` (also `hwthread`, `rr`), or `user:LIST`.
fn bind(value: &str, request: &mut Request) {
    let (name, rest) = value.split_once(':').unwrap_or((value, ""));
    let is_more_than_one = rest.parse::<u32>().is_ok_and(|cores| cores > 1);
    match name.to_ascii_lowercase().as_str() {
        "none" => request.bind = Some("none".to_owned()),
        "core" | "hwthread" | "rr" if !is_more_than_one => request.bind = Some("core".to_owned()),
        "user" if !rest.is_empty() => request.bind = Some(rest.to_owned()),
        _ => request.warnings.push(format!(
            "-bind-to {value} is ignored: Regatta binds each process to one core or to none, and chooses by itself; use -bind-to core, none or user:LIST"
        )),
    }
}

/// Takes how ranks are distributed to the hosts: `slot` in blocks, `node` in turn, `ppr:N:node` for N on each.
fn map(value: &str, request: &mut Request) -> Result<(), String> {
    let mut parts = value.split(':');
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let mut is_followed = true;
    match name.as_str() {
        "slot" | "core" | "hwthread" | "user" | "rr" | "" => {}
        "node" => request.is_dealt_in_turn = true,
        "ppr" => {
            let number = parts.next().unwrap_or_default();
            let each = number.parse::<u32>().ok().filter(|&each| each > 0);
            let each = each.ok_or_else(|| {
                format!("mpiexec: -map-by {value} needs a number above 0, such as ppr:2:node")
            })?;
            match parts.next() {
                Some("node") => request.per_host = Some(each),
                _ => is_followed = false,
            }
        }
        _ => is_followed = false,
    }
    let cores =
        parts.filter_map(|part| part.to_ascii_uppercase().strip_prefix("PE=")?.parse().ok());
    if cores.max().is_some_and(|cores: u32| cores > 1) {
        is_followed = false;
    }
    if !is_followed {
        request.warnings.push(format!(
            "-map-by {value} is ignored: Regatta distributes processes over hosts by slot, node or ppr:N:node, and each has one core"
        ));
    }
    Ok(())
}

/// Takes the order of ranks, which is the order in which processes are distributed to the hosts.
fn rank(value: &str, request: &mut Request) {
    let name = value.split(':').next().unwrap_or_default();
    if !matches!(
        name.to_ascii_lowercase().as_str(),
        "slot" | "fill" | "core" | "hwthread"
    ) {
        request.warnings.push(format!(
            "-rank-by {value} is ignored: ranks are in the order in which -map-by distributes processes over the hosts"
        ));
    }
}
