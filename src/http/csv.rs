//! Cells of CSV files: RFC 4180, and safe in spreadsheets.

/// Appends a cell, in quotes where RFC 4180 wants them. A cell that a spreadsheet would take for a
/// formula gets an apostrophe.
pub fn write_cell(cell: &str, separator: char, text: &mut Vec<u8>) {
    let guard = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if cell.bytes().any(|byte| matches!(byte, b'"' | b'\r' | b'\n') || char::from(byte) == separator) {
        text.extend_from_slice(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).as_bytes());
    } else {
        text.extend_from_slice(guard.as_bytes());
        text.extend_from_slice(cell.as_bytes());
    }
}
