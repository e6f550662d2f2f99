//! Output of the demonstration, line by line.

use std::net::SocketAddr;
use std::path::Path;

use ledger::{Account, Balance, GroupNumber, LedgerId};
use serde_json::Value;
use wire::reais::reais;

use super::{short_name, text};
use crate::commands::terminal::{aligned, count};

/// A shell command that charges a card.
pub(super) fn curl(address: SocketAddr, api_key: &str, body: &Value) -> String {
    format!(
        "curl -s http://{address}/api/card \\\n  -H 'Authorization: Bearer {api_key}' \\\n  \
         -H 'Content-Type: application/json' \\\n  -d '{body}'"
    )
}

/// The commands that forward an account's webhooks and make an event happen, for the listeners of
/// merchants and operators.
pub(super) fn next_commands(
    program: &str,
    [public, operations]: [SocketAddr; 2],
    api_key: &str,
    ops_token_file: Option<&Path>,
) -> [String; 2] {
    let account = format!("--key {api_key} --url http://{public}");
    let token = ops_token_file
        .map_or_else(|| "--ops-token …".to_owned(), |path| format!("--ops-token-file '{}'", path.display()));
    [
        format!("{program} listen {account} --forward-to http://127.0.0.1:8090/"),
        format!("{program} trigger refund.approved {account} --ops-url http://{operations} {token}"),
    ]
}

/// A merchant's balance on one line.
pub(super) fn balance(balance: &Value) -> String {
    let amount = |field: &str| format!("R$ {} {field}", reais(cents(&balance[field])));
    ["available", "pending", "deficit"].map(amount).join(", ")
}

/// The accounts of one group, ledger by ledger, and the sums over all ledgers of the store.
pub(super) fn trial_balance(group: GroupNumber, rows: &[(LedgerId, Account, Balance)]) -> Vec<String> {
    let amounts = |balance: &Balance| [balance.debits, balance.credits, balance.net()].map(reais);
    let mut table = vec![["Ledger", "Account", "Debits", "Credits", "Balance"].map(str::to_owned)];
    let mut last = None;
    for (ledger, account, balance) in rows.iter().filter(|(ledger, ..)| ledger.group() == Some(group)) {
        let name = if last == Some(*ledger) { String::new() } else { short_name(*ledger) };
        let [debits, credits, net] = amounts(balance);
        table.push([name, account.name(group, short_name), debits, credits, net]);
        last = Some(*ledger);
    }
    let others = rows.iter().filter(|(ledger, ..)| ledger.group() != Some(group));
    let others: Vec<&Balance> = others.map(|(.., balance)| balance).collect();
    if !others.is_empty() {
        let [debits, credits, net] = amounts(&sum(others.iter().copied()));
        table.push(["others".to_owned(), "accounts of other merchants".to_owned(), debits, credits, net]);
    }
    let total = sum(rows.iter().map(|(.., balance)| balance));
    let verdict = if total.net() == 0 { "debits equal credits" } else { "DEBITS AND CREDITS DIFFER" };
    let [debits, credits, net] = amounts(&total);
    table.push(["all".to_owned(), verdict.to_owned(), debits, credits, net]);
    aligned(&table, 2)
}

/// The newest splits of a recipient.
pub(super) fn statement(name: &str, statement: &Value) -> Vec<String> {
    let balance = &statement["balance"];
    let total = statement["total"].as_u64().unwrap_or_default();
    let head = format!(
        "{name}: {} splits, R$ {} available, R$ {} pending; the newest:",
        count(total),
        reais(cents(&balance["available"])),
        reais(cents(&balance["pending"])),
    );
    let mut table =
        vec![["Created (UTC)", "Payer", "By", "Status", "Available (UTC)", "Charge", "Split"].map(str::to_owned)];
    for item in statement["items"].as_array().into_iter().flatten() {
        let payment = &item["payment"];
        table.push([
            minute(text(item, "created_at")),
            text(payment, "nome").to_owned(),
            text(payment, "payment_method").to_owned(),
            text(item, "status").to_owned(),
            minute(text(payment, "balance_available_at")),
            reais(cents(&payment["gross_amount"])),
            reais(cents(&item["amount_cents"])),
        ]);
    }
    let mut lines = vec![head, String::new()];
    lines.extend(aligned(&table, 5).iter().map(|line| format!("  {line}")));
    lines
}

fn sum<'a>(balances: impl Iterator<Item = &'a Balance>) -> Balance {
    balances.fold(Balance::default(), |sum, balance| Balance {
        debits: sum.debits + balance.debits,
        credits: sum.credits + balance.credits,
    })
}

fn cents(value: &Value) -> i128 {
    i128::from(value.as_i64().unwrap_or_default())
}

/// A timestamp through its minute: `2026-07-01 12:00`.
fn minute(timestamp: &str) -> String {
    timestamp.get(..16).unwrap_or_default().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use ledger::id::RecipientNumber;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trial_balance_is_a_table_of_one_group_and_a_sum_over_all() {
        let group = GroupNumber(1);
        let balance = |debits, credits| Balance { debits, credits };
        let rows = [
            (LedgerId::Merchant(group), Account::Pending, balance(123_456, 0)),
            (LedgerId::Merchant(group), Account::SalesCard, balance(0, 123_456)),
            (LedgerId::Platform(group), Account::RecipientPending(RecipientNumber(2)), balance(0, 5)),
            (LedgerId::Merchant(GroupNumber(2)), Account::Pending, balance(5, 0)),
        ];
        assert_eq!(
            trial_balance(group, &rows),
            [
                "Ledger  Account                                  Debits   Credits    Balance",
                "M-Loja  Assets:Platform:Pending                1.234,56      0,00   1.234,56",
                "        Income:Sales:Card                          0,00  1.234,56  -1.234,56",
                "P-Loja  Liabilities:Recipients:R-Dois:Pending      0,00      0,05      -0,05",
                "others  accounts of other merchants                0,05      0,00       0,05",
                "all     debits equal credits                   1.234,61  1.234,61       0,00",
            ]
        );
    }

    #[test]
    fn a_statement_is_a_head_and_a_table() {
        let payment = json!({ "nome": "Pagador 1", "payment_method": "pix", "gross_amount": 8_000,
            "balance_available_at": null });
        let item = json!({ "created_at": "2026-07-01T12:00:31.250Z", "status": "pending", "amount_cents": 1_600,
            "payment": payment });
        let body = json!({ "items": [item], "total": 1_234, "balance": { "available": 1, "pending": 250_000 } });
        assert_eq!(
            statement("Recebedor Um", &body),
            [
                "Recebedor Um: 1,234 splits, R$ 0,01 available, R$ 2.500,00 pending; the newest:",
                "",
                "  Created (UTC)     Payer      By   Status   Available (UTC)  Charge  Split",
                "  2026-07-01 12:00  Pagador 1  pix  pending                    80,00  16,00",
            ]
        );
    }

    #[test]
    fn a_pasted_command_holds_no_quote_within_quotes() {
        let body = ops::invented_parties::card(3, 10_000, &["a".to_owned()], 2_030);
        let line = curl("127.0.0.1:1".parse().unwrap(), "test_1", &body);
        assert_eq!(line.matches('\'').count(), 6, "{line}");
    }
}
