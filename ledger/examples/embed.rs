//! The ledger alone: a split card charge without server, disk and network. `cargo run -p ledger
//! --example embed` prints its postings and the balance that comes of them.
//!
//! Who embeds the ledger keeps a state and the books of each group, and carries commands out one by
//! one. Making a Record durable, and in which order, is the embedder's business.

use ledger::event::{CardBrand, CardFace};
use ledger::fees::{PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, IdKey, LedgerId, RecipientNumber};
use ledger::invariants::GroupBooks;
use ledger::merchant::{MerchantCommand as Command, MerchantState, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::Sealed;
use ledger::time::Timestamp;

const GROUP: GroupNumber = GroupNumber(1);
const NOW: Timestamp = Timestamp(1_795_000_000_000); // Milliseconds since 1970.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Ids are made of the time and of bits that the caller draws: the ledger knows no chance.
    let ids = IdKey::new(*b"a key of sixteen");
    let (shop, charge) = (ids.object(GROUP, NOW, 1), ids.object(GROUP, NOW, 2));
    let recipient = ids.recipient(GROUP, RecipientNumber(1), NOW, 3);
    let settings = Settings { split_enabled: true, ..Settings::default() };
    let commands = [
        Command::Open { id: shop, settings, profile: Sealed::default() },
        Command::RegisterRecipient { random: 3, document: Fingerprint([7; 16]), profile: Sealed::default() },
        Command::ApproveRecipient { id: recipient },
        Command::OpenCard {
            charge,
            amount: Centavos(10_000),
            method: PaymentMethod::CreditCard,
            installments: 1,
            splits: vec![SplitRequest { recipient, amount: Centavos(3_500) }],
            card: CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa },
            payer: Sealed::default(),
            rail: None,
        },
        Command::CaptureCard { charge, acquirer_mdr: Centavos(299), captured_at: None, brand: None },
    ];
    let (mut merchant, mut books) = (MerchantState::default(), GroupBooks::default());
    for (ordinal, command) in (1..).zip(commands) {
        // Reads the state and changes nothing. What comes is facts, or the rule that says no.
        let decision = merchant.decide(command, GROUP, NOW, &ids)?;
        // The entries follow from the facts. `record.encode` gives the bytes to make durable.
        let record = decision.into_record(LedgerId::Merchant(GROUP), ordinal, NOW);
        // Cannot fail: a replay of all Records leads to the same state.
        merchant.evolve(&record);
        // Folds the entries, and checks what must hold after every Record.
        books.post(&record)?;
        for entry in &record.entries {
            println!("{entry}");
        }
    }
    println!("the shop waits for {} centavos; every promise of the books holds", merchant.pending());
    Ok(())
}
