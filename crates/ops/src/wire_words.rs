//! Words of the audit trail and of the settings of merchants, in both languages: what pages and
//! files for people show. A name of the interface that has no word is [`OTHER`], by which tests
//! fail.

use serde_json::Value;
use wire::reais::grouped;

use crate::ItemKind;
use crate::audit::shown;
use fields::*;
use web::language::{Language, Word, word};

/// The word for a name that has none: what a test fails by.
pub const OTHER: Word = word("outro", "other");

/// Names of the interface, and the word of each.
pub struct Words(pub &'static [(&'static str, Word)]);

impl Words {
    /// The word of a name.
    pub fn of(&self, name: &str) -> Word {
        self.0.iter().find(|(own, _)| *own == name).map_or(OTHER, |(_, word)| *word)
    }

    /// All names.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(name, _)| *name).collect()
    }
}

/// The name of a kind of things, in Portuguese and in English.
pub fn heading(kind: ItemKind) -> Word {
    match kind {
        ItemKind::Charges => word("Cobranças", "Charges"),
        ItemKind::Merchants => word("Lojistas", "Merchants"),
        ItemKind::Recipients => word("Recebedores", "Recipients"),
        ItemKind::Refunds => word("Reembolsos", "Refunds"),
        ItemKind::Disputes => word("Contestações", "Disputes"),
        ItemKind::Withdrawals => word("Saques", "Withdrawals"),
        ItemKind::Cashouts => word("Cashouts", "Cashouts"),
        ItemKind::Subscriptions => word("Assinaturas", "Subscriptions"),
        ItemKind::Cards => word("Cartões guardados", "Stored cards"),
        ItemKind::Anticipations => word("Antecipações", "Anticipations"),
        ItemKind::Plans => word("Planos", "Plans"),
        ItemKind::ApiKeys => word("Chaves de API", "API keys"),
        ItemKind::Entries => word("Lançamentos", "Entries"),
        ItemKind::WebhookEvents => word("Eventos", "Events"),
        ItemKind::Records => word("Registros", "Records"),
        ItemKind::Ledgers => word("Razões", "Ledgers"),
    }
}

/// The status of a thing in Portuguese and in English. Each kind has names of its own for where it
/// stands.
pub fn status_word(kind: ItemKind, status: &str) -> Word {
    use ItemKind::{Charges, Disputes, Merchants, Recipients, Refunds, Withdrawals};
    match (kind, status) {
        (Merchants, "suspended") => word("Conta suspensa", "Suspended"),
        (Merchants, "payouts_held") => word("Saídas de dinheiro retidas", "Payouts held"),
        (Merchants, "closing") => word("Em encerramento", "Closing"),
        (Merchants, "closed") => word("Encerrada", "Closed"),
        (Charges, "CONCLUIDA") => word("paga", "paid"),
        (Charges, "RECUSADA") => word("recusada", "refused"),
        (Recipients, "draft") => word("rascunho", "draft"),
        (Recipients, "pending") => word("em análise", "under review"),
        (Recipients | Withdrawals, "rejected") => word("recusado", "rejected"),
        (Withdrawals, "approved") => word("aprovado", "approved"),
        (Refunds, "approved") => word("aprovada", "approved"),
        (Refunds, "rejected") => word("recusada", "rejected"),
        (Refunds, "failed") => word("não realizada", "failed"),
        (Disputes, "open") => word("aberta", "open"),
        (Disputes, "accepted") => word("aceita", "accepted"),
        (Disputes, "released") => word("liberada", "released"),
        (Disputes, "reversed") => word("revertida", "reversed"),
        (_, "pending") => word("pendente", "pending"),
        (_, "active") => word("ativo", "active"),
        (_, "past_due") => word("em atraso", "past due"),
        (_, "paused") => word("pausada", "paused"),
        (_, "completed") => word("completa", "completed"),
        (_, "cancelled") => word("cancelada", "cancelled"),
        (_, "failed") => word("falhou", "failed"),
        (_, "revoked") => word("revogada", "revoked"),
        (_, "in_processing") => word("em processamento", "in processing"),
        (_, "processed") => word("processado", "processed"),
        _ => word("—", "—"),
    }
}

/// A way to pay, by its name in the interface, in Portuguese and in English.
pub const METHOD_NAMES: Words = Words(&[
    ("pix", word("PIX", "PIX")),
    ("credit_card", word("cartão de crédito", "credit card")),
    ("debit_card", word("cartão de débito", "debit card")),
]);

