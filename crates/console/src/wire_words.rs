//! Names of the interface in words: statuses, payment methods, webhook events, causes, roles, and
//! what the audit trail says. No page shows a name of the interface as it stands in JSON.
//!
//! A name is translated from its type, so that the compiler finds what has no word. Names that are
//! only texts are held against the description of the interface by a test.

use ledger::personal::AccountKind;
use ledger::{CardRefusal, ChargeOutcome, PaymentMethod, WebhookEventKind};
use strum::VariantArray;

use crate::words::{self, Word, word};
pub(crate) use ops::wire_words::*;
use web::Role;
use web::views::statement::RecipientSplitView;

/// What two registrations share.
pub(crate) const SHARED: Words = Words(&[
    ("document", words::DOCUMENT),
    ("bank_account", words::DESTINATION),
    ("phone", word("Telefone", "Telephone")),
    ("address", words::ADDRESS_OF),
]);

/// Where a charge stands, in both languages.
pub(crate) fn charge_status(outcome: &ChargeOutcome) -> Word {
    match outcome {
        ChargeOutcome::Pending | ChargeOutcome::Unanswered => words::STATUS_PENDING,
        ChargeOutcome::Paid { .. } => words::STATUS_PAID,
        ChargeOutcome::Refused(_) => words::STATUS_REFUSED,
        ChargeOutcome::Cancelled => words::STATUS_CANCELLED,
    }
}

/// Why a card was refused.
pub(crate) fn refusal(refusal: CardRefusal) -> Word {
    match refusal {
        CardRefusal::NotAuthorized => word("O emissor do cartão recusou.", "The card's issuer refused."),
        CardRefusal::InsufficientFunds => {
            word("O cartão não tem limite ou saldo.", "The card has no limit or balance for it.")
        }
        CardRefusal::Failed => {
            word("O adquirente nunca recebeu a cobrança.", "The acquirer never received the charge.")
        }
        CardRefusal::Coded { is_final: true, .. } => word(
            "O emissor recusou de vez: este cartão não deve ser tentado de novo.",
            "The issuer refused for good: this card must not be tried again.",
        ),
        CardRefusal::Coded { is_final: false, .. } => {
            word("O adquirente recusou, com um código dele.", "The acquirer refused, with a code of its own.")
        }
    }
}

/// A payment method.
pub(crate) fn method(method: PaymentMethod) -> Word {
    METHOD_NAMES.of(method.name())
}

/// The scheme of a card, by its name in the interface.
pub(crate) fn brand(name: &str) -> Word {
    match name {
        "visa" => word("Visa", "Visa"),
        "mastercard" => word("Mastercard", "Mastercard"),
        "amex" => word("Amex", "Amex"),
        "elo" => word("Elo", "Elo"),
        "hipercard" => word("Hipercard", "Hipercard"),
        "diners" => word("Diners", "Diners"),
        "discover" => word("Discover", "Discover"),
        "jcb" => word("JCB", "JCB"),
        _ => word("outra bandeira", "another scheme"),
    }
}

/// The status of a split in a statement. A PIX split is no money before its charge is paid.
pub(crate) fn split_status(split: &RecipientSplitView) -> Word {
    match split.status {
        "pending" if split.payment.balance_available_at.is_none() => words::SPLIT_UNPAID,
        "available" if split.withdrawal_id.is_some() => words::SPLIT_WITHDRAWN,
        "pending" => words::SPLIT_PENDING,
        "available" => words::SPLIT_AVAILABLE,
        "paid" => word("paga ao recebedor", "paid to the recipient"),
        _ => OTHER,
    }
}

/// Who rejected a withdrawal or failed a cashout, by the name in the interface.
pub(crate) const REJECTED_BY: Words = Words(&[
    ("operator", word("operador", "operator")),
    ("bank", word("o banco, que não pagou", "the bank, which did not pay it")),
    ("returned", word("o banco, que devolveu", "the bank, which returned it")),
    ("merchant", words::MERCHANT),
]);

/// The status of an item of the queue, by its name in the interface.
pub(crate) const WAITING_STATUSES: Words = Words(&[
    ("draft", word("rascunho", "draft")),
    ("pending", word("pendente", "pending")),
    ("open", word("aberta", "open")),
    ("in_processing", word("em processamento", "being carried out")),
    ("waiting_second", word("espera outro operador", "waits for another operator")),
]);

/// What a notification of a case waits for, by its name in the interface.
pub(crate) const NEEDS: Words = Words(&[
    ("acceptance", word("uma contestação aceita deste valor", "an accepted dispute of this amount")),
    ("reversal", word("a reversão de uma contestação anterior", "the reversal of an earlier dispute")),
    ("decision", word("operadores: reverter de novo ou descartar", "operators: reverse again or drop")),
]);

