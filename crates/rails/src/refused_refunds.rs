//! Refunds that the institutions of the sandbox refuse, as an institution does whose account of the
//! payer is closed.

use actors::rails::{Repay, RepayAnswer};
use ledger::money::Centavos;

/// A refund of this amount is refused.
const REFUSED_AMOUNT: Centavos = Centavos(1_357);

/// The refusal of a refund; none for one that is carried out. A payment that came too late is
/// carried out whatever its amount.
pub(super) fn refused_refund(call: &Repay) -> Option<RepayAnswer> {
    let is_refund = call.id != call.charge;
    let reason = || "A conta do pagador foi encerrada".to_owned();
    (is_refund && call.amount == REFUSED_AMOUNT).then(|| RepayAnswer::Refused { reason: reason() })
}
