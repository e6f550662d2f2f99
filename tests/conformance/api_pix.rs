//! API Pix by the word of the Central Bank's document: Prism stands between the adapter and a
//! player of an institution, and judges every message of a conversation without faults.

use actors::rails::{OpenPix, PixFate, PixOpening, PixRail, PixSpan, Repay, RepayAnswer};
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::personal::Payer;
use ledger::time::Timestamp;
use rails::api_pix::{ApiPix, ApiPixSettings, open};
use serde_json::json;
use testkit::api_pix_player::{CLIENT_SECRET, Player};

use crate::prism::Judge;

/// Name of the document in the folder that `CENTAVO_RAIL_DOCUMENTS` names. It is the Central Bank's
/// and not part of this project.
const DOCUMENT: &str = "pix-api-2.9.0.yaml";

/// The document with its slips corrected: patterns of documents and postal codes are written with
/// slashes inside, the list of payments requires a member that it does not have, and a location is
/// declared as an address although it has no scheme.
fn corrected(document: &str) -> String {
    let document = document.replace("\"/^", "\"^").replace("$/\"", "$\"").replace("format: uri", "format: text");
    let (before, list) = document.split_once("PixConsultados:").expect("the list of payments");
    format!("{before}PixConsultados:{}", list.replacen("\"parametros\", \"cobs\"", "\"parametros\", \"pix\"", 1))
}

fn adapter(folder: &std::path::Path, player: &Player, url: &str) -> ApiPix {
    use std::os::unix::fs::PermissionsExt;
    let secret = folder.join("secret");
    std::fs::write(&secret, CLIENT_SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut settings = player.settings(&secret);
    settings["url"] = json!(url);
    open(&serde_json::from_value::<ApiPixSettings>(settings).unwrap()).unwrap()
}

fn now() -> Timestamp {
    Timestamp(i64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_message_is_as_the_document_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let player = Player::start("bacen").await;
    let upstream = format!("http://{}{}", player.address, player.rules.base);
    let Some(judge) = Judge::start(folder.path(), DOCUMENT, corrected, &upstream).await else { return };
    let rail = adapter(folder.path(), &player, &judge.url);
    let payers = [
        Payer { name: "Maria das Dores".to_owned(), document: "12345678909".to_owned(), ..Payer::default() },
        Payer { name: "Loja Azul Ltda".to_owned(), document: "11222333000181".to_owned(), ..Payer::default() },
        Payer { description: Some("Pedido 7".to_owned()), ..Payer::default() },
    ];
    for (number, payer) in (1..).zip(payers) {
        let charge = ObjectId((now().0 as u128) << 80 | 8 << 76 | 2 << 62 | number);
        let call =
            OpenPix { charge, amount: Centavos(8_000), expires_at: now().plus_ms(3_600_000), payer, is_repeat: false };
        let opening = rail.open(call).await;
        assert!(matches!(opening, Ok(PixOpening::Registered { .. })), "{opening:?}\n{}", judge.log());
        if number == 1 {
            assert_eq!(rail.cancel(charge).await, Ok(PixFate::Cancelled), "{}", judge.log());
            continue;
        }
        let payment = player.pay(Some(&charge.txid()), "80.00");
        let fate = rail.cancel(charge).await;
        assert!(matches!(&fate, Ok(PixFate::Paid(paid)) if paid.end_to_end_id == payment), "{fate:?}");
        let repay = |number: u128| Repay {
            id: ObjectId(charge.0 + (number << 8)),
            decided_at: now(),
            charge,
            payment: payment.clone(),
            amount: Centavos(2_550),
            before: Centavos::ZERO,
            is_repeat: false,
        };
        for again in [1, 1, 2] {
            let answer = rail.repay(repay(again)).await;
            assert!(matches!(answer, Ok(RepayAnswer::Repaid(_))), "{answer:?}\n{}", judge.log());
        }
    }
    let span = PixSpan { from: now().plus_ms(-600_000), until: now().plus_ms(1_000), page: 0 };
    let receipts = rail.received(span).await.unwrap_or_else(|error| panic!("{error}\n{}", judge.log()));
    assert_eq!((receipts.payments.len(), receipts.has_more), (2, false));
    rail.register_callback("https://shop.example.com/pix-callbacks").await.unwrap();
    assert_eq!(player.returns_done().len(), 4);
    assert_eq!(player.records().violations, Vec::<String>::new());
    // The judge can refuse: a message that the document does not allow never reaches the player.
    let request = reqwest::Client::new().put(format!("{}/cob/{}", judge.url, "a".repeat(32)));
    let judged = request.json(&json!({"valor": {"original": 80}})).send().await.unwrap();
    assert!(!judged.status().is_success() && judged.text().await.unwrap().contains("stoplight.io/prism/errors"));
}
