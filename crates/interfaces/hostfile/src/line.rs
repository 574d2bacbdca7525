//! Parses a line: words, a name, options.

use crate::{Fault, Host, Options, Start};

/// Maximum length of a line in bytes. A longer line does not belong to a host file.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 10;

/// Splits a line into words: they are separated by blanks, quotation marks preserve blanks, and a `#` at the beginning
/// of a word starts a comment.
pub fn words(line: &str) -> Result<Vec<String>, Fault> {
    if line.len() > MAX_LINE_BYTES {
        return Err(Fault::Long);
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(mark), _) if character == mark => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(character),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(mark) = quote {
        return Err(Fault::Quote(mark));
    }
    words.extend(word);
    Ok(words)
}

/// Parses a host to be added: `name [option=value]...`.
pub fn host(line: &str, defaults: &Options) -> Result<Host, Fault> {
    host_of(&words(line)?, defaults)
}

pub(crate) fn host_of(words: &[String], defaults: &Options) -> Result<Host, Fault> {
    let (name, rest) = words.split_first().ok_or(Fault::NoName)?;
    if name.contains('=') {
        return Err(Fault::NoName);
    }
    let (overload, plain) = match name.strip_prefix('$') {
        Some(plain) => (true, plain),
        None => (false, name.as_str()),
    };
    // A name that begins with a dash would be taken for an option of the remote shell.
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c) || !c.is_ascii();
    if plain.is_empty() || plain.starts_with('-') || !plain.chars().all(fits) {
        return Err(Fault::BadName(name.clone()));
    }
    Ok(Host {
        name: plain.to_owned(),
        overload,
        options: options(rest)?.or(defaults),
    })
}

/// Parses options.
pub(crate) fn options(words: &[String]) -> Result<Options, Fault> {
    let mut options = Options::default();
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| Fault::NotAnOption(word.clone()))?;
        let place = match key {
            "lo" => &mut options.login,
            "dx" => &mut options.daemon,
            "ep" => &mut options.programs,
            "wd" => &mut options.directory,
            "bx" => &mut options.debugger,
            "ip" => &mut options.address,
            "id" => &mut options.machine,
            "sp" => {
                options.speed = Some(speed(value)?);
                continue;
            }
            "so" => {
                options.start = Some(start(value)?);
                continue;
            }
            _ => return Err(Fault::Unknown(key.to_owned())),
        };
        if value.is_empty() {
            return Err(Fault::Empty(key.to_owned()));
        }
        *place = Some(value.to_owned());
    }
    Ok(options)
}

fn speed(value: &str) -> Result<u32, Fault> {
    let number = value
        .parse()
        .ok()
        .filter(|speed| (1..=1_000_000).contains(speed));
    number.ok_or_else(|| Fault::Speed(value.to_owned()))
}

fn start(value: &str) -> Result<Start, Fault> {
    match value {
        "pw" => Ok(Start::Password),
        "ms" => Ok(Start::Manual),
        _ => Err(Fault::Start(value.to_owned())),
    }
}
