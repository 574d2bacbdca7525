//! The section of plots: the elements of each figure, with a choice of panels. The page's script draws them.

use super::page;
use super::panels::Figure;
use super::text::html;

/// Maximum number of choices shown as buttons. More are shown as a list.
const MAX_BUTTONS: usize = 5;

/// Returns the section of these plots, which is empty if there are none.
pub fn section(figures: &[Figure<'_>]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let all = figures.iter().enumerate();
    let all: String = all
        .map(|(number, figure)| html_of(figure, number))
        .collect();
    let body = format!(
        "<p>Point at a mark, or move through a plot with the arrow keys, for its median, interval, 99\u{a0}% quantile, samples and path. Tap a name \
         to hide or show it, tap twice to see it alone. Error bars are 95\u{a0}% confidence intervals of the median. Figures of papers of the 1990s for the operation of the same name, on machines of their time, are below on an axis of their own. \
         An amber ring, or a ! over a bar, marks a point whose flags put it in doubt.</p>\n\
         <label class=\"switch\"><input type=\"checkbox\" id=\"then\" checked> Then and now: show the papers' points</label>\n\
         <noscript><p>The plots need JavaScript. Every number is in results.csv beside this file.</p></noscript>\n\
         <div class=\"plots\">\n{all}</div>\n"
    );
    page::section("plots", "Plots", &body)
}
fn html_of(figure: &Figure, number: usize) -> String {
    let panels: String = (0..figure.panels.len())
        .map(|choice| {
            let hidden = if choice == 0 { "" } else { " hidden" };
            format!("<div class=\"panel\" data-from=\"{number}-{choice}\"{hidden}></div>\n")
        })
        .collect();
    format!(
        "<figure class=\"plot\">\n<figcaption><h3>{}</h3>{}</figcaption>\n{panels}</figure>\n",
        html(&figure.title()),
        choices(figure, number)
    )
}

/// Returns the choice of a panel: buttons for a few, a list for many.
fn choices(figure: &Figure, number: usize) -> String {
    let names: Vec<String> = figure
        .panels
        .iter()
        .map(|panel| html(&figure.choice(panel)))
        .collect();
    match names.as_slice() {
        // A size of 0 is no information, since the operation moves no data.
        [_] if figure.panels[0].fixed == 0 => String::new(),
        [only] => format!("<div class=\"choices\">{only}</div>"),
        few if few.len() <= MAX_BUTTONS => {
            let button = |(choice, name): (usize, &String)| {
                let checked = if choice == 0 { " checked" } else { "" };
                let input = format!(
                    "<input type=\"radio\" name=\"plot-{number}\" value=\"{choice}\"{checked}>"
                );
                format!("<label class=\"button\">{input}{name}</label>")
            };
            format!(
                "<div class=\"choices\">{}</div>",
                few.iter().enumerate().map(button).collect::<String>()
            )
        }
        many => {
            let option = |(choice, name): (usize, &String)| {
                format!("<option value=\"{choice}\">{name}</option>")
            };
            let options: String = many.iter().enumerate().map(option).collect();
            format!("<div class=\"choices\"><select aria-label=\"Choose\">{options}</select></div>")
        }
    }
}
