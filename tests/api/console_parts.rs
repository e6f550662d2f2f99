//! Parts that many pages of the console share, over HTTP: the live overview, tables as CSV, the
//! scope of one merchant, the newest charges.

use std::time::Duration;

use reqwest::Response;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::console::{ANA, Browser, EVA, RUI, world_of_three};
use crate::world::*;

/// How long a test waits for what must come.
const COMES: Duration = Duration::from_secs(60);

/// A stream of pictures.
struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    async fn open(browser: &Browser) -> Self {
        let response = Self::ask(browser).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { response, text: String::new() }
    }

    async fn ask(browser: &Browser) -> Response {
        let request = browser.client.get(format!("http://{}/console/live?lang=en", browser.host));
        request.header("cookie", browser.cookie.as_deref().unwrap_or_default()).send().await.unwrap()
    }

    /// Reads until a text has come; forgets what came before its end.
    async fn until(&mut self, wanted: &str) {
        let read = async {
            loop {
                if let Some(at) = self.text.find(wanted) {
                    self.text.drain(..at + wanted.len());
                    return;
                }
                let part = self.response.chunk().await.unwrap();
                self.text.push_str(std::str::from_utf8(&part.expect("the stream goes on")).unwrap());
            }
        };
        timeout(COMES, read).await.unwrap_or_else(|_| panic!("{wanted} does not come"));
    }

    /// Reads to the end of the stream.
    async fn ends(mut self) {
        timeout(COMES, async { while self.response.chunk().await.unwrap().is_some() {} }).await.expect("it ends");
    }
}

#[tokio::test]
async fn the_overview_is_live_while_it_is_watched() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;
    browser.page("/console").await.has(&["id=\"live\"", "data-from=\"/console/live?lang=en\"", "Money by minute"]);
    let (mut one, mut other) = (Stream::open(&browser).await, Stream::open(&browser).await);
    one.until("event: picture\ndata: ").await;
    one.until("Debits equal credits.").await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    for stream in [&mut one, &mut other] {
        stream.until(&txid).await;
        stream.until("\n\n").await;
    }
    let next = text(&merchant.paid_pix(&pix("23.45")).await["txid"]);
    one.until("R$123.45 (2)").await;
    one.until(&next).await;
    other.until(&next).await;

    browser.post("/console/sign-out", &[]).await;
    merchant.paid_pix(&pix("1.00")).await;
    one.ends().await;
    other.ends().await;
    assert_eq!(Stream::ask(&browser).await.status().as_u16(), 204, "without a session there is nothing to ask again");
    while !world.app().live.ends() {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn watchers_are_bounded_and_a_stream_delays_no_stop() {
    let world = world_of_three().await;
    let browser = Browser::signed_in(&world, ANA).await;
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(Stream::open(&browser).await);
    }
    let refused = Stream::ask(&browser).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"60".parse().unwrap()));
    streams.pop();
    let again = async {
        while Stream::ask(&browser).await.status() != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(COMES, again).await.expect("a seat is given back");
    let begun = std::time::Instant::now();
    let _folder = world.stopped().await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(15), "the drain of 20 s was not needed: {took:?}");
    for stream in streams {
        stream.ends().await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_the_token_and_keeps_no_session_alive() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, EVA).await;
    let mut stream = Stream::open(&browser).await;
    stream.until("Debits equal credits.").await;
    world.set_operators(&format!("ana:{ANA},operator:{OPS_TOKEN}"));
    merchant.paid_pix(&pix("1.00")).await;
    stream.ends().await;
}

/// However many watch, one task draws, once a second at most; and none when nobody does.
#[tokio::test]
async fn the_overview_is_drawn_for_all_at_once_and_for_nobody_not_at_all() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;
    browser.page("/console").await;
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(world.app().live.beats(), 0, "a page that is opened is not watched");
    let begun = std::time::Instant::now();
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(Stream::open(&browser).await);
    }
    for _ in 0..3 {
        let txid = text(&merchant.paid_pix(&pix("1.00")).await["txid"]);
        for stream in &mut streams {
            stream.until(&txid).await;
        }
    }
    let beats = world.app().live.beats();
    // On a busy machine there are fewer.
    assert!((3..=begun.elapsed().as_secs() + 1).contains(&beats), "{beats} in {:?}", begun.elapsed());
    drop(streams);
    while !world.app().live.ends() {
        sleep(Duration::from_millis(20)).await;
    }
    let beats = world.app().live.beats();
    for _ in 0..4 {
        merchant.paid_pix(&pix("1.00")).await;
        sleep(Duration::from_secs(1)).await;
    }
    let more = world.app().live.beats() - beats;
    assert!(more <= 1, "nobody watches: {more} beats, where one may have been under way");
}

