//! End-to-end ids of PIX transfers, as the sandbox's institutions make them.

use chrono::DateTime;
use ledger::time::Timestamp;

/// An end-to-end id in the Central Bank's form: `E`, eight digits that name the institution, the
/// minute in UTC, and eleven characters made of `random`. No institution has the eight zeros.
pub fn end_to_end_id(now: Timestamp, random: u64) -> String {
    let minute = DateTime::from_timestamp_millis(now.0).unwrap_or_default().format("%Y%m%d%H%M");
    let alphabet = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = random;
    let last = (0..11).map(|_| {
        let character = char::from(alphabet[(rest % 36) as usize]);
        rest /= 36;
        character
    });
    format!("E00000000{minute}{}", last.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_to_end_id_has_32_characters() {
        let id = end_to_end_id(Timestamp(1_782_907_200_250), u64::MAX);
        assert_eq!(id.len(), 32);
        assert!(id.starts_with("E00000000202607011200"), "{id}");
    }
}
