//! Personal data: the structures in the sealed (encrypted) part of a Record. Each month has its own
//! key, so dropping a key erases the people of that month and leaves the books. The ledger carries
//! sealed bytes and never opens them.

use std::collections::BTreeMap;

use minicbor::data::Type;
use minicbor::encode::{self, Write};
use minicbor::{Decode, Decoder, Encode, Encoder, decode};
use strum::{IntoStaticStr, VariantArray};

use crate::id::{Fingerprint, GroupNumber, ObjectId};

/// Sealed bytes and the month whose key opens them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Sealed {
    /// Months since January 1970, in UTC.
    #[n(0)]
    pub month: u16,
    /// Nonce, ciphertext and tag.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub bytes: Vec<u8>,
    /// Which version this is of data that is replaced as a whole, from 1; bound into the seal. 0
    /// for data that is never replaced.
    #[cbor(n(2), skip_if = "is_zero")]
    pub version: u32,
}

impl Sealed {
    /// Whether this may take the place of `former`: it must be its next version. Data without
    /// versions replaces its like.
    pub fn follows(&self, former: &Sealed) -> bool {
        self.version == former.version + 1 || self.version == 0 && former.version == 0
    }
}

fn is_zero(version: &u32) -> bool {
    *version == 0
}

/// Purpose of sealed bytes: the field and its owner. It is bound into the seal (associated data)
/// together with the version, so the bytes open only there. Without the key, nobody can move one
/// person's data to another's place, or a former profile to the place of a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SealedFor {
    field: &'static str,
    owner: [u8; 16],
}

impl SealedFor {
    /// A field of an owner that is none of those below; its name has 16 bytes at most.
    pub fn field(field: &'static str, owner: [u8; 16]) -> Self {
        Self { field, owner }
    }

    /// A merchant's [`MerchantProfile`].
    pub fn merchant(group: GroupNumber) -> Self {
        Self::field("merchant", u128::from(group.0).to_be_bytes())
    }

    /// A recipient's [`RecipientProfile`], by the keyed digest of group and document: its id is
    /// made after it was sealed.
    pub fn recipient(document: Fingerprint) -> Self {
        Self::field("recipient", document.0)
    }

    /// The [`Payer`] of a charge.
    pub fn payer(charge: ObjectId) -> Self {
        Self::field("payer", charge.0.to_be_bytes())
    }

    /// The [`Payer`] of a stored card or of a subscription.
    pub fn customer(id: ObjectId) -> Self {
        Self::field("customer", id.0.to_be_bytes())
    }

    /// The [`PixDestination`] of a cashout.
    pub fn pix_destination(cashout: ObjectId) -> Self {
        Self::field("pix destination", cashout.0.to_be_bytes())
    }

    /// The [`BankAccount`] that a withdrawal goes to.
    pub fn account(withdrawal: ObjectId) -> Self {
        Self::field("account", withdrawal.0.to_be_bytes())
    }

    /// The [`FreeText`] of a refund or of a dispute.
    pub fn reason(id: ObjectId) -> Self {
        Self::field("reason", id.0.to_be_bytes())
    }

    /// The last tries to deliver webhooks to the address of an API key, stored beside the journal.
    pub fn webhook_tries(key: ObjectId) -> Self {
        Self::field("webhook tries", key.0.to_be_bytes())
    }

    /// The metadata of a charge, cashout, refund or subscription, replaced as a whole.
    pub fn metadata(charge: ObjectId) -> Self {
        Self::field("metadata", charge.0.to_be_bytes())
    }

    /// The [`FiscalKey`](crate::fiscal_key::FiscalKey) of a fiscal document, a text, by the keyed
    /// digest of account and key.
    pub fn fiscal_key(document: Fingerprint) -> Self {
        Self::field("fiscal key", document.0)
    }

    /// The acquirer's token for a stored card.
    pub fn card_token(card: ObjectId) -> Self {
        Self::field("card token", card.0.to_be_bytes())
    }

    /// A webhook secret of an API key.
    pub fn webhook_secret(key: ObjectId) -> Self {
        Self::field("webhook secret", key.0.to_be_bytes())
    }

    /// Whether it is a profile: data that is replaced as a whole, in versions.
    pub fn is_versioned(&self) -> bool {
        matches!(self.field, "merchant" | "recipient")
    }

