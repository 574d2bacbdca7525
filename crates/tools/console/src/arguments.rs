//! The arguments of `pvm` and `pvmd3`.

/// The arguments, in the form that the daemon's library takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The name for this host (`-n`).
    pub name: Option<String>,
    /// Which activities the daemon logs (`-d`).
    pub debug: Option<String>,
    /// The file that names the hosts.
    pub hostfile: Option<String>,
}

/// Parses arguments. Fails with a sentence about what is wrong with them.
pub fn read(words: &[String]) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = |inline: &str| match inline {
            "" => words
                .next()
                .cloned()
                .ok_or_else(|| format!("{word} needs a value")),
            inline => Ok(inline.to_owned()),
        };
        match word.as_bytes() {
            [b'-', b'n', ..] => arguments.name = Some(value(&word[2..])?),
            [b'-', b'd', ..] => arguments.debug = Some(mask(&value(&word[2..])?)?),
            [b'-', b's' | b'S', ..] => {
                return Err(format!(
                    "{word} starts the daemon of another host; it has no use here, because hosts are reached by ssh"
                ));
            }
            [b'-', b'f'] => {
                return Err("-f keeps the daemon of another host in the foreground; Regatta has no such daemon".to_owned());
            }
            [b'-', ..] => {
                return Err(format!(
                    "unknown option {word}; the options are -nNAME and -dMASK, and a host file"
                ));
            }
            _ if arguments.hostfile.is_some() => {
                return Err(format!(
                    "only one host file can be given, and {word} is a second one"
                ));
            }
            _ => arguments.hostfile = Some(word.clone()),
        }
    }
    Ok(arguments)
}

/// Parses a number in C's notation, and returns it in hexadecimal.
fn mask(text: &str) -> Result<String, String> {
    let read = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None if text.len() > 1 && text.starts_with('0') => u32::from_str_radix(&text[1..], 8),
        None => text.parse(),
    };
    read.map(|mask| format!("0x{mask:x}"))
        .map_err(|_| format!("-d{text}: the mask must be a number"))
}

impl Arguments {
    /// Returns the arguments in the form that the library takes.
    pub fn words(&self) -> Vec<String> {
        let option = |letter: char, value: &Option<String>| {
            value.as_ref().map(|value| format!("-{letter}{value}"))
        };
        [
            option('n', &self.name),
            option('d', &self.debug),
            self.hostfile.clone(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Result<Arguments, String> {
        read(
            &words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn values_may_touch_their_letter_or_not() {
        let expected = Arguments {
            name: Some("alpha".into()),
            debug: Some("0x11".into()),
            hostfile: Some("hosts".into()),
        };
        assert_eq!(
            arguments(&["-nalpha", "-d0x11", "hosts"]).unwrap(),
            expected
        );
        assert_eq!(
            arguments(&["hosts", "-n", "alpha", "-d", "17"]).unwrap(),
            expected
        );
        assert_eq!(
            arguments(&["-n", "alpha", "-d021", "hosts"])
                .unwrap()
                .words(),
            ["-nalpha", "-d0x11", "hosts"]
        );
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_reason() {
        assert!(arguments(&["-s"]).unwrap_err().contains("ssh"));
        assert!(arguments(&["-S", "-d0", "1"]).unwrap_err().contains("ssh"));
        assert!(arguments(&["-f"]).unwrap_err().contains("foreground"));
        assert!(arguments(&["-z"]).unwrap_err().contains("-z"));
        assert!(arguments(&["-n"]).unwrap_err().contains("needs a value"));
        assert!(arguments(&["-dx"]).unwrap_err().contains("number"));
        assert!(
            arguments(&["a", "b"])
                .unwrap_err()
                .contains("only one host file")
        );
    }
}
