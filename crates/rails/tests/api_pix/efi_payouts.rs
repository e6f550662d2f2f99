//! Pay-outs by Efí against its player: outcomes, repeats, answers that say nothing, cuts, returns.

use actors::rails::{Destination, PayoutAnswer, PayoutRail, PixSpan, RailError, ReturnedPayout, SendPayout};
use actors::testkit::rails as testkit_of_actors;
use centavo_rails::efi::{self, Efi, EfiSettings};
use ledger::personal::{AccountKind, PixKeyKind};
use ledger::{BankAccount, Centavos, PayoutBank, PixDestination};
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_ID, KEY, Player};
use testkit::cut_proxy::{Cut, Proxy};
use testkit::efi_player::{Repeats, UNKNOWN_KEY};
use testkit::played_http::Oddity;

use crate::hostile::says_nothing;
use crate::{answer, edits, id, now, secret_file};

/// A player, and the adapter as its client.
struct World {
    player: Player,
    rail: Efi,
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let (player, folder) = (Player::start("efi").await, tempfile::tempdir().unwrap());
        let rail = rail(settings(&folder, &format!("http://{}", player.address)));
        Self { player, rail, folder }
    }

    fn rail_at(&self, url: &str) -> Efi {
        rail(settings(&self.folder, url))
    }

    async fn send(&self, number: u64) -> Result<PayoutAnswer, RailError> {
        self.rail.send(transfer(number)).await
    }

    async fn find(&self, number: u64) -> Result<PayoutAnswer, RailError> {
        self.rail.find(transfer(number), now()).await
    }

    fn orders(&self, number: u64) -> usize {
        self.player.records().payouts.by_id[&id(number).txid()].orders
    }
}

fn settings(folder: &tempfile::TempDir, url: &str) -> Value {
    json!({ "url": url, "client_id": CLIENT_ID, "client_secret_file": secret_file(folder.path()), "key": KEY })
}

fn rail(settings: Value) -> Efi {
    efi::open(&serde_json::from_value::<EfiSettings>(settings).unwrap()).unwrap()
}

/// A transfer of 10.50 to a key.
fn transfer(number: u64) -> SendPayout {
    let key = PixDestination { kind: PixKeyKind::Email, key: "maria@example.com".to_owned(), info: None, labels: None };
    SendPayout { id: id(number), amount: Centavos(1_050), to: Destination::PixKey(key), ordered_at: now() }
}

fn to(number: u64, to: Destination) -> SendPayout {
    SendPayout { to, ..transfer(number) }
}

fn account() -> BankAccount {
    BankAccount {
        bank_code: Some("341".to_owned()),
        agencia: Some("001234".to_owned()),
        agencia_dv: Some("5".to_owned()),
        conta: "56789".to_owned(),
        conta_dv: Some("X".to_owned()),
        kind: AccountKind::ContaPoupanca,
        legal_name: Some("Ana Prado".to_owned()),
        document: "52998224725".to_owned(),
        ispb: Some("60701190".to_owned()),
    }
}

fn is_taken(answer: &Result<PayoutAnswer, RailError>) -> bool {
    matches!(answer, Ok(PayoutAnswer::Taken { from: PayoutBank::Pix, .. }))
}

#[tokio::test]
async fn a_transfer_goes_to_a_key_or_to_an_account() {
    let world = World::new().await;
    let info = Some(format!("a\n{}", "é".repeat(200)));
    let key = PixDestination { kind: PixKeyKind::Phone, key: "+5531999998888".to_owned(), info, labels: None };
    let answer = world.rail.send(to(1, Destination::PixKey(key))).await;
    assert!(is_taken(&answer), "{answer:?}");
    world.rail.send(to(2, Destination::Account(account()))).await.unwrap();
    let company = BankAccount {
        bank_code: None,
        agencia: Some("1".to_owned()),
        agencia_dv: None,
        conta: "1".repeat(20),
        conta_dv: None,
        kind: AccountKind::ContaPagamento,
        document: "12ABC34501DE35".to_owned(),
        ..account()
    };
    world.rail.send(to(3, Destination::Account(company))).await.unwrap();
    let records = world.player.records();
    let body = |number| &records.payouts.by_id[&id(number).txid()].body;
    assert_eq!(body(1)["favorecido"], json!({ "chave": "+5531999998888" }));
    assert_eq!((&body(1)["valor"], &body(1)["pagador"]["chave"]), (&json!("10.50"), &json!(KEY)));
    assert_eq!(body(1)["pagador"]["infoPagador"].as_str().unwrap().chars().count(), 139);
    assert_eq!(
        body(2)["favorecido"]["contaBanco"],
        json!({ "nome": "Ana Prado", "cpf": "52998224725", "codigoBanco": "60701190", "agencia": "1234",
            "conta": "567890", "tipoConta": "svgs" })
    );
    let company = &body(3)["favorecido"]["contaBanco"];
    assert_eq!((&company["cnpj"], &company["tipoConta"]), (&json!("12ABC34501DE35"), &json!("tran")));
    assert_eq!(records.violations, [""; 0]);
}

