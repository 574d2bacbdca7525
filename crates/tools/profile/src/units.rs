//! Numbers in readable form, and untrusted text made harmless.

/// Formats nanoseconds with three digits and a unit.
pub(crate) fn time(nanos: u64) -> String {
    scaled(
        nanos as f64,
        &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")],
    )
}

/// Formats a number of bytes with three digits and a unit.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        _ => scaled(
            bytes as f64,
            &[
                (1_099_511_627_776.0, "TiB"),
                (1_073_741_824.0, "GiB"),
                (1_048_576.0, "MiB"),
                (1024.0, "KiB"),
            ],
        ),
    }
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let last = units.len() - 1;
    let found = units.iter().position(|(size, _)| value >= *size);
    let (size, unit) = units[found.unwrap_or(last)];
    let value = value / size;
    let digits = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Formats an integer with thousands separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share of a whole in percent.
pub(crate) fn share(part: f64, whole: f64) -> String {
    match whole > 0.0 {
        true => format!("{:.1} %", 100.0 * part / whole),
        false => "-".to_owned(),
    }
}

/// Replaces control characters in untrusted text for a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Escapes text for HTML, between tags or within a quoted attribute.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a script element, so that no `<` can end it.
pub(crate) fn script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let times = [0, 7, 1500, 12_345_678, 2_000_000_000].map(time);
        assert_eq!(times, ["0", "7.00 ns", "1.50 us", "12.3 ms", "2.00 s"]);
        assert_eq!([100, 20_480].map(bytes), ["100 B", "20.0 KiB"]);
        assert_eq!([7, 1000, 1_234_567].map(count), ["7", "1,000", "1,234,567"]);
        assert_eq!(share(1.0, 0.0), "-");
    }

    #[test]
    fn texts_of_others_are_harmless() {
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a?[2Jb?");
        assert_eq!(html("<a b='c'>"), "&lt;a b=&#39;c&#39;&gt;");
        assert!(!script("{\"a\":\"</script>\"}").contains('<'));
    }
}
