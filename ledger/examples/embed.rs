//! The ledger alone: a split card charge without server, disk and network. `cargo run -p ledger
//! --example embed` prints its postings and the balances that come of them.
//!
//! `decide` reads a command against the state and gives facts, or says no. `into_record` makes the
//! entries of the facts, the only way in which money moves. `evolve` applies the facts.
//! [`GroupBooks`] folds the entries and checks what must hold. Making a Record durable, and in
//! which order, is the business of whoever embeds this.

use ledger::entry::Posting;
use ledger::event::{CardBrand, CardFace};
use ledger::fees::{PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId};
use ledger::invariants::GroupBooks;
use ledger::merchant::{MerchantCommand as Command, MerchantState, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::Sealed;
use ledger::record::Record;
use ledger::time::Timestamp;

const GROUP: GroupNumber = GroupNumber(1);
const NOW: Timestamp = Timestamp(1_795_000_000_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids = IdKey::new(*b"a key of sixteen");
    let (mut merchant, mut books, mut journal) = (MerchantState::default(), GroupBooks::default(), Vec::new());
    let mut carry_out = |merchant: &mut MerchantState, command| -> Result<Record, Box<dyn std::error::Error>> {
        let decision = merchant.decide(command, GROUP, NOW, &ids)?;
        let record = decision.into_record(LedgerId::Merchant(GROUP), journal.len() as u64 + 1, NOW);
        merchant.evolve(&record);
        books.post(&record)?;
        record.encode(&mut Vec::new()); // What would be made durable.
        journal.push(record.clone());
        Ok(record)
    };
    let settings = Settings { split_enabled: true, ..Settings::default() };
    let open = Command::Open { id: ids.object(GROUP, NOW, 1), settings, profile: Sealed::default() };
    carry_out(&mut merchant, open)?;
    let (document, profile) = (Fingerprint([7; 16]), Sealed::default());
    carry_out(&mut merchant, Command::RegisterRecipient { random: 1, document, profile })?;
    let recipient = merchant.recipients()[0].id;
    carry_out(&mut merchant, Command::ApproveRecipient { id: recipient })?;
    let charge = ids.object(GROUP, NOW, 2);
    let open = Command::OpenCard {
        charge,
        amount: Centavos(10_000),
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: vec![SplitRequest { recipient, amount: Centavos(3_500) }],
        card: CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa },
        payer: Sealed::default(),
    };
    carry_out(&mut merchant, open)?;
    let captured = carry_out(&mut merchant, Command::CaptureCard { charge, acquirer_mdr: Centavos(299) })?;
    for entry in &captured.entries {
        println!("{}", name(entry.ledger()));
        for Posting { account, side, amount } in entry.postings() {
            println!("  {:6} {:>5}  {}", format!("{side:?}"), amount.0, account.name(GROUP, name));
        }
    }
    println!("the seller waits for {} centavos; every promise of the books holds", merchant.pending());
    Ok(())
}

/// What this program calls a ledger, in the names of accounts too.
fn name(ledger: LedgerId) -> String {
    match ledger {
        LedgerId::Merchant(_) => "M-shop".to_owned(),
        LedgerId::Recipient(_, number) => format!("R-{}", number.0),
        LedgerId::Platform(_) => "P-shop".to_owned(),
        LedgerId::System => "P-house".to_owned(),
    }
}