/// The review of a changed bank account, by its name in the interface.
pub const ACCOUNT_REVIEWS: Words = Words(&[
    ("pending", word("em análise", "under review")),
    ("approved", word("aprovada", "approved")),
    ("rejected", word("recusada", "rejected")),
]);

/// A name of the interface in a file: as it is for programs, and in Portuguese for people.
pub fn in_file(for_people: bool, name: &str, word: Word) -> &str {
    if for_people { word.text(Language::Portuguese) } else { name }
}

/// A kind of difference between a file and the books, by its name in the interface.
pub const FINDINGS: Words = Words(&[
    ("differs", word("Diverge", "Differs")),
    ("only_ours", word("Só nos livros", "Only in the books")),
    ("only_theirs", word("Só no arquivo", "Only in the file")),
    ("twice", word("Repetida no arquivo", "Repeated in the file")),
    ("in_suspense", word("Em valores a identificar", "In suspense")),
    ("matched", word("Conferem", "Matched")),
    ("undecided", word("Indefinidas", "Undecided")),
]);

/// Status of what explains a difference, by its name in the interface.
pub const EXPLANATION_STATUSES: Words = Words(&[
    ("explained", word("explicada", "explained")),
    ("waiting", word("espera outro operador", "waits for another operator")),
    ("rejected", word("lançamento recusado", "entry rejected")),
    ("replaced", word("substituída", "replaced")),
]);

/// What a line of a file is about, by its name in the interface.
pub const COMPARED_OBJECTS: Words = Words(&[
    ("installment", word("parcela", "installment")),
    ("refund", word("reembolso", "refund")),
    ("dispute", word("contestação", "dispute")),
    ("pix", word("PIX", "PIX")),
    ("return", word("devolução PIX", "PIX return")),
    ("cashout", word("cashout", "cashout")),
    ("cashout_return", word("cashout devolvido", "returned cashout")),
    ("batch", word("lote", "batch")),
    ("withdrawal", word("saque", "withdrawal")),
    ("withdrawal_return", word("saque devolvido", "returned withdrawal")),
    ("entry", word("lançamento", "entry")),
    ("statement_line", word("linha do extrato", "line of the statement")),
]);

/// Flags of items of the queue.
pub const FLAGS: Words = Words(&[
    ("expires_soon", word("vence em até 7 dias", "expires within 7 days")),
    ("expired", word("o prazo passou", "its time has passed")),
    ("disputed", word("há contestação aberta", "a dispute is open")),
    ("exceeds_charge", word("passa do que restava da cobrança", "passes what was left of the charge")),
    ("rejected_before", word("já foi recusado antes", "was rejected before")),
    ("rejected_elsewhere", word("outro cadastro do documento foi recusado", "its document was rejected elsewhere")),
    ("shared_document", word("documento de outro cadastro", "document of another registration")),
    ("shared_account", word("conta de outros cadastros", "account of other registrations")),
    ("shared_phone", word("telefone de outros cadastros", "phone of other registrations")),
    ("shared_address", word("endereço de outros cadastros", "address of other registrations")),
    ("foreign_account", word("conta de outro titular", "account of another holder")),
    ("returned_before", word("saques que voltaram antes", "withdrawals that came back before")),
    ("first_to_account", word("primeiro saque para esta conta", "first withdrawal to this account")),
    ("account_replaced", word("outra conta foi cadastrada depois", "another account was registered since")),
    ("frozen", word("recebedor congelado", "frozen recipient")),
]);

/// Actions of the audit trail.
pub const ACTIONS: Words = Words(&[
    ("create", word("criar", "create")),
    ("change", word("alterar", "change")),
    ("revoke", word("revogar", "revoke")),
    ("rotate_secret", word("trocar o segredo de", "rotate the secret of")),
    ("approve", word("aprovar", "approve")),
    ("reject", word("recusar", "reject")),
    ("open", word("abrir", "open")),
    ("accept", word("aceitar", "accept")),
    ("release", word("liberar", "release")),
    ("advance", word("adiantar", "advance")),
    ("request", word("pedir", "ask for")),
    ("settle", word("dizer o desfecho de", "settle")),
    ("close", word("fechar", "close")),
    ("read", word("ler", "read")),
    ("pay", word("pagar", "pay")),
    ("freeze", word("congelar", "freeze")),
    ("unfreeze", word("descongelar", "unfreeze")),
    ("cancel", word("cancelar", "cancel")),
    ("delete", word("excluir", "delete")),
    ("erase", word("eliminar", "erase")),
]);