    /// The associated data of the seal: the field's name, padded with zeros to 16 bytes, then the
    /// owner. A version that is not 0 stands in the last four bytes of the padding, big-endian.
    pub fn associated_data(&self, version: u32) -> [u8; 32] {
        let mut data = [0; 32];
        data[..self.field.len()].copy_from_slice(self.field.as_bytes());
        if version > 0 {
            data[12..16].copy_from_slice(&version.to_be_bytes());
        }
        data[16..].copy_from_slice(&self.owner);
        data
    }
}

/// Payer (interface 2.1, 2.3), as sealed into the Record that opens a charge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Payer {
    /// Full name.
    #[n(0)]
    pub name: String,
    /// CPF or CNPJ, without punctuation.
    #[n(1)]
    pub document: String,
    /// The payer's e-mail, where the request has one.
    #[n(2)]
    pub email: Option<String>,
    /// Telephone, digits only.
    #[n(3)]
    pub phone: Option<String>,
    /// The charge's description: free text, so treated as personal.
    #[n(4)]
    pub description: Option<String>,
    /// The caller's labels; `None` if the request has none.
    #[n(5)]
    pub labels: Option<Labels>,
}

/// Labels by which the caller's own system knows an object. No rule of money reads them. They are
/// free text, so treated as personal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Labels {
    /// Reference of the caller's order, 1 to 64 characters.
    #[n(0)]
    pub reference: Option<String>,
    /// Values by the caller's keys.
    #[n(1)]
    pub metadata: Metadata,
}

/// Values by key: at most 20 keys of 40 characters, values of 500, 8 KiB in all.
pub type Metadata = BTreeMap<String, String>;

/// A merchant, as sealed into the Record that opens its books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct MerchantProfile {
    /// Name, as shown to payers.
    #[n(0)]
    pub name: String,
    /// CPF or CNPJ, without punctuation.
    #[n(1)]
    pub document: String,
    /// City, as shown in PIX codes.
    #[n(2)]
    pub city: String,
    /// What a card acquirer has to know of the shop.
    #[n(3)]
    pub storefront: Option<Storefront>,
}

/// What a card acquirer has to know of a merchant's shop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Storefront {
    /// Name on the payer's card bill, at most 22 characters.
    #[n(0)]
    pub soft_descriptor: Option<String>,
    /// Merchant category code, four digits.
    #[n(1)]
    pub mcc: Option<String>,
    /// Where the shop is.
    #[n(2)]
    pub address: Option<StoreAddress>,
    /// Telephone with country and area code, digits alone.
    #[n(3)]
    pub phone: Option<String>,
    /// E-mail address for payers.
    #[n(4)]
    pub email: Option<String>,
    /// Address of the shop in the web.
    #[n(5)]
    pub url: Option<String>,
    /// Id of the merchant at the acquirer, at most 15 letters and digits.
    #[n(6)]
    pub acquirer_id: Option<String>,
}

/// Address of a shop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct StoreAddress {
    /// Street of the shop.
    #[n(0)]
    pub street: String,
    /// Number in the street.
    #[n(1)]
    pub number: String,
    /// City of the shop.
    #[n(2)]
    pub city: String,
    /// State, two capital letters.
    #[n(3)]
    pub state: String,
    /// Postal code, 8 digits.
    #[n(4)]
    pub zip_code: String,
}

/// A sub-recipient's registration (interface 2.7), as sealed into the Record that registers it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct RecipientProfile {
    /// Full name, or the corporation's legal name.
    #[n(0)]
    pub name: String,
    /// CPF or CNPJ, without punctuation.
    #[n(1)]
    pub document: String,
    /// Contact address, where the registration has one.
    #[n(2)]
    pub email: Option<String>,
    /// DD/MM/YYYY; individuals only.
    #[n(3)]
    pub birthdate: Option<String>,
    /// Individuals only.
    #[n(4)]
    pub mother_name: Option<String>,
    /// Home or business address.
    #[n(5)]
    pub address: Option<Address>,
    /// At least one.
    #[n(6)]
    pub phones: Vec<Phone>,
    /// Monthly income or annual revenue, centavos.
    #[n(7)]
    pub income_cents: Option<i64>,
    /// Corporations only; at least one.
    #[n(8)]
    pub partners: Vec<RecipientProfile>,
    /// Bank account for withdrawals.
    #[n(9)]
    pub bank: Option<BankAccount>,
    /// The caller's labels; `None` if there are none.
    #[n(10)]
    pub labels: Option<Labels>,
}

