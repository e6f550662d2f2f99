//! Reports as PDF: A4 pages with the page of all pages, the cut and the hash in the footer.
//!
//! The file has no date and no id of its own, so the same report has the same bytes. Its fonts are
//! those that every reader has (Helvetica); texts are searchable.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::pdf_layout::{TextPlace, broken, places, width, win_ansi, wrapped};
use super::words::{cut, shown, subject, totals};
use crate::reports::table::{Cell, Closing, Heading, Kind, Renderer};

/// The most rows of a file: all of them are in memory.
const ROWS_MAX: usize = 50_000;
/// Short and long side of an A4 page, points.
const A4: (f32, f32) = (595.0, 842.0);
/// Columns of a page that stands upright, at most.
const UPRIGHT_COLUMNS_MAX: usize = 7;
const MARGIN: f32 = 34.0;
const SIZE: f32 = 7.0;
const TITLE_SIZE: f32 = 13.0;
const FOOT_SIZE: f32 = 6.0;
/// From one line to the next, points.
const LEADING: f32 = 8.5;
/// From one line of the footer to the next, points.
const FOOT_LEADING: f32 = 7.0;
/// Width of the place that a footer leaves to the number of the page, points.
const NUMBER_WIDTH: f32 = 80.0;
/// Between two rows, points.
const ROW_GAP: f32 = 2.5;

/// A report that is being gathered.
pub(super) struct PdfTable<'a> {
    title: &'static str,
    subject: String,
    kinds: Vec<Kind>,
    head: Vec<String>,
    lines: Vec<Vec<String>>,
    out: &'a mut dyn Write,
}

impl<'a> PdfTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> Self {
        Self {
            title: heading.request.report.title(),
            subject: subject(heading),
            kinds: heading.columns.iter().map(|column| column.kind).collect(),
            head: heading.columns.iter().map(|column| column.label.to_owned()).collect(),
            lines: Vec::new(),
            out,
        }
    }

    /// Width and height of a page.
    fn page(&self) -> (f32, f32) {
        if self.kinds.len() > UPRIGHT_COLUMNS_MAX { (A4.1, A4.0) } else { A4 }
    }

    /// The content of each page, without its footer, which has so many lines.
    fn pages(&self, foot_lines: usize) -> Vec<Content> {
        let (page_width, page_height) = self.page();
        let line = page_width - 2.0 * MARGIN;
        let mut all = vec![self.head.clone()];
        all.extend(self.lines.iter().cloned());
        let places = places(&self.kinds, &all, line, SIZE);
        let top = page_height - MARGIN;
        let bottom = MARGIN + LEADING + FOOT_LEADING * (foot_lines - 1) as f32;
        let mut pages = Vec::new();
        let mut page = PdfPage::begin(top);
        page.text(MARGIN, TITLE_SIZE, BOLD, self.title);
        page.y -= LEADING * 1.6;
        page.text(MARGIN, SIZE, PLAIN, &self.subject);
        page.y -= LEADING * 1.6;
        self.row(&mut page, &places, &self.head, BOLD);
        let last = self.lines.len().saturating_sub(1);
        for (place, cells) in self.lines.iter().enumerate() {
            if page.y - height(&places, cells) < bottom {
                pages.push(std::mem::replace(&mut page, PdfPage::begin(top)).content);
                self.row(&mut page, &places, &self.head, BOLD);
            }
            let is_total = place == last && cells.first().is_some_and(|first| first == "Total");
            self.row(&mut page, &places, cells, if is_total { BOLD } else { PLAIN });
        }
        pages.push(page.content);
        pages
    }

    fn row(&self, page: &mut PdfPage, places: &[TextPlace], cells: &[String], font: Name<'_>) {
        for ((cell, place), kind) in cells.iter().zip(places).zip(&self.kinds) {
            let top = page.y;
            for text in broken(cell, place.width, SIZE) {
                let indent = match kind {
                    Kind::Text | Kind::Day => 0.0,
                    Kind::Centavos | Kind::Count | Kind::Rate => (place.width - width(&text, SIZE)).max(0.0),
                };
                page.text(MARGIN + place.left + indent, SIZE, font, &text);
                page.y -= LEADING;
            }
            page.y = top;
        }
        page.y -= height(places, cells);
    }
}

