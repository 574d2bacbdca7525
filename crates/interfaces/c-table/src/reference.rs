//! Markdown pages made from `regatta.h`: one with its sections, where each declaration is followed by the comment above it, and one with a
//! table of the error codes.

use std::fmt::Write;

use crate::{HEADER, without_comments};

/// A declaration of the header, or several that share a comment.
struct Item {
    comment: String,
    code: String,
}

impl Item {
    /// Returns the names of the functions that the item declares.
    fn functions(&self) -> Vec<String> {
        let code = without_comments(&self.code);
        let words = code.split('(').filter_map(|before| {
            let word = before.rsplit(|it: char| !it.is_alphanumeric() && it != '_');
            word.take(1).find(|word| word.starts_with("rg_"))
        });
        words.map(str::to_owned).collect()
    }

    /// Returns a title: the functions that the item declares, or else the types and constants that it defines.
    fn title(&self) -> String {
        let mut names = self.functions();
        if names.is_empty() {
            let code = without_comments(&self.code);
            let defined = code.lines().filter_map(|line| {
                let constant = line.strip_prefix("#define ");
                let kind = line
                    .strip_prefix("} ")
                    .or_else(|| line.strip_prefix("typedef "));
                let name = match (constant, kind) {
                    (Some(rest), _) => rest.split([' ', '(']).next(),
                    (None, Some(rest)) => rest
                        .split(['(', ')', '*', ' ', ';'])
                        .find(|it| it.starts_with("rg_")),
                    _ => None,
                };
                name.filter(|name| !name.ends_with('_')).map(str::to_owned)
            });
            // A constant can be defined twice, for C and for C++.
            for name in defined {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let most = names.len().min(4);
        let dots = if names.len() > most { " …" } else { "" };
        let shown: Vec<String> = names[..most]
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        shown.join(", ") + dots
    }
}

/// Returns the page of all sections.
pub fn page() -> String {
    let mut page = "# regatta.h\n\nThe C interface, from the header's own text. Its grammar is on [a page of its own](c-grammar.md), and so are the [error codes](errors.md).\n".to_owned();
    for (name, text) in sections().into_iter().filter(|(name, _)| *name != "errors") {
        let _ = write!(page, "\n## {}{}\n", name[..1].to_uppercase(), &name[1..]);
        for item in items(text) {
            let title = item.title();
            if !title.is_empty() {
                let _ = write!(page, "\n### {title}\n");
            }
            if !item.code.is_empty() {
                let _ = write!(page, "\n```c\n{}\n```\n", item.code.trim_end());
            }
            if !item.comment.is_empty() {
                let _ = write!(page, "\n{}\n", prose(&item.comment));
            }
        }
    }
    page
}

/// Returns the page of error codes.
pub fn errors() -> String {
    let mut page = "# Error codes\n\nEvery function that can fail returns 0 (`RG_OK`) or one of these. `rg_strerror` returns the meaning of a code, `rg_last_error` the message of this thread's last error, with names and numbers.\n\n| code | value | meaning |\n|---|---|---|\n".to_owned();
    let text = section("errors");
    for line in text.split("\n#define RG_ERR_").skip(1) {
        let (name, rest) = line.split_once(' ').expect("a value");
        let (value, comment) = rest.split_once("/*").expect("each code has its comment");
        let value = value.trim().trim_matches(['(', ')']);
        let comment = comment.split("*/").next().unwrap_or_default();
        let _ = writeln!(
            page,
            "| `RG_ERR_{name}` | {value} | {} |",
            prose(&unstarred(comment))
        );
    }
    page
}

fn section(name: &str) -> &'static str {
    let all = sections();
    all.into_iter()
        .find(|it| it.0 == name)
        .expect("a section")
        .1
}

/// Returns the names and texts of the header's sections, without the end of the block for C++.
fn sections() -> Vec<(&'static str, &'static str)> {
    let end = "\n#ifdef __cplusplus\n}";
    let text = |text: &'static str| text.split(end).next().unwrap_or(text);
    crate::sections(HEADER)
        .map(|(name, all)| (name, text(all)))
        .collect()
}

/// Splits a section into items. A comment at the beginning of a line starts an item, and so does code after an empty line.
fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (mut is_comment, mut is_new, mut depth) = (false, true, 0);
    for line in text.lines() {
        let begins_comment = !is_comment && line.starts_with("/*");
        if line.is_empty() && depth == 0 && !is_comment {
            is_new = true;
            continue;
        }
        let has_code = items.last().is_some_and(|item| !item.code.is_empty());
        if is_new || (begins_comment && has_code && depth == 0) {
            items.push(Item {
                comment: String::new(),
                code: String::new(),
            });
            is_new = false;
        }
        let item = items.last_mut().expect("it was begun");
        if begins_comment || is_comment {
            item.comment += &format!("{line}\n");
            is_comment = !line.contains("*/");
            continue;
        }
        depth += line.matches('{').count();
        depth -= line.matches('}').count().min(depth);
        item.code += &format!("{line}\n");
    }
    for item in &mut items {
        item.comment = unstarred(&item.comment);
    }
    items
}

/// Returns a comment without its stars, as one paragraph.
fn unstarred(comment: &str) -> String {
    let lines = comment.lines().map(|line| {
        let line = line
            .trim()
            .trim_start_matches("/*")
            .trim_end_matches("*/")
            .trim();
        line.strip_prefix("* ")
            .unwrap_or(if line == "*" { "" } else { line })
    });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Converts the text of a comment to Markdown. Names become code, and all other text is escaped.
fn prose(text: &str) -> String {
    let escaped = |word: &str| {
        word.replace('*', r"\*")
            .replace('<', "&lt;")
            .replace('_', r"\_")
            .replace('|', r"\|")
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|it: char| it.is_alphanumeric() || it == '_') {
        out += &escaped(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .find(|it: char| !it.is_alphanumeric() && it != '_')
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let is_name =
            word.starts_with("rg_") || word.starts_with("RG_") || word.starts_with("REGATTA_");
        // A prefix such as RG_ERR_ also counts as a name.
        out += &if is_name {
            format!("`{word}`")
        } else {
            escaped(word)
        };
        rest = &rest[end..];
    }
    out + &escaped(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_and_each_error_is_on_a_page_once() {
        let all: Vec<Item> = sections()
            .into_iter()
            .flat_map(|(_, text)| items(text))
            .collect();
        let mut shown: Vec<String> = all.iter().flat_map(Item::functions).collect();
        let mut declared: Vec<String> = crate::functions().into_iter().map(|it| it.name).collect();
        shown.sort();
        declared.sort();
        assert_eq!(shown, declared);
        let codes = HEADER.matches("#define RG_ERR_").count();
        assert_eq!(errors().matches("\n| `RG_ERR_").count(), codes);
        assert!(page().contains("### `rg_ssend`"), "{}", page());
    }

    #[test]
    fn comments_are_paragraphs_in_which_names_are_code() {
        let text = "\n/* Sets *found,\n * see rg_send. */\nint rg_a(int *found);\nint rg_b(void); /* as rg_a() */\n\ntypedef struct {\n    int a;\n\n    int b;\n} rg_c;\n";
        let items = items(text);
        assert_eq!(items.len(), 2);
        assert_eq!(prose(&items[0].comment), r"Sets \*found, see `rg_send`.");
        assert_eq!(items[0].title(), "`rg_a`, `rg_b`");
        assert_eq!(items[1].title(), "`rg_c`");
    }
}