/// What was ordered from a rail, by its name in the interface.
pub(crate) fn ordered(name: &str) -> Word {
    match name {
        "card" => word("cobrança por cartão", "card charge"),
        "pix" => word("cobrança PIX", "PIX charge"),
        "withdrawal" => word("saque", "withdrawal"),
        _ => OPEN_KINDS.of(name),
    }
}

/// The status of a month, by its name in the interface.
pub(crate) const PERIOD_STATUSES: Words = Words(&[
    ("open", word("aberto", "open")),
    ("pending", word("fechamento pedido", "closing asked for")),
    ("closed", word("fechado", "closed")),
]);

/// What was open at the end of a month, by its name in the interface.
pub(crate) const OPEN_AT_END: Words = Words(&[
    ("suspense", word("Dinheiro que ninguém explicou", "Money that nobody has explained")),
    ("negative_bank", word("Conta bancária abaixo de zero", "Bank account below zero")),
    ("in_flight", word("Dinheiro retido para ordens sem fim", "Money held for orders without an end")),
    ("unanswered", word("Sem resposta do adquirente", "Without an answer of the acquirer")),
    ("waiting", word("Decisões pendentes", "Decisions that wait")),
    ("unreconciled", word("Diferenças da conciliação", "Differences that reconciliations found")),
    ("uncompared", word("Sem arquivo que confira", "Not compared with any file")),
]);

/// A kind of file that is reconciled, by its name in the interface.
pub(crate) fn file_kind(name: &str) -> Word {
    match name {
        "acquirer" => word("Arquivo do adquirente", "File of the acquirer"),
        "pix" => word("Lista da instituição PIX", "List of the PIX institution"),
        "bank" => word("Extrato do banco", "Statement of the bank"),
        _ => OTHER,
    }
}

/// A format of exports, by its name in the interface.
pub(crate) const EXPORT_FORMATS: Words = Words(&[
    ("xlsx", word("Planilha (XLSX)", "Spreadsheet (XLSX)")),
    ("csv-ptbr", word("CSV com vírgula decimal", "CSV with decimal commas")),
    ("csv", word("CSV em centavos", "CSV in centavos")),
    ("jsonl", word("JSON, um por linha", "JSON, one a line")),
    ("parquet", word("Parquet, para análise de dados", "Parquet, for data analysis")),
    ("beancount", word("Beancount", "Beancount")),
    ("hledger", word("hledger", "hledger")),
    ("ledger", word("Ledger", "Ledger")),
    ("journal-entries", word("Lançamentos no plano da empresa", "Entries in the company's chart")),
]);

/// A kind of bank account.
pub(crate) fn account_kind(kind: AccountKind) -> Word {
    match kind {
        AccountKind::ContaCorrente => word("conta-corrente", "checking account"),
        AccountKind::ContaPoupanca => word("conta-poupança", "savings account"),
        AccountKind::ContaPagamento => word("conta de pagamento", "payment account"),
    }
}

/// Where an export stands, by its name in the interface.
pub(crate) const EXPORT_STATUSES: Words = Words(&[
    ("queued", word("na fila", "queued")),
    ("running", word("em preparo", "being made")),
    ("done", word("pronto", "ready")),
    ("failed", word("não foi possível", "failed")),
]);

/// Kind of something that is open of a merchant.
pub(crate) const OPEN_KINDS: Words = Words(&[
    ("charge", word("cobrança", "charge")),
    ("subscription", word("assinatura", "subscription")),
    ("cashout", word("cashout", "cashout")),
    ("refund", word("reembolso", "refund")),
    ("dispute", word("contestação", "dispute")),
    ("repayment", word("devolução a quem pagou", "repayment to a payer")),
    ("entry", word("lançamento", "entry")),
    ("balance", word("saldo", "balance")),
]);

/// The role of an operator.
pub(crate) fn role(role: Role) -> Word {
    match role {
        Role::Read => word("leitura", "read"),
        Role::Decide => word("decisão", "decide"),
        Role::Admin => word("admin", "admin"),
    }
}

/// Who sends commands that still fit, by the label of the metric.
pub(crate) const SENDERS: Words = Words(&[
    ("door", word("da API", "from the API")),
    ("inside", word("do próprio serviço", "from the service itself")),
]);

/// A kind of webhook event, by its name in the interface.
pub(crate) fn event_named(name: &str) -> Word {
    WebhookEventKind::VARIANTS.iter().find(|kind| kind.name() == name).map_or(OTHER, |kind| event(*kind))
}

