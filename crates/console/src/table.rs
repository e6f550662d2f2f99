//! Tables of a page as CSV, and for narrow screens. Both are read out of the markup that the page
//! shows: the file has the same rows, amounts and times, in the same language, without the forms.

use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::html;
use wire::csv_cell::{write_cell, write_text};

use web::language::Language;

/// The parameter that asks for a table of a page as CSV: its place on the page, from 1.
pub(crate) const CSV: &str = "csv";

const END: &str = "</table>";

/// In the links to all rows of a list as a file.
pub(crate) const WHOLE_LIST: &str = "class=\"pager files\"";

/// The markup with a link to its CSV file below each table, unless the page has its whole list as
/// a file. `here` is the address of the page.
pub(crate) fn with_links(html: &str, here: &str) -> String {
    // The whole list is a file of the page: that of the part that it shows would have the same
    // name.
    if html.contains(WHOLE_LIST) {
        return html.to_owned();
    }
    let joint = if here.contains('?') { "&amp;" } else { "?" };
    let here = here.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let mut linked = String::with_capacity(html.len() + 128);
    for (place, part) in html.split(END).enumerate() {
        if place > 0 {
            linked.push_str(END);
            linked.push_str(&format!("<p class=\"csv\"><a href=\"{here}{joint}{CSV}={place}\" download>CSV</a></p>"));
        }
        linked.push_str(part);
    }
    linked
}

/// The table with the name of its column in each cell below its heads, but for the first ones: on a
/// narrow screen a row is these cells below each other. Lists have a form of their own there, and
/// cells that have a name are as they should be.
pub(crate) fn with_names(table: &str) -> String {
    let is_plain = !table.starts_with("<table class=\"list\"") && !table.contains(NAME);
    let Some((head, body)) = table.split_once("</thead>").filter(|_| is_plain) else { return table.to_owned() };
    let heads: Vec<_> =
        rows(head).pop().into_iter().flatten().map(|head| html! { (head.text) }.into_string()).collect();
    let mut named = format!("{head}</thead>");
    let mut column = 0;
    for (place, part) in body.split("<t").enumerate() {
        if place > 0 {
            named.push_str("<t");
        }
        let rest = match part.as_bytes() {
            [b'r', b' ' | b'>', ..] => {
                column = 0;
                part
            }
            [b'd' | b'h', b' ' | b'>', ..] => {
                let (letter, rest) = part.split_at(1);
                named.push_str(letter);
                if let Some(head) = heads.get(column).filter(|head| column > 0 && !head.is_empty()) {
                    named.push_str(&format!("{NAME}\"{head}\""));
                }
                column += 1;
                rest
            }
            _ => part,
        };
        named.push_str(rest);
    }
    named
}

/// The attribute of a cell that has the name of its column.
const NAME: &str = " data-label=";

/// The file of the table at a place of a page, from 1; `None` if the page has no such table.
pub(crate) fn file(html: &str, place: usize, language: Language) -> Option<Response> {
    let table = html.split("<table").nth(place).filter(|_| place > 0)?.split(END).next()?;
    let rows = rows(table);
    // Brazilian spreadsheets read `;` between cells, since the comma is in the amounts.
    let (separator, mut text) = match language {
        Language::Portuguese => (';', "\u{feff}".as_bytes().to_vec()),
        Language::English => (',', Vec::new()),
    };
    for row in rows {
        for (place, cell) in row.iter().enumerate() {
            if place > 0 {
                text.push(separator as u8);
            }
            let write = if cell.is_amount { write_cell } else { write_text };
            write(&cell.text, separator, &mut text);
        }
        text.extend_from_slice(b"\r\n");
    }
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8; header=present"),
        (CONTENT_DISPOSITION, "attachment; filename=\"centavo.csv\""),
    ];
    Some((headers, text).into_response())
}

/// A cell of a table.
struct Cell {
    text: String,
    /// Whether it is an amount or a count; digits of any other cell are an id.
    is_amount: bool,
}

/// The cells of a table, row by row.
fn rows(table: &str) -> Vec<Vec<Cell>> {
    let rows = table.split("<tr").skip(1).map(|row| row.split("</tr>").next().unwrap_or_default());
    rows.map(|row| cells(row).collect()).collect()
}

fn cells(row: &str) -> impl Iterator<Item = Cell> + '_ {
    let mut rest = row;
    std::iter::from_fn(move || {
        let begin = [rest.find("<td"), rest.find("<th")].into_iter().flatten().min()?;
        let inside = rest[begin..].find('>').map(|end| begin + end + 1)?;
        let end = ["</td>", "</th>"].iter().filter_map(|end| rest[inside..].find(end)).min()?;
        let is_amount = rest[begin..inside].contains("class=\"amount");
        let cell = Cell { text: text_of(&rest[inside..inside + end]), is_amount };
        rest = &rest[inside + end + "</td>".len()..];
        Some(cell)
    })
}

