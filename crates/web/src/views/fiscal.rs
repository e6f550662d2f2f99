//! Fiscal side of a charge as JSON: what a fiscal document says of its payment, and the documents
//! that are linked to it.

use actors::engine::Engine;
use ledger::charge::FiscalDocument;
use ledger::fiscal_key::FiscalKey;
use ledger::{CardBrand, Charge, ChargeOutcome, LedgerId, ObjectId, PaymentMethod, SealedFor};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time;
use crate::views::recipient::recipient_id;

/// What a fiscal document says of a payment, in the codes of the NF-e. The parties are settings of
/// the rail: null in a sandbox, and where they are not set.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct FiscalView {
    /// Means of payment (`tPag`): `17` is a dynamic PIX, `03` a credit card, `04` a debit card.
    #[schema(pattern = "^(17|03|04)$", example = "17")]
    pub means: &'static str,
    /// The charge's `txid`; PIX only.
    #[schema(nullable = false, pattern = "^[0-9a-f]{32}$")]
    pub txid: Option<String>,
    /// The payment's end-to-end id; paid PIX only.
    #[schema(nullable = false, example = "E00000000202607011200abcdef01234")]
    pub end_to_end_id: Option<String>,
    /// CNPJ of the receiver; PIX only.
    #[schema(required = false, value_type = Option<String>, example = "11222333000181")]
    pub receiver_document: Option<Option<String>>,
    /// ISPB of the receiver's institution, the first 8 of its CNPJ; PIX only.
    #[schema(required = false, value_type = Option<String>, example = "00000208")]
    pub psp_ispb: Option<Option<String>>,
    /// The scheme (`tBand`); cards only.
    #[schema(nullable = false, pattern = "^[0-9]{2}$", example = "01")]
    pub brand: Option<&'static str>,
    /// The issuer's authorization code (`cAut`); null before the capture, and where the acquirer
    /// gives none. Cards only.
    #[schema(required = false, value_type = Option<String>, example = "123456")]
    pub authorization: Option<Option<String>>,
    /// CNPJ of the acquirer; cards only.
    #[schema(required = false, value_type = Option<String>, example = "11222333000181")]
    pub acquirer_document: Option<Option<String>>,
}

impl FiscalView {
    /// The fiscal side of a charge's payment.
    pub fn of(engine: &Engine, charge: &Charge) -> Self {
        let parties = charge.rail.as_ref().and_then(|rail| engine.rails().parties.get(rail));
        let parties = parties.cloned().unwrap_or_default();
        let end_to_end_id = match &charge.outcome {
            ChargeOutcome::Paid { end_to_end_id, .. } => end_to_end_id.clone(),
            _ => None,
        };
        let is_pix = charge.card.is_none();
        let (authorization, _) = receipt(charge);
        Self {
            means: match charge.terms.method {
                PaymentMethod::Pix => "17",
                PaymentMethod::CreditCard => "03",
                PaymentMethod::DebitCard => "04",
            },
            txid: is_pix.then(|| charge.id.txid()),
            end_to_end_id,
            receiver_document: is_pix.then_some(parties.receiver_document),
            psp_ispb: is_pix.then_some(parties.psp_ispb),
            brand: charge.card.as_ref().map(|card| brand_code(card.brand)),
            authorization: (!is_pix).then_some(authorization),
            acquirer_document: (!is_pix).then_some(parties.acquirer_document),
        }
    }
}

/// Authorization code and NSU of a captured card, where its acquirer gives them, or as a sandbox
/// makes them up.
pub fn receipt(charge: &Charge) -> (Option<String>, Option<String>) {
    let Some(capture) = &charge.capture else { return (None, None) };
    let (authorization, nsu) = charge.rail.is_none().then(|| made_up_receipt(charge.id)).unzip();
    (capture.authorization.clone().or(authorization), capture.nsu.clone().or(nsu))
}

/// Authorization code and NSU that a sandbox makes up for a captured card: digits of the charge's
/// id, which are stored nowhere.
pub fn made_up_receipt(charge: ObjectId) -> (String, String) {
    let digits = charge.0 % 1_000_000_000_000;
    (format!("{:06}", digits % 1_000_000), format!("{digits:012}"))
}

/// The code of a scheme (`tBand`).
fn brand_code(brand: CardBrand) -> &'static str {
    match brand {
        CardBrand::Visa => "01",
        CardBrand::Mastercard => "02",
        CardBrand::Amex => "03",
        CardBrand::Diners => "05",
        CardBrand::Elo => "06",
        CardBrand::Hipercard => "07",
        CardBrand::Discover => "14",
        CardBrand::Jcb => "18",
        CardBrand::Other => "99",
    }
}

/// A fiscal document of a charge.
#[derive(Debug, Serialize, ToSchema)]
pub struct FiscalDocumentView {
    /// The access key, 44 or 50 positions. Operators see `*` in place of a person's CPF.
    #[schema(pattern = "^([0-9A-Z*]{44}|[0-9A-Z*]{50})$", example = "35261111222333000181550010000012341531872043")]
    pub key: String,
    /// The recipient whose document it is; null for the merchant's.
    #[schema(required, format = "uuid")]
    pub of: Option<String>,
    /// Whether the issuer was the merchant or a recipient of the charge, by the first 8 characters
    /// of the CNPJ.
    pub issuer_known: bool,
    /// When it was linked.
    pub linked_at: String,
}

/// The access key of a fiscal document without the CPF of a person who issued it.
pub fn without_cpf(key: &str) -> String {
    let issuer = FiscalKey::parse(key).ok().map(|key| key.issuer().to_owned());
    let cpf = issuer.filter(|issuer| issuer.len() == 11);
    cpf.map_or_else(|| key.to_owned(), |cpf| key.replacen(&cpf, &"*".repeat(cpf.len()), 1))
}

/// The fiscal documents of a charge; without those whose keys were erased. `is_whole` shows the
/// CPFs of issuers.
pub fn fiscal_documents(engine: &Engine, charge: &Charge, is_whole: bool) -> Vec<FiscalDocumentView> {
    let group = engine.ids().group(charge.id);
    let view = |linked: &FiscalDocument| {
        let sealed_for = SealedFor::fiscal_key(linked.document);
        let recipient = linked.of.and_then(|number| recipient_id(engine, LedgerId::Recipient(group, number)));
        Some(FiscalDocumentView {
            key: engine.keyring().open_value(sealed_for, linked.access_key.as_ref()?)?,
            of: recipient.map(|id| id.uuid().to_string()),
            issuer_known: linked.issuer_known,
            linked_at: time(linked.linked_at),
        })
    };
    let mut documents: Vec<_> = charge.fiscal_documents.iter().filter_map(view).collect();
    if !is_whole {
        documents.iter_mut().for_each(|document| document.key = without_cpf(&document.key));
    }
    documents
}
