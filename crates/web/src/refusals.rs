//! Refusals of the engine as problems: one table from rejections to problem codes.

use actors::engine::Unavailable;
use derived::records::LoadError;
use ledger::{Centavos, ObjectId, Rejection};
use store::StoreError;

use crate::problem::{Code, Problem, Row, not_found};

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::JournalFull => Problem::new(Code::Overloaded).retry_after(1),
            Unavailable::StorageFull => Problem::new(Code::StorageFull).retry_after(5),
            Unavailable::ClockInDoubt => Problem::new(Code::ClockInDoubt).retry_after(5),
            Unavailable::OutcomeUnknown => Problem::new(Code::OutcomeUnknown).retry_after(1),
            Unavailable::Unreadable => Problem::new(Code::Internal),
            Unavailable::StoreUnavailable => Problem::new(Code::StoreUnavailable).retry_after(1),
            Unavailable::Elsewhere(partition) => Problem::elsewhere(partition),
            Unavailable::NoRail => Problem::new(Code::RailNotConfigured),
            Unavailable::RailUnavailable => Problem::new(Code::RailUnavailable).retry_after(5),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        LoadError::from(error).into()
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        Unavailable::from(error).into()
    }
}

impl From<derived::seal::SealError> for Problem {
    fn from(error: derived::seal::SealError) -> Self {
        Unavailable::from(error).into()
    }
}

/// The fee of an anticipation is another one by now.
fn of_fee(fee: Centavos) -> Problem {
    let message = format!("A taxa agora é de {fee} centavos");
    let problem = Problem::new(Code::FeeChanged).field("fee_cents", Code::FeeChanged.row().code, message);
    problem.member("fee_cents", fee.0)
}

/// The refusals of a value that its shape allows.
fn of_wrong_field(rejection: &Rejection) -> Problem {
    let of =
        |field: &str, code, message: &'static str| Problem::new(Code::ValidationFailed).field(field, code, message);
    match rejection {
        Rejection::SplitBelowCentavo { index } => {
            of(&format!("splits[{index}].percent"), "out_of_range", "percent do total é menos que um centavo")
        }
        Rejection::CardNotStored => {
            let message = "card_token não encontrado";
            of("card_token", "not_found", message).message(message)
        }
        _ => of("kind", "not_of_method", "kind deve ser chargeback para cartão e med para PIX"),
    }
}

/// Another entry has the reference.
fn of_reference(entry: ObjectId) -> Problem {
    let Row { code, message, .. } = Code::ReferenceRepeated.row();
    let problem = Problem::new(Code::ReferenceRepeated).field("reference", code, message);
    problem.member("entry_id", entry.uuid().to_string())
}

/// The amount of a cashout is below the least one, centavos.
fn below(minimum: Centavos) -> Problem {
    let message = format!("Valor abaixo do mínimo de {minimum} centavos");
    of_amount(Code::AmountBelowMinimum, message).member("minimum", minimum.0)
}

