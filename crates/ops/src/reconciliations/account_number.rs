//! Numbers of the bank accounts at their banks, by which a statement is known.

use actors::engine::Engine;
use books::reconcile::booked_movements::BankAccount;
use books::reconcile::finding::FileError;
use books::reconcile::ofx;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::unreadable;
use web::{Code, Problem, Result, failed};

/// An account in a file of a bank.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct StatementAccountView {
    /// Its number at the bank.
    acctid: String,
    /// `bank`, or `card`, whose statements are not compared.
    #[schema(pattern = "^(bank|card)$", example = "bank")]
    kind: String,
    /// How many movements it has there.
    lines: usize,
}

impl StatementAccountView {
    pub(super) fn of(account: &ofx::Account) -> Self {
        let kind = if account.is_card { "card" } else { "bank" };
        Self { acctid: account.number.clone(), kind: kind.to_owned(), lines: account.lines }
    }
}

/// Number of a bank account at the bank, and the file that it is from. It is stored when the first
/// statement of the account was compared, under `bank-account/<account>`.
#[derive(Deserialize, Serialize)]
pub(super) struct KeptNumber {
    pub(super) acctid: String,
    pub(super) sha256: String,
}

impl KeptNumber {
    fn name(account: BankAccount) -> String {
        format!("bank-account/{}", account.name())
    }

    pub(super) fn of(engine: &Engine, account: BankAccount) -> Result<Option<Self>> {
        let stored = engine.side_value(&Self::name(account))?;
        stored.map(|bytes| serde_json::from_slice(&bytes).map_err(failed)).transpose()
    }

    /// Stores it if there is none, or in place of another number that the caller has named.
    pub(super) fn keep(&self, engine: &Engine, account: BankAccount, is_named: bool) -> Result<()> {
        let before = Self::of(engine, account)?;
        let is_same = before.as_ref().is_some_and(|before| ofx::is_same_account(&before.acctid, &self.acctid));
        if before.is_none() || is_named && !is_same {
            engine.keep(&Self::name(account), &serde_json::to_vec(self).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Forgets the number of an account when the file that it is from was a wrong one.
    pub(super) fn forget_of(engine: &Engine, account: BankAccount, sha256: &str) -> Result<()> {
        if Self::of(engine, account)?.is_some_and(|stored| stored.sha256 == sha256) {
            engine.forget(&Self::name(account))?;
        }
        Ok(())
    }
}

/// The account whose earlier statements had a number that a statement has: `acctid`, where the
/// caller has named it. Errors: a wrong line; 400 with the field `account` where there is none, or
/// more than one.
pub(super) fn recognized(engine: &Engine, file: &[u8], acctid: Option<&str>) -> Result<BankAccount> {
    let found = ofx::read(file).map_err(unreadable)?;
    let banks = found.iter().filter(|account| !account.is_card);
    let numbers: Vec<_> = match acctid {
        Some(number) => vec![number],
        None => banks.map(|account| account.number.as_str()).collect(),
    };
    if let (true, Some(card)) = (numbers.is_empty(), found.first()) {
        return Err(of_card(card));
    }
    let mut known = Vec::new();
    for account in BankAccount::ALL {
        let stored = KeptNumber::of(engine, account)?;
        let has = |stored: &KeptNumber| numbers.iter().any(|number| ofx::is_same_account(number, &stored.acctid));
        known.extend(stored.filter(has).map(|_| account));
    }
    if let [only] = known[..] {
        return Ok(only);
    }
    let message = format!("account: não se sabe de qual conta é o extrato de número {}: escolha", numbers.join(", "));
    let detail = "No account has this number yet: name the account of the statement (`account`).";
    let problem = Problem::new(Code::ValidationFailed).message(message.clone()).detail(detail);
    let problem = problem.field("account", "required", message);
    Err(with_accounts(problem, &found.iter().map(StatementAccountView::of).collect::<Vec<_>>()))
}

/// The refusal of a statement of a card.
fn of_card(account: &ofx::Account) -> Problem {
    unreadable(FileError { line: account.line, defect: "extratos de cartão não são aceitos".to_owned() })
}

/// Refuses a statement whose number is that of another account, unless the caller has named it.
pub(super) fn check_number(engine: &Engine, account: BankAccount, number: &str) -> Result<()> {
    for other in BankAccount::ALL.into_iter().filter(|other| *other != account) {
        let stored = KeptNumber::of(engine, other)?;
        if let Some(stored) = stored.filter(|stored| ofx::is_same_account(&stored.acctid, number)) {
            return Err(of_other_name(account, other, number).member("expected", stored.acctid));
        }
    }
    Ok(())
}

/// Which account of a file is meant: the account that the caller named, or the only one, or the one
/// of earlier statements.
pub(super) fn chosen(found: &[ofx::Account], acctid: Option<&str>, own: Option<&str>) -> Result<usize> {
    let wrong = |code: &'static str, message: String| {
        Problem::new(Code::ValidationFailed).message(message.clone()).field("acctid", code, message)
    };
    let banks: Vec<usize> = (0..found.len()).filter(|place| !found[*place].is_card).collect();
    let with_number = |number: &str| (0..found.len()).find(|place| ofx::is_same_account(&found[*place].number, number));
    let place = match (acctid, banks.as_slice()) {
        (Some(number), _) => {
            with_number(number).ok_or_else(|| wrong("unknown", "acctid não é uma conta do arquivo".to_owned()))?
        }
        (None, []) => 0,
        (None, [only]) => *only,
        (None, several) => own.and_then(with_number).ok_or_else(|| {
            wrong("required", format!("o arquivo tem {} contas: escolha uma com ?acctid=", several.len()))
        })?,
    };
    if found[place].is_card { Err(of_card(&found[place])) } else { Ok(place) }
}

/// The refusal of a statement of another account than those before.
pub(super) fn of_another_account(account: BankAccount, own: &str, number: &str) -> Problem {
    let name = account.name();
    let message = format!(
        "O extrato é da conta {number}, e os anteriores de {name} são da conta {own}. Se for de outra conta, \
         envie com ?account=; se {name} mudou de número, envie com ?acctid={number}"
    );
    let detail = format!(
        "Earlier statements of `{name}` were of {own}. For another account name it (`account=`); if the number of \
         `{name}` has changed, send the file with `acctid={number}`; if an earlier file was wrong, dismiss its result."
    );
    Problem::new(Code::OtherBankAccount)
        .message(message)
        .detail(detail)
        .member("acctid", number)
        .member("expected", own)
}

/// The refusal of a statement that is named as one account's and has the number of another.
fn of_other_name(account: BankAccount, other: BankAccount, number: &str) -> Problem {
    let [name, other] = [account, other].map(BankAccount::name);
    let message = format!("O extrato é da conta {number}, que é a de {other}, e foi enviado como de {name}");
    let detail = format!(
        "Earlier statements of `{other}` had the number of this one. Leave `account` out; if the number is now that \
         of `{name}`, send the file with `acctid={number}`."
    );
    Problem::new(Code::OtherBankAccount).message(message).detail(detail).member("acctid", number)
}

pub(super) fn with_accounts(problem: Problem, accounts: &[StatementAccountView]) -> Problem {
    match serde_json::to_value(accounts) {
        Ok(accounts) => problem.member("accounts", accounts),
        Err(_) => problem,
    }
}