/// Nothing is sent to such an account, and its registration says what it lacks.
#[tokio::test]
async fn an_account_that_cannot_be_paid_is_known_before() {
    let world = World::new().await;
    let cases: [(&str, BankAccount); 6] = [
        ("ispb", BankAccount { ispb: None, ..account() }),
        ("agencia", BankAccount { agencia: None, ..account() }),
        ("agencia", BankAccount { agencia: Some("12345".to_owned()), ..account() }),
        ("conta", BankAccount { conta: "1".repeat(20), ..account() }),
        ("legal_name", BankAccount { legal_name: None, ..account() }),
        ("legal_name", BankAccount { legal_name: Some(" ".to_owned()), ..account() }),
    ];
    assert_eq!(world.rail.can_pay(&account()), Ok(()));
    for (number, (field, account)) in (1..).zip(cases) {
        assert_eq!(world.rail.can_pay(&account).map_err(|unpayable| unpayable.field), Err(field));
        let answer = world.rail.send(to(number, Destination::Account(account))).await;
        assert!(matches!(answer, Ok(PayoutAnswer::Failed { .. })), "{answer:?}");
    }
    let large = SendPayout { amount: Centavos(1_000_000_000_000), ..transfer(9) };
    assert!(matches!(world.rail.send(large).await, Ok(PayoutAnswer::Failed { .. })));
    assert_eq!(world.player.stage().requests.len(), 0);
}

/// With the Central Bank's lists a code is enough, and code and ISPB must agree.
#[tokio::test]
async fn lists_of_institutions_give_and_check_the_ispb() {
    let world = World::new().await;
    let list = world.folder.path().join("str.csv");
    let lines = "ISPB,Nome_Reduzido,Número_Código\n60701190,ITAÚ UNIBANCO S.A.,341\n18236120,NU PAGAMENTOS - IP,260\n";
    std::fs::write(&list, lines).unwrap();
    let mut with_list = settings(&world.folder, &format!("http://{}", world.player.address));
    with_list["participants_files"] = json!([list]);
    let rail = rail(with_list.clone());
    let unpayable = |account: &BankAccount| rail.can_pay(account).err().map(|unpayable| unpayable.field);
    let code_alone = BankAccount { ispb: None, ..account() };
    let cases = [
        (account(), None),
        (code_alone.clone(), None),
        (BankAccount { bank_code: None, ..account() }, None),
        (BankAccount { bank_code: Some("260".to_owned()), ..account() }, Some("bank_code")),
        (BankAccount { ispb: Some("00000000".to_owned()), ..account() }, Some("ispb")),
        (BankAccount { bank_code: Some("001".to_owned()), ..code_alone.clone() }, Some("ispb")),
    ];
    for (account, field) in cases {
        assert_eq!(unpayable(&account), field, "{account:?}");
    }
    assert!(is_taken(&rail.send(to(1, Destination::Account(code_alone.clone()))).await));
    let sent = world.player.records().payouts.by_id[&id(1).txid()].body.clone();
    assert_eq!(sent["favorecido"]["contaBanco"]["codigoBanco"], "60701190");
    // An unreadable list leaves the present list in use, and refuses a start.
    std::fs::write(&list, "<html>").unwrap();
    assert!(rail.reload().await.unwrap_err().to_string().starts_with("participants_files"));
    assert_eq!(unpayable(&code_alone), None);
    assert!(efi::open(&serde_json::from_value(with_list).unwrap()).is_err());
    std::fs::write(&list, "ISPB,Nome_Reduzido,Número_Código\n00000000,BCO DO BRASIL S.A.,001\n").unwrap();
    rail.reload().await.unwrap();
    assert_eq!(unpayable(&code_alone), Some("ispb"));
}

