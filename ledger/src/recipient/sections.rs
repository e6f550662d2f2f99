//! Encoding of a recipient's state: a head with its accounts and withdrawals, and sections of sums,
//! exceptions and debts. Its version is that of [`crate::merchant`].

use std::collections::BTreeSet;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::RecipientState;
use super::withdrawals::Outflow;
use crate::balances::{Ledger, StoredBalance};
use crate::fees::is_false;
use crate::section::{Section, Sectioned, unknown};
use crate::withdrawal_return::OpenReturn;
use crate::write_off::OpenWriteOff;

const PENDING: u8 = 1;
const EXCEPTIONS: u8 = 2;
const DEBTS: u8 = 3;

#[derive(Encode, Decode)]
struct RecipientHead {
    #[n(0)]
    accounts: Vec<StoredBalance>,
    /// None before the first withdrawal or anticipation.
    #[n(1)]
    outflow: Option<Outflow>,
    /// None before the first debt.
    #[n(2)]
    debts_raised: Option<u64>,
    #[n(3)]
    write_off: Option<OpenWriteOff>,
    /// None while none waits.
    #[n(4)]
    returns: Option<Vec<OpenReturn>>,
    #[cbor(n(5), skip_if = "is_false")]
    frozen: bool,
}

impl Sectioned for RecipientState {
    fn head(&self) -> Vec<u8> {
        let outflow = (self.outflow != Outflow::default()).then(|| self.outflow.clone());
        let debts_raised = Some(self.debts.raised()).filter(|raised| *raised > 0);
        let write_off = self.write_off.clone();
        let returns = (!self.returns.is_empty()).then(|| self.returns.clone());
        let (accounts, frozen) = (self.ledger.plain(), self.frozen);
        let head = RecipientHead { accounts, outflow, debts_raised, write_off, returns, frozen };
        minicbor::to_vec(head).expect("writing into memory cannot fail")
    }

    fn take_touched(&mut self) -> BTreeSet<Section> {
        let unlike = self.exceptions.take_touched(EXCEPTIONS).chain(self.debts.take_touched(DEBTS));
        self.pending.take_touched(PENDING).chain(unlike).collect()
    }

    fn section(&self, section: Section) -> Option<Vec<u8>> {
        match section.kind {
            PENDING => self.pending.section(section.number),
            EXCEPTIONS => self.exceptions.section(section.number),
            DEBTS => self.debts.section(section.number),
            _ => None,
        }
    }

    fn from_sections<'a>(head: &[u8], sections: impl IntoIterator<Item = (Section, &'a [u8])>) -> Result<Self, Error> {
        let RecipientHead { accounts, outflow, debts_raised, write_off, returns, frozen } = minicbor::decode(head)?;
        let (ledger, outflow, returns) =
            (Ledger::of_plain(accounts), outflow.unwrap_or_default(), returns.unwrap_or_default());
        let mut state = Self { ledger, outflow, write_off, returns, frozen, ..Self::default() };
        state.debts.set_raised(debts_raised.unwrap_or_default());
        for (section, bytes) in sections {
            match section.kind {
                PENDING => state.pending.read_section(section.number, bytes)?,
                EXCEPTIONS => state.exceptions.read_section(bytes)?,
                DEBTS => state.debts.read_section(bytes)?,
                _ => return Err(unknown(section)),
            }
        }
        Ok(state)
    }
}
