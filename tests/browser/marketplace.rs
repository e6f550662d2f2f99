//! The marketplace of `examples`: a payer buys by PIX and by card, a webhook and an operator's
//! decisions reach the page.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use testkit::callers::{client, operate};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::chromium::{Browser, VIEWS};

/// The process of the shop; it is ended when it is dropped.
struct Shop(Child);

impl Drop for Shop {
    fn drop(&mut self) {
        let _has_ended = (self.0.kill(), self.0.wait());
    }
}

/// Packs the client, installs it, and starts the shop; its address. `None` if its Python is
/// missing and not required.
async fn started(folder: &Path, server: &Server) -> Option<(Shop, String)> {
    let python = std::env::var_os("CENTAVO_PYTHON").map_or_else(|| "python3".into(), std::path::PathBuf::from);
    let python = if python.components().count() > 1 { std::path::absolute(python).unwrap() } else { python };
    let has = Command::new(&python).args(["-c", "import openapi_python_client, flit_core"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var("CENTAVO_BROWSER").as_deref() != Ok("required"), "{HOW_TO_GET}");
        eprintln!("NOT RUN: {HOW_TO_GET}");
        return None;
    }
    let log = std::fs::File::create(folder.join("shop.log")).unwrap();
    let mut run = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/marketplace/run"));
    run.arg(folder.join("shop")).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    run.env("CENTAVO_PYTHON", &python).env("CENTAVO_URL", &server.public).env("CENTAVO_OPS_URL", &server.operations);
    run.env("CENTAVO_OPS_TOKEN", OPS_TOKEN).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut shop = Shop(run.env("SHOP_PORT", "0").spawn().unwrap());
    for _ in 0..600 {
        let said = std::fs::read_to_string(folder.join("shop.log")).unwrap();
        if let Some(address) = said.lines().find_map(|line| line.strip_prefix("Marketplace: ")) {
            return Some((shop, address.to_owned()));
        }
        assert!(shop.0.try_wait().unwrap().is_none(), "it has ended: {said}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{}", std::fs::read_to_string(folder.join("shop.log")).unwrap());
}

const HOW_TO_GET: &str = "Python with the packages of tests/conformance/requirements.txt is missing";

/// Waits until the page, which reloads itself, shows a text.
async fn shows(browser: &Browser, text: &str) {
    for _ in 0..300 {
        if browser.text().await.contains(text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    browser.has(text).await;
}

/// Approves what waits of a kind in the operators' queue.
async fn approve(server: &Server, kind: &str) {
    let queue = client().get(format!("{}/ops/queue?kind={kind}", server.operations)).bearer_auth(OPS_TOKEN);
    let queue: serde_json::Value = queue.send().await.unwrap().error_for_status().unwrap().json().await.unwrap();
    let [item] = queue["items"].as_array().unwrap().as_slice() else { panic!("{queue}") };
    let path = format!("/ops/{kind}s/{}/approve", item["id"].as_str().unwrap());
    operate(&client(), server, &path, &json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payer_buys_at_the_marketplace() {
    let Some(browser) = Browser::start().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let Some((_shop, address)) = started(folder.path(), &server).await else { return };
    browser.open(&address).await;

    browser.run("document.querySelectorAll('[name=quantity]')[0].value = 2").await;
    browser.click("button[value=pix]").await;
    let drawn = "const image = document.querySelector('img'); await image.decode(); return image.naturalWidth > 200";
    assert_eq!(browser.run(&format!("return (async () => {{ {drawn} }})()")).await, json!(true));
    browser.has("Pay it, as the sandbox").await;
    for view in VIEWS {
        browser.view(view).await;
        assert_eq!(browser.defects().await, [""; 0], "{view:?}");
    }
    browser.keep_picture("marketplace").await;
    browser.click("form[action='/orders/1/pay'] button").await;
    shows(&browser, "1\tR$ 79,80\tpaid").await;

    shows(&browser, "Recebedor Um\tR$ 71,82\tR$ 0,00").await;
    browser.click("form[action='/orders/1/refund'] button").await;
    shows(&browser, "refund asked for").await;
    approve(&server, "refund").await;
    shows(&browser, "R$ 79,80 refunded").await;
    shows(&browser, "Recebedor Um\tR$ 0,00\tR$ 0,00").await;

    browser.run("document.querySelectorAll('[name=quantity]')[2].value = 1").await;
    browser.click("button[value=card]").await;
    shows(&browser, "2\tR$ 79,00\tpaid").await;
    shows(&browser, "Recebedor Três\tR$ 0,00\tR$ 71,10").await;

    browser.run("document.querySelectorAll('[name=quantity]')[1].value = 2").await;
    browser.click("button[value=pix]").await;
    browser.click("form[action='/orders/3/pay'] button").await;
    shows(&browser, "Recebedor Dois\tR$ 44,10\tR$ 0,00").await;
    browser.click("form[action='/sellers/1/withdraw'] button").await;
    approve(&server, "withdrawal").await;
    browser.open(&address).await;
    browser.has("Recebedor Dois\tR$ 0,00\tR$ 0,00").await;

    browser.run("document.querySelectorAll('[name=quantity]')[1].value = 1; document.querySelector('[name=number]').value = '4000000000000002'").await;
    browser.click("button[value=card]").await;
    shows(&browser, "card refused").await;
    assert_eq!(browser.said().await, [""; 0]);
    browser.close().await;
}
