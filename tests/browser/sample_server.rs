//! A server of the real binary with something on every screen.

use std::path::PathBuf;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::callers::client;
use testkit::server::{Launch, Server};

use crate::chromium::{Browser, ENTER};

/// The token of an operator who may do everything.
pub(crate) const ANA: &str = "admin-of-thirty-two-characters-or-more";

/// The token of a second operator, who may decide what the first one asks for.
pub(crate) const RUI: &str = "second-of-thirty-two-characters-or-more";

/// The token of an operator who may only read.
pub(crate) const EVA: &str = "reader-of-thirty-two-characters-or-more";

/// Screens that an operator who may only read has without the forms of the others.
pub(crate) const OF_READERS: [&str; 8] =
    ["merchant", "key", "house", "queue", "queue-withdrawal", "sandbox", "month-that-is-over", "event"];

/// Texts that break pages which do not escape, or which read in one direction only.
const HOSTILE: &str = "\"><script>document.title='hurt'</script><img src=x onerror=alert(1)> \u{202e}moc.live";

/// A hostile text of this many characters, which ends with a word that cannot be broken.
fn hostile(characters: usize) -> String {
    HOSTILE.chars().chain(std::iter::repeat_n('W', characters)).take(characters).collect()
}

/// A server, its merchant, and what the merchant has.
pub(crate) struct SampleServer {
    server: Server,
    client: Client,
    key: String,
    key_id: String,
    merchant: String,
    recipient: String,
    txid: String,
    event: String,
    waiting: [String; 4],
    statement: String,
    card: String,
    subscription: String,
    folder: TempDir,
}

/// A bank statement of one line.
pub(crate) fn ofx(day: &str, amount: &str, id: &str) -> String {
    format!(
        "OFXHEADER:100\r\nDATA:OFXSGML\r\nVERSION:102\r\nENCODING:UTF-8\r\n\r\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS>\
         <BANKACCTFROM><BANKID>341<ACCTID>777-7</BANKACCTFROM><BANKTRANLIST><DTSTART>{day}<DTEND>{day}<STMTTRN>\
         <TRNTYPE>DEBIT<DTPOSTED>{day}<TRNAMT>{amount}<FITID>{id}<MEMO>TARIFA</STMTTRN></BANKTRANLIST>\
         </STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\r\n"
    )
}