/// Kinds of things to which something was done.
pub const KINDS: Words = Words(&[
    ("merchant", word("lojista", "merchant")),
    ("api_key", word("chave de API", "API key")),
    ("recipient", word("recebedor", "recipient")),
    ("bank_account", word("conta bancária", "bank account")),
    ("withdrawal", word("saque", "withdrawal")),
    ("refund", word("reembolso", "refund")),
    ("dispute", word("contestação", "dispute")),
    ("clock", word("relógio", "clock")),
    ("entry", word("lançamento de operador", "entry of an operator")),
    ("period", word("mês", "month")),
    ("chart_of_accounts", word("plano de contas", "chart of accounts")),
    ("tax_ids", word("CPF e CNPJ de lojistas", "tax ids of merchants")),
    ("charge", word("cobrança", "charge")),
    ("rail_item", word("uma ordem", "an order")),
    ("batch", word("arquivo do adquirente", "file of the acquirer")),
    ("note", word("nota", "note")),
    ("person", word("dados de uma pessoa", "data of a person")),
    ("card", word("cartão guardado", "stored card")),
    ("personal_data", word("dados pessoais até o mês", "personal data through the month")),
]);

/// The label of a field, as the pages that change it name it.
pub const LABELS: Words = Words(&[
    ("name", word("Nome", "Name")),
    ("city", word("Cidade", "City")),
    ("storefront", word("Vitrine", "Storefront")),
    ("accepted_amount", word("Valor aceito", "Amount accepted")),
    ("split_enabled", SPLITS),
    ("cashout_enabled", CASHOUTS),
    ("suspended", SUSPENDED),
    ("payouts_held", PAYOUTS_HELD),
    ("closing", CLOSING),
    ("closed", CLOSED),
    ("fees.mdr_1x", MDR_1X),
    ("fees.mdr_2_6x", MDR_2_6X),
    ("fees.mdr_7_12x", MDR_7_12X),
    ("fees.margin", FEE_MARGIN),
    ("fees.pix", word("Taxa do PIX", "Fee of PIX")),
    ("fees.antifraud_cents", FEE_ANTIFRAUD),
    ("fees.cashout_cents", word("Taxa do cashout", "Fee of a cashout")),
    ("fees.anticipation.d2", ANTICIPATION_D2),
    ("fees.anticipation.d7", ANTICIPATION_D7),
    ("fees.anticipation.d15", ANTICIPATION_D15),
    ("options.split_guard", SPLIT_GUARD),
    ("options.mdr_base", MDR_BASE),
    ("options.refund_commission", word("Devolver a comissão com reembolsos", "Return the commission with refunds")),
    ("options.card_settlement_days", SETTLEMENT_DAYS),
    ("options.own_keys", OWN_KEYS),
    ("rate_limits.card", LIMIT_CARD),
    ("rate_limits.other", LIMIT_OTHER),
    ("webhook_url", WEBHOOK_ADDRESS),
    ("scopes", SCOPES),
    ("events", EVENTS_SENT),
    ("bank_account", DESTINATION),
    ("status", STATUS),
    ("frozen", word("Congelado", "Frozen")),
    ("bank_account_review", word("Análise da conta bancária", "Review of the bank account")),
    ("outcome", word("Desfecho", "Outcome")),
    ("reference", word("Referência", "Reference")),
]);

/// A value of a field, as people read it.
pub fn value(language: Language, field: &str, value: &Value) -> String {
    let said = |word: Word| word.text(language).to_owned();
    match (field, value) {
        (_, Value::Bool(is_so)) => said(if *is_so { YES } else { NO }),
        ("rate_limits.card" | "rate_limits.other", Value::Null) => said(LIMIT_OF_SERVER),
        ("options.split_guard", Value::String(name)) => {
            said(if name == "net" { SPLIT_GUARD_NET } else { SPLIT_GUARD_NONE })
        }
        ("options.mdr_base", Value::String(name)) => said(if name == "total" { MDR_TOTAL } else { MDR_SELLER }),
        ("status", Value::String(name)) => said(status_word(ItemKind::Recipients, name)),
        ("bank_account_review", Value::String(name)) => said(ACCOUNT_REVIEWS.of(name)),
        ("outcome", Value::String(name)) => said(match name.as_str() {
            "happened" => word("aconteceu", "it happened"),
            _ => word("não aconteceu", "it did not happen"),
        }),
        (field, Value::String(rate)) if field.starts_with("fees.") => percent(language, rate),
        (field, Value::Number(cents)) if field.ends_with("_cents") || field == "accepted_amount" => {
            money(language, cents.as_i64().unwrap_or_default().into())
        }
        (_, value) => shown(value),
    }
}

