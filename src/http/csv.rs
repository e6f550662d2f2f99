//! Cells of CSV files: RFC 4180, and safe in spreadsheets.

/// Appends a cell, in quotes where RFC 4180 wants them. A cell that a spreadsheet would take for a
/// formula gets an apostrophe.
pub fn write_cell(cell: &str, separator: char, text: &mut Vec<u8>) {
    let is_formula = matches!(cell.as_bytes().first(), Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r'));
    let guard = if is_formula { "'" } else { "" };
    // Without an early end, so that it is done for many bytes at once.
    let wants_quotes = |byte: u8| (byte == b'"') | (byte == b'\r') | (byte == b'\n') | (char::from(byte) == separator);
    if cell.bytes().fold(false, |wants, byte| wants | wants_quotes(byte)) {
        text.extend_from_slice(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).as_bytes());
    } else {
        text.extend_from_slice(guard.as_bytes());
        text.extend_from_slice(cell.as_bytes());
    }
}
