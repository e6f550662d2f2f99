//! Layout of a table on A4 pages: widths of Helvetica, columns, lines of a cell.

use crate::reports::table::Kind;

/// Widths of Helvetica from the space on, in thousandths of the font's size.
const ASCII_WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];
/// Width of a letter with an accent: that of a wide letter, so that nothing is cut.
const OTHER_WIDTH: u16 = 722;
/// Space between two columns, points.
const GAP: f32 = 6.0;
/// The narrowest column, points.
const COLUMN_MIN: f32 = 30.0;

/// Width of a text in points.
pub(super) fn width(text: &str, size: f32) -> f32 {
    let units: u32 = text.chars().map(|letter| u32::from(letter_width(letter))).sum();
    units as f32 * size / 1_000.0
}

fn letter_width(letter: char) -> u16 {
    let place = (letter as usize).checked_sub(32);
    place.and_then(|place| ASCII_WIDTHS.get(place)).copied().unwrap_or(OTHER_WIDTH)
}

/// A text in the encoding WinAnsi. What it does not have becomes a question mark.
pub(super) fn win_ansi(text: &str) -> Vec<u8> {
    let byte = |letter: char| match letter {
        ' '..='~' | '\u{a0}'..='\u{ff}' => letter as u32 as u8,
        '€' => 0x80,
        '…' => 0x85,
        '–' => 0x96,
        '—' => 0x97,
        _ => b'?',
    };
    text.chars().map(byte).collect()
}

/// One column on the page, points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TextPlace {
    pub(super) left: f32,
    pub(super) width: f32,
}

/// The places of columns on a line of this width. Columns of numbers and days have the width of
/// their widest cell; columns of text share the rest.
pub(super) fn places(kinds: &[Kind], lines: &[Vec<String>], line: f32, size: f32) -> Vec<TextPlace> {
    let natural = |column: usize| lines.iter().map(|cells| width(&cells[column], size)).fold(0.0, f32::max);
    let mut widths: Vec<f32> = (0..kinds.len()).map(natural).collect();
    let free = line - GAP * (kinds.len().saturating_sub(1)) as f32;
    let is_text = |column: usize| kinds[column] == Kind::Text;
    // Texts that need less than an equal share leave the rest to the others.
    let mut rest = free - (0..kinds.len()).filter(|column| !is_text(*column)).map(|column| widths[column]).sum::<f32>();
    let mut texts: Vec<usize> = (0..kinds.len()).filter(|column| is_text(*column)).collect();
    texts.sort_by(|one, other| widths[*one].total_cmp(&widths[*other]));
    for (place, column) in texts.iter().enumerate() {
        let share = rest / (texts.len() - place) as f32;
        widths[*column] = widths[*column].min(share.max(COLUMN_MIN));
        rest -= widths[*column];
    }
    let mut left = 0.0;
    let place = |width: f32| {
        let place = TextPlace { left, width };
        left += width + GAP;
        place
    };
    widths.into_iter().map(place).collect()
}

/// The lines of a cell: broken where the width ends, behind a blank or a mark where there is one.
pub(super) fn broken(text: &str, line: f32, size: f32) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while width(rest, size) > line {
        let mut fits = 0;
        let mut mark = None;
        let mut so_far = 0.0;
        for (at, letter) in rest.char_indices() {
            so_far += f32::from(letter_width(letter)) * size / 1_000.0;
            if so_far > line && fits > 0 {
                break;
            }
            fits = at + letter.len_utf8();
            if matches!(letter, ' ' | ':' | '-' | '=' | '_') {
                mark = Some(fits);
            }
        }
        let (one, behind) = rest.split_at(mark.unwrap_or(fits));
        lines.push(one.trim_end().to_owned());
        rest = behind;
        if rest.is_empty() {
            return lines;
        }
    }
    lines.push(rest.to_owned());
    lines
}

/// The lines of a text that are no longer than this: broken behind a blank or a comma.
pub(super) fn wrapped(text: &str, line: f32, size: f32) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive([' ', ',']) {
        match lines.last_mut() {
            Some(last) if last.is_empty() || width(last, size) + width(piece, size) <= line => last.push_str(piece),
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_broken_and_loses_nothing() {
        for text in
            ["", "a", "Liabilities:Merchants:M-019b8c4e-5f5d-8a3e-9c1d:Pending", "WWWWWWWWWWWWWWWWWWWWWWWW", "é"]
        {
            for line in [1.0, 30.0, 80.0, 1_000.0] {
                let lines = broken(text, line, 8.0);
                assert_eq!(lines.concat(), text, "{line}");
                assert!(lines.iter().all(|of| of.chars().count() <= 1 || width(of, 8.0) <= line), "{lines:?}");
            }
        }
        assert_eq!(broken("a:b", 7.0, 8.0), ["a:", "b"]);
    }

    #[test]
    fn a_long_cut_has_several_lines_and_loses_nothing() {
        let cut: Vec<_> = (0..64).map(|partition| format!("{partition}=1234567")).collect();
        let text = format!("Registros até a sequência {}; bloco {}", cut.join(","), "0".repeat(64));
        let lines = wrapped(&text, 447.0, 6.0);
        assert!(lines.len() > 3 && lines.iter().all(|line| width(line, 6.0) <= 447.0), "{lines:?}");
        assert_eq!(lines.concat(), text);
        assert!(lines[1..].iter().all(|line| !line.starts_with(['=', ','])), "{lines:?}");
        assert_eq!(wrapped("0=4, 2", 447.0, 6.0), ["0=4, 2"]);
    }

    #[test]
    fn digits_are_alike_wide_so_that_amounts_stand_below_each_other() {
        assert_eq!(width("0123456789", 10.0), 55.6);
        assert_eq!(win_ansi("São € → ç"), *b"S\xe3o \x80 ? \xe7");
    }

    #[test]
    fn texts_share_what_numbers_leave() {
        let lines = [vec!["x".repeat(400), "1.000,00".to_owned()]];
        let places = places(&[Kind::Text, Kind::Centavos], &lines, 300.0, 8.0);
        assert!(places[1].left + places[1].width <= 300.5, "{places:?}");
        assert_eq!(places[1].width, width("1.000,00", 8.0));
    }
}