/// The rules that every institution is held to, whatever it does with repeats and however far the
/// transfer is.
#[tokio::test]
async fn it_is_an_institution_as_the_engine_wants_one() {
    for repeats in [Repeats::Refused, Repeats::Same] {
        for status in ["EM_PROCESSAMENTO", "REALIZADO", "NAO_REALIZADO"] {
            let world = World::new().await;
            {
                let payouts = &mut world.player.records().payouts;
                (payouts.repeats, payouts.first_status) = (repeats, Some(status));
            }
            let first = testkit_of_actors::payout(&world.rail, &transfer(1), now()).await;
            let expected = match first {
                PayoutAnswer::Taken { .. } => "EM_PROCESSAMENTO",
                PayoutAnswer::Processed { .. } => "REALIZADO",
                _ => "NAO_REALIZADO",
            };
            assert_eq!(status, expected, "{repeats:?}: {first:?}");
            assert_eq!(world.orders(1), 2);
            assert_eq!(world.player.records().payouts.by_id[&id(1).txid()].carried_out, 1);
        }
    }
    let world = World::new().await;
    let unknown = PixDestination { kind: PixKeyKind::Email, key: UNKNOWN_KEY.to_owned(), info: None, labels: None };
    let refused = testkit_of_actors::payout(&world.rail, &to(1, Destination::PixKey(unknown)), now()).await;
    assert_eq!(refused, PayoutAnswer::Failed { reason: "no such key".to_owned() });
}

#[tokio::test]
async fn a_transfer_is_followed_to_its_end() {
    let world = World::new().await;
    assert_eq!(world.find(1).await, Ok(PayoutAnswer::NotTaken));
    let taken = world.send(1).await.unwrap();
    let PayoutAnswer::Taken { transfer_id, .. } = &taken else { panic!("{taken:?}") };
    assert_eq!(world.find(1).await, Ok(taken.clone()));
    world.player.records().payouts.end(&id(1).txid(), "REALIZADO");
    let processed = world.find(1).await.unwrap();
    let PayoutAnswer::Processed { end_to_end_id, .. } = &processed else { panic!("{processed:?}") };
    assert_eq!((end_to_end_id, end_to_end_id.len()), (transfer_id, 32));
    assert_eq!(world.send(1).await, Ok(processed), "a repeat that is refused is asked for");
    world.send(2).await.unwrap();
    world.player.records().payouts.end(&id(2).txid(), "NAO_REALIZADO");
    assert_eq!(world.find(2).await, Ok(PayoutAnswer::Failed { reason: "NAO_REALIZADO".to_owned() }));
    world.player.is_odd("GET", "/id-envio/", 1, edits(|body| body["motivo"] = json!("conta encerrada")));
    assert_eq!(world.find(2).await, Ok(PayoutAnswer::Failed { reason: "conta encerrada".to_owned() }));
}

/// The whole amount, in one piece or several; a part is none.
#[tokio::test]
async fn money_that_came_back_is_a_return_once_it_is_whole() {
    let world = World::new().await;
    let txid = id(1).txid();
    world.player.records().payouts.first_status = Some("REALIZADO");
    world.send(1).await.unwrap();
    for (amount, status) in [("4.00", "DEVOLVIDO"), ("6.50", "EM_PROCESSAMENTO"), ("6.50", "NAO_REALIZADO")] {
        world.player.records().payouts.come_back(&txid, amount, Some(status));
        let found = world.find(1).await;
        assert!(matches!(found, Ok(PayoutAnswer::Processed { .. })), "{amount} {status}: {found:?}");
    }
    world.player.records().payouts.come_back(&txid, "6.50", None);
    let found = world.find(1).await.unwrap();
    let PayoutAnswer::Returned { stamp, to, .. } = &found else { panic!("{found:?}") };
    let ordered_at = world.player.records().payouts.by_id[&txid].at.timestamp_millis();
    assert_eq!((to, stamp.at.0, &stamp.id[29..]), (&PayoutBank::Pix, ordered_at + 1_003, "003"));
    assert_eq!(world.find(1).await, Ok(found));
    world.player.records().payouts.come_back(&txid, "0.01", None);
    assert_eq!(world.find(1).await, Err(RailError::NoAnswer), "more than was sent");
}