/// The second after a refusal for want of room has no picture; then the pictures go on.
#[tokio::test]
async fn a_picture_is_left_out_after_requests_were_refused() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;
    let mut stream = Stream::open(&browser).await;
    stream.until("Debits equal credits.").await;
    let app = world.app();
    for refusals in 1..=2 {
        assert_eq!(app.live.left_out(), refusals - 1);
        app.engine.metrics().shed.inc();
        let left_out = async {
            while app.live.left_out() < refusals {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(COMES, left_out).await.expect("a beat is left out");
        let txid = text(&merchant.paid_pix(&pix("1.00")).await["txid"]);
        stream.until(&txid).await;
    }
}

/// All that a page loads is at most 60 KiB, even before it is compressed.
#[tokio::test]
async fn what_a_page_loads_is_small() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console").await;
    let assets: Vec<_> = page.html.split('"').filter(|part| part.starts_with("/console/assets/")).collect();
    assert_eq!(assets.len(), 3, "style, icon and script: {assets:?}");
    let mut bytes = 0;
    for asset in assets {
        bytes += browser.page(asset).await.html.len();
    }
    assert!(bytes <= 60 * 1024, "{bytes}");
}

/// Every table of every page is also a file of what the page shows.
#[tokio::test]
async fn every_table_is_also_a_file() {
    let world = world_of_three().await;
    let merchant =
        world.open(json!({"name": "=cmd(); \"Loja\" & <b>", "document": cnpj(91), "split_enabled": true})).await;
    let recipient = merchant.recipient("João Araújo", 1).await;
    let charge = merchant.paid_pix(&with_splits(pix("1234.56"), &[(&recipient, 3_000)])).await;
    let txid = text(&charge["txid"]);
    let mut browser = Browser::signed_in(&world, RUI).await;
    let mut files = 0;
    for path in [
        "/console".to_owned(),
        "/console/charges".to_owned(),
        format!("/console/charges/{txid}"),
        "/console/merchants".to_owned(),
        format!("/console/merchants/{}", merchant.id),
        format!("/console/merchants/{}/charges?status=CONCLUIDA", merchant.id),
        "/console/trial-balance?by=ledger".to_owned(),
        "/console/audit".to_owned(),
        format!("/console/ledgers/{}", merchant.ledger()),
    ] {
        let page = browser.page(&path).await;
        let tables = page.html.matches("<table").count();
        let links: Vec<_> = page.html.split("href=\"").filter(|part| part.contains(" download>CSV")).collect();
        assert!(tables > 0 && links.len() == tables, "{path}: {tables} {links:?}");
        for link in links {
            let address = link.split('"').next().unwrap().replace("&amp;", "&");
            let file = browser.page(&address).await;
            assert_eq!(file.header("content-type"), "text/csv; charset=utf-8; header=present", "{address}");
            assert!(file.header("content-disposition").starts_with("attachment"));
            assert!(file.html.lines().count() >= 2 && !file.html.contains("</"), "{address}: {}", file.html);
            files += 1;
        }
    }
    assert!(files > 12, "{files}");
    let file = browser.page("/console/charges?csv=1").await.html;
    let row = format!("{txid},2");
    assert!(file.starts_with("txid,When,Merchant,Method,Status,Amount\r\n") && file.contains(&row), "{file}");
    assert!(file.contains("\"'=cmd(); \"\"Loja\"\" & <b>\",PIX,paid,\"R$1,234.56\"\r\n"), "{file}");
    browser.language = "pt-BR";
    let file = browser.page("/console/charges?csv=1").await.html;
    assert!(file.starts_with("\u{feff}txid;Quando;Lojista;") && file.contains(";R$ 1.234,56\r\n"), "{file}");
    for none in ["/console/charges?csv=2", "/console/health?csv=1", "/console/charges?csv=0"] {
        assert_eq!(browser.get(none).await.status, 404, "{none}");
    }
}

