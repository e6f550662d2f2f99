//! Facets of every fact, by noun: what each event means for the books, the statement, webhooks, the
//! index and the audit trail.
//!
//! [`say`] and [`Event::in_words`] match all events without a `_`, so the compiler asks for an arm
//! for a new event. The file of a noun has the facets of its facts. A fact's name comes from its
//! declaration ([`Event::name`]).

mod acquirer;
mod adjustment;
mod anticipation;
mod card;
mod cashout;
mod charge;
mod dispute;
mod facets;
mod house;
mod maturity;
mod period;
mod pix;
mod rail;
mod recipient;
mod refund;
mod refund_failure;
pub(crate) mod statement_line;
mod subscription;
pub(crate) mod webhook_event;
mod withdrawal;
mod write_off;

use crate::anticipation::Anticipation;
use crate::terms::noted_month;
use crate::{Batch, Event, GroupNumber, LedgerId, RecipientNumber, SealedFor};

pub use facets::{AuditSubject, AuditedFact};
pub(crate) use facets::{Books, Effect, Facets, Lines, Outbox};
use webhook_event::WebhookEventKind;

/// Says every facet of an event to `to`, which takes those that it wants.
pub(crate) fn say(event: &Event, to: &mut impl Facets) {
    match event {
        Event::MerchantOpened { id, .. } => {
            to.personal(SealedFor::merchant);
            to.audited(|| AuditedFact::of("create", "merchant", *id));
        }
        Event::MerchantChanged { reason, .. } => {
            to.personal(SealedFor::merchant);
            let (action, kind, subject) = ("change", "merchant", AuditSubject::Merchant);
            to.audited(|| AuditedFact { action, kind, subject, notes: reason.clone() });
        }
        Event::ApiKeyCreated { id, .. } => to.audited(|| AuditedFact::of("create", "api_key", *id)),
        Event::ApiKeyRevoked { id } => to.audited(|| AuditedFact::of("revoke", "api_key", *id)),
        Event::ApiKeyChanged { id, .. } => to.audited(|| AuditedFact::of("change", "api_key", *id)),
        Event::WebhookSecretRotated { id, .. } => to.audited(|| AuditedFact::of("rotate_secret", "api_key", *id)),
        Event::ClockMoved { .. } => {
            to.audited(|| AuditedFact { action: "advance", kind: "clock", subject: AuditSubject::Clock, notes: None })
        }
        Event::PersonalDataRead { what } => {
            let (action, kind, subject) = ("read", "tax_ids", AuditSubject::Report);
            to.audited(|| AuditedFact { action, kind, subject, notes: Some(what.clone()) });
        }
        Event::ChartOfAccountsSet { .. } => {
            let (action, kind, subject) = ("change", "chart_of_accounts", AuditSubject::Chart);
            to.audited(|| AuditedFact { action, kind, subject, notes: None });
        }
        Event::RegistrationRead { number } => recipient::registration_read(to, *number),
        Event::RecipientFrozen { number, reason } => recipient::froze(to, *number, "freeze", reason),
        Event::RecipientUnfrozen { number, reason } => recipient::froze(to, *number, "unfreeze", reason),
        Event::NoteWritten { object, text } => {
            to.about(*object);
            to.audited(|| match noted_month(*object) {
                Some(month) => {
                    let notes = Some(format!("{month}: {text}"));
                    AuditedFact { action: "create", kind: "note", subject: AuditSubject::Period, notes }
                }
                None => AuditedFact::of("create", "note", *object).because(text),
            });
        }
        Event::PersonLookedUp { document } => {
            let (action, kind, subject) = ("read", "person", AuditSubject::Report);
            let digest = document.0.iter().map(|byte| format!("{byte:02x}")).collect();
            to.audited(|| AuditedFact { action, kind, subject, notes: Some(digest) });
        }
        Event::CardDeleted { id } => {
            to.about(*id);
            to.audited(|| AuditedFact::of("delete", "card", *id));
        }
        Event::ErasureRequested { through } => period::erasure(to, *through, "request"),
        Event::KeysErased { through } => period::erasure(to, *through, "erase"),
        Event::ErasureWithdrawn { through } => period::erasure(to, *through, "cancel"),
        Event::ApprovalAsked { id, is_refund, reason } => {
            to.about(*id);
            let kind = if *is_refund { "refund" } else { "withdrawal" };
            to.audited(|| AuditedFact { notes: reason.clone(), ..AuditedFact::of("request", kind, *id) });
        }
        Event::RecipientApproved { number } => recipient::approved(to, *number),
        Event::RecipientRejected { number, notes } => recipient::rejected(to, *number, notes),
        Event::BankAccountChanged { number, active } => recipient::bank_account_changed(to, *number, *active),
        Event::BankAccountApproved { number } => recipient::bank_account_approved(to, *number),
        Event::BankAccountRejected { number, notes } => recipient::bank_account_rejected(to, *number, notes),
        Event::ChargeOpened { charge, terms, expires_at, .. } => charge::opened(to, *charge, terms, *expires_at),
        Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, .. } => {
            card::captured(to, *charge, terms, *acquirer_mdr, seller, [*seller_due, *splits_due]);
        }
        Event::MetadataChanged { id, key } => charge::metadata_changed(to, *id, *key),
        Event::FiscalDocumentLinked { charge: id, key, document, .. } => {
            charge::fiscal_document_linked(to, *id, *key, *document);
        }
        Event::FiscalDocumentUnlinked { charge: id, key, .. } => charge::fiscal_document_unlinked(to, *id, *key),
        Event::ReferenceReserved { key, .. } => to.uses_up(*key),
        Event::CardRefused { charge, .. } => card::refused(to, *charge),
        Event::CardAuthorized { charge, .. } => to.about(*charge),
        Event::CaseDeferred { charge, id, .. } => [*charge].iter().chain(id).for_each(|id| to.about(*id)),
        Event::DeferredCaseEnded { id, charge } => [*id, *charge].into_iter().for_each(|id| to.about(id)),
        Event::CardUnanswered { charge } => card::unanswered(to, *charge),
        Event::CardStored { id, .. } => card::stored(to, *id),
        Event::PixPaid { charge, terms, seller, end_to_end_id, .. } => {
            pix::paid(to, *charge, terms, seller, end_to_end_id);
        }
        Event::PixCancelled { charge, recipients, .. } => pix::cancelled(to, *charge, recipients),
        Event::PixRegistered { charge, .. } => to.about(*charge),
        Event::RailTried { id, .. } => to.about(*id),
        Event::RailWordAsked { id, reason, .. } => rail::word_asked(to, *id, reason),
        Event::RailWordGiven { id, reason, .. } => rail::word_given(to, *id, reason),
        Event::PayerNotRepaid { id, charge, .. } => rail::not_repaid(to, *id, *charge),
        Event::LatePixReceived { charge, amount, end_to_end_id, id, key } => {
            key.iter().for_each(|key| to.uses_up(*key));
            pix::received_unordered(to, (id.unwrap_or(*charge), *charge), *amount, end_to_end_id);
        }
        Event::Matured { dues, .. } => maturity::matured(to, dues),
        Event::AcquirerSettled { batch, lines } => acquirer::settled(to, batch, lines),
        Event::AcquirerBatchBooked { batch, .. } => to.about(Batch::id_of(&batch.reference)),
        Event::AcquirerFileRejected { digest, notes } => acquirer::file_rejected(to, digest, notes),
        Event::AcquirerFileSent { digest, references, approval, .. } => {
            acquirer::file_sent(to, digest, references, approval.is_some());
        }
        Event::AcquirerUnexplained { batch, net, .. } => acquirer::unexplained(to, batch, *net),
        Event::HouseEntryRequested { id, terms, reason } => house::requested(to, *id, terms, reason),
        Event::HouseEntryApproved { id, terms } => house::approved(to, *id, terms),
        Event::WriteOffRequested { id, reason, .. } | Event::WithdrawalReturnRequested { id, reason, .. } => {
            house::said(to, *id, "request", reason)
        }
        Event::AdjustmentRequested { id, reference, reason, .. } => adjustment::requested(to, *id, reference, reason),
        Event::HouseEntryRejected { id, notes }
        | Event::WriteOffRejected { id, notes }
        | Event::AdjustmentRejected { id, notes }
        | Event::WithdrawalReturnRejected { id, notes } => house::said(to, *id, "reject", notes),
        Event::DeficitWrittenOff { id, amount, reference } => write_off::of_deficit(to, *id, *amount, reference),
        Event::ClawbackWrittenOff { id, reference, debts } => write_off::of_clawback(to, *id, reference, debts),
        Event::AdjustmentCreated { id, amount, reference, target, .. } => {
            adjustment::created(to, *id, *amount, reference, *target);
        }
        Event::PeriodCloseRequested { month } => period::close_requested(to, *month),
        Event::PeriodClosed { month, .. } => period::closed(to, *month),
        Event::DeficitRecovered { amount } => maturity::deficit_recovered(to, *amount),
        Event::ClawbackRecovered { debts, left, .. } => maturity::clawback_recovered(to, debts, *left),
        Event::SplitsAnticipated { id, splits, target_days, rate, .. } => {
            anticipation::anticipated(to, splits, &Anticipation::new(*id, splits, *target_days, *rate));
        }
        Event::WithdrawalRequested { id, amount, .. } => withdrawal::requested(to, *id, *amount),
        Event::WithdrawalApproved { id, .. } => withdrawal::approved(to, *id),
        Event::WithdrawalPaid { id, amount, transfer_id, bank, .. } => {
            withdrawal::paid(to, *id, *amount, transfer_id, *bank);
        }
        Event::WithdrawalRejected { id, amount, notes, by_merchant } => {
            withdrawal::rejected(to, *id, *amount, notes, *by_merchant);
        }
        Event::WithdrawalReturned { id, amount, bank, entry, .. } => {
            withdrawal::returned(to, *id, *amount, *bank, entry.as_ref());
        }
        Event::CashoutCreated { id, transaction_key, amount, .. } => {
            cashout::created(to, *id, *transaction_key, *amount)
        }
        Event::CashoutProcessed { id, amount, fee, end_to_end_id, transfer_id, bank } => {
            cashout::processed(to, *id, [*amount, *fee], (end_to_end_id, transfer_id), *bank);
        }
        Event::CashoutFailed { id, amount, .. } => cashout::failed(to, *id, *amount),
        Event::CashoutReturned { id, amount, fee, bank, key, .. } => {
            to.uses_up(*key);
            cashout::returned(to, *id, [*amount, *fee], *bank);
        }
        Event::RefundRequested { id, charge, .. } => refund::requested(to, *id, *charge),
        Event::RefundRejected { id, charge, amount, notes } => refund::rejected(to, *id, *charge, *amount, notes),
        Event::RefundApproved { .. } => refund::approved(to, event),
        Event::RepaymentReversed { method, amount, key, .. } => {
            to.uses_up(*key);
            refund::reversed(to, *method, *amount);
        }
        Event::RefundFailed { .. } => refund_failure::failed(to, event),
        Event::PayerRepaid { id, charge, method, amount, is_unordered } => {
            refund::repaid(to, [*id, *charge], *method, *amount, *is_unordered);
        }
        Event::DisputeOpened { id, charge, amount, drawn, seller_due, case, .. } => {
            case.iter().for_each(|case| to.uses_up(case.key));
            dispute::opened(to, *id, *charge, *amount, drawn, *seller_due);
        }
        Event::DisputeAccepted { id, charge, method, amount } => {
            dispute::accepted(to, *id, *charge, *method, *amount);
        }
        Event::AcceptanceConfirmed { id, charge } => refund::about(to, *id, *charge),
        Event::DisputeReleased { .. } => dispute::released(to, event),
        Event::DisputeReversed { .. } => dispute::reversed(to, event),
        Event::SubscriptionCreated { id, standing, .. } => {
            to.personal(|_| SealedFor::customer(*id));
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionCreated);
        }
        Event::SubscriptionBilled { id, charge, standing } => subscription::billed(to, *id, *charge, standing),
        Event::SubscriptionAdvanced { id, outcome, standing, .. } => {
            subscription::advanced(to, *id, *outcome, standing);
        }
        Event::SubscriptionPaused { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionPaused);
        }
        Event::SubscriptionResumed { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionResumed);
        }
        Event::SubscriptionCardChanged { id, .. } => to.about(*id),
        Event::SubscriptionCancelled { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionCancelled);
        }
        // Registrations and plans: nothing moves, no webhook goes out, and lists of their own show
        // them.
        Event::RecipientRegistered { document, .. }
        | Event::RecipientRegisteredAgain { document, .. }
        | Event::RecipientChanged { document, .. } => to.personal(|_| SealedFor::recipient(*document)),
        Event::RecipientSubmitted { .. } | Event::PlanCreated { .. } | Event::PlanDisabled { .. } => {}
    }
}

