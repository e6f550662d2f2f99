//! Cards at Adyen by the word of its maker: Prism judges the messages of a conversation by Adyen's
//! document, and Adyen's own library the signatures of notifications.

use std::path::Path;
use std::time::Duration;

use actors::rails::{CaptureCard, CardAnswer, CardRail, CardSecrets, ChargeCard, ChargedCard, Repay, RepayAnswer};
use ledger::fees::PaymentMethod;
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::personal::{MerchantProfile, Payer, StoreAddress, Storefront};
use ledger::rail_name::RailName;
use ledger::time::Timestamp;
use rails::adyen::{Adyen, AdyenSettings, NotBelieved, open};
use serde_json::{Value, json};
use testkit::adyen_player::{AdyenPlayer, BLOCKED, CHALLENGED, HMAC_KEY, notification};

use crate::prism::Judge;
use crate::tool;

/// Name of the document in the folder that `CENTAVO_RAIL_DOCUMENTS` names. It is Adyen's and not
/// part of this project.
const DOCUMENT: &str = "adyen-checkout-v72.json";

const AMOUNT: Centavos = Centavos(8_000);

fn adapter(folder: &Path, player: &AdyenPlayer, url: Option<&str>) -> Adyen {
    let mut settings = player.settings(folder);
    url.into_iter().for_each(|url| settings["url"] = json!(url));
    open(&serde_json::from_value::<AdyenSettings>(settings).unwrap()).unwrap()
}

fn now() -> Timestamp {
    Timestamp(i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap())
}

fn id(number: u128) -> ObjectId {
    ObjectId((now().0 as u128) << 80 | 8 << 76 | 2 << 62 | number)
}

fn card(number: &str) -> CardSecrets {
    CardSecrets {
        number: number.to_owned(),
        holder_name: "MARIA DAS DORES".to_owned(),
        exp_month: 3,
        exp_year: 2031,
        cvv: "737".to_owned(),
    }
}

/// A merchant of whom all is known that the schemes demand.
fn merchant() -> MerchantProfile {
    let address = StoreAddress {
        street: "Rua Direita".to_owned(),
        number: "10".to_owned(),
        city: "São Paulo".to_owned(),
        state: "SP".to_owned(),
        zip_code: "01002000".to_owned(),
    };
    let storefront = Storefront {
        soft_descriptor: Some("LOJA AZUL".to_owned()),
        mcc: Some("5651".to_owned()),
        address: Some(address),
        phone: Some("5511988887777".to_owned()),
        email: Some("contato@loja.example".to_owned()),
        url: Some("https://loja.example".to_owned()),
        acquirer_id: Some("LOJAAZUL1".to_owned()),
    };
    let (name, document) = ("Loja Azul Ltda".to_owned(), "11222333000181".to_owned());
    MerchantProfile { name, document, city: "São Paulo".to_owned(), storefront: Some(storefront) }
}