impl SampleServer {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::on(folder.path()).with("CENTAVO_OPS_TOKEN", format!("ana:{ANA},rui:{RUI},eva:{EVA}"));
        let launch = launch.with("CENTAVO_OPS_ROLES", "ana=admin,rui=admin,eva=read");
        let launch = launch.with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
        let server = Server::start(&launch).await.unwrap();
        let mut shop = Self {
            server,
            client: client(),
            key: String::new(),
            key_id: String::new(),
            merchant: String::new(),
            recipient: String::new(),
            txid: String::new(),
            event: String::new(),
            waiting: Default::default(),
            statement: String::new(),
            card: String::new(),
            subscription: String::new(),
            folder,
        };
        let merchant = json!({"name": hostile(140), "city": hostile(60), "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
        shop.merchant = text(&shop.operate("/ops/merchants", &merchant).await["id"]);
        let path = format!("/ops/merchants/{}/api-keys", shop.merchant);
        // Nobody listens there, so events wait and are given up.
        let key = shop
            .operate(&path, &json!({"webhook_url": format!("http://127.0.0.1:9/webhooks?{}", "W".repeat(2_000))}))
            .await;
        (shop.key, shop.key_id) = (text(&key["api_key"]), text(&key["id"]));
        shop.recipient = shop.draft("João Araújo").await;
        shop.operate(&format!("/ops/sub-recipients/{}/approve", shop.recipient), &json!({})).await;
        let card = json!({
            "amount": 10_000, "splits": [{"sub_recipient_id": shop.recipient, "amount": 3_000}],
            "customer": {"name": hostile(140), "email": "maria@example.com", "document": "12345678909"},
            "credit_card": {"number": "4111111111111111", "holder_name": "MARIA", "exp_month": 12, "exp_year": 2099, "cvv": "737"},
        });
        shop.txid = text(&shop.call("/api/card", &card).await["txid"]);
        let stored = json!({"customer": card["customer"], "credit_card": card["credit_card"]});
        shop.card = text(&shop.call("/api/cards", &stored).await["card_token"]);
        let plan = json!({"tag": hostile(60), "amount": 100, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
            "initialGraceCycles": 1});
        let plan = shop.call("/api/recurrency/plans", &plan).await;
        let subscription = json!({"plan_id": plan["id"], "payment_method": "credit_card", "card_token": shop.card,
            "customer": card["customer"]});
        shop.subscription = text(&shop.call("/api/recurrency/subscriptions", &subscription).await["id"]);
        shop.event = shop.newest_event().await;
        let pix = shop.paid_pix().await;
        let path = format!("/api/dashboard/sub-recipients/{}/withdraw", shop.recipient);
        let withdrawal = text(&shop.call(&path, &json!({})).await["withdrawal_id"]);
        let refund = shop.refund().await;
        let entry = json!({"debit": "Expenses:Bank:Fees", "credit": "Assets:Bank:Pix", "amount": 1_234, "reason": hostile(500),
            "reference": HOSTILE, "reference_repeats": true});
        shop.operate("/ops/entries", &entry).await;
        let dispute = json!({"amount": 1_000, "kind": "med", "reason": hostile(500)});
        let dispute = text(&shop.operate(&format!("/ops/charges/{pix}/disputes"), &dispute).await["id"]);
        shop.statement = shop.compared(&ofx("20200131", "-12.34", "TAR-1")).await;
        shop.waiting = [shop.draft(&hostile(140)).await, withdrawal, refund, dispute];
        shop
    }

    /// Address of the operators' listener.
    pub(crate) fn operations(&self) -> &str {
        &self.server.operations
    }

    /// API key of the merchant.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Address of the merchants' listener.
    pub(crate) fn public(&self) -> &str {
        &self.server.public
    }

    /// Signs in by the form, and stays signed in.
    pub(crate) async fn sign_in(&self, browser: &Browser) {
        self.sign_in_as(browser, ANA).await;
    }

    /// Signs in by the form with a token.
    pub(crate) async fn sign_in_as(&self, browser: &Browser, token: &str) {
        sign_in(browser, self.operations(), token).await;
    }

    /// The path of the page of the merchant's key.
    pub(crate) fn key_page(&self) -> String {
        format!("/console/keys/{}", self.key_id)
    }

    /// The path of the merchant's page.
    pub(crate) fn merchant_page(&self) -> String {
        format!("/console/merchants/{}", self.merchant)
    }

    /// A name and a path of every screen, and of screens in more than one state.
    pub(crate) fn screens(&self) -> Vec<(String, String)> {
        let id = &self.merchant;
        let mut screens = vec![
            ("overview", "/console".to_owned()),
            ("newest-charges", "/console/charges".to_owned()),
            ("list-of-refunds", "/console/lists/refunds".to_owned()),
            ("list-of-disputes", "/console/lists/disputes?order=largest".to_owned()),
            ("house", "/console/house".to_owned()),
            ("what-is-open", format!("/console/merchants/{id}/open-items")),
            ("change-merchant", format!("/console/merchants/{id}/change")),
            ("key", format!("/console/keys/{}", self.key_id)),
            ("queue-of-one", format!("/console/queue?merchant_id={id}")),
            ("charge", format!("/console/charges/{}", self.txid)),
            ("dispute", format!("/console/charges/{}/dispute?amount=12,34&kind=chargeback", self.txid)),
            ("months", "/console/periods".to_owned()),
            ("people", "/console/people".to_owned()),
            ("month-that-is-over", "/console/periods/2020-01".to_owned()),
            ("month", format!("/console/periods/{}", chrono::Utc::now().format("%Y-%m"))),
            ("new-merchant", "/console/merchants/new".to_owned()),
            ("recipient", format!("/console/recipients/{}", self.recipient)),
            ("many", format!("/console/queue/many?decision=reject&id={}&id={}", self.waiting[0], self.waiting[2])),
            ("record", "/console/records/3".to_owned()),
            ("ledger", format!("/console/ledgers/M-{id}")),
            ("ledger-of-platform", format!("/console/ledgers/P-{id}")),
            ("ledger-of-recipient", format!("/console/ledgers/R-{}", self.recipient)),
            ("trial-balance", "/console/trial-balance".to_owned()),
            ("trial-balance-by-ledger", "/console/trial-balance?by=ledger".to_owned()),
            (
                "trial-balance-of-the-past",
                format!("/console/trial-balance?by=ledger&date={}", chrono::Utc::now().format("%Y-%m-%d")),
            ),
            ("ledgers-of-an-account", "/console/trial-balance?account=Income:Sales:Pix".to_owned()),
            ("journal", "/console/journal".to_owned()),
            ("merchants", "/console/merchants".to_owned()),
            ("merchant", format!("/console/merchants/{id}")),
            ("events", format!("/console/merchants/{id}/events")),
            ("queue", "/console/queue".to_owned()),
            ("webhooks", "/console/webhooks".to_owned()),
            ("event", format!("/console/webhooks/{}", self.event)),
            ("health", "/console/health".to_owned()),
            ("exports", "/console/exports".to_owned()),
            ("reports", "/console/reports".to_owned()),
            ("report", "/console/reports?report=general-ledger&ledger=P-all".to_owned()),
            ("report-of-a-recipient", format!("/console/reports?report=statement&ledger=R-{}", self.recipient)),
            ("reconciliations", "/console/reconciliations?month=2020-01".to_owned()),
            ("open-differences", "/console/reconciliations?open=true&month=2020-01".to_owned()),
            ("reconciliation", format!("/console/reconciliations/{}?finding=0", self.statement)),
            ("subscriptions", "/console/lists/subscriptions".to_owned()),
            ("subscription", format!("/console/subscriptions/{}", self.subscription)),
            ("card", format!("/console/cards/{}", self.card)),
            ("audit", "/console/audit".to_owned()),
            ("sandbox", "/console/sandbox".to_owned()),
        ];
        let kinds = ["queue-recipient", "queue-withdrawal", "queue-refund", "queue-dispute"];
        screens.extend(kinds.into_iter().zip(&self.waiting).map(|(name, id)| (name, format!("/console/queue/{id}"))));
        screens.into_iter().map(|(name, path)| (name.to_owned(), path)).collect()
    }

    /// A registered recipient on whom nobody has decided.
    pub(crate) async fn draft(&self, name: &str) -> String {
        self.draft_with(name, &json!({"bank_code": "341", "agencia": "1234", "conta": "56789", "conta_dv": "7"})).await
    }

    /// The same with a bank account of somebody else.
    pub(crate) async fn draft_with_foreign_account(&self, name: &str) -> String {
        let account = json!({"bank_code": "341", "agencia": "1234", "conta": "56788", "conta_dv": "7",
            "document_number": new_cpf()});
        self.draft_with(name, &account).await
    }

    async fn draft_with(&self, name: &str, account: &Value) -> String {
        let address = json!({"street": "Rua Direita", "number": "10", "neighborhood": "Sé", "city": "São Paulo", "state": "SP",
            "zip_code": "01002-000"});
        let body = json!({
            "register_information": {"type": "individual", "document_number": new_cpf(), "name": name, "birthdate": "29/02/2000",
                "mother_name": "Ana Prado", "address": address, "phone_numbers": [{"ddd": "11", "number": "987654321"}]},
            "bank_account": account,
        });
        text(&self.call("/api/sub-recipients", &body).await["id"])
    }

    /// The status of a recipient.
    pub(crate) async fn status_of(&self, recipient: &str) -> String {
        let path = format!("{}/api/sub-recipients/{recipient}", self.server.public);
        let answer = self.client.get(path).bearer_auth(&self.key).send().await.unwrap();
        text(&answer.json::<Value>().await.unwrap()["status"])
    }

    /// The id of the merchant's newest webhook event.
    async fn newest_event(&self) -> String {
        let path = format!("{}/api/events", self.server.public);
        let answer = self.client.get(path).bearer_auth(&self.key).send().await.unwrap();
        text(&answer.json::<Value>().await.unwrap()["items"][0]["id"])
    }

    /// The txid of a paid PIX charge.
    pub(crate) async fn paid_pix(&self) -> String {
        let splits = json!([{"sub_recipient_id": self.recipient, "amount": 3_000}]);
        let body = json!({"valor": "100.00", "nome": "Maria", "cpf": "12345678909", "splits": splits});
        let txid = text(&self.call("/api/pix", &body).await["txid"]);
        self.call(&format!("/api/sandbox/pix/{txid}/pay"), &json!({})).await;
        txid
    }

    /// A withdrawal that waits: the first one, or a new one after it was decided.
    pub(crate) async fn withdrawal(&self, is_first: bool) -> String {
        if is_first {
            return self.waiting[1].clone();
        }
        let path = format!("/api/dashboard/sub-recipients/{}/withdraw", self.recipient);
        text(&self.call(&path, &json!({})).await["withdrawal_id"])
    }

    /// A withdrawal that waits, to an account that was changed after the last payment.
    pub(crate) async fn withdrawal_to_changed_account(&self) -> String {
        let account = json!({"bank_account": {"conta": new_cpf(), "conta_dv": null}});
        let path = format!("{}/api/sub-recipients/{}", self.server.public, self.recipient);
        let changed = self.client.patch(path).bearer_auth(&self.key).json(&account).send().await.unwrap();
        assert!(changed.status().is_success(), "{changed:?}");
        self.operate(&format!("/ops/sub-recipients/{}/approve", self.recipient), &json!({})).await;
        self.paid_pix().await;
        self.withdrawal(false).await
    }

    /// Pays the withdrawal that waits from the beginning.
    pub(crate) async fn pay_first_withdrawal(&self) {
        self.operate(&format!("/ops/withdrawals/{}/approve", self.waiting[1]), &json!({})).await;
    }

    /// The id of a payment at its institution.
    pub(crate) async fn end_to_end_id(&self, txid: &str) -> String {
        let path = format!("{}/api/charges/{txid}", self.server.public);
        let answer = self.client.get(path).bearer_auth(&self.key).send().await.unwrap();
        text(&answer.json::<Value>().await.unwrap()["end_to_end_id"])
    }

    /// The code with which a new charge is refused.
    pub(crate) async fn refusal_of_a_charge(&self) -> String {
        let body = json!({"valor": "100.00", "nome": "Maria", "cpf": "12345678909"});
        let path = format!("{}/api/pix", self.server.public);
        let answer = self.client.post(path).bearer_auth(&self.key).json(&body).send().await.unwrap();
        text(&answer.json::<Value>().await.unwrap()["code"])
    }

    /// A refund that waits.
    pub(crate) async fn refund(&self) -> String {
        self.refund_because("").await
    }

    /// A refund that waits, with the merchant's reason.
    pub(crate) async fn refund_because(&self, reason: &str) -> String {
        let mut body = json!({"payment_id": self.paid_pix().await, "amount": 1_200});
        if !reason.is_empty() {
            body["reason"] = json!(reason);
        }
        text(&self.call("/api/refunds", &body).await["id"])
    }

    /// The SHA-256 of a bank statement that was compared.
    async fn compared(&self, statement: &str) -> String {
        let path = format!("{}/ops/reconciliations?account=own", self.server.operations);
        let sent = self.client.post(path).bearer_auth(ANA).header("content-type", "application/x-ofx");
        let answer = sent.body(statement.to_owned()).send().await.unwrap();
        let result: Value = answer.json().await.unwrap();
        text(&result["sha256"])
    }

    /// Moves the clock of the sandbox by days.
    pub(crate) async fn advance(&self, days: u64) {
        self.operate("/ops/sandbox/clock", &json!({"advance_seconds": days * 86_400})).await;
    }

    /// The file of an institution of the sandbox of the first day, changed and written beside it.
    pub(crate) fn file_of(&self, institution: &str, change: impl Fn(&str) -> String) -> PathBuf {
        let folder = self.folder.path().join("sandbox").join(institution);
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| {
            path.extension().is_some_and(|ending| ending == "ofx" || ending == "csv" || ending == "json")
        });
        paths.sort();
        let changed = paths[0].with_file_name(format!("sent-{}", paths[0].file_name().unwrap().to_str().unwrap()));
        std::fs::write(&changed, change(&std::fs::read_to_string(&paths[0]).unwrap())).unwrap();
        changed
    }