/// Efí lists transfers by the time of their order, page by page; what is not ours is passed over.
#[tokio::test]
async fn transfers_that_came_back_are_listed_by_the_time_of_their_return() {
    let world = World::new().await;
    {
        let payouts = &mut world.player.records().payouts;
        (payouts.first_status, payouts.page_items) = (Some("REALIZADO"), Some(2));
    }
    let span = PixSpan { from: now(), until: now().plus_ms(600_000), page: 0 };
    for number in 1..=5 {
        world.send(number).await.unwrap();
    }
    {
        let payouts = &mut world.player.records().payouts;
        payouts.come_back(&id(1).txid(), "10.50", Some("DEVOLVIDO"));
        payouts.come_back(&id(2).txid(), "10.49", Some("DEVOLVIDO"));
        payouts.come_back(&id(3).txid(), "10.50", Some("EM_PROCESSAMENTO"));
        payouts.come_back(&id(4).txid(), "4.00", None);
        payouts.come_back(&id(4).txid(), "6.50", None);
        // Sent by hand, or by another program.
        let mut other = payouts.by_id[&id(1).txid()].clone();
        other.body["valor"] = json!("1");
        payouts.by_id.insert("Fornecedor7".to_owned(), other);
    }
    let mut found = Vec::new();
    for page in 0..3 {
        let listed = world.rail.returned(PixSpan { page, ..span }).await.unwrap();
        assert_eq!(listed.has_more, page < 2);
        found.extend(listed.transfers);
    }
    let fields = |of: &ReturnedPayout| (of.id, of.amount.0, of.to);
    assert_eq!(found.iter().map(fields).collect::<Vec<_>>(), [1, 4].map(|number| (id(number), 1_050, PayoutBank::Pix)));
    let last = found[1].stamp.at;
    let listed = world.rail.returned(PixSpan { from: last, page: 1, ..span }).await.unwrap();
    assert_eq!(listed.transfers, found[1..]);
    let listed = world.rail.returned(PixSpan { from: last.plus_ms(1), page: 1, ..span }).await.unwrap();
    assert_eq!(listed.transfers, []);
    // One of ours that cannot be read makes the page no answer.
    world.player.is_odd("GET", "/enviados", 1, edits(|body| body["pix"][0]["valor"] = json!("10.5")));
    assert_eq!(world.rail.returned(span).await, Err(RailError::NoAnswer));
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn a_refusal_counts_when_its_word_is_known_and_there_is_no_such_transfer() {
    let world = World::new().await;
    let cases = [
        ("400 Bad", "valor_invalido", true),
        ("400 Bad", "chave_nao_pertence_ao_documento", true),
        ("404 Not Found", "chave_favorecido_nao_encontrada", true),
        ("422 Unprocessable", "pagamento_negado", true),
        // Of our own account: it ends with its cause.
        ("400 Bad", "chave_invalida", false),
        ("400 Bad", "documento_bloqueado", false),
        ("400 Bad", "saldo_insuficiente", false),
        // A word of another status, a repeat of nothing, a full bucket, a failure.
        ("422 Unprocessable", "valor_invalido", false),
        ("409 Conflict", "id_envio_duplicado", false),
        ("409 Conflict", "pagamento_negado", false),
        ("429 Slow", "balde_fichas_vazio", false),
        ("500 Error", "erro_aplicacao", false),
        ("503 Unavailable", "pagamento_negado", false),
        ("401 Unauthorized", "pagamento_negado", false),
        ("403 Forbidden", "pagamento_negado", false),
    ];
    for (number, (status, word, is_refusal)) in (10..).zip(cases) {
        let body = json!({ "nome": word, "mensagem": "m".repeat(500) }).to_string();
        world.player.is_odd("PUT", "/gn/pix/", 1, Oddity::Says(answer(status, "application/json", &body)));
        match world.send(number).await {
            Ok(PayoutAnswer::Failed { reason }) if is_refusal => assert_eq!(reason, "m".repeat(300)),
            Err(RailError::NoAnswer) if !is_refusal => {}
            other => panic!("{status} {word}: {other:?}"),
        }
        assert_eq!(world.player.requests("PUT", &id(number).txid()).len(), 1, "{status} {word}: it is sent once");
        // The same word where the transfer is there all the same.
        let carried = Oddity::CarriesOutAndSays(answer(status, "application/json", &body));
        world.player.is_odd("PUT", "/gn/pix/", 1, carried);
        let found = world.send(number + 100).await;
        assert!(is_taken(&found), "{status} {word}: {found:?}");
    }
}

/// Another transfer than ours is no answer, although the status says that it went well.
#[tokio::test]
async fn an_answer_must_be_of_our_transfer() {
    let world = World::new().await;
    type Field = fn(&mut Value);
    let cases: [Field; 16] = [
        |body| body["idEnvio"] = json!("0198f3a27c418d0e8000000000000bad"),
        |body| body["idEnvio"] = json!(body["idEnvio"].as_str().unwrap().to_uppercase()),
        |body| body["idEnvio"] = json!(&body["idEnvio"].as_str().unwrap()[..31]),
        |body| body["idEnvio"] = json!(format!("{}0", body["idEnvio"].as_str().unwrap())),
        |body| body["idEnvio"] = json!(null),
        |body| body["valor"] = json!("10.51"),
        |body| body["valor"] = json!("10,50"),
        |body| body["valor"] = json!("1.05e1"),
        |body| body["valor"] = json!(10.5),
        |body| body["status"] = json!("PALAVRA_NOVA"),
        |body| body["status"] = json!(null),
        |body| (body["e2eId"], body["endToEndId"]) = (json!(null), json!(null)),
        |body| (body["e2eId"], body["endToEndId"]) = (json!("E".repeat(32)), json!("F".repeat(32))),
        |body| (body["e2eId"], body["endToEndId"]) = (json!("E".repeat(31)), json!(null)),
        |body| body["horario"] = json!({}),
        |body| body["horario"] = json!({ "solicitacao": "2026-11-28 12:00:00" }),
    ];
    for (number, case) in (1..).zip(cases) {
        world.player.is_odd("PUT", "/gn/pix/", 1, edits(case));
        world.player.is_odd("GET", "/gn/pix/", 2, edits(case));
        assert_eq!(world.send(number).await, Err(RailError::NoAnswer), "case {number}");
        assert_eq!(world.find(number).await, Err(RailError::NoAnswer), "case {number}");
        let found = world.find(number).await;
        assert!(is_taken(&found), "case {number}: {found:?}");
        assert_eq!(world.orders(number), 1);
    }
    world.player.is_odd("PUT", "/gn/pix/", 1, edits(|body| body["novo"] = json!({ "campo": [1] })));
    assert!(is_taken(&world.send(50).await));
}

#[tokio::test]
async fn an_answer_that_says_nothing_ends_nothing() {
    let world = World::new().await;
    let hostile = says_nothing("PixEnviadoNaoEncontrado");
    for (name, bytes) in &hostile {
        for method in ["PUT", "GET"] {
            world.player.is_odd(method, "/gn/pix/", 99, Oddity::Says(bytes.clone()));
        }
        assert_eq!(world.send(1).await, Err(RailError::NoAnswer), "send: {name}");
        assert_eq!(world.find(1).await, Err(RailError::NoAnswer), "find: {name}");
        world.player.stage().odd.clear();
    }
    assert_eq!(world.player.requests("PUT", "/gn/pix/").len(), hostile.len(), "none is sent a second time");
    assert_eq!(world.player.records().payouts.sum(), 0);
    // The order alone is answered with nothing: the look afterwards says whether it was carried
    // out.
    for (number, (name, bytes)) in (100..).zip(hostile) {
        world.player.is_odd("PUT", "/gn/pix/", 1, Oddity::CarriesOutAndSays(bytes.clone()));
        let found = world.send(number).await;
        assert!(is_taken(&found), "{name}: {found:?}");
        assert_eq!(world.orders(number), 1, "{name}");
        world.player.is_odd("PUT", "/gn/pix/", 1, Oddity::Says(bytes));
        assert_eq!(world.send(number + 100).await, Err(RailError::NoAnswer), "{name}: it may be on its way");
        assert_eq!(world.find(number + 100).await, Ok(PayoutAnswer::NotTaken), "{name}");
    }
}

/// A redirect is no answer, and the host that it names sees no connection.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (world, other) = (World::new().await, Player::start("efi").await);
    for status in ["300", "301", "302", "303", "307", "308"] {
        let head = format!("{status} Elsewhere\r\nlocation: http://{}/v3/gn/pix/{}", other.address, id(1).txid());
        for method in ["PUT", "GET"] {
            world.player.is_odd(method, "/gn/pix/", 99, Oddity::Says(answer(&head, "application/json", "{}")));
        }
        assert_eq!(world.send(1).await, Err(RailError::NoAnswer), "{status}");
        assert_eq!(world.find(1).await, Err(RailError::NoAnswer), "{status}");
        world.player.stage().odd.clear();
    }
    assert_eq!(other.stage().connections, 0);
}