/// The amount is wrong.
fn of_amount(code: Code, message: String) -> Problem {
    Problem::new(code).message(message.clone()).field("amount", code.row().code, message)
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        use Rejection as R;
        let problem = match rejection {
            R::SplitNotEnabled => Problem::new(Code::SplitNotEnabled),
            R::SplitRecipientNotFound { index } => of_split(Code::RecipientNotFound, index),
            R::SplitRecipientNotActive { index } => of_split(Code::RecipientNotActive, index),
            R::CardNotStored | R::SplitBelowCentavo { .. } | R::DisputeKindUnfit => of_wrong_field(&rejection),
            R::SplitsReachTotal => Problem::new(Code::SplitsReachTotal),
            R::SplitsExceedNet => Problem::new(Code::FeesExceedSellerPart),
            R::RecipientNotFound
            | R::HouseEntryNotFound
            | R::MerchantNotFound
            | R::ApiKeyNotFound
            | R::PlanNotFound => not_found(),
            R::TagTaken => Problem::new(Code::TagTaken),
            R::PlanDisabled => Problem::new(Code::PlanDisabled),
            R::ReferenceRepeated { entry } => of_reference(entry),
            R::PeriodIsClosed => Problem::new(Code::PeriodClosed),
            R::PeriodNotOver => Problem::new(Code::PeriodNotOver),
            R::WriteOffExceedsDebt => of_amount(Code::ExceedsDebt, "A baixa é maior que a dívida".to_owned()),
            R::WriteOffWaits => Problem::new(Code::WriteOffPending),
            R::WithdrawalNotPaid | R::ReturnWaits | R::ReturnedBeforePaid => of_return(&rejection),
            R::OutcomeNotUnknown => Problem::new(Code::OutcomeNotUnknown),
            R::SecondOperatorNeeded => Problem::new(Code::SecondOperatorNeeded),
            R::WithdrawalAlreadyDecided => Problem::new(Code::AlreadyDecided),
            R::WithdrawalPending => Problem::new(Code::WithdrawalPending),
            R::NothingAvailable => Problem::new(Code::NothingAvailable),
            R::SplitNotAnticipable { index } => of_anticipated(Code::SplitNotAnticipable, index),
            R::AnticipationAfterDue { index } => of_anticipated(Code::AnticipationAfterDue, index),
            R::AnticipationFeeDiffers { fee } => of_fee(fee),
            R::ChargeNotPending => Problem::new(Code::ChargeNotPending),
            R::MerchantSuspended => Problem::new(Code::MerchantSuspended),
            R::MerchantIsClosing => Problem::new(Code::MerchantClosing),
            R::PayoutsHeld => Problem::new(Code::PayoutsHeld),
            R::OwnKeysNotAllowed => Problem::new(Code::OwnKeysNotAllowed),
            R::ScopesExceedKey => Problem::new(Code::ScopesExceedKey),
            R::TooManyApiKeys => Problem::new(Code::TooManyApiKeys),
            R::RecipientIsFrozen => Problem::new(Code::RecipientFrozen),
            R::CashoutNotEnabled => Problem::new(Code::CashoutNotEnabled),
            R::CashoutBelowMinimum { minimum } => below(minimum),
            R::CashoutAboveAvailable => {
                of_amount(Code::InsufficientBalance, Code::InsufficientBalance.row().message.to_owned())
            }
            R::MerchantExists
            | R::ApiKeyIsRevoked
            | R::SubscriptionEnded
            | R::SubscriptionByPix
            | R::DisputeNotAccepted
            | R::ReversalWaits
            | R::MerchantNotEmpty
            | R::CashoutNotInProcessing
            | R::RecipientIsRejected
            | R::CardOfSubscription
            | R::WebhookSecretsStillSign
            | R::RecipientChangedMeanwhile => Problem::new(Code::StateConflict),
            R::ChargeTooOld | R::ChargeRefunded | R::ChargeDisputed | R::DisputeTooLate => {
                Problem::new(Code::ChargeNotRefundable)
            }
            R::VersionChanged => Problem::new(Code::ItemChanged),
            R::RefundExceedsCharge | R::TakeBackExceedsRefund | R::TakeBackExceedsSplit { .. } => {
                Problem::new(Code::RefundExceedsAvailable)
            }
            R::DisputeExceedsCharge | R::AcceptanceExceedsDispute => Problem::new(Code::DisputeExceedsAvailable),
            R::RecipientAlreadyDecided
            | R::HouseEntryAlreadyDecided
            | R::RefundAlreadyDecided
            | R::DisputeAlreadyDecided => Problem::new(Code::AlreadyDecided),
        };
        problem.detail(rejection.to_string())
    }
}

fn of_split(code: Code, index: usize) -> Problem {
    of_field(code, format!("splits[{index}].sub_recipient_id"))
}

fn of_anticipated(code: Code, index: usize) -> Problem {
    of_field(code, format!("split_ids[{index}]"))
}

fn of_field(code: Code, field: String) -> Problem {
    let row = code.row();
    Problem::new(code).field(field, row.code, row.message)
}

/// The refusals of the return of a withdrawal.
fn of_return(rejection: &Rejection) -> Problem {
    match rejection {
        Rejection::WithdrawalNotPaid => Problem::new(Code::WithdrawalNotPaid),
        Rejection::ReturnWaits => Problem::new(Code::ReturnPending),
        _ => {
            let message = "o saque foi pago depois deste dia";
            Problem::new(Code::ValidationFailed).field("effective_date", "before_payment", message)
        }
    }
}
