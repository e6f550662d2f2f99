//! Pictures of the console for the documentation, with made-up data. They are stored where
//! `CENTAVO_SCREENSHOTS` names a folder, as `docs-NAME.png`; those in `docs/images` are from here.

use crate::chromium::{Browser, VIEWS};
use crate::sample_server::{Empty, ofx};

#[tokio::test]
async fn pages_of_the_documentation_show_what_they_say() {
    let Some(browser) = Browser::start().await else { return };
    let server = Empty::start().await;
    server.sign_in(&browser).await;
    browser.view(VIEWS[0]).await;
    server.make_charges().await;
    browser.open(&format!("{}/console/sandbox?lang=pt", server.operations())).await;
    for (name, path, link, expected) in [
        ("overview", "/console", None, "Vendas por dia"),
        ("charges", "/console/charges", None, "Situação"),
        ("charge", "/console/charges?status=CONCLUIDA", Some("td a[href^='/console/charges/']"), "Cobrança de R$"),
        ("queue", "/console/queue", None, "Recebedor"),
        ("recipient", "/console/queue", Some("td a[href^='/console/queue/']"), "Aprovar"),
        ("trial-balance", "/console/reports?report=trial-balance&ledger=P-all", None, "Passivo"),
    ] {
        browser.open(&format!("{}{path}", server.operations())).await;
        if let Some(link) = link {
            browser.click(link).await;
        }
        browser.has(expected).await;
        browser.keep_picture(&format!("docs-{name}")).await;
    }
    let fee = std::env::temp_dir().join(format!("centavo-fee-{}.ofx", std::process::id()));
    std::fs::write(&fee, ofx(&chrono::Utc::now().format("%Y%m%d").to_string(), "-12.34", "TARIFA-1")).unwrap();
    browser.click("nav a[href='/console/reconciliations']").await;
    browser.type_into("#file", fee.to_str().unwrap()).await;
    browser.type_into("#account", "Banco conta liquidação").await;
    browser.click("section[aria-labelledby=compare] button").await;
    browser.click("td a[href*='finding=']").await;
    browser.has("Só no arquivo").await;
    browser.keep_picture("docs-reconciliation").await;
    std::fs::remove_file(fee).unwrap();
    assert_eq!(browser.said().await, [""; 0]);
    browser.close().await;
    server.stop();
}
