//! Institutions of the sandbox: simulated card acquirer, PIX institution, payout institution and
//! bank. Each answers every question about a charge or transfer in the same way, also after a
//! crash. Each keeps records of its own and writes the files from which the books can be
//! reconciled.

use std::io;
use std::path::Path;
use std::sync::Arc;

use actors::rails::Rails;
use ledger::time::Timestamp;

use super::acquirer::SandboxAcquirer;
use super::bank_books::BankBooks;
use super::days::day_of;
use super::lies::Lies;
use super::payouts::SandboxPayouts;
use super::pix_books::{PixBooks, SandboxPix};

/// The records of a sandbox's institutions, beside its rails.
pub struct Institutions {
    /// The PIX institution.
    pub pix: Arc<PixBooks>,
    /// The lies that are still to be told.
    pub lies: Arc<Lies>,
    settlement: Arc<BankBooks>,
    pix_account: Arc<BankBooks>,
}

impl Institutions {
    /// Institutions that keep their files in `folder`, and the rails that lead to them.
    pub fn open(folder: &Path) -> (Self, Rails) {
        let lies = Arc::new(Lies::default());
        let account = |name, number| Arc::new(BankBooks::new(folder.join(name), number, Arc::clone(&lies)));
        let settlement = account("bank-settlement", "SANDBOX-SETTLEMENT");
        let pix_account = account("bank-pix", "SANDBOX-PIX");
        let pix = Arc::new(PixBooks::new(folder.join("pix"), Arc::clone(&pix_account), Arc::clone(&lies)));
        let rails = Rails {
            card: Box::new(SandboxAcquirer::new(folder, Arc::clone(&settlement), Arc::clone(&lies))),
            pix: Box::new(SandboxPix(Arc::clone(&pix))),
            payout: Box::new(SandboxPayouts::new(folder, Arc::clone(&settlement), Arc::clone(&pix_account))),
        };
        (Self { pix, lies, settlement, pix_account }, rails)
    }

    /// Writes the files of the days that have ended at `now`, as far as they are not written. It
    /// waits for the disk.
    pub fn close_days(&self, now: Timestamp) -> io::Result<()> {
        let today = day_of(now.0);
        self.pix.close_days_before(today)?;
        self.settlement.close_days_before(today)?;
        self.pix_account.close_days_before(today)
    }
}

/// The rails of a sandbox. Its institutions keep their own files in `folder`.
pub fn rails(folder: &Path) -> Rails {
    Institutions::open(folder).1
}