/// Height of a row, points.
fn height(places: &[TextPlace], cells: &[String]) -> f32 {
    let lines = cells.iter().zip(places).map(|(cell, place)| broken(cell, place.width, SIZE).len()).max();
    lines.unwrap_or(1) as f32 * LEADING + ROW_GAP
}

const PLAIN: Name<'static> = Name(b"F1");
const BOLD: Name<'static> = Name(b"F2");

/// A page that is being filled from its top.
struct PdfPage {
    content: Content,
    y: f32,
}

impl PdfPage {
    fn begin(top: f32) -> Self {
        Self { content: Content::new(), y: top }
    }

    fn text(&mut self, x: f32, size: f32, font: Name<'_>, text: &str) {
        put(&mut self.content, (x, self.y), size, font, text);
    }
}

fn put(content: &mut Content, (x, y): (f32, f32), size: f32, font: Name<'_>, text: &str) {
    content.begin_text();
    content.set_font(font, size);
    content.next_line(x, y);
    content.show(Str(&win_ansi(text)));
    content.end_text();
}

impl Renderer for PdfTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        if self.lines.len() == ROWS_MAX {
            let message = format!("a PDF holds at most {ROWS_MAX} rows: choose fewer days, or csv or xlsx");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.lines.push(cells.iter().map(shown).collect());
        Ok(())
    }

    fn finish(mut self: Box<Self>, closing: &Closing) -> io::Result<()> {
        let counts: Vec<_> = self.kinds.iter().map(|kind| *kind == Kind::Count).collect();
        if closing.totals.iter().any(Option::is_some) {
            self.lines.push(totals(&counts, closing));
        }
        let (page_width, page_height) = self.page();
        let foot = wrapped(&cut(closing), page_width - 2.0 * MARGIN - NUMBER_WIDTH, FOOT_SIZE);
        let pages = self.pages(foot.len());
        let count = pages.len();
        let (catalog, tree, plain, bold, info) = (Ref::new(1), Ref::new(2), Ref::new(3), Ref::new(4), Ref::new(5));
        let ids: Vec<_> = (0..count as i32).map(|page| (Ref::new(6 + 2 * page), Ref::new(7 + 2 * page))).collect();
        let mut pdf = Pdf::new();
        pdf.catalog(catalog).pages(tree).lang(TextStr("pt-BR"));
        pdf.document_info(info).title(TextStr(self.title)).producer(TextStr("centavo"));
        pdf.pages(tree).kids(ids.iter().map(|(page, _)| *page)).count(count as i32);
        for (id, name) in [(plain, &b"Helvetica"[..]), (bold, b"Helvetica-Bold")] {
            pdf.type1_font(id).base_font(Name(name)).encoding_predefined(Name(b"WinAnsiEncoding"));
        }
        for ((number, mut content), (page, stream)) in (1..).zip(pages).zip(ids) {
            let place = format!("página {number} de {count}");
            for (above, line) in foot.iter().rev().enumerate() {
                let y = MARGIN - LEADING + FOOT_LEADING * above as f32;
                put(&mut content, (MARGIN, y), FOOT_SIZE, PLAIN, line);
            }
            let right = page_width - MARGIN - width(&place, FOOT_SIZE);
            put(&mut content, (right, MARGIN - LEADING), FOOT_SIZE, PLAIN, &place);
            let mut dict = pdf.page(page);
            dict.parent(tree).media_box(Rect::new(0.0, 0.0, page_width, page_height)).contents(stream);
            dict.resources().fonts().pair(PLAIN, plain).pair(BOLD, bold);
            dict.finish();
            let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
            packed.write_all(content.finish().as_slice())?;
            pdf.stream(stream, &packed.finish()?).filter(Filter::FlateDecode);
        }
        self.out.write_all(&pdf.finish())
    }
}
