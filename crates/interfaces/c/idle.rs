//! Makes the linker script that places the functions of idle tasks next to each other.

/// Returns the linker script for a list of functions as in `idle.txt`. The script keeps their order.
pub fn script(list: &str) -> String {
    let functions = list
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let sections: String = functions
        .map(|line| format!("    *({})\n", patterns(line).join(" ")))
        .collect();
    // The first two are what the C library and the compiler add to each shared library. The loader runs them.
    format!(
        "SECTIONS\n{{\n  .text.idle :\n  {{\n    *crtbeginS.o(.text)\n    *libc_nonshared.a:*(.text)\n{sections}  }}\n}}\nINSERT BEFORE .text;\n"
    )
}

/// Returns patterns for the sections of a line of the list. Each function has its own section, whose name ends with that of the
/// function: `.text.NAME`, `.text.unlikely.NAME`, `.text.startup.NAME`.
///
/// Compilers encode a name of Rust in one of two ways: `_ZN`, which leaves type arguments out, and `_R`, which has them.
fn patterns(line: &str) -> Vec<String> {
    if let Some(dropped) = line.strip_prefix("drop ") {
        let (_, inside) = dropped.split_once("::").unwrap_or(("", dropped));
        let (dotted, path) = (dropped.replace("::", ".."), encoded(inside, false));
        return vec![
            format!(".text.*_ZN4core3ptr*drop_in_place$LT$*{dotted}$GT$*"),
            format!(".text.*_R*4core3ptr*9drop_glue*{path}E*"),
            format!(".text.*_R*4core3ptr*13drop_in_place*{path}E*"),
        ];
    }
    let Some((module, function)) = line.rsplit_once("::") else {
        return vec![format!(".text.{line}"), format!(".text.*.{line}")];
    };
    let old = [encoded(module, false), encoded(function, false)];
    let new = [encoded(module, true), encoded(function, true)];
    let methods = format!("*_$LT${}..*", module.replace("::", ".."));
    let closure = "28_$u7b$$u7b$closure*";
    vec![
        format!(".text.*_ZN{}*{}17h*", old[0], old[1]),
        format!(".text.*_ZN{}*{}{closure}", old[0], old[1]),
        format!(".text.*_ZN{methods}{}17h*", old[1]),
        format!(".text.*_ZN{methods}{}{closure}", old[1]),
        format!(".text.*_R*_{}*{}*", new[0], new[1]),
    ]
}

/// Returns a path as compilers encode it: each name after its length. `_R` separates the length from a name that starts with
/// an underscore.
fn encoded(path: &str, separates: bool) -> String {
    let encode = |name: &str| {
        let separator = if separates && name.starts_with('_') {
            "_"
        } else {
            ""
        };
        format!("{}{separator}{name}", name.len())
    };
    path.split("::").map(encode).collect()
}
