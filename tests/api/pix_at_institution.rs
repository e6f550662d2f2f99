//! A live server at an institution that speaks API Pix, seen from both sides: what merchants and
//! operators are answered, and what the institution has in its records.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use actors::rails::RailParties;
use centavo::server::named_rails::settings::{
    AdapterSettings, BellSettings, CurrentRails, NamedRail, NamedRailSettings,
};
use ledger::rail_name::RailName;
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_SECRET, Player};
use testkit::played_http::Oddity;

use crate::second_node;
use crate::world::*;

/// The secret at the beginning of the path of a callback.
const SECRET: &str = "the-secret-of-the-paths-with-32-characters";

fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// The institution `itau`, as a settings file would have it.
fn rails(folder: &Path, player: &Player) -> Option<NamedRailSettings> {
    let itau = RailName::parse("itau").unwrap();
    let adapter = player.settings(&private(folder, "secret", CLIENT_SECRET));
    let adapter = AdapterSettings::ApiPix(serde_json::from_value(adapter).unwrap());
    let callback_url = Some(format!("https://pay.example.com/{SECRET}/itau"));
    let by_name =
        [(itau.clone(), NamedRail { line: 2, callback_url, parties: RailParties::default(), adapter })].into();
    Some(NamedRailSettings {
        file: folder.join("centavo.toml"),
        line: 1,
        current: CurrentRails { pix: Some(itau), ..CurrentRails::default() },
        by_name,
    })
}