impl RecipientProfile {
    /// The bank account as money is sent to it, with its holder's name: the registered name where
    /// none was given and the account is the recipient's own.
    pub fn receiving_account(&self) -> Option<BankAccount> {
        let mut account = self.bank.clone()?;
        if account.legal_name.is_none() && account.document == self.document && !self.name.is_empty() {
            account.legal_name = Some(self.name.clone());
        }
        Some(account)
    }
}

/// A postal address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Address {
    /// Name of the street, without the number.
    #[n(0)]
    pub street: String,
    /// House number.
    #[n(1)]
    pub number: String,
    /// Neighborhood (bairro).
    #[n(2)]
    pub neighborhood: String,
    /// Name of the city.
    #[n(3)]
    pub city: String,
    /// State, two letters.
    #[n(4)]
    pub state: String,
    /// CEP, 8 digits.
    #[n(5)]
    pub zip_code: String,
}

/// A telephone number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Phone {
    /// Area code.
    #[n(0)]
    pub ddd: String,
    /// Number without area code.
    #[n(1)]
    pub number: String,
}

/// Where a withdrawal goes: a bank account, and whose it is. It has a `bank_code`, an `ispb`, or
/// both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct BankAccount {
    /// 3 digits (COMPE); none of an institution that is named by its ISPB alone.
    #[n(0)]
    pub bank_code: Option<String>,
    /// Number of the branch, without check digit; none of an account without branch.
    #[n(1)]
    pub agencia: Option<String>,
    /// Branch check digit.
    #[n(2)]
    pub agencia_dv: Option<String>,
    /// Number of the account, without check digit.
    #[n(3)]
    pub conta: String,
    /// Account check digit.
    #[n(4)]
    pub conta_dv: Option<String>,
    /// What the account is.
    #[n(5)]
    pub kind: AccountKind,
    /// Holder's name.
    #[n(6)]
    pub legal_name: Option<String>,
    /// Holder's CPF or CNPJ, without punctuation.
    #[n(7)]
    pub document: String,
    /// ISPB, by which the payment systems know the institution: 8 digits and capital letters.
    #[n(8)]
    pub ispb: Option<String>,
}

/// What a bank account is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum AccountKind {
    /// Checking account.
    #[default]
    ContaCorrente,
    /// Savings account.
    ContaPoupanca,
    /// Prepaid account of a payment institution.
    ContaPagamento,
}

impl AccountKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The first two are the truth values that stood here when there were no more: whether it is a
/// savings account.
impl<C> Encode<C> for AccountKind {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _ctx: &mut C) -> Result<(), encode::Error<W::Error>> {
        match self {
            Self::ContaCorrente => e.bool(false)?,
            Self::ContaPoupanca => e.bool(true)?,
            Self::ContaPagamento => e.u8(2)?,
        };
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for AccountKind {
    fn decode(d: &mut Decoder<'b>, _ctx: &mut C) -> Result<Self, decode::Error> {
        if d.datatype()? == Type::Bool {
            return Ok(if d.bool()? { Self::ContaPoupanca } else { Self::ContaCorrente });
        }
        match d.u8()? {
            2 => Ok(Self::ContaPagamento),
            other => Err(decode::Error::unknown_variant(i64::from(other))),
        }
    }
}

/// Receiver of a cashout (interface 2.6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct PixDestination {
    /// Kind of the key.
    #[n(0)]
    pub kind: PixKeyKind,
    /// The key, as stored: digits, lower case, `+55…`.
    #[n(1)]
    pub key: String,
    /// The caller's description of the transfer.
    #[n(2)]
    pub info: Option<String>,
    /// The caller's labels; `None` if the request has none.
    #[n(3)]
    pub labels: Option<Labels>,
}

/// What a PIX key is, which says how it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, IntoStaticStr, VariantArray)]
#[cbor(index_only)]
#[strum(serialize_all = "snake_case")]
pub enum PixKeyKind {
    /// A person's CPF.
    #[default]
    #[n(0)]
    Cpf,
    /// A company's CNPJ.
    #[n(1)]
    Cnpj,
    /// An e-mail address.
    #[n(2)]
    Email,
    /// A telephone number with `+55`.
    #[n(3)]
    Phone,
    /// A random key: a UUID.
    #[n(4)]
    Evp,
}