/// A rate with the decimal sign of a language, such as `2,99 %`.
pub fn percent(language: Language, rate: &str) -> String {
    format!("{} %", decimal(language, rate))
}

/// Words of fields and their values, which forms have too.
#[allow(missing_docs, reason = "the texts say what each is")]
pub mod fields {
    use super::{Word, word};

    pub const STATUS: Word = word("Situação", "Status");
    pub const YES: Word = word("sim", "yes");
    pub const NO: Word = word("não", "no");
    pub const MDR_1X: Word = word("Taxa à vista (MDR)", "MDR 1×");
    pub const MDR_2_6X: Word = word("Taxa de 2 a 6× (MDR)", "MDR 2–6×");
    pub const MDR_7_12X: Word = word("Taxa de 7 a 12× (MDR)", "MDR 7–12×");
    pub const ANTICIPATION_D2: Word = word("Antecipação em 2 dias", "Anticipation, D+2");
    pub const ANTICIPATION_D7: Word = word("Antecipação em 7 dias", "Anticipation, D+7");
    pub const ANTICIPATION_D15: Word = word("Antecipação em 15 dias", "Anticipation, D+15");
    pub const FEE_ANTIFRAUD: Word = word("Antifraude", "Antifraud");
    pub const FEE_MARGIN: Word = word("Margem", "Margin");
    pub const SUSPENDED: Word = word("Conta suspensa", "Suspended");
    pub const PAYOUTS_HELD: Word = word("Saídas de dinheiro retidas", "Payouts held");
    pub const DESTINATION: Word = word("Conta bancária", "Bank account");
    pub const SPLIT_GUARD: Word =
        word("Repasses que deixam o vendedor abaixo de zero", "Splits that leave the seller below zero");
    pub const SPLIT_GUARD_NONE: Word = word("aceitos", "accepted");
    pub const SPLIT_GUARD_NET: Word = word("recusados", "refused");
    pub const MDR_BASE: Word = word("MDR sobre", "MDR of");
    pub const MDR_TOTAL: Word = word("o total", "the total");
    pub const MDR_SELLER: Word = word("a parte bruta do vendedor", "the seller's gross part");
    pub const SPLITS: Word = word("Repasses", "Splits");
    pub const CASHOUTS: Word = word("Cashouts", "Cashouts");
    pub const WEBHOOK_ADDRESS: Word = word("Endereço dos webhooks", "Webhook address");
    pub const CLOSING: Word = word("Em encerramento", "Closing");
    pub const CLOSED: Word = word("Encerrada", "Closed");
    pub const SETTLEMENT_DAYS: Word = word("Dias até o dinheiro do cartão", "Days until card money");
    pub const EVENTS_SENT: Word = word("Eventos enviados", "Events sent");
    pub const OWN_KEYS: Word = word("gerir as próprias chaves de API", "manage its own API keys");
    pub const SCOPES: Word = word("Permissões", "Scopes");
    pub const LIMIT_CARD: Word = word("Cobranças de cartão por minuto", "Card charges a minute");
    pub const LIMIT_OTHER: Word = word("Outras requisições por minuto", "Other requests a minute");
    pub const LIMIT_OF_SERVER: Word = word("o do servidor", "that of the server");
}

/// An amount of centavos: `R$ 1.234,56`, or `R$1,234.56` in English.
pub fn money(language: Language, centavos: i128) -> String {
    let sign = if centavos < 0 { "−" } else { "" };
    let unit = if language == Language::Portuguese { "R$ " } else { "R$" };
    format!("{sign}{unit}{}", figures(language, centavos.unsigned_abs()))
}

/// An amount of centavos without sign and currency.
pub fn figures(language: Language, centavos: u128) -> String {
    let (thousands, decimal) = if language == Language::Portuguese { ('.', ',') } else { (',', '.') };
    format!("{}{decimal}{:02}", grouped(&(centavos / 100).to_string(), thousands), centavos % 100)
}

/// A decimal number of the interface, such as `2.99`, as people of a language write it.
pub fn decimal(language: Language, number: &str) -> String {
    if language == Language::Portuguese { number.replace('.', ",") } else { number.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audited_changes::settings_fields;
    use ledger::fees::Settings;

    #[test]
    fn every_setting_has_its_word() {
        let fields = settings_fields(&Settings::default());
        assert!(fields.len() > 18, "{fields:?}");
        for field in fields.keys() {
            assert_ne!(LABELS.of(field), OTHER, "{field}");
        }
    }
}
