//! The section of plots: a figure each, with a choice of panels, and the data they are drawn from.

use super::appearance::Look;
use super::panels::{self, Figure};
use super::text::{html, script};
use super::{chart, page};
use crate::reference::Point;
use crate::results::Results;

/// More choices than this stand in a list.
const BUTTONS: usize = 5;

/// The plots' parts of the page.
pub struct Plots {
    /// The section.
    pub html: String,
    /// Script elements with the plots' data, found by the page's script.
    pub data: String,
}

/// All plots of `results`.
pub fn section(results: &Results, looks: &[Look], reference: &[Point]) -> Plots {
    let (mut figures, mut data) = (String::new(), String::new());
    for (number, figure) in panels::figures(results).iter().enumerate() {
        figures += &html_of(figure, number);
        for (choice, panel) in figure.panels.iter().enumerate() {
            let json = script(&chart::json(figure, panel, looks, reference));
            data += &format!(
                "<script type=\"application/json\" id=\"data-{number}-{choice}\">{json}</script>\n"
            );
        }
    }
    if figures.is_empty() {
        return Plots {
            html: String::new(),
            data,
        };
    }
    let body = format!(
        "<p>Tap a name to hide or show it, tap twice to see it alone. Drag over a plot to enlarge a part, double-click to see all again. Point at a mark for its median, \
         interval, 99\u{a0}% quantile, samples and path. Error bars are 95\u{a0}% confidence intervals of the median. Hollow grey \
         marks are what the papers of the 1990s measured for the operation of the same name, on machines of their time. \
         An amber ring, or a ! over a bar, marks a point whose flags put it in doubt.</p>\n\
         <label class=\"switch\"><input type=\"checkbox\" id=\"then\" checked> Then and now: show the papers' points</label>\n\
         <noscript><p>The plots need JavaScript. Every number is in the table below.</p></noscript>\n\
         <div class=\"plots\">\n{figures}</div>\n"
    );
    Plots {
        html: page::section("plots", "Plots", &body),
        data,
    }
}

fn html_of(figure: &Figure, number: usize) -> String {
    let panels: String = (0..figure.panels.len())
        .map(|choice| {
            let hidden = if choice == 0 { "" } else { " hidden" };
            format!("<div class=\"panel\" data-from=\"data-{number}-{choice}\"{hidden}></div>\n")
        })
        .collect();
    format!(
        "<figure class=\"plot\">\n<figcaption><h3>{}</h3>{}</figcaption>\n{panels}</figure>\n",
        html(&figure.title()),
        choices(figure, number)
    )
}

/// The choice of a panel: buttons for a few, a list for many.
fn choices(figure: &Figure, number: usize) -> String {
    let names: Vec<String> = figure
        .panels
        .iter()
        .map(|panel| html(&figure.choice(panel)))
        .collect();
    match names.as_slice() {
        // A size of 0 says nothing about an operation that moves no data.
        [_] if figure.panels[0].fixed == 0 => String::new(),
        [only] => format!("<div class=\"choices\">{only}</div>"),
        few if few.len() <= BUTTONS => {
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