/// The connection of the order is cut after each of its bytes, and of its answer's. Whatever is
/// answered, the institution's own word about our id is the same.
#[tokio::test]
async fn a_transfer_is_carried_out_at_most_once_wherever_its_connection_is_cut() {
    let world = World::new().await;
    // The first connection is that of the login.
    let cuts = (0..460).step_by(7).map(Cut::Request).chain((1..330).step_by(5).map(Cut::Answer));
    for (number, cut) in (1_000..).zip(cuts) {
        let proxy = Proxy::at(world.player.address, 1, cut).await;
        let rail = world.rail_at(&format!("http://{}", proxy.address));
        let sent = rail.send(transfer(number)).await;
        let known = world.player.records().payouts.by_id.get(&id(number).txid()).cloned();
        match (&sent, &known) {
            (Ok(PayoutAnswer::Taken { transfer_id, .. }), Some(known)) => {
                assert_eq!((transfer_id, known.carried_out), (&known.end_to_end_id, 1), "{cut:?}");
            }
            (Err(RailError::NoAnswer), None) => {}
            other => panic!("{cut:?}: {other:?}"),
        }
        // Ordered again under its id, as the engine does after the horizon.
        assert!(is_taken(&rail.send(transfer(number)).await), "{cut:?}");
        assert_eq!(world.player.records().payouts.by_id[&id(number).txid()].carried_out, 1, "{cut:?}");
    }
    assert_eq!(world.player.records().violations, [""; 0]);
}

