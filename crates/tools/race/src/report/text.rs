//! Text of the report: escaping, and formatting of values with sensible digits and units.
//!
//! Everything from a result file passes through [`html`] or [`script`] before it is written into the page. Units: us,
//! ms, s; KiB = 1024 bytes; GB/s = 10^9 bytes per second.

use crate::operations;
use crate::results::Metric;

/// Escapes `text` for HTML, between tags or inside a quoted attribute.
pub fn html(text: &str) -> String {
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

/// Escapes JSON for the inside of a `<script>` element: no `<` remains that could end it.
pub fn script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Formats a value with three significant digits and thousands separators: `0.0624`, `1.32`, `27.1`, `438`, `12,300`.
pub fn digits(value: f64) -> String {
    significant(value, 3)
}

/// Formats a value with this many significant digits and thousands separators.
pub fn significant(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return "?".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs().log10().floor() as i32;
    if !(-6..=12).contains(&size) {
        return format!("{value:.*e}", digits as usize - 1);
    }
    // Rounding may carry into the next power of ten (0.09996), which needs one digit less.
    let last = 10f64.powi(size + 1 - digits);
    let rounded = last * (value / last).round();
    let size = if rounded.abs() >= 10f64.powi(size + 1) {
        size + 1
    } else {
        size
    };
    thousands(&format!(
        "{rounded:.*}",
        (digits - 1 - size).max(0) as usize
    ))
}

/// Texts of ratios at a limit between verdicts: equality, and the ends of a tie (`duet::ratio::TIE`).
const EDGES: [&str; 3] = ["0.95", "1.00", "1.05"];

/// Formats a ratio so that its verdict can be seen: with two decimals, and with a third one if two would give a limit
/// between verdicts.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() || !(0.1..10.0).contains(&value) {
        return significant(value, 2);
    }
    let text = format!("{value:.2}");
    match EDGES.contains(&text.as_str()) && value != 1.0 {
        true => format!("{value:.3}"),
        false => text,
    }
}

fn thousands(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, whole) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// Returns a factor that converts values of `metric` near `value` to a readable unit, and that unit.
pub fn scale(metric: Metric, value: f64) -> (f64, &'static str) {
    match metric {
        Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting if value >= 1e6 => {
            (1e-6, "s")
        }
        Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting if value >= 1e4 => {
            (1e-3, "ms")
        }
        Metric::OneWay | Metric::Time | Metric::Communication | Metric::Waiting => (1.0, "us"),
        Metric::Volume => (1e-6, "MB"),
        Metric::Messages => (1.0, "messages"),
        Metric::Rate if value >= 1e6 => (1e-6, "M/s"),
        Metric::Rate if value >= 1e4 => (1e-3, "k/s"),
        Metric::Rate => (1.0, "/s"),
        Metric::Resident | Metric::Share if value >= 10240.0 => (1.0 / 1024.0, "MiB"),
        Metric::Resident | Metric::Share => (1.0, "KiB"),
        Metric::Cpu => (1.0, "%"),
    }
}

/// Formats a size: `8 B`, `4 KiB`, `16 MiB`. The unit is bytes if the size is no multiple of a larger one.
pub fn bytes(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{} B", thousands(&bytes.to_string()))
}

/// Formats the size of an operation: bytes, or what an application's problem is measured in, such as `512 unknowns` or
/// `class W`.
pub fn size(operation: &str, size: u64) -> String {
    operations::described_size(operation, size).unwrap_or_else(|| bytes(size))
}

/// Formats a size for a tick of an axis: `8`, `4K`, `16M`.
pub fn tick(size: u64) -> String {
    bytes(size)
        .replace(" B", "")
        .replace("iB", "")
        .replace(' ', "")
}

/// Returns the bandwidth in GB/s of `size` bytes moved in `us` microseconds.
pub fn gigabytes(size: u64, us: f64) -> f64 {
    size as f64 / us / 1e3
}

/// Formats a count: `1 task`, `2 tasks`.
pub fn count(number: u64, noun: &str) -> String {
    format!(
        "{} {noun}{}",
        thousands(&number.to_string()),
        if number == 1 { "" } else { "s" }
    )
}

/// Returns the name of an operation as a heading: `one-to-one` becomes `One-to-one`.
pub fn heading(name: &str) -> String {
    let heading = operations::find(name).map_or("", |operation| operation.heading);
    let name = if heading.is_empty() { name } else { heading };
    let mut letters = name.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

/// Formats seconds since 1970 as `2026-11-20 23:05 UTC`.
pub fn date(seconds: u64) -> String {
    // Days are counted from 1 March of year 0, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let minutes = seconds % 86_400 / 60;
    format!(
        "{:04}-{month:02}-{day:02} {:02}:{:02} UTC",
        era * 400 + year + carry,
        minutes / 60,
        minutes % 60
    )
}

/// Formats a duration: `45 s`, `4 min 10 s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    if whole < 60 {
        format!("{whole} s")
    } else {
        format!("{} min {} s", whole / 60, whole % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_whatever_the_size() {
        for (value, text) in [
            (0.0, "0"),
            (0.0624, "0.0624"),
            (0.09996, "0.100"),
            (1.0, "1.00"),
            (9.999, "10.0"),
            (27.14, "27.1"),
            (438.4, "438"),
            (999.7, "1,000"),
            (12_345.0, "12,300"),
            (-3.21987, "-3.22"),
            (1_234_567.0, "1,230,000"),
        ] {
            assert_eq!(digits(value), text);
        }
        assert_eq!(digits(f64::NAN), "?");
        assert_eq!(
            [
                significant(0.5163, 2),
                significant(0.998, 2),
                significant(12.4, 2)
            ],
            ["0.52", "1.0", "12"]
        );
        assert_eq!(digits(1e-9), "1.00e-9");
    }

    #[test]
    fn the_verdict_of_a_ratio_can_be_seen_from_its_digits() {
        for (value, text) in [
            (0.61, "0.61"),
            (1.0, "1.00"),
            (1.004, "1.004"),
            (0.9961, "0.996"),
            (0.951, "0.951"),
            (1.052, "1.052"),
            (1.06, "1.06"),
            (0.0162, "0.016"),
            (43.2, "43"),
            (f64::INFINITY, "?"),
        ] {
            assert_eq!(ratio(value), text);
        }
    }

    #[test]
    fn sizes_units_and_dates_are_spelled() {
        assert_eq!(
            [bytes(0), bytes(8), bytes(1000), bytes(4096)],
            ["0 B", "8 B", "1,000 B", "4 KiB"]
        );
        assert_eq!(
            [bytes(1536), bytes(16 << 20), tick(16 << 20), tick(8)],
            ["1,536 B", "16 MiB", "16M", "8"]
        );
        assert_eq!(gigabytes(1_000_000, 100.0), 10.0);
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_215_960), "2026-11-20 23:06 UTC");
        assert_eq!(duration(250.4), "4 min 10 s");
    }

    #[test]
    fn hostile_text_is_harmless() {
        assert_eq!(
            html(r#"<b a="x" b='y'>&"#),
            "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;"
        );
        assert_eq!(script("</script>"), "\\u003c/script>");
    }
}