    pub(crate) fn stop(self) {
        self.server.stop().unwrap();
    }

    async fn operate(&self, path: &str, body: &Value) -> Value {
        self.post(&format!("{}{path}", self.server.operations), ANA, body).await
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        self.post(&format!("{}{path}", self.server.public), &self.key, body).await
    }

    async fn post(&self, address: &str, credential: &str, body: &Value) -> Value {
        post(&self.client, address, credential, body).await
    }
}

async fn post(client: &Client, address: &str, credential: &str, body: &Value) -> Value {
    let answer = client.post(address).bearer_auth(credential).json(body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{address}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

/// A server on which nothing has happened.
pub(crate) struct Empty {
    server: Server,
    _folder: TempDir,
}

impl Empty {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let launch = Launch::on(folder.path())
            .with("CENTAVO_OPS_TOKEN", format!("ana:{ANA}"))
            .with("CENTAVO_OPS_ROLES", "ana=admin");
        Self { server: Server::start(&launch).await.unwrap(), _folder: folder }
    }

    /// Opens a merchant with recipients, of whom one waits for an operator, and with charges.
    pub(crate) async fn make_charges(&self) {
        use ops::invented_parties::{self as parties, RECIPIENTS};
        let (operations, public) = (&self.server.operations, &self.server.public);
        let operate = async |path: &str, body: &Value| post(&client(), &format!("{operations}{path}"), ANA, body).await;
        let merchant = text(&operate("/ops/merchants", &parties::merchant()).await["id"]);
        let key = operate(&format!("/ops/merchants/{merchant}/api-keys"), &json!({})).await;
        let key = text(&key["api_key"]);
        let call = async |path: &str, body: &Value| post(&client(), &format!("{public}{path}"), &key, body).await;
        let mut ids = Vec::new();
        for recipient in RECIPIENTS {
            let body = parties::registration(recipient.name, recipient.document);
            ids.push(text(&call("/api/sub-recipients", &body).await["id"]));
        }
        for id in &ids[1..] {
            operate(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await;
        }
        for number in 0..12 {
            call("/api/card", &parties::card(number, parties::amount(number), &[], 2099)).await;
            let pix = call("/api/pix", &parties::pix(parties::amount(number), &[])).await;
            call(&format!("/api/sandbox/pix/{}/pay", text(&pix["txid"])), &json!({})).await;
        }
    }

    /// Address of the operators' listener.
    pub(crate) fn operations(&self) -> &str {
        &self.server.operations
    }

    pub(crate) async fn sign_in(&self, browser: &Browser) {
        sign_in(browser, self.operations(), ANA).await;
    }

    pub(crate) fn stop(self) {
        self.server.stop().unwrap();
    }
}

async fn sign_in(browser: &Browser, operations: &str, token: &str) {
    browser.open(&format!("{operations}/console/sign-in")).await;
    browser.type_into("#token", &format!("{token}{ENTER}")).await;
    assert_eq!(browser.place().await, "/console");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// A valid CPF, another one each time.
fn new_cpf() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(100_000_001);
    let mut digits: Vec<u32> =
        NEXT.fetch_add(1, Ordering::Relaxed).to_string().bytes().map(|byte| u32::from(byte - b'0')).collect();
    for _ in 0..2 {
        let weights = (2..).take(digits.len()).collect::<Vec<u32>>();
        let sum: u32 = digits.iter().zip(weights.iter().rev()).map(|(digit, weight)| digit * weight).sum();
        digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
    }
    digits.iter().map(u32::to_string).collect()
}