async fn live(folder: tempfile::TempDir, player: &Player) -> World {
    let (rails, path_secret) = (rails(folder.path(), player), Some(private(folder.path(), "path-secret", SECRET)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let bells = Some(BellSettings { listen, tls: None, client_authority: None, path_secret });
    World::live_on(folder, |settings| {
        settings.rails.clone_from(&rails);
        settings.bells.clone_from(&bells);
    })
    .await
}

/// Waits until something is so, with the institution's bell ringing.
async fn until(world: &World, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let bell = format!("/{SECRET}/itau/pix");
    for _ in 0..600 {
        // Nothing in its body is believed.
        assert_eq!(world.ring(&bell, &json!({"pix": [{"valor": "9.99"}]})).await, 200);
        if is_so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{what}");
}

async fn charge(merchant: &Merchant<'_>, txid: &str) -> Value {
    merchant.get(&format!("/api/charges/{txid}")).await.expect(200)
}

async fn created(merchant: &Merchant<'_>, valor: &str) -> String {
    text(&merchant.post("/api/pix", &pix(valor)).await.expect(201)["txid"])
}

/// What the books have at the bank, what is owed to payers, and what is in suspense, centavos.
async fn booked(world: &World) -> [i64; 3] {
    let accounts = world.accounts().await;
    let of = |name: &str| accounts.iter().filter(|((_, account), _)| account == name).map(|(_, sum)| sum).sum();
    [of("Assets:Bank:Pix"), of("Liabilities:Payers:Refunds"), of("Liabilities:Suspense")]
}

/// What the institution has for us: payments less returns, centavos.
fn at_the_institution(player: &Player) -> i64 {
    let centavos = |text: &str| text.replace('.', "").parse::<i64>().unwrap();
    let paid: i64 = player.records().payments.iter().map(|payment| centavos(&payment.amount)).sum();
    let returned: i64 = player.returns_done().iter().map(|made| centavos(made["valor"].as_str().unwrap())).sum();
    paid - returned
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_is_paid_refunded_and_what_nobody_asked_for_goes_back() {
    for dialect in ["bacen", "efi", "sicredi"] {
        let player = Player::start(dialect).await;
        let world = live(tempfile::tempdir().unwrap(), &player).await;
        let merchant = world.merchant().await;
        let answer = merchant.post("/api/pix", &pix("80.00")).await.expect(201);
        let (txid, code) = (text(&answer["txid"]), text(&answer["pixCopiaECola"]));
        assert!(code.starts_with("000201") && code.contains("br.gov.bcb.pix"), "{code}");
        assert_eq!(charge(&merchant, &txid).await["pixCopiaECola"], code);
        let ordered = player.records().charges[&txid].body.clone();
        assert_eq!(ordered["valor"]["original"], "80.00");
        assert_eq!(ordered["devedor"], json!({"cpf": "12345678909", "nome": "Maria das Dores"}));
        assert_eq!(ordered["solicitacaoPagador"], "Pedido 7");

        let end_to_end_id = player.pay(Some(&txid), "80.00");
        until(&world, "the payment is booked", async || charge(&merchant, &txid).await["status"] == "CONCLUIDA").await;
        assert_eq!(charge(&merchant, &txid).await["end_to_end_id"], end_to_end_id);
        assert_eq!(booked(&world).await, [8_000, 0, 0]);

        // A part of it goes back: asked for by the merchant, approved by an operator.
        let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 2_550})).await.expect(201);
        let approve = format!("/ops/refunds/{}/approve", text(&refund["id"]));
        world.ops_post(&approve, &json!({})).await.expect(200);
        until(&world, "the refund is sent", async || booked(&world).await == [5_450, 0, 0]).await;
        let returned = player.returns_done();
        assert_eq!((returned.len(), &returned[0]["valor"]), (1, &json!("25.50")));
        assert_eq!(returned[0]["id"], text(&refund["id"]).replace('-', ""));

        // Paid again, paid after its end, and paid without a charge.
        player.pay(Some(&txid), "80.00");
        let ended = created(&merchant, "10.00").await;
        let cancelled = merchant.post(&format!("/api/charges/{ended}/cancel"), &json!({})).await.expect(200);
        assert_eq!(cancelled["status"], "cancelled");
        assert_eq!(player.records().charges[&ended].status, "REMOVIDA_PELO_USUARIO_RECEBEDOR");
        player.pay(Some(&ended), "10.00");
        until(&world, "both are back", async || player.returns_done().len() == 3).await;
        until(&world, "both are booked", async || booked(&world).await == [5_450, 0, 0]).await;
        assert_eq!(charge(&merchant, &ended).await["status"], "cancelled");
        merchant.post("/api/card", &card(1_000, APPROVED)).await.refused(503, "rail_not_configured");
        let address = format!("https://pay.example.com/{SECRET}/itau");
        assert_eq!(player.records().webhooks.values().collect::<Vec<_>>(), [&address]);
        assert_eq!(at_the_institution(&player), 5_450);
        assert_eq!(player.records().violations, Vec::<String>::new());
        world.check_books().await;
        // Of two nodes, the other one reads the list.
        let metrics = world.ops_get("/metrics").await.text;
        assert!(
            second_node::are_nodes() || metrics.contains("centavo_pix_read_timestamp_seconds{rail=\"itau\"} "),
            "{dialect}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_whose_answer_is_lost_is_registered_once() {
    let player = Player::start("bacen").await;
    let world = live(tempfile::tempdir().unwrap(), &player).await;
    let merchant = world.merchant().await;
    // The answer to the order is cut; the institution is asked, and has it.
    player.is_odd("PUT", "/cob/", 1, Oddity::CutsAnswerAt(20));
    let answer = merchant.post_keyed("/api/pix", "one", &pix("80.00")).await.expect(201);
    let txid = text(&answer["txid"]);
    let orders: Vec<_> = player.records().charges.iter().map(|(txid, charge)| (txid.clone(), charge.orders)).collect();
    assert_eq!(orders, [(txid, 1)]);
    let again = merchant.post_keyed("/api/pix", "one", &pix("80.00")).await;
    assert_eq!(again.header("idempotent-replayed").unwrap(), "true");
    assert_eq!(again.expect(201), answer);

    // Neither order nor question is answered: the outcome is unknown, and the key goes on.
    let gateway = || Oddity::Says(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n".to_vec());
    player.is_odd("PUT", "/cob/", 1, Oddity::CutsAnswerAt(0));
    player.is_odd("GET", "/cob/", 1, gateway());
    merchant.post_keyed("/api/pix", "two", &pix("10.00")).await.refused(503, "outcome_unknown");
    let answer = merchant.post_keyed("/api/pix", "two", &pix("10.00")).await;
    assert_eq!(answer.header("idempotent-replayed").unwrap(), "true");
    let second = text(&answer.expect(201)["txid"]);
    assert_eq!(player.records().charges.len(), 2);
    assert!(player.records().charges.contains_key(&second));
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_institution_that_is_away_loses_nothing() {
    let player = Player::start("bacen").await;
    let world = live(tempfile::tempdir().unwrap(), &player).await;
    let (names, paid, waiting) = {
        let merchant = world.merchant().await;
        let charges = (created(&merchant, "80.00").await, created(&merchant, "1.00").await);
        (merchant.names, charges.0, charges.1)
    };
    // Paid while we are away; the next start reads the list from where the last one ended.
    let folder = world.stopped().await;
    player.pay(Some(&paid), "80.00");
    let world = live(folder, &player).await;
    let merchant = Merchant { world: &world, names };
    until(&world, "the payment is booked", async || charge(&merchant, &paid).await["status"] == "CONCLUIDA").await;
    assert_eq!(charge(&merchant, &waiting).await["status"], "pending");
    // It refuses the order's token, and gives no other one: what became of the order is not known.
    // From then on nothing is sent. The same keys go on later.
    player.is_odd(
        "POST",
        "/oauth/token",
        1_000,
        Oddity::Says(b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n".to_vec()),
    );
    player.records().end_tokens();
    for (key, status, code) in [("one", 503, "outcome_unknown"), ("two", 502, "rail_unavailable")] {
        let refused = merchant.post_keyed("/api/pix", key, &pix("5.00")).await;
        assert!(refused.header("retry-after").is_some());
        refused.refused(status, code);
    }
    player.stage().odd.clear();
    for key in ["one", "two"] {
        let created = merchant.post_keyed("/api/pix", key, &pix("5.00")).await.expect(201);
        assert_eq!(player.records().charges[&text(&created["txid"])].orders, 1);
    }
    assert_eq!(booked(&world).await, [8_000, 0, 0]);
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn special_returns_and_infractions_are_disputes() {
    let player = Player::start("efi").await;
    let world = live(tempfile::tempdir().unwrap(), &player).await;
    let (names, [returned, contested, given]) = {
        let merchant = world.merchant().await;
        let mut paid = Vec::new();
        for _ in 0..3 {
            let txid = created(&merchant, "80.00").await;
            paid.push((player.pay(Some(&txid), "80.00"), txid));
        }
        until(&world, "the payments are booked", async || booked(&world).await == [24_000, 0, 0]).await;
        (merchant.names, <[_; 3]>::try_from(paid).unwrap())
    };
    player.dispute(&returned.0, "MED_FRAUDE", "80.00", "DEVOLVIDO");
    let deadline = chrono::Utc::now() + chrono::Duration::days(7);
    let infraction = |id: &str, payment: &str, valor: Value, deadline: chrono::DateTime<chrono::Utc>| {
        json!({
            "idInfracao": id, "endToEndId": payment, "valor": valor, "razao": "Golpe", "status": "EM_ANALISE",
            "dadosAnalise": {"prazoFinalizacao": deadline.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)},
        })
    };
    player.records().infractions = vec![
        infraction("inf-1", &contested.0, json!("30.00"), deadline),
        infraction("inf-2", &given.0, json!("80.00"), deadline),
        // Over, and with an amount that may be centavos.
        infraction("inf-3", &given.0, json!("80.00"), chrono::Utc::now() - chrono::Duration::days(1)),
        infraction("inf-4", &given.0, json!(80), deadline),
    ];
    let world = live(world.stopped().await, &player).await;
    let dispute = async |merchant: &Merchant<'_>, txid: &str, status: &str| {
        let disputes = merchant.get("/api/disputes").await.expect(200);
        items(&disputes).iter().find(|one| one["payment_id"] == *txid && one["status"] == *status).cloned()
    };
    {
        let merchant = Merchant { world: &world, names: names.clone() };
        let open = async |txid: &str, status: &str| dispute(&merchant, txid, status).await.is_some();
        until(&world, "it is accepted", async || open(&returned.1, "accepted").await).await;
        until(&world, "both are open", async || open(&contested.1, "open").await && open(&given.1, "open").await).await;
        let found = dispute(&merchant, &contested.1, "open").await.unwrap();
        assert_eq!(
            [&found["case_id"], &found["amount"], &found["kind"]],
            [&json!("inf-1"), &json!(3_000), &json!("med")]
        );
        assert_eq!(text(&found["due_at"])[..10], deadline.to_rfc3339()[..10]);
        assert_eq!(items(&merchant.get("/api/disputes").await.expect(200)).len(), 3);
        let release = format!("/ops/disputes/{}/release", text(&found["id"]));
        world.ops_post(&release, &json!({"reason": "Entrega comprovada"})).await.expect(200);
        let accept = dispute(&merchant, &given.1, "open").await.unwrap();
        world.ops_post(&format!("/ops/disputes/{}/accept", text(&accept["id"])), &json!({})).await.expect(200);
        assert_eq!(player.records().defenses, []);
    }
    // The answers are sent by the next look, once.
    let world = live(world.stopped().await, &player).await;
    until(&world, "both are answered", async || player.records().defenses.len() == 2).await;
    let answered: std::collections::BTreeMap<_, _> = player.records().defenses.iter().cloned().collect();
    assert_eq!(answered["inf-1"], json!({"analise": "rejeitado", "justificativa": "Entrega comprovada"}));
    assert_eq!(answered["inf-2"]["analise"], "aceito");
    // The institution takes the money of the accepted one.
    player.dispute(&given.0, "MED_OPERACIONAL", "80.00", "DEVOLVIDO");
    let world = live(world.stopped().await, &player).await;
    until(&world, "the cases are read again", async || player.requests("GET", "/v2/gn/infracoes").len() >= 3).await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(items(&merchant.get("/api/disputes").await.expect(200)).len(), 3);
    assert_eq!(player.requests("POST", "/defesa").len(), 2);
    assert_eq!(player.records().violations, Vec::<String>::new());
    assert_eq!(booked(&world).await, [24_000 - 8_000 - 8_000, 0, 0]);
    world.check_books().await;
}
