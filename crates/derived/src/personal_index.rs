//! Blind index of personal data: which values of a Record are found, and their keyed hashes.
//!
//! A hash is a SipHash-2-4 under a key that is derived from the key of the month in which the value
//! was sealed. Where the month's key was dropped, there is no such key any more: its values
//! are not found, and what the index has of them says nothing. Nothing is opened while somebody
//! searches; a Record is opened once, when it is added to the index.

use std::borrow::Cow;
use std::sync::Arc;

use ledger::personal::{Address, PixKeyKind};
use ledger::{
    BankAccount, Event, GroupNumber, Labels, MerchantProfile, Payer, PixDestination, RecipientProfile, Record, Sealed,
};

use crate::index::{FoundKind, SearchKey, WORD_BEGIN};
use crate::read_model::FoldName;
use crate::seal::{Keyring, MonthKey};
use store::StoreError;

/// Words of a name that are found: the first ones.
pub const NAME_WORDS_MAX: usize = 5;
/// Characters of a name that are looked at; the API takes fewer.
const NAME_CHARACTERS_MAX: usize = 200;
/// Words of names that tell nobody apart.
const PARTICLES: [&str; 6] = ["da", "das", "de", "do", "dos", "e"];
/// Characters of a word that count.
const WORD_CHARACTERS_MAX: usize = 32;

/// A personal value, as it is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersonalValue {
    /// CPF or CNPJ of a payer, recipient, or PIX key, without punctuation.
    Document(String),
    /// E-mail of a payer, recipient, or PIX key.
    Email(String),
    /// One word of a name, folded: see [`name_words`].
    NameWord(String),
    /// The beginning of a word of a name, folded: three letters or more, or a whole shorter word.
    NameBeginning(String),
    /// Bank account of a recipient.
    BankAccount(Box<BankAccount>),
    /// First phone of a recipient: area code and number.
    Phone(String),
    /// Address of a recipient: found by its CEP and number, and the same where the street is too.
    Address(Box<Address>),
    /// Reference that a merchant gave to something.
    Reference(String),
    /// The same of one merchant: many may give the reference `1`.
    ReferenceOf(GroupNumber, String),
}

impl PersonalValue {
    /// An address by its CEP, street and number; `None` without a CEP.
    pub fn address(address: &Address) -> Option<Self> {
        (!address.zip_code.trim().is_empty()).then(|| Self::Address(Box::new(address.clone())))
    }

    /// The first phone of a registration.
    pub fn phone(profile: &RecipientProfile) -> Option<Self> {
        profile.phones.first().map(|phone| Self::Phone(format!("{}{}", phone.ddd, phone.number)))
    }

    /// The references of labels, by which all search, and by which their merchant does.
    fn references(labels: Option<Labels>, group: Option<GroupNumber>) -> impl Iterator<Item = Self> {
        let reference = labels.and_then(|labels| labels.reference);
        let of_group = group.zip(reference.clone()).map(|(group, reference)| Self::ReferenceOf(group, reference));
        reference.map(Self::Reference).into_iter().chain(of_group)
    }

    /// A bank account: institution, branch and number, whatever the holder's name.
    pub fn account(account: &BankAccount) -> Self {
        Self::BankAccount(Box::new(account.clone()))
    }

    /// Whether this, which is searched for, is a value of a Record.
    fn is(&self, value: &Self, fold_name: FoldName) -> bool {
        match (self, value) {
            (Self::Address(one), Self::Address(other)) if street(one, fold_name) != street(other, fold_name) => false,
            (Self::NameBeginning(begin), Self::NameWord(word)) if begin.chars().nth(WORD_BEGIN - 1).is_some() => {
                word.starts_with(begin)
            }
            _ => self.purpose_and_text() == value.purpose_and_text(),
        }
    }

    fn purpose_and_text(&self) -> (&'static str, Cow<'_, str>) {
        match self {
            Self::Document(document) => ("document", document.to_uppercase().into()),
            Self::Email(email) => ("email", email.trim().to_lowercase().into()),
            Self::NameWord(word) | Self::NameBeginning(word) => {
                let end = word.char_indices().nth(WORD_CHARACTERS_MAX).map_or(word.len(), |(end, _)| end);
                ("name", word[..end].into())
            }
            Self::BankAccount(account) => {
                let BankAccount { bank_code, ispb, agencia, conta, conta_dv, .. } = &**account;
                let parts = [bank_code.as_ref().or(ispb.as_ref()), agencia.as_ref(), Some(conta), conta_dv.as_ref()];
                ("account", parts.map(|part| part.map_or("", String::as_str)).join(" ").into())
            }
            Self::Phone(phone) => ("phone", phone.into()),
            Self::Address(address) => {
                let (zip_code, number) = (address.zip_code.trim(), address.number.trim().to_lowercase());
                ("address", format!("{zip_code} {number}").into())
            }
            Self::Reference(reference) => ("reference", reference.into()),
            Self::ReferenceOf(group, reference) => ("own reference", format!("{} {reference}", group.0).into()),
        }
    }
}