/// A kind of webhook event.
pub(crate) fn event(kind: WebhookEventKind) -> Word {
    use WebhookEventKind::*;
    match kind {
        ChargePaid => word("cobrança paga", "charge paid"),
        ChargeRefused => word("cobrança recusada", "charge refused"),
        ChargeCancelled => word("cobrança cancelada", "charge cancelled"),
        ChargeRefunded => word("cobrança reembolsada", "charge refunded"),
        RecipientApproved => word("recebedor aprovado", "recipient approved"),
        RecipientRejected => word("recebedor recusado", "recipient rejected"),
        BankAccountChanged => word("conta bancária alterada", "bank account changed"),
        BankAccountApproved => word("conta bancária aprovada", "bank account approved"),
        BankAccountRejected => word("conta bancária recusada", "bank account rejected"),
        WithdrawalApproved => word("saque aprovado", "withdrawal approved"),
        WithdrawalRejected => word("saque recusado", "withdrawal rejected"),
        RefundApproved => word("reembolso aprovado", "refund approved"),
        RefundRejected => word("reembolso recusado", "refund rejected"),
        RefundFailed => word("reembolso não realizado", "refund failed"),
        CashoutProcessed => word("cashout processado", "cashout carried out"),
        CashoutFailed => word("cashout voltou", "cashout came back"),
        CashoutReturned => word("cashout devolvido", "cashout returned"),
        SplitAvailable => word("repasse disponível", "split available"),
        DebtOpened => word("dívida de recebedor aberta", "debt of a recipient opened"),
        DebtPaid => word("dívida de recebedor paga", "debt of a recipient paid"),
        AnticipationCompleted => word("antecipação feita", "anticipation done"),
        DisputeOpened => word("contestação aberta", "dispute opened"),
        DisputeAccepted => word("contestação aceita", "dispute accepted"),
        DisputeReleased => word("contestação liberada", "dispute released"),
        DisputeReversed => word("contestação revertida", "dispute reversed"),
        AdjustmentCreated => word("crédito da casa", "credit of the house"),
        SubscriptionCreated => word("assinatura criada", "subscription created"),
        SubscriptionChargeCreated => word("cobrança de assinatura criada", "charge of a subscription created"),
        SubscriptionRenewed => word("assinatura renovada", "subscription renewed"),
        SubscriptionChargeFailed => word("cobrança de assinatura falhou", "charge of a subscription failed"),
        SubscriptionPastDue => word("assinatura em atraso", "subscription past due"),
        SubscriptionCompleted => word("assinatura concluída", "subscription completed"),
        SubscriptionPaused => word("assinatura pausada", "subscription paused"),
        SubscriptionResumed => word("assinatura retomada", "subscription resumed"),
        SubscriptionCancelled => word("assinatura cancelada", "subscription cancelled"),
    }
}

/// Why a delivery failed, by its name in the interface.
pub(crate) const CAUSES: Words = Words(&[
    ("status", word("resposta de erro", "an error as the answer")),
    ("redirect", word("redirecionamento, que não é seguido", "a redirect, which is not followed")),
    ("dns", word("nome sem endereço", "name without an address")),
    ("not_public", word("endereço que não pode ser chamado", "address that may not be called")),
    ("refused", word("ninguém escuta no endereço", "nobody listens at the address")),
    ("unreachable", word("a rede não chega ao endereço", "the network does not reach the address")),
    ("tls", word("sem TLS válido", "no valid TLS")),
    ("timeout", word("sem resposta a tempo", "no answer in time")),
    ("closed", word("conexão fechada antes da resposta", "connection closed before the answer")),
    ("too_large", word("resposta grande demais", "answer too large")),
    ("not_http", word("a resposta não é HTTP", "the answer is not HTTP")),
    ("internal", word("este serviço não pôde enviar", "this service could not send")),
]);

/// What an API key may do, by the name of the scope.
pub(crate) const SCOPES: Words = Words(&[
    ("charges", word("cobranças", "charges")),
    ("payouts", word("saídas", "payouts")),
    ("recipients", word("recebedores", "recipients")),
    ("read", word("leitura", "read")),
]);

#[cfg(test)]
mod tests {
    use super::*;
    use web::language::Language;

    #[test]
    fn every_event_has_its_word_in_both_languages() {
        let mut seen = std::collections::BTreeSet::new();
        for kind in WebhookEventKind::VARIANTS {
            let word = event_named(kind.name());
            for language in [Language::Portuguese, Language::English] {
                let text = word.text(language);
                assert!(!text.contains(['.', '_']) && seen.insert((language.tag(), text)), "{}: {text}", kind.name());
            }
        }
        assert_eq!(event_named("charge.unknown"), OTHER);
    }
}