#[tokio::test]
async fn an_order_is_sent_once_and_not_at_all_without_a_token() {
    let world = World::new().await;
    world.player.is_odd("POST", "/oauth/token", 1, Oddity::Says(answer("401 No", "application/json", "{}")));
    assert_eq!(world.send(1).await, Err(RailError::NotSent));
    world.send(1).await.unwrap();
    world.player.records().end_tokens();
    // The token is refused: the order is not sent again, the look has a new token.
    assert_eq!(world.send(2).await, Err(RailError::NoAnswer));
    assert_eq!(world.player.requests("PUT", &id(2).txid()).len(), 1);
    assert!(is_taken(&world.send(2).await));
    let nowhere = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rail = world.rail_at(&format!("http://{nowhere}"));
    assert_eq!(rail.send(transfer(3)).await, Err(RailError::NotSent));
    assert_eq!(rail.find(transfer(3), now()).await, Err(RailError::NotSent));
    // A call that nobody waits for any more holds up no other.
    world.player.is_odd("PUT", "/gn/pix/", 1, Oddity::IsSilent);
    let call = tokio::time::timeout(std::time::Duration::from_millis(200), world.send(4));
    assert!(call.await.is_err(), "it is silent");
    assert!(is_taken(&world.find(4).await));
}

#[tokio::test]
async fn whether_an_order_may_be_repeated_is_a_setting() {
    let (world, folder) = (World::new().await, tempfile::tempdir().unwrap());
    let good = settings(&folder, "http://127.0.0.1:1");
    for (repeats, may) in [(json!("refused"), true), (json!("same"), true), (json!("again"), false)] {
        let mut settings = good.clone();
        settings["repeats"] = repeats;
        assert_eq!(rail(settings).may_send_again(now(), now()), may);
    }
    assert_eq!((world.rail.horizon().as_secs(), world.rail.may_send_again(now(), now())), (600, true));
    let mut settlement = good.clone();
    (settlement["pays_from"], settlement["horizon_s"]) = (json!("settlement"), json!(900));
    let settlement = rail(settlement);
    assert_eq!(settlement.pays_withdrawal_from(Centavos(1)), PayoutBank::Settlement);
    assert_eq!(settlement.horizon().as_secs(), 900);
    for (field, value) in [("repeats", "never"), ("pays_from", "cash"), ("dialect", "efi"), ("scope", "x")] {
        let mut wrong = good.clone();
        wrong[field] = json!(value);
        assert!(serde_json::from_value::<EfiSettings>(wrong).is_err(), "{field}");
    }
    for (field, value) in [("horizon_s", json!(119)), ("url", json!("http://pix.example.com")), ("key", json!(""))] {
        let mut wrong = good.clone();
        wrong[field] = value;
        let error = efi::open(&serde_json::from_value(wrong).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    let shown = format!("{:?}", world.rail);
    assert!(!shown.contains(KEY) && !shown.contains(CLIENT_ID), "{shown}");
}
