//! Two days of operators, by clicks alone: the morning of who decides about money, and an incident
//! at a merchant. Each goes through once with JavaScript at 1280 pixels, and once without at 390.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::chromium::{Browser, ENTER, VIEWS, View};
use crate::sample_server::SampleServer;

/// A turn: with JavaScript on a screen, or without on a telephone.
pub(crate) const TURNS: [(bool, View); 2] =
    [(true, View { scheme: "light", width: 1280 }), (false, View { scheme: "dark", width: 390 })];

/// Judges the page that is shown in every view, and goes back to that of the turn.
pub(crate) async fn judge(browser: &Browser, (is_on, view): (bool, View), page: &str) {
    // A judge is a script: it has none where scripts are off.
    for other in VIEWS.into_iter().filter(|_| is_on) {
        browser.view(other).await;
        assert_eq!(browser.defects().await, [""; 0], "{page} {other:?}");
    }
    browser.view(view).await;
}

/// Opens an item of the queue from the menu.
async fn open_item(browser: &Browser, id: &str) {
    browser.click("nav a[href='/console/queue']").await;
    browser.click(&format!("a[href='/console/queue/{id}']")).await;
}

/// The address of an endpoint that takes every event, and the beginnings of what it got.
async fn endpoint() -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (heard, hears) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4_096];
            let count = stream.read(&mut buffer).await.unwrap_or_default();
            let _nobody_waits = heard.send(String::from_utf8_lossy(&buffer[..count]).into_owned());
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _written = stream.write_all(answer.as_bytes()).await;
        }
    });
    (format!("http://127.0.0.1:{port}/repaired"), hears)
}

/// A payer on the phone, three refunds, a recipient with another's account, and a withdrawal to an
/// account that was changed.
#[tokio::test]
async fn an_operators_morning() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.pay_first_withdrawal().await;
    shop.sign_in(&browser).await;
    for turn in TURNS {
        browser.javascript(turn.0).await;
        browser.view(turn.1).await;
        browser.open(&format!("{}/console?lang=pt", shop.operations())).await;
        browser.has("Últimos 90 dias").await;

        // The payer reads the id of the transfer from the bank's statement.
        let paid = shop.paid_pix().await;
        let end_to_end_id = shop.end_to_end_id(&paid).await;
        browser.type_into("input[name=q]", &format!("{end_to_end_id}{ENTER}")).await;
        assert_eq!(browser.place().await, format!("/console/charges/{paid}"));
        browser.has("Maria").await;
        judge(&browser, turn, "charge").await;

        let reasons = ["Cliente desistiu", "Produto com defeito", "Pedido em dobro"];
        let mut refunds = Vec::new();
        for reason in reasons {
            refunds.push(shop.refund_because(reason).await);
        }
        for (place, (id, reason)) in refunds.iter().zip(reasons).enumerate() {
            open_item(&browser, id).await;
            browser.has(reason).await;
            browser.has("Saldos").await;
            if place < 2 {
                browser.click("section[aria-labelledby=approve] button").await;
            } else {
                judge(&browser, turn, "refund").await;
                browser.type_into("#notes-reject", "O pedido foi entregue.\nA loja tem o comprovante.").await;
                browser.click("section[aria-labelledby=reject] button").await;
            }
            browser.has("Decidido.").await;
        }
        browser.type_into("input[name=q]", &format!("{}{ENTER}", refunds[2])).await;
        for shown in ["Isto não espera mais", "O pedido foi entregue.", "A loja tem o comprovante.", "ana"] {
            browser.has(shown).await;
        }

        let foreign = shop.draft_with_foreign_account("Bia Lima").await;
        open_item(&browser, &foreign).await;
        browser.has("conta de outro titular").await;
        judge(&browser, turn, "recipient").await;
        browser.type_into("#notes-reject", "A conta é de outra pessoa").await;
        browser.click("section[aria-labelledby=reject] button").await;
        assert_eq!(shop.status_of(&foreign).await, "rejected");

        let withdrawal = shop.withdrawal_to_changed_account().await;
        open_item(&browser, &withdrawal).await;
        browser.has("primeiro saque para esta conta").await;
        judge(&browser, turn, "withdrawal").await;
        browser.type_into("#notes-reject", "Confirmar a conta com o recebedor").await;
        browser.click("section[aria-labelledby=reject] button").await;
        browser.has("Decidido.").await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    shop.stop();
}

/// A merchant is suspended and its payouts are held, its endpoint is repaired and the events are
/// sent again, and all charges of one card are found.
#[tokio::test]
async fn an_operators_incident() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.sign_in(&browser).await;
    for turn in TURNS {
        browser.javascript(turn.0).await;
        browser.view(turn.1).await;
        browser.open(&format!("{}/console?lang=pt", shop.operations())).await;
        let merchant = shop.merchant_page();
        shop.paid_pix().await;
        for (change, expected) in [("suspend", "Conta suspensa"), ("hold-payouts", "Saídas de dinheiro retidas")] {
            browser.click("nav a[href='/console/merchants']").await;
            browser.click(&format!("main a[href='{merchant}']")).await;
            judge(&browser, turn, "merchant").await;
            browser.type_into("#holds-reason", "Chave de API vazou").await;
            browser.click(&format!("button[name=change][value={change}]")).await;
            browser.has(expected).await;
        }
        assert_eq!(shop.refusal_of_a_charge().await, "merchant_suspended");

        // The four digits of the card lead to its charges.
        browser.type_into("input[name=q]", &format!("1111{ENTER}")).await;
        browser.has("R$ 100,00").await;
        judge(&browser, turn, "charges of a card").await;

        browser.click("nav a[href='/console/merchants']").await;
        browser.click(&format!("main a[href='{merchant}']")).await;
        browser.click(&format!("main a[href='{}']", shop.key_page())).await;
        let (address, mut heard) = endpoint().await;
        browser.run("document.querySelector('#webhook_url').value = ''").await;
        browser.type_into("#webhook_url", &address).await;
        browser.click("form[action$='/address'] button").await;
        browser.click("main a[href^='/console/webhooks/']").await;
        browser.click("form[action$='/redeliver'] button").await;
        browser.has("de novo").await;
        assert!(heard.recv().await.unwrap().starts_with("POST /repaired "));

        for change in ["resume", "release-payouts"] {
            browser.click("nav a[href='/console/merchants']").await;
            browser.click(&format!("main a[href='{merchant}']")).await;
            browser.type_into("#holds-reason", "Chave trocada").await;
            browser.click(&format!("button[name=change][value={change}]")).await;
        }
        browser.click("nav a[href='/console/audit']").await;
        browser.has("Chave de API vazou").await;
        browser.has("Chave trocada").await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    shop.stop();
}