/// A page in the scope of one merchant shows nothing of another, and pages of the platform are not
/// there.
#[tokio::test]
async fn a_scope_shows_one_merchant_alone() {
    let world = world_of_three().await;
    let own = world.merchant().await;
    let other = world.open(json!({"name": "Padaria Alheia", "document": cnpj(92), "split_enabled": true})).await;
    let recipient = other.recipient("Zé Alheio", 7).await;
    let theirs = text(&other.paid_pix(&with_splits(pix("77.77"), &[(&recipient, 100)])).await["txid"]);
    let record = page_of(world.last().await);
    let draft = other.draft("Rita Alheia", 8).await;
    let ours = text(&own.paid_pix(&pix("10.00")).await["txid"]);
    own.draft("Bia", 9).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let scoped = |path: &str| {
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}merchant_id={}", own.id)
    };
    for (path, place) in [
        ("/console", format!("/console/merchants/{}", own.id)),
        ("/console/merchants", format!("/console/merchants/{}", own.id)),
        ("/console/charges", format!("/console/merchants/{}/charges", own.id)),
        ("/console/trial-balance", format!("/console/ledgers/M-{}", own.id)),
    ] {
        assert_eq!(browser.get(&scoped(path)).await.header("location"), scoped(&place), "{path}");
    }
    for path in [
        format!("/console/merchants/{}", own.id),
        format!("/console/merchants/{}/charges", own.id),
        format!("/console/ledgers/M-{}", own.id),
        "/console/queue".to_owned(),
        "/console/webhooks".to_owned(),
        "/console/audit".to_owned(),
        format!("/console/charges/{ours}"),
    ] {
        let page = browser.page(&scoped(&path)).await;
        page.has(&["Only of", "Loja Azul"]);
        assert!(!page.html.contains("Alhei") && !page.html.contains("/console/health"), "{path}: {}", page.html);
    }
    browser.page(&scoped("/console/queue")).await.has(&["1 waiting", "Bia", "name=\"merchant_id\""]);
    for path in [
        format!("/console/merchants/{}", other.id),
        format!("/console/merchants/{}/charges", other.id),
        format!("/console/merchants/{}/events", other.id),
        format!("/console/charges/{theirs}"),
        format!("/console/charges/{theirs}/dispute?amount=1&kind=med"),
        format!("/console/recipients/{recipient}"),
        format!("/console/ledgers/{}", other.ledger()),
        format!("/console/ledgers/R-{recipient}"),
        record,
        format!("/console/queue/{draft}"),
        "/console/ledgers/P-house".to_owned(),
        "/console/journal".to_owned(),
        "/console/journal/prove".to_owned(),
        "/console/periods".to_owned(),
        "/console/periods/2020-01".to_owned(),
        "/console/health".to_owned(),
        "/console/exports".to_owned(),
        "/console/exports/file?format=csv".to_owned(),
        "/console/sandbox".to_owned(),
        "/console/live".to_owned(),
    ] {
        assert_eq!(browser.get(&scoped(&path)).await.status, 404, "{path}");
        // Without the scope it is there.
        if path != "/console/live" {
            assert_eq!(browser.get(&path).await.status, 200, "{path}");
        }
    }
    let event = text(&items(&other.get("/api/events").await.expect(200))[0]["id"]);
    assert_eq!(browser.get(&scoped(&format!("/console/webhooks/{event}"))).await.status, 404);
    // What fell due is booked before, so that nothing is booked beside the forms.
    world.advance(0).await;
    assert_eq!(browser.post(&scoped("/console/periods/2020-01"), &[("key", "p")]).await.status, 404);
    for (path, fields) in [
        (format!("/console/charges/{theirs}/dispute"), vec![("amount", "1"), ("kind", "med"), ("reason", "x")]),
        (format!("/console/webhooks/{event}/redeliver"), vec![]),
        (format!("/console/merchants/{}/keys", other.id), vec![]),
        (format!("/console/merchants/{}/change", other.id), vec![("name", "x")]),
        (format!("/console/keys/{}/revoke", other.key_id), vec![("sure", "on")]),
        (format!("/console/keys/{}/rotate", other.key_id), vec![]),
        (format!("/console/keys/{}/address", other.key_id), vec![]),
        (format!("/console/keys/{}/redeliver", other.key_id), vec![]),
        ("/console/merchants".to_owned(), vec![("name", "x"), ("document", "11222333000181")]),
        ("/console/house".to_owned(), vec![]),
        ("/console/sandbox/pix".to_owned(), vec![("txid", theirs.as_str())]),
        ("/console/sandbox/data".to_owned(), vec![]),
    ] {
        let before = world.cut().await;
        assert_eq!(browser.post(&scoped(&path), &fields).await.status, 404, "{path}");
        assert_eq!(world.cut().await, before, "{path} booked something");
    }
    let fields = [("kind", "recipient"), ("decision", "approve"), ("key", "k")];
    assert_eq!(browser.post(&scoped(&format!("/console/queue/{draft}")), &fields).await.status, 404);
    assert_eq!(browser.get("/console/queue?merchant_id=x").await.status, 404);
}

#[tokio::test]
async fn the_newest_charges_lead_on_to_the_older_ones() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut txids = Vec::new();
    for _ in 0..52 {
        txids.insert(0, text(&merchant.post("/api/pix", &pix("1.00")).await.expect(201)["txid"]));
    }
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console/charges").await;
    assert!(page.html.contains(&txids[0]) && page.html.contains(&txids[49]) && !page.html.contains(&txids[50]));
    let next =
        page.html.split("href=\"").find(|part| part.contains("rel=\"next\"")).unwrap().split('"').next().unwrap();
    let page = browser.page(next).await;
    page.has(&[&txids[50], &txids[51]]);
    assert!(!page.html.contains(&txids[49]));
}
