//! Names of the files of pictures. Pure.

use std::path::{Path, PathBuf};

/// The default name.
pub const DEFAULT: &str = "plot";

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Svg,
    Png,
}

const FORMATS: [(Format, &str); 2] = [(Format::Svg, "svg"), (Format::Png, "png")];

/// Returns the files of a frame, which is counted from 1. The extension of the name selects the format; without one
/// both are written. Frames after the first have their number before the extension.
pub fn of_frame(name: &str, frame: u32) -> Vec<(Format, PathBuf)> {
    let name = if name.is_empty() { DEFAULT } else { name };
    let path = Path::new(name);
    let end = path.extension().and_then(|end| end.to_str());
    let chosen = FORMATS
        .iter()
        .find(|(_, word)| end.is_some_and(|end| end.eq_ignore_ascii_case(word)));
    let number = match frame {
        ..=1 => String::new(),
        frame => format!("-{frame}"),
    };
    match (chosen, end) {
        (Some(&(format, _)), Some(end)) => {
            let front = &name[..name.len() - end.len() - 1];
            vec![(format, format!("{front}{number}.{end}").into())]
        }
        _ => FORMATS
            .map(|(format, word)| (format, format!("{name}{number}.{word}").into()))
            .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, frame: u32) -> Vec<(Format, PathBuf)> {
        of_frame(name, frame)
    }

    #[test]
    fn the_end_of_a_name_says_which_kind() {
        assert_eq!(named("a/b.png", 1), [(Format::Png, "a/b.png".into())]);
        assert_eq!(named("B.SVG", 1), [(Format::Svg, "B.SVG".into())]);
        let both = [
            (Format::Svg, "a.b.svg".into()),
            (Format::Png, "a.b.png".into()),
        ];
        assert_eq!(named("a.b", 1), both);
    }

    #[test]
    fn later_frames_have_a_number() {
        assert_eq!(named("b.png", 3), [(Format::Png, "b-3.png".into())]);
        let both = [
            (Format::Svg, "plot-2.svg".into()),
            (Format::Png, "plot-2.png".into()),
        ];
        assert_eq!(named("", 2), both);
    }
}
