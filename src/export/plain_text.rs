//! Plain-text accounting: one transaction for the postings of a Record in a ledger, in the syntax
//! of beancount, hledger and ledger.
//!
//! Those programs check the file when they read it. Every amount is written, with two decimals.
//! beancount asserts all balances on the day after each month and after the last day; `~ 0 BRL`
//! makes that exact, since beancount tolerates a centavo by default. hledger and ledger assert the
//! running balance with every posting, and all balances at the end, so that a removed posting is
//! noticed. The balances of a ledger sum to zero: balances brought forward are a transaction like
//! any other.

use chrono::{Months, NaiveDate};
use ledger::entry::Side;
use ledger::source::Source;

use super::books::{AccountBooks, LedgerBooks, LedgerMovement, cleaned, first_of_month};
use super::request::Format;

/// Writes the head of a ledger's books, and the balances brought forward to a day.
pub(super) fn begin(format: Format, books: &mut LedgerBooks, day: NaiveDate, text: &mut Vec<u8>) {
    let name = &books.name;
    match format {
        Format::Beancount => push(
            text,
            &format!(
                ";; The books of {name}. Days are days in America/Sao_Paulo.\noption \"title\" \"{name}\"\noption \
                 \"operating_currency\" \"BRL\"\n\n{day} commodity BRL\n"
            ),
        ),
        _ => push(
            text,
            &format!(
                "; The books of {name}. Days are days in America/Sao_Paulo.\ncommodity BRL\n    format 1000.00 BRL\n"
            ),
        ),
    }
    let forward: Vec<_> =
        books.accounts.iter().filter(|(_, account)| account.balance != 0).map(|(key, _)| *key).collect();
    if forward.is_empty() {
        return;
    }
    for account in &forward {
        declare(format, books.accounts.get_mut(account).expect("it is one of them"), day, text);
    }
    push(text, &head(format, day, None, "brought forward"));
    for account in forward {
        let AccountBooks { name, balance, .. } = &books.accounts[&account];
        push(text, &posting(format, name, *balance, *balance));
    }
}

/// Writes the transaction of a movement.
pub(super) fn transaction(format: Format, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, text: &mut Vec<u8>) {
    let mut sources: Vec<&Source> = Vec::new();
    for line in &movement.lines {
        if !sources.contains(&line.source) {
            sources.push(line.source);
        }
        let account = books.accounts.get_mut(&line.posting.account).expect("it was looked at");
        declare(format, account, movement.day, text);
    }
    let mut metadata = vec![("sequence", movement.at.sequence.0.to_string()), ("owner", movement.owner.to_owned())];
    if movement.at.partition.0 > 0 {
        metadata.push(("partition", movement.at.partition.0.to_string()));
    }
    metadata.extend(sources.iter().flat_map(|source| source.objects.clone()));
    metadata.extend(movement.record.operator.clone().map(|operator| ("operator", operator)));
    if format == Format::Ledger {
        for (name, _) in &metadata {
            if !books.tags.contains(name) {
                books.tags.push(*name);
                push(text, &format!("\ntag {name}\n"));
            }
        }
    }
    let events: Vec<_> = sources.iter().map(|source| source.event).collect();
    push(text, &head(format, movement.day, Some(movement.at.sequence.0), &events.join(" ")));
    for (name, value) in metadata {
        match (format, name) {
            (Format::Beancount, "sequence" | "partition") => push(text, &format!("  {name}: {value}\n")),
            (Format::Beancount, _) => push(text, &format!("  {name}: \"{}\"\n", cleaned(&value))),
            _ => push(text, &format!("    ; {name}: {}\n", cleaned(&value))),
        }
    }
    for line in &movement.lines {
        let account = books.accounts.get_mut(&line.posting.account).expect("it was looked at");
        account.post(&line.posting);
        let amount = i128::from(line.posting.amount.0);
        let signed = if line.posting.side == Side::Debit { amount } else { -amount };
        push(text, &posting(format, &account.name, signed, account.balance));
    }
}

/// Asserts every balance at the end of the current month or of `last`, whichever comes first.
pub(super) fn close(format: Format, books: &LedgerBooks, last: NaiveDate, text: &mut Vec<u8>) {
    let next_month = books.month.and_then(|month| first_of_month(month).checked_add_months(Months::new(1)));
    let next = [last.succ_opt(), next_month].into_iter().flatten().min().unwrap_or(last);
    let accounts: Vec<_> = books.accounts.values().filter(|account| account.is_declared).collect();
    if accounts.is_empty() {
        return;
    }
    if format == Format::Beancount {
        push(text, "\n");
        for AccountBooks { name, balance, .. } in accounts {
            push(text, &format!("{next} balance {name}  {} ~ 0 BRL\n", decimal(*balance)));
        }
        return;
    }
    push(text, &head(format, next.pred_opt().unwrap_or(next), None, "balances"));
    for AccountBooks { name, balance, .. } in accounts {
        push(text, &posting(format, name, 0, *balance));
    }
}

/// Declares an account before its first use.
fn declare(format: Format, account: &mut AccountBooks, day: NaiveDate, text: &mut Vec<u8>) {
    if std::mem::replace(&mut account.is_declared, true) {
        return;
    }
    match format {
        Format::Beancount => push(text, &format!("\n{day} open {} BRL\n", account.name)),
        _ => push(text, &format!("\naccount {}\n", account.name)),
    }
}

/// The first line of a transaction.
fn head(format: Format, day: NaiveDate, sequence: Option<u64>, narration: &str) -> String {
    let code = sequence.map(|sequence| format!("({sequence}) ")).unwrap_or_default();
    match format {
        Format::Beancount => format!("\n{day} * \"{narration}\"\n"),
        _ => format!("\n{day} * {code}{narration}\n"),
    }
}

/// A posting, with the running balance where the format can assert it.
fn posting(format: Format, account: &str, amount: i128, balance: i128) -> String {
    match format {
        Format::Beancount => format!("  {account}  {} BRL\n", decimal(amount)),
        _ => format!("    {account}  {} BRL = {} BRL\n", decimal(amount), decimal(balance)),
    }
}

/// Centavos as reais with two decimals: `-1234.50`.
fn decimal(centavos: i128) -> String {
    let (sign, size) = (if centavos < 0 { "-" } else { "" }, centavos.unsigned_abs());
    format!("{sign}{}.{:02}", size / 100, size % 100)
}

fn push(text: &mut Vec<u8>, more: &str) {
    text.extend_from_slice(more.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_two_decimals_always() {
        for (centavos, expected) in [(0, "0.00"), (5, "0.05"), (-5, "-0.05"), (100, "1.00"), (-123_450, "-1234.50")] {
            assert_eq!(decimal(centavos), expected);
        }
    }
}
