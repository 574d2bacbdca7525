//! The folders in which an interpreter searches for packages, as far as they can be determined from its files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The package folders of an interpreter.
pub(super) struct Folders {
    /// Its version, for example `3.11`, if known.
    pub(super) version: Option<String>,
    /// The folders, in search order.
    pub(super) all: Vec<PathBuf>,
}

/// Returns the folders of the interpreter that is called by this path, in an environment. Returns `None` if the
/// environment makes it search elsewhere.
pub(super) fn of<'a>(
    interpreter: &Path,
    set: impl Fn(&'static str) -> Option<&'a OsStr>,
) -> Option<Folders> {
    if set("PYTHONHOME").is_some_and(|home| !home.is_empty()) {
        return None;
    }
    let listed = set("PYTHONPATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(listed)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect();
    let bin = std::path::absolute(interpreter).ok()?;
    let bin = bin.parent()?;
    let prefix = bin.parent()?;
    let settings = [bin, prefix].map(|folder| folder.join("pyvenv.cfg"));
    let settings = settings
        .iter()
        .find_map(|file| std::fs::read_to_string(file).ok());
    let Some(settings) = settings else {
        let own = Base::of(interpreter)?;
        all.extend(own.folders(&set));
        return Some(Folders {
            version: own.version,
            all,
        });
    };
    let version = setting(&settings, "version").or_else(|| setting(&settings, "version_info"));
    let version = version.and_then(short);
    for library in ["lib", "lib64"] {
        all.extend(packages(&prefix.join(library), version.as_deref()));
    }
    if setting(&settings, "include-system-site-packages") == Some("true") {
        let name = version
            .as_ref()
            .map_or("python3".to_owned(), |it| format!("python{it}"));
        let base = Path::new(setting(&settings, "home")?).join(name);
        all.extend(Base::of(&base)?.folders(&set));
    }
    Some(Folders { version, all })
}

/// An interpreter outside virtual environments.
struct Base {
    prefix: PathBuf,
    version: Option<String>,
}

impl Base {
    fn of(interpreter: &Path) -> Option<Base> {
        let file = interpreter.canonicalize().ok()?;
        let name = file.file_name()?.to_str()?;
        Some(Base {
            prefix: file.parent()?.parent()?.to_owned(),
            version: name.strip_prefix("python").and_then(short),
        })
    }

    /// Returns the folder of the user's packages, and the interpreter's own: those of a usual build, and those of
    /// distributions.
    fn folders<'a>(&self, set: impl Fn(&'static str) -> Option<&'a OsStr>) -> Vec<PathBuf> {
        let version = self.version.as_deref();
        let mut all = Vec::new();
        if set("PYTHONNOUSERSITE").is_none_or(OsStr::is_empty) {
            let base = set("PYTHONUSERBASE").map(PathBuf::from);
            let base = base.or_else(|| Some(Path::new(set("HOME")?).join(".local")));
            all.extend(base.map_or(Vec::new(), |base| packages(&base.join("lib"), version)));
        }
        for root in [self.prefix.join("local"), self.prefix.clone()] {
            for library in ["lib64", "lib"] {
                all.extend(packages(&root.join(library), version));
            }
        }
        all.push(self.prefix.join("lib/python3/dist-packages"));
        all
    }
}

/// Returns the package folders in a library folder, for this version or for all.
fn packages(library: &Path, version: Option<&str>) -> Vec<PathBuf> {
    let of_versions: Vec<PathBuf> = match version {
        Some(version) => vec![library.join(format!("python{version}"))],
        None => {
            let entries = std::fs::read_dir(library).into_iter().flatten().flatten();
            let named = |path: &PathBuf| {
                path.file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(|name| name.starts_with("python3."))
            };
            entries.map(|entry| entry.path()).filter(named).collect()
        }
    };
    let kinds = |folder: PathBuf| ["site-packages", "dist-packages"].map(|kind| folder.join(kind));
    of_versions.into_iter().flat_map(kinds).collect()
}

/// Returns the value of a line `name = value` in a virtual environment's settings.
fn setting<'a>(settings: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = settings.lines().filter_map(|line| line.split_once('='));
    lines
        .find(|(known, _)| known.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// Returns the first two numbers of a version.
fn short(version: &str) -> Option<String> {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next()?, numbers.next()?);
    let minor: String = minor.chars().take_while(char::is_ascii_digit).collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    (is_number(major) && is_number(&minor)).then(|| format!("{major}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_cut_to_two_numbers() {
        assert_eq!(short("3.11.7").as_deref(), Some("3.11"));
        assert_eq!(short("3.13t").as_deref(), Some("3.13"));
        assert_eq!(short("3"), None);
        assert_eq!(short(""), None);
    }

    #[test]
    fn settings_of_an_environment_are_read_line_by_line() {
        let settings = "home = /usr/bin\nInclude-System-Site-Packages = true\nversion= 3.11.2\n";
        assert_eq!(
            setting(settings, "include-system-site-packages"),
            Some("true")
        );
        assert_eq!(setting(settings, "version"), Some("3.11.2"));
        assert_eq!(setting(settings, "executable"), None);
    }
}