fn charge(charge: ObjectId, card: ChargedCard) -> ChargeCard {
    ChargeCard {
        charge,
        amount: AMOUNT,
        installments: 3,
        method: PaymentMethod::CreditCard,
        card,
        merchant: merchant(),
        payer: Payer {
            name: "Maria das Dores".to_owned(),
            document: "12345678909".to_owned(),
            email: Some("maria@example.com".to_owned()),
            ..Payer::default()
        },
        not_after: now().plus_ms(30_000),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_as_the_document_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let player = AdyenPlayer::start().await;
    // Paths of the document have no version; that is in the address of its server.
    let upstream = format!("http://{}/v72", player.address);
    let Some(judge) = Judge::start(folder.path(), DOCUMENT, str::to_owned, &upstream).await else { return };
    let rail = adapter(folder.path(), &player, Some(&judge.url));
    let token =
        rail.tokenize(card("4111111111111111")).await.unwrap_or_else(|error| panic!("{error}\n{}", judge.log()));
    for (number, card) in [(1, ChargedCard::Given(card("5555555555554444"))), (2, ChargedCard::Token(token))] {
        let (charge_id, order) = (id(number), id(number + 100));
        let answer = rail.charge(charge(charge_id, card)).await;
        let Ok(CardAnswer::Authorized(authorized)) = answer else { panic!("{answer:?}\n{}", judge.log()) };
        let payment = authorized.stamp.id.clone();
        let answer = rail.capture(CaptureCard { charge: charge_id, amount: AMOUNT, authorized }).await;
        assert!(matches!(answer, Ok(CardAnswer::Captured { .. })), "{answer:?}\n{}", judge.log());
        let (decided_at, amount) = (now(), Centavos(2_550));
        let repay = Repay {
            id: order,
            decided_at,
            charge: charge_id,
            payment,
            amount,
            before: Centavos::ZERO,
            is_repeat: false,
        };
        let answer = rail.repay(repay).await;
        assert!(matches!(answer, Ok(RepayAnswer::Repaid(_))), "{answer:?}\n{}", judge.log());
    }
    let refused = rail.charge(charge(id(3), ChargedCard::Given(card(BLOCKED)))).await;
    assert!(matches!(refused, Ok(CardAnswer::Refused(_))), "{refused:?}\n{}", judge.log());
    rail.charge(charge(id(4), ChargedCard::Given(card(CHALLENGED)))).await.expect_err("it needs its payer");
    assert_eq!(player.records().payments.len(), 4, "{}", judge.log());
    assert_eq!(player.records().violations, Vec::<String>::new());
    // The judge can refuse: a message that the document does not allow never reaches the player.
    let wrong = json!({ "additionalData": { "manualCapture": true } });
    let judged = reqwest::Client::new().post(format!("{}/payments", judge.url)).json(&wrong).send().await.unwrap();
    assert!(!judged.status().is_success() && judged.text().await.unwrap().contains("stoplight.io/prism/errors"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adyens_own_library_signs_as_the_adapter_reads() {
    let Some(mut command) = tool::node("@adyen/api-library") else { return };
    let folder = tempfile::tempdir().unwrap();
    let player = AdyenPlayer::start().await;
    let rail = adapter(folder.path(), &player, None);
    let reference = id(1).txid();
    let mut bodies: Vec<Value> = [
        ("CHARGEBACK", "true", [reference.as_str(), "9913140798220028"]),
        ("AUTHORISATION", "false", [reference.as_str(), ""]),
        ("CAPTURE_FAILED", "true", [reference.as_str(), "9913140798220028"]),
    ]
    .map(|(event, success, of)| notification(event, success, "QFQTPCQ8HXSKGK82", of, 10_050))
    .to_vec();
    let item = "/notificationItems/0/NotificationRequestItem";
    for (member, value) in [("success", json!("false")), ("amount", json!({ "currency": "BRL", "value": 10_051 }))] {
        let mut forged = bodies[0].clone();
        forged.pointer_mut(item).unwrap()[member] = value;
        bodies.push(forged);
    }
    let given = json!({ "key": HMAC_KEY, "bodies": bodies }).to_string();
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/adyen.js")).arg(given);
    let run = move || tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    let said = tokio::task::spawn_blocking(run).await.unwrap();
    let said: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let adyen = RailName::parse("adyen").unwrap();
    for (body, said) in bodies.iter_mut().zip(&said) {
        let read = rail.notifications(body.to_string().as_bytes(), &adyen);
        assert_eq!(read.is_ok(), said["holds"] == true, "{body}");
        // What the library signs is believed, and nothing that it has not signed.
        body.pointer_mut(item).unwrap()["additionalData"]["hmacSignature"] = said["signature"].clone();
        rail.notifications(body.to_string().as_bytes(), &adyen).unwrap();
        body.pointer_mut(item).unwrap()["pspReference"] = json!("QFQTPCQ8HXSKGK83");
        assert_eq!(rail.notifications(body.to_string().as_bytes(), &adyen), Err(NotBelieved::NotSigned));
    }
    assert_eq!(said.iter().filter(|said| said["holds"] == true).count(), 3, "{said:?}");
}
