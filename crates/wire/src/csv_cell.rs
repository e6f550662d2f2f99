//! Cells of CSV files: RFC 4180, and safe in spreadsheets.

/// Appends a cell, in quotes where RFC 4180 wants them. A cell that a spreadsheet would take for a
/// formula gets an apostrophe.
pub fn write_cell(cell: &str, separator: char, text: &mut Vec<u8>) {
    write_guarded(cell, is_formula(cell), separator, text);
}

/// Appends a text that is no number, such as an id. One that a spreadsheet or a program would take
/// for a number, and so cut its leading zeros or its last digits, gets an apostrophe too.
pub fn write_text(cell: &str, separator: char, text: &mut Vec<u8>) {
    write_guarded(cell, is_formula(cell) || is_number(cell), separator, text);
}

fn is_formula(cell: &str) -> bool {
    matches!(cell.as_bytes().first(), Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r'))
}

/// Whether it is digits, maybe with a decimal mark or an exponent (`1e5`).
fn is_number(cell: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'e' | b'E' | b'+' | b'-');
    cell.bytes().next().is_some_and(|first| first.is_ascii_digit() || matches!(first, b'.' | b','))
        && cell.bytes().all(is_of_number)
        && (cell.replace(',', ".").parse::<f64>().is_ok() || cell.bytes().all(|byte| byte != b'-'))
}

fn write_guarded(cell: &str, is_guarded: bool, separator: char, text: &mut Vec<u8>) {
    let guard = if is_guarded { "'" } else { "" };
    // Without an early end, so that it is done for many bytes at once.
    let wants_quotes = |byte: u8| (byte == b'"') | (byte == b'\r') | (byte == b'\n') | (char::from(byte) == separator);
    if cell.bytes().fold(false, |wants, byte| wants | wants_quotes(byte)) {
        text.extend_from_slice(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).as_bytes());
    } else {
        text.extend_from_slice(guard.as_bytes());
        text.extend_from_slice(cell.as_bytes());
    }
}