/// Words that begin the names of streets, and how they are shortened.
const STREETS: [(&str, &[&str]); 7] = [
    ("rua", &["r"]),
    ("avenida", &["av", "aven"]),
    ("alameda", &["al"]),
    ("travessa", &["tv", "trav"]),
    ("praca", &["pc", "pca"]),
    ("rodovia", &["rod"]),
    ("estrada", &["est", "estr"]),
];

/// The words of a street, folded, without particles; its first word whole where it was shortened.
fn street(address: &Address, fold_name: FoldName) -> Vec<String> {
    let folded = fold_name(&address.street);
    let words = folded.split(|letter: char| !letter.is_alphanumeric());
    let mut words: Vec<_> = words.filter(|word| !word.is_empty() && !PARTICLES.contains(word)).collect();
    if let Some(first) = words.first_mut() {
        *first = STREETS.iter().find(|(_, short)| short.contains(first)).map_or(*first, |(whole, _)| *whole);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// The words of a folded name that are found: its first ones, each once, of two characters or more,
/// without particles (`da`, `dos`).
pub fn name_words(folded: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in folded.split(|letter: char| !letter.is_alphanumeric()) {
        let counts = word.chars().nth(1).is_some() && !PARTICLES.contains(&word);
        if counts && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words.truncate(NAME_WORDS_MAX);
    words
}

/// Makes the search keys of personal data.
#[derive(Clone)]
pub struct PersonalIndex {
    keyring: Arc<Keyring>,
    fold_name: FoldName,
}

impl PersonalIndex {
    /// The index under the keys of a ring; `fold_name` prepares names for search.
    pub fn new(keyring: Arc<Keyring>, fold_name: FoldName) -> Self {
        Self { keyring, fold_name }
    }

    /// The words of a name, as they are found.
    pub fn name_words(&self, name: &str) -> Vec<String> {
        let end = name.char_indices().nth(NAME_CHARACTERS_MAX).map_or(name.len(), |(end, _)| end);
        name_words(&(self.fold_name)(&name[..end]))
    }

    /// The keys of these values, newest month first: a set for each month whose key is there.
    pub fn search_keys(&self, values: &[PersonalValue]) -> Result<Vec<Vec<SearchKey>>, StoreError> {
        let mut sets = Vec::new();
        for month in self.keyring.months()?.into_iter().rev() {
            let key = self.keyring.month(month)?;
            sets.extend(key.map(|key| values.iter().map(|value| search_key(month, &key, value)).collect()));
        }
        Ok(sets)
    }

    /// The keys of all personal values of a Record. Nothing of a Record whose month's key was
    /// dropped. After the Record of an erasure, its months open nothing in this process any more.
    pub(crate) fn of_record(&self, record: &Record) -> Result<Vec<(SearchKey, FoundKind)>, StoreError> {
        for event in &record.events {
            if let Event::KeysErased { through } = event {
                self.keyring.forget_through(*through);
            }
        }
        let (Some(sealed), Some(found)) = (&record.personal, found_kind(record)) else { return Ok(Vec::new()) };
        let Some(key) = self.keyring.month(sealed.month)? else { return Ok(Vec::new()) };
        let values = self.values(&key, record, sealed, found).unwrap_or_default();
        Ok(values.iter().map(|value| (search_key(sealed.month, &key, value), found)).collect())
    }

    /// Whether a Record has all of these values. Its sealed part is opened.
    pub fn has_all(&self, record: &Record, sought: &[PersonalValue]) -> Result<bool, StoreError> {
        Ok(self.has_each(&self.opened(record)?, sought))
    }

    /// The values of a Record by which it is found. Its sealed part is opened.
    pub fn opened(&self, record: &Record) -> Result<Vec<PersonalValue>, StoreError> {
        let (Some(sealed), Some(found)) = (&record.personal, found_kind(record)) else { return Ok(Vec::new()) };
        let Some(key) = self.keyring.month(sealed.month)? else { return Ok(Vec::new()) };
        Ok(self.values(&key, record, sealed, found).unwrap_or_default())
    }

    /// Whether all of these values, which are searched for, are among those of a Record or person.
    pub fn has_each(&self, values: &[PersonalValue], sought: &[PersonalValue]) -> bool {
        sought.iter().all(|sought| values.iter().any(|value| sought.is(value, self.fold_name)))
    }

    /// The values of a Record's sealed personal data; `None` if it does not open.
    fn values(&self, key: &MonthKey, record: &Record, sealed: &Sealed, found: FoundKind) -> Option<Vec<PersonalValue>> {
        let sealed_for = record.personal_for()?;
        Some(match found {
            FoundKind::Charge | FoundKind::Customer => {
                let payer: Payer = key.open_value(sealed_for, sealed)?;
                let mut values = self.person(&payer.name, payer.document, payer.email);
                values.extend(PersonalValue::references(payer.labels, record.owner.group()));
                values
            }
            FoundKind::Recipient => {
                let profile: RecipientProfile = key.open_value(sealed_for, sealed)?;
                let mut values = self.person(&profile.name, profile.document.clone(), profile.email.clone());
                values.extend(profile.bank.as_ref().map(PersonalValue::account));
                values.extend(PersonalValue::phone(&profile));
                values.extend(profile.address.as_ref().and_then(PersonalValue::address));
                values.extend(PersonalValue::references(profile.labels, record.owner.group()));
                values
            }
            FoundKind::Merchant => {
                let profile: MerchantProfile = key.open_value(sealed_for, sealed)?;
                self.person(&profile.name, profile.document, None)
            }
            FoundKind::Act => Vec::new(),
            FoundKind::Cashout => {
                let to: PixDestination = key.open_value(sealed_for, sealed)?;
                let key = match to.kind {
                    PixKeyKind::Cpf | PixKeyKind::Cnpj => Some(PersonalValue::Document(to.key)),
                    PixKeyKind::Email => Some(PersonalValue::Email(to.key)),
                    PixKeyKind::Phone | PixKeyKind::Evp => None,
                };
                key.into_iter().chain(PersonalValue::references(to.labels, record.owner.group())).collect()
            }
        })
    }

    /// The values of a person, by which a search finds what is the person's.
    pub fn person(&self, name: &str, document: String, email: Option<String>) -> Vec<PersonalValue> {
        let words = self.name_words(name).into_iter().map(PersonalValue::NameWord);
        let others = [PersonalValue::Document(document)].into_iter().chain(email.map(PersonalValue::Email));
        words.chain(others).collect()
    }
}

/// The key of a value that was sealed in a month.
fn search_key(month: u16, key: &MonthKey, value: &PersonalValue) -> SearchKey {
    let (purpose, text) = value.purpose_and_text();
    let begin = text.char_indices().nth(WORD_BEGIN).map_or(text.len(), |(end, _)| end);
    let hash = |text: &str| key.blind_hash(purpose, text.as_bytes());
    match value {
        PersonalValue::NameBeginning(word) if word.chars().nth(WORD_BEGIN - 1).is_some() => {
            SearchKey::name_beginning(month, hash(&text[..begin]), &text[begin..])
        }
        PersonalValue::NameWord(_) | PersonalValue::NameBeginning(_) => {
            SearchKey::name_word(month, hash(&text[..begin]), &text[begin..])
        }
        _ => SearchKey::sealed(month, hash(&text)),
    }
}

/// What a Record with personal data makes that is found by them.
fn found_kind(record: &Record) -> Option<FoundKind> {
    record.events.iter().find_map(|event| match event {
        Event::ChargeOpened { .. } => Some(FoundKind::Charge),
        Event::SubscriptionCreated { .. } | Event::CardStored { .. } => Some(FoundKind::Customer),
        Event::RecipientRegistered { .. } | Event::RecipientRegisteredAgain { .. } | Event::RecipientChanged { .. } => {
            Some(FoundKind::Recipient)
        }
        Event::CashoutCreated { .. } => Some(FoundKind::Cashout),
        Event::MerchantOpened { .. } | Event::MerchantChanged { .. } => Some(FoundKind::Merchant),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use ledger::id::{Fingerprint, ObjectId};
    use ledger::personal::{Phone, SealedFor};
    use ledger::record::Decision;
    use ledger::time::Timestamp;
    use store::testkit::MemoryStore;

    use super::*;

    const NOW: Timestamp = Timestamp(1_795_000_000_000);

    #[test]
    fn words_of_a_name() {
        for (name, words) in [
            ("maria das gracas da silva", &["maria", "gracas", "silva"][..]),
            ("o'neill-souza e souza", &["neill", "souza"]),
            ("a b c d e f g", &[]),
            ("um dois tres quatro cinco seis", &["um", "dois", "tres", "quatro", "cinco"]),
        ] {
            assert_eq!(name_words(name), words, "{name}");
        }
    }

    #[test]
    fn addresses_are_the_same_by_postal_code_street_and_number() {
        let address = |street: &str, number: &str, zip_code: &str| {
            let address = Address {
                street: street.to_owned(),
                number: number.to_owned(),
                zip_code: zip_code.to_owned(),
                ..Address::default()
            };
            PersonalValue::address(&address).unwrap()
        };
        let own = address("Rua das Flores", "7b", "01001000");
        for (other, is_same) in [
            (address("R. das Flores", " 7B ", "01001000"), true),
            (address("RUA FLORES", "7b", "01001000"), true),
            (address("Rua das Palmas", "7b", "01001000"), false),
            (address("Avenida das Flores", "7b", "01001000"), false),
            (address("Rua das Flores", "7", "01001000"), false),
            (address("Rua das Flores", "7b", "01001001"), false),
        ] {
            assert_eq!(own.is(&other, str::to_lowercase), is_same, "{other:?}");
        }
    }

    #[test]
    fn the_values_of_a_registration_are_found_while_its_month_has_a_key() {
        let store: Arc<dyn store::Store> = Arc::new(MemoryStore::default());
        let keyring = Arc::new(Keyring::open([1; 32], Arc::clone(&store)).unwrap());
        let index = PersonalIndex::new(Arc::clone(&keyring), str::to_lowercase);
        let document = Fingerprint([3; 16]);
        let account = BankAccount { conta: "123".to_owned(), ..BankAccount::default() };
        let address = Address { zip_code: "01001000".to_owned(), number: "7".to_owned(), ..Address::default() };
        let profile = RecipientProfile {
            name: "Ana Souza".to_owned(),
            document: "52998224725".to_owned(),
            phones: vec![Phone { ddd: "11".to_owned(), number: "912345678".to_owned() }],
            address: Some(address.clone()),
            bank: Some(account.clone()),
            ..RecipientProfile::default()
        };
        let (number, id) = (ledger::id::RecipientNumber(1), ObjectId(9));
        let event = Event::RecipientRegistered { number, id, document };
        let owner = ledger::id::LedgerId::Merchant(ledger::id::GroupNumber(1));
        let mut record = Decision::of(event).into_record(owner, 1, NOW);
        record.personal = Some(keyring.seal_profile(SealedFor::recipient(document), None, NOW, &profile).unwrap());
        let keys = index.of_record(&record).unwrap();
        let held_by = |account: &BankAccount| BankAccount { legal_name: Some("Ana".to_owned()), ..account.clone() };
        let sought = [
            PersonalValue::NameWord("ana".to_owned()),
            PersonalValue::NameWord("souza".to_owned()),
            PersonalValue::Document("52998224725".to_owned()),
            PersonalValue::account(&held_by(&account)),
            PersonalValue::phone(&profile).unwrap(),
            PersonalValue::address(&address).unwrap(),
        ];
        let found = |index: &PersonalIndex, value: &PersonalValue| {
            let keys_sought = index.search_keys(std::slice::from_ref(value)).unwrap();
            keys_sought.iter().flatten().any(|sought| keys.iter().any(|(key, _)| key == sought))
        };
        assert_eq!(keys.len(), sought.len());
        assert!(sought.iter().all(|value| found(&index, value)));
        assert!(index.has_all(&record, &sought).unwrap());
        let beginning = |text: &str| [PersonalValue::NameBeginning(text.to_owned())];
        assert!(index.has_all(&record, &beginning("sou")).unwrap());
        assert!(!index.has_all(&record, &beginning("souzas")).unwrap(), "what the hash does not tell apart");
        assert!(!found(&index, &PersonalValue::NameWord("52998224725".to_owned())), "kinds are apart");
        assert!(!found(&index, &PersonalValue::Document("12345678909".to_owned())));

        let other = Arc::new(Keyring::open([2; 32], Arc::new(MemoryStore::default())).unwrap());
        other.prepare(NOW).unwrap();
        let other = PersonalIndex::new(other, str::to_lowercase);
        assert!(sought.iter().all(|value| !found(&other, value)), "another installation has other hashes");

        for (key, _) in store.commons().unwrap().iter().filter(|(key, _)| key.starts_with(b"keys/month/")) {
            store.remove_common(key).unwrap();
        }
        assert!(sought.iter().all(|value| !found(&index, value)), "the key of the month was dropped");
        let later = PersonalIndex::new(Arc::new(Keyring::open([1; 32], store).unwrap()), str::to_lowercase);
        assert_eq!(later.of_record(&record).unwrap(), [], "nor is it added again");
    }
}