impl Event {
    /// The fact in words for operators: in Portuguese, then in English.
    pub fn in_words(&self) -> [&'static str; 2] {
        match self {
            Self::ChargeOpened { .. } => ["Aberta, repasses e taxas fixados", "Opened, parts and fees fixed"],
            Self::CardCaptured { .. } => ["Capturada", "Captured"],
            Self::CardRefused { .. } => ["Recusada pelo adquirente", "Refused by the acquirer"],
            Self::CardAuthorized { .. } => ["Autorizada, falta capturar", "Authorized, not captured yet"],
            Self::CardUnanswered { .. } => {
                ["O adquirente não respondeu a tempo", "The acquirer did not answer in time"]
            }
            Self::PixPaid { .. } => ["PIX pago", "PIX paid"],
            Self::PixCancelled { .. } => ["PIX cancelado ou vencido", "PIX cancelled or expired"],
            Self::LatePixReceived { .. } => {
                ["PIX sem pedido: volta a quem pagou", "PIX that nobody asked for: it goes back"]
            }
            Self::PixRegistered { .. } => ["Registrada na instituição", "Registered at the institution"],
            Self::RailTried { .. } => ["Ordem enviada de novo, com a mesma id", "Ordered again under the same id"],
            Self::RailWordAsked { .. } => {
                ["Operador diz o desfecho, falta outro", "An operator says the outcome, another one must too"]
            }
            Self::RailWordGiven { .. } => ["Desfecho dito por dois operadores", "Outcome said by two operators"],
            Self::PayerNotRepaid { .. } => {
                ["Valor não voltou a quem pagou: recusado", "Money did not go back to the payer: refused"]
            }
            Self::RefundRequested { .. } => ["Reembolso pedido", "Refund asked for"],
            Self::RefundApproved { .. } => ["Reembolso aprovado", "Refund approved"],
            Self::RefundRejected { .. } => ["Reembolso recusado", "Refund rejected"],
            Self::RefundFailed { .. } => ["Reembolso não realizado, valor de volta", "Refund failed, money is back"],
            Self::RepaymentReversed { .. } => ["Reembolso desfeito no adquirente", "Refund undone at the acquirer"],
            Self::PayerRepaid { .. } => ["Pagador recebeu de volta", "Payer was repaid"],
            Self::DisputeOpened { .. } => ["Contestação aberta, valor retido", "Dispute opened, money held"],
            Self::DisputeAccepted { .. } => ["Contestação aceita", "Dispute accepted"],
            Self::CaseDeferred { .. } => {
                ["Aviso do adquirente fora de ordem, espera", "Notice of the acquirer out of order, it waits"]
            }
            Self::DeferredCaseEnded { .. } => {
                ["Aviso do adquirente não espera mais", "Notice of the acquirer waits no more"]
            }
            Self::DisputeReleased { .. } => ["Contestação liberada", "Dispute released"],
            Self::DisputeReversed { .. } => {
                ["Contestação revertida, valor de volta", "Dispute reversed, money is back"]
            }
            Self::AcceptanceConfirmed { .. } => {
                ["Aceite confirmado pelo adquirente", "Acceptance confirmed by the acquirer"]
            }
            Self::AcquirerSettled { .. } => ["Lote do adquirente liquidou", "Settled by a batch of the acquirer"],
            Self::AcquirerBatchBooked { .. } => ["Lote do adquirente lançado", "Batch of the acquirer booked"],
            Self::AcquirerFileRejected { .. } => ["Arquivo do adquirente recusado", "File of the acquirer rejected"],
            Self::AcquirerFileSent { approval: None, .. } => [
                "Arquivo do adquirente enviado, falta outro operador",
                "File of the acquirer sent, another operator must too",
            ],
            Self::AcquirerFileSent { .. } => ["Arquivo do adquirente aprovado", "File of the acquirer approved"],
            Self::AcquirerUnexplained { .. } => {
                ["Linhas do lote sem cobrança capturada", "Lines of the batch without a captured charge"]
            }
            Self::PeriodCloseRequested { .. } => ["Fechamento do mês pedido", "Closing of the month asked for"],
            Self::PeriodClosed { .. } => ["Mês fechado", "Month closed"],
            Self::HouseEntryRequested { .. } => ["Lançamento da casa pedido", "Entry of the house asked for"],
            Self::HouseEntryApproved { .. } => ["Lançamento da casa aprovado", "Entry of the house approved"],
            Self::HouseEntryRejected { .. } => ["Lançamento da casa recusado", "Entry of the house rejected"],
            Self::AdjustmentRequested { .. } => ["Crédito da casa pedido", "Credit of the house asked for"],
            Self::AdjustmentRejected { .. } => ["Crédito da casa recusado", "Credit of the house rejected"],
            Self::AdjustmentCreated { .. } => ["Crédito da casa", "Credit of the house"],
            Self::WriteOffRequested { .. } => ["Baixa de dívida pedida", "Write-off of a debt asked for"],
            Self::WithdrawalReturnRequested { .. } => ["Devolução de saque pedida", "Return of a withdrawal asked for"],
            Self::WithdrawalReturnRejected { .. } => ["Devolução de saque recusada", "Return of a withdrawal rejected"],
            Self::WriteOffRejected { .. } => ["Baixa de dívida recusada", "Write-off of a debt rejected"],
            Self::DeficitWrittenOff { .. } => ["Déficit baixado como perda", "Deficit written off"],
            Self::ClawbackWrittenOff { .. } => {
                ["Dívida de recebedor baixada como perda", "Debt of a recipient written off"]
            }
            Self::SplitsAnticipated { .. } => ["Repasses antecipados", "Splits anticipated"],
            Self::Matured { .. } => ["Dinheiro venceu e ficou disponível", "Money fell due and is available"],
            Self::DeficitRecovered { .. } => ["Déficit recuperado", "Deficit recovered"],
            Self::ClawbackRecovered { .. } => ["Dívida de recebedor paga", "Debt of a recipient paid"],
            Self::WithdrawalRequested { .. } => ["Saque pedido", "Withdrawal asked for"],
            Self::WithdrawalApproved { .. } => ["Saque aprovado", "Withdrawal approved"],
            Self::WithdrawalPaid { .. } => ["Saque pago", "Withdrawal paid"],
            Self::WithdrawalRejected { by_merchant: true, .. } => ["Saque cancelado", "Withdrawal cancelled"],
            Self::WithdrawalRejected { .. } => ["Saque recusado", "Withdrawal rejected"],
            Self::WithdrawalReturned { .. } => ["Saque devolvido pelo banco", "Withdrawal returned by the bank"],
            Self::CashoutCreated { .. } => ["Cashout criado", "Cashout created"],
            Self::CashoutProcessed { .. } => ["Cashout processado", "Cashout processed"],
            Self::CashoutFailed { .. } => ["Cashout voltou", "Cashout came back"],
            Self::CashoutReturned { .. } => ["Cashout devolvido pelo banco", "Cashout returned by the bank"],
            Self::MerchantOpened { .. } => ["Lojista aberto", "Merchant opened"],
            Self::MerchantChanged { .. } => ["Lojista alterado", "Merchant changed"],
            Self::ApiKeyCreated { .. } => ["Chave de API criada", "API key created"],
            Self::ApiKeyRevoked { .. } => ["Chave de API revogada", "API key revoked"],
            Self::ApiKeyChanged { .. } => ["Chave de API alterada", "API key changed"],
            Self::WebhookSecretRotated { .. } => ["Segredo de webhook trocado", "Webhook secret rotated"],
            Self::RecipientRegistered { .. } => ["Recebedor cadastrado", "Recipient registered"],
            Self::RecipientRegisteredAgain { .. } => ["Recebedor cadastrado de novo", "Recipient registered again"],
            Self::RecipientSubmitted { .. } => ["Cadastro enviado para análise", "Registration sent for analysis"],
            Self::RecipientApproved { .. } => ["Recebedor aprovado", "Recipient approved"],
            Self::RecipientRejected { .. } => ["Recebedor recusado", "Recipient rejected"],
            Self::RecipientChanged { .. } => ["Cadastro alterado", "Registration changed"],
            Self::BankAccountChanged { .. } => ["Conta bancária alterada", "Bank account changed"],
            Self::BankAccountApproved { .. } => ["Conta bancária aprovada", "Bank account approved"],
            Self::BankAccountRejected { .. } => ["Conta bancária recusada", "Bank account rejected"],
            Self::ClockMoved { .. } => ["Relógio do sandbox adiantado", "Sandbox clock moved"],
            Self::RecipientFrozen { .. } => ["Recebedor congelado", "Recipient frozen"],
            Self::RecipientUnfrozen { .. } => ["Recebedor descongelado", "Recipient unfrozen"],
            Self::NoteWritten { .. } => ["Nota de operador", "Note of an operator"],
            Self::MetadataChanged { .. } => ["Metadados alterados", "Metadata changed"],
            Self::FiscalDocumentLinked { .. } => ["Documento fiscal vinculado", "Fiscal document linked"],
            Self::FiscalDocumentUnlinked { .. } => ["Documento fiscal desvinculado", "Fiscal document unlinked"],
            Self::ReferenceReserved { .. } => ["Referência reservada", "Reference reserved"],
            Self::PersonLookedUp { .. } => ["Dados de uma pessoa consultados", "Data of a person looked up"],
            Self::CardDeleted { .. } => ["Cartão guardado excluído", "Stored card deleted"],
            Self::ErasureWithdrawn { .. } => ["Pedido de eliminação retirado", "Request for an erasure taken back"],
            Self::ErasureRequested { .. } => ["Eliminação de dados pedida", "Erasure of personal data asked for"],
            Self::KeysErased { .. } => ["Dados pessoais eliminados", "Personal data erased"],
            Self::RegistrationRead { .. } => ["Cadastro lido sem máscara", "Registration read unmasked"],
            Self::ApprovalAsked { .. } => {
                ["Aprovada por um operador, falta outro", "Approved by one operator, another one must too"]
            }
            Self::ChartOfAccountsSet { .. } => ["Plano de contas alterado", "Chart of accounts changed"],
            Self::PersonalDataRead { .. } => ["Documentos de lojistas lidos", "Tax ids of merchants read"],
            Self::PlanCreated { .. } => ["Plano criado", "Plan created"],
            Self::PlanDisabled { .. } => ["Plano desativado", "Plan disabled"],
            Self::CardStored { .. } => ["Cartão guardado", "Card stored"],
            Self::SubscriptionCreated { .. } => ["Assinatura criada", "Subscription created"],
            Self::SubscriptionBilled { .. } => ["Assinatura cobrada", "Subscription billed"],
            Self::SubscriptionAdvanced { .. } => ["Assinatura avançou", "Subscription advanced"],
            Self::SubscriptionPaused { .. } => ["Assinatura pausada", "Subscription paused"],
            Self::SubscriptionCardChanged { .. } => ["Cartão da assinatura trocado", "Subscription card changed"],
            Self::SubscriptionResumed { .. } => ["Assinatura retomada", "Subscription resumed"],
            Self::SubscriptionCancelled { .. } => ["Assinatura cancelada", "Subscription cancelled"],
        }
    }
}

/// Calls `take` for each effect of events on ledgers of owners that did not decide them. A ledger
/// may come more than once.
pub(crate) fn on_others(owner: LedgerId, events: &[Event], take: impl FnMut(LedgerId, Effect)) {
    if let Some(group) = owner.group() {
        let mut others = Others { group, take };
        events.iter().for_each(|event| say(event, &mut others));
    }
}

/// Takes the effects on other ledgers.
struct Others<F> {
    group: GroupNumber,
    take: F,
}

impl<F: FnMut(LedgerId, Effect)> Facets for Others<F> {
    fn others(&mut self, effects: impl Iterator<Item = (Option<RecipientNumber>, Effect)>) {
        for (number, effect) in effects {
            let ledger =
                number.map_or(LedgerId::Merchant(self.group), |number| LedgerId::Recipient(self.group, number));
            (self.take)(ledger, effect);
        }
    }
}