impl PixKeyKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Free text: the reason of a refund or of a dispute. Free text is treated as personal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct FreeText {
    /// The text; empty where labels stand alone.
    #[n(0)]
    pub text: String,
    /// The caller's labels of a refund; `None` if the request has none.
    #[n(1)]
    pub labels: Option<Labels>,
}

impl From<String> for FreeText {
    fn from(text: String) -> Self {
        Self { text, labels: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The account as it was before it could have an ISPB.
    #[derive(Encode)]
    struct FormerAccount {
        #[n(0)]
        bank_code: String,
        #[n(1)]
        agencia: String,
        #[n(2)]
        agencia_dv: Option<String>,
        #[n(3)]
        conta: String,
        #[n(4)]
        conta_dv: Option<String>,
        #[n(5)]
        savings: bool,
        #[n(6)]
        legal_name: Option<String>,
        #[n(7)]
        document: String,
    }

    #[test]
    fn accounts_of_before_are_read_and_written_alike() {
        for (savings, kind) in [(false, AccountKind::ContaCorrente), (true, AccountKind::ContaPoupanca)] {
            let former = FormerAccount {
                bank_code: "341".to_owned(),
                agencia: "1234".to_owned(),
                agencia_dv: Some("X".to_owned()),
                conta: "56789".to_owned(),
                conta_dv: None,
                savings,
                legal_name: None,
                document: "52998224725".to_owned(),
            };
            let bytes = minicbor::to_vec(&former).unwrap();
            let account: BankAccount = minicbor::decode(&bytes).unwrap();
            assert_eq!((account.bank_code.as_deref(), account.agencia.as_deref()), (Some("341"), Some("1234")));
            assert_eq!((account.kind, account.ispb.clone()), (kind, None));
            assert_eq!(minicbor::to_vec(&account).unwrap(), bytes);
        }
    }

    /// A payer as it was before a charge could have labels.
    #[derive(Encode)]
    struct FormerPayer<'a>(
        #[n(0)] &'a str,
        #[n(1)] &'a str,
        #[n(2)] Option<&'a str>,
        #[n(3)] Option<&'a str>,
        #[n(4)] Option<&'a str>,
    );

    #[test]
    fn a_payer_without_labels_has_the_bytes_of_before() {
        for description in [None, Some("Pedido 1042")] {
            let former = minicbor::to_vec(FormerPayer("Ana", "52998224725", None, None, description)).unwrap();
            let payer: Payer = minicbor::decode(&former).unwrap();
            assert_eq!((payer.description.as_deref(), &payer.labels), (description, &None));
            assert_eq!(minicbor::to_vec(&payer).unwrap(), former);
            let metadata = Metadata::from([("loja".to_owned(), "azul".to_owned())]);
            let labelled = Payer { labels: Some(Labels { reference: Some("1042".to_owned()), metadata }), ..payer };
            assert_eq!(minicbor::decode::<Payer>(&minicbor::to_vec(&labelled).unwrap()).unwrap(), labelled);
        }
    }

    #[test]
    fn what_has_no_labels_has_the_bytes_of_before() {
        let text = FreeText::from("Produto devolvido".to_owned());
        assert_eq!(minicbor::to_vec(&text).unwrap(), minicbor::to_vec(("Produto devolvido",)).unwrap());
        let destination = PixDestination { key: "52998224725".to_owned(), ..PixDestination::default() };
        assert_eq!(minicbor::to_vec(&destination).unwrap(), minicbor::to_vec((0_u8, "52998224725")).unwrap());
        let profile = RecipientProfile { bank: Some(BankAccount::default()), ..RecipientProfile::default() };
        let encoded = minicbor::to_vec(&profile).unwrap();
        assert_eq!(encoded[0], 0x8a, "an array of 10 fields, as before");
        assert_eq!(minicbor::decode::<RecipientProfile>(&encoded).unwrap(), profile);
    }

    #[test]
    fn an_account_with_an_ispb_alone_keeps_all_it_has() {
        let account = BankAccount {
            ispb: Some("18236120".to_owned()),
            conta: "1".to_owned(),
            kind: AccountKind::ContaPagamento,
            ..BankAccount::default()
        };
        let bytes = minicbor::to_vec(&account).unwrap();
        assert_eq!(minicbor::decode::<BankAccount>(&bytes).unwrap(), account);
        assert_eq!(AccountKind::named("conta_pagamento"), Some(AccountKind::ContaPagamento));
        assert_eq!(AccountKind::named("conta"), None);
    }
}