/// The text of a markup without its forms: tags are gone, and what was escaped is itself again.
fn text_of(markup: &str) -> String {
    let mut html_left = String::new();
    for (place, part) in markup.split("<form").enumerate() {
        html_left.push_str(if place == 0 { part } else { part.split_once("</form>").map_or("", |(_, behind)| behind) });
    }
    let mut text = String::with_capacity(html_left.len());
    let mut is_tag = false;
    for letter in html_left.replace("<br>", " ").chars() {
        match letter {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_out_of_its_markup() {
        let hostile = "\"><b>&amp; =cmd()</td>";
        let page = html! {
            table { tr { th { "x" } } }
            table.wide {
                caption { "left out" }
                thead { tr { th scope="col" { "Nome" } th.amount { "Valor" } th { "Ação" } } }
                tbody {
                    tr {
                        td { a href="/x?a=1&b=2" { bdi { (hostile) } } br; code { "id" } }
                        td.amount { "1.234,56" }
                        td { form method="post" { button { "Revogar" } } "fim" }
                    }
                    tr { td {} td { "−1" } td { "=1+1" } }
                }
            }
        };
        let rows = rows(page.into_string().split("<table").nth(2).unwrap());
        let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
        let expected: [&[&str]; 3] =
            [&["Nome", "Valor", "Ação"], &[&format!("{hostile} id"), "1.234,56", "fim"], &["", "−1", "=1+1"]];
        assert_eq!(rows, expected);
    }

    /// A spreadsheet would cut the zeros of an NSU, and the last digits of a long number.
    #[tokio::test]
    async fn digits_that_are_no_amount_stay_text() {
        let page = html! {
            table {
                tr { th { "NSU" } th.amount { "Valor" } th { "Nome" } }
                tr { td { code { "000123" } } td.amount { "1.234,56" } td { "=1+1" } }
                tr { td { a href="/x" { "12345678901234567890" } } td.amount.wide { "3" } td { "1e5" } }
                tr { td { "2-17" } td.amount { "" } td { "1 de 2" } }
            }
        };
        let file = file(&page.into_string(), 1, Language::English).unwrap();
        let text = axum::body::to_bytes(file.into_body(), 1_000).await.unwrap();
        let expected = "NSU,Valor,Nome\r\n'000123,\"1.234,56\",'=1+1\r\n\
            '12345678901234567890,3,'1e5\r\n2-17,,1 de 2\r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn each_cell_below_the_heads_has_the_name_of_its_column() {
        let table = |class: &str| {
            html! {
                table class=(class) {
                    thead { tr { th scope="col" { "Nome" } th.amount { a href="/x" { "Valor \">" } } } }
                    tbody { tr { td { "x" } td.amount { time { "1" } } } tr { th { "y" } td { "2" } td { "3" } } }
                    tfoot { tr { th { "Soma" } td {} } }
                }
            }
        };
        let named = with_names(&table("plain").into_string());
        let name = " data-label=\"Valor &quot;&gt;\"";
        assert_eq!(named.matches(name).count(), 3, "{named}");
        for cell in [
            format!("<td>x</td><td{name} class=\"amount\"><time>1</time></td>"),
            format!("<th>y</th><td{name}>2</td><td>3</td>"),
            format!("<th>Soma</th><td{name}></td>"),
        ] {
            assert!(named.contains(&cell), "{cell}: {named}");
        }
        assert_eq!(with_names(&named), named);
        assert_eq!(with_names(&table("list").into_string()), table("list").into_string());
    }

    #[test]
    fn each_table_has_a_link_to_its_file() {
        let page = html! { div { table {} } p {} table {} }.into_string();
        let linked = with_links(&page, "/console/queue?kind=refund&x=1");
        assert_eq!(linked.matches("/console/queue?kind=refund&amp;x=1&amp;csv=").count(), 2, "{linked}");
        assert!(linked.contains("csv=1") && linked.contains("csv=2") && !linked.contains("csv=3"));
        assert!(with_links(&page, "/console").contains("\"/console?csv=1\""));
        assert!(with_links(&page, "/console/\"><b>").contains("\"/console/&quot;>&lt;b>?csv=1\""), "no way out");
        assert!(file(&page, 2, Language::English).is_some());
        assert!(file(&page, 3, Language::English).is_none());
    }
}
