//! Forms of the console that are refused: they come back filled, with the problem at their head.
//! Addresses with parameters that a page does not take.

use crate::console::{ANA, Browser, Page, world_of_three};
use crate::world::*;

/// Sends the form of a page, with all its hidden fields, as a browser does.
async fn send(browser: &Browser, page: &Page, form: &str, path: &str, fields: &[(&str, &str)]) -> Page {
    let form = page.html.split("<form").find(|part| part.contains(form)).unwrap_or_else(|| panic!("{form} is missing"));
    let form = form.split("</form>").next().unwrap();
    let hidden = form.split("type=\"hidden\"").skip(1).map(|field| {
        let of = |name: &str| field.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap();
        (of("name"), of("value").replace("&amp;", "&"))
    });
    let hidden: Vec<_> = hidden.collect();
    let hidden = hidden.iter().map(|(name, value)| (*name, value.as_str()));
    let fields: Vec<_> = hidden.chain(fields.iter().copied()).collect();
    browser.post_as(Some(&format!("http://{}", browser.host)), path, &fields).await
}

/// A page with a refused form: its problem, and behind it fields with what was typed.
#[track_caller]
fn is_filled(page: &Page, status: u16, texts: &[&str]) {
    assert_eq!(page.status, status, "{}", page.html);
    page.has(texts);
    let (problem, form) = (page.html.find("role=\"alert\""), page.html.find(texts[0]));
    assert!(problem.is_some() && problem < form, "the problem stands first: {}", page.html);
    assert!(!page.html.contains("That was not possible"), "{}", page.html);
}

/// The form of a report offers names, takes them, and comes back where nobody has the name.
#[tokio::test]
async fn the_form_of_a_report_takes_names() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana Exemplo", 1).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let path = "/console/reports?report=statement";
    browser.page(path).await.has(&["<option value=\"Ana Exemplo\">Recipient · "]);
    let page = browser.page(&format!("{path}&ledger=ana+exemplo")).await;
    page.has(&["Saldo anterior", "value=\"ana exemplo\""]);
    browser.page(&format!("{path}&ledger=R-{ana}")).await.has(&["Saldo anterior", "value=\"Ana Exemplo\">"]);
    let refused = browser.get(&format!("{path}&ledger=Ninguem")).await;
    is_filled(&refused, 400, &["id=\"ledger\"", "value=\"Ninguem\"", "aria-invalid=\"true\""]);
    refused.has(&["name=\"report\" value=\"statement\""]);
    // With every field that the form sends.
    let sent = "report=trial-balance&ledger=Casa&by=effect&from=&to=";
    browser.page(&format!("/console/reports?{sent}")).await.has(&["value=\"effect\" selected", "Saldo final"]);
}

#[tokio::test]
async fn a_refused_form_comes_back_filled() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;

    let page = browser.page("/console/merchants/new").await;
    let typed = [("name", "Loja \"Nova\" & Filhos"), ("document", "11"), ("city", "Belém"), ("cashout_enabled", "on")];
    let (form, path) = ("action=\"/console/merchants\"", "/console/merchants");
    let refused = send(&browser, &page, form, path, &typed).await;
    is_filled(&refused, 400, &["value=\"Loja &quot;Nova&quot; &amp; Filhos\">", "value=\"11\">", "value=\"Belém\">"]);
    refused.has(&["name=\"cashout_enabled\" value=\"on\" checked>", "name=\"split_enabled\" value=\"on\">"]);
    refused.has(&["<strong>CPF or CNPJ</strong>: ", "aria-invalid=\"true\"", "validation_failed"]);
    assert_ne!(refused.hidden("key"), page.hidden("key"), "the corrected form is another request");
    let document = cnpj(77);
    let opened = send(&browser, &refused, form, path, &[typed[0], ("document", &document)]).await;
    assert_eq!(opened.status, 303, "it is corrected where it stands: {}", opened.html);

    // The one of three forms of a page that was sent.
    let page = browser.page("/console/house").await;
    let typed = [("debtor", "M-nobody"), ("amount", "12,50"), ("reason", "first line\nsecond"), ("reference", "r-1")];
    let refused = send(&browser, &page, "name=\"debtor\"", "/console/house", &typed).await;
    is_filled(&refused, 400, &["id=\"debtor\"", "value=\"M-nobody\"", ">first line\nsecond</textarea>"]);
    assert_eq!(refused.html.matches("value=\"12,50\"").count(), 1);
    let fees = "Expenses:Bank:Fees";
    let typed = [("debit", fees), ("credit", fees), ("amount", "1"), ("reason", "x"), ("reference", "r-2")];
    let typed = [&typed[..], &[("effective_date", "2026-01-05")]].concat();
    let refused = send(&browser, &page, "name=\"debit\"", "/console/house", &typed).await;
    is_filled(&refused, 400, &["<option value=\"Expenses:Bank:Fees\" selected>", "value=\"2026-01-05\""]);

    // Forms on the page of something else: of a merchant, of a key, of the sandbox, of a charge.
    let change = format!("/console/merchants/{}/change", merchant.id);
    let typed = [("name", "Outra"), ("mdr_1x", "x"), ("antifraud", "1"), ("cashout", "1")];
    let refused = send(&browser, &browser.page(&change).await, "/change\"", &change, &typed).await;
    is_filled(&refused, 400, &["value=\"Outra\">", "name=\"mdr_1x\"", "value=\"x\">"]);
    let key = format!("/console/keys/{}", merchant.key_id);
    let typed = [("webhook_url", "ftp://shop.example")];
    let refused = send(&browser, &browser.page(&key).await, "/address\"", &format!("{key}/address"), &typed).await;
    is_filled(&refused, 400, &["value=\"ftp://shop.example\">"]);
    is_filled(&browser.post("/console/sandbox/pix", &[("txid", "nowhere")]).await, 404, &["value=\"nowhere\">"]);
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let dispute = format!("/console/charges/{txid}/dispute");
    is_filled(&browser.get(&format!("{dispute}?amount=ten&kind=med")).await, 400, &["value=\"ten\">"]);
    let page = browser.page(&format!("{dispute}?amount=9,00&kind=med")).await;
    let long = "x".repeat(501);
    let refused = send(&browser, &page, "name=\"reason\"", &dispute, &[("reason", &long)]).await;
    is_filled(&refused, 400, &[&format!(">{long}</textarea>"), "R$9.00"]);

    // Forms that ask for a page or a file.
    let charges = format!("/console/charges?merchant_id={}", merchant.id);
    let refused = browser.get(&format!("{charges}&status=CONCLUIDA&payment_method=pix&from=2026-99-01")).await;
    is_filled(&refused, 400, &["<option value=\"CONCLUIDA\" selected>", "value=\"2026-99-01\">"]);
    let refused = browser.get("/console/exports/file?ledger=X-1&format=csv&from=2026-01-01&to=").await;
    is_filled(&refused, 400, &["value=\"X-1\">", "<option value=\"csv\" selected>", "value=\"2026-01-01\""]);
    world.check_books().await;
}

/// Forms of all pages, a wrong value in each: the field is marked, and the problem has its label.
#[tokio::test]
async fn a_wrong_field_is_marked_and_named_as_its_form_names_it() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let mut browser = Browser::signed_in(&world, ANA).await;
    browser.language = "pt-BR";
    let change = format!("/console/merchants/{}/change", merchant.id);
    let (charge, key) = (format!("/console/charges/{txid}"), format!("/console/keys/{}", merchant.key_id));
    let standing = [("name", "Loja"), ("antifraud", "1"), ("cashout", "1"), ("mdr_1x", "1"), ("d2", "1"), ("pix", "1")];
    let with = |field: (&'static str, &'static str)| {
        let others = standing.into_iter().filter(|(name, _)| *name != field.0);
        others.chain([field]).collect::<Vec<_>>()
    };
    let amount = "Escreva o valor em reais";
    for (page, form, path, fields, name, label, said) in [
        (&change, "/change\"", &change, with(("mdr_1x", "x")), "mdr_1x", "Taxa à vista (MDR) (%)", "deve ser"),
        (&change, "/change\"", &change, with(("d2", "x")), "d2", "Antecipação em 2 dias (%)", "deve ser"),
        (&change, "/change\"", &change, with(("cashout", "x")), "cashout", "Cashout (R$)", amount),
        (
            &change,
            "/change\"",
            &change,
            with(("limit_card", "0")),
            "limit_card",
            "Cobranças de cartão por minuto",
            "deve estar",
        ),
        (&change, "/change\"", &change, with(("card_settlement_days", "400")), "card_settlement_days", "", "deve"),
        (&key, "/address\"", &format!("{key}/address"), vec![("webhook_url", "ftp://x")], "webhook_url", "", ""),
        (&charge, "/refunds\"", &format!("{charge}/refunds"), vec![("amount", "x")], "amount", "Valor (R$)", amount),
        (
            &charge,
            "/refunds\"",
            &format!("{charge}/refunds"),
            vec![("amount", "10,01"), ("reason", "x")],
            "amount",
            "Valor (R$)",
            "Valor maior",
        ),
        (
            &"/console/merchants/new".to_owned(),
            "action=\"/console/merchants\"",
            &"/console/merchants".to_owned(),
            vec![("document", "1")],
            "document",
            "CPF ou CNPJ",
            "",
        ),
        (
            &"/console/house".to_owned(),
            "name=\"debtor\"",
            &"/console/house".to_owned(),
            vec![("debtor", "x"), ("amount", "x")],
            "amount",
            "Valor (R$)",
            amount,
        ),
    ] {
        let refused = send(&browser, &browser.page(page).await, form, path, &fields).await;
        assert_eq!(refused.status, if said == "Valor maior" { 409 } else { 400 }, "{path} {name}: {}", refused.html);
        let mark = format!(" aria-invalid=\"true\" aria-describedby=\"wrong-{name}");
        let marked: Vec<_> = refused.html.match_indices(&mark).map(|(place, _)| place).collect();
        assert_eq!(marked.len(), 1, "{path} {name}: {}", refused.html);
        let (before, behind) = refused.html.split_at(marked[0]);
        let tag = [before.rsplit('<').next().unwrap(), behind.split('>').next().unwrap()].concat();
        assert_eq!(tag.matches("aria-describedby").count(), 1, "browsers read the first one alone: {tag}");
        assert!(form != "/refunds\"" || tag.contains("wrong-amount refund-all\""), "its hint stays: {tag}");
        let problem = refused.html.split(&format!("<p id=\"wrong-{name}\"><strong>")).nth(1).unwrap_or_default();
        let (shown, behind) =
            problem.split_once("</strong>: ").unwrap_or_else(|| panic!("{path} {name}: {}", refused.html));
        assert!(shown.starts_with(label) && behind.starts_with(said), "{name}: {shown}: {behind:.80}");
        assert!(!behind.split("</p>").next().unwrap().contains(name), "its name in the interface: {behind:.80}");
        let head = refused.html.split("role=\"alert\"").nth(1).and_then(|alert| alert.split("</strong>").next());
        assert!(head.is_some_and(|head| !head.contains('.') && !head.contains('_')), "{name}: {head:?}");
    }
    for (address, name) in [
        ("/console/lists/refunds?amount_from=x&status=pending", "amount_from"),
        ("/console/queue?amount_to=x", "amount_to"),
        ("/console/audit?from=x", "from"),
        (&format!("{charge}/dispute?amount=x&kind=med"), "amount"),
    ] {
        let refused = browser.get(address).await;
        assert_eq!(refused.status, 400, "{address}");
        refused.has(&[&format!("aria-describedby=\"wrong-{name}\" value=\"x\""), &format!("id=\"wrong-{name}\"")]);
    }
}

/// What was typed is not repeated for a form that no page of ours sent, and a token never is.
#[tokio::test]
async fn what_is_secret_or_forged_is_not_repeated() {
    let world = world_of_three().await;
    let mut browser = Browser::signed_in(&world, ANA).await;
    let forged = [("form_token", "forged"), ("name", "typed by another site"), ("document", "1")];
    let page = browser.post_as(Some("http://evil.example"), "/console/merchants", &forged).await;
    assert!(page.status == 403 && !page.html.contains("typed by another site"), "{}", page.html);
    let page = browser.post("/console/merchants", &[("name", ""), ("key", "key-of-the-form")]).await;
    assert!(page.status == 400 && !page.html.contains("key-of-the-form"), "{}", page.html);
    let page = browser.sign_in("wrong-of-thirty-two-characters-or-more").await;
    assert!(page.status == 401 && !page.html.contains("wrong-of-thirty"), "{}", page.html);
}

#[tokio::test]
async fn a_page_refuses_parameters_that_it_does_not_take() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let mut browser = Browser::signed_in(&world, ANA).await;
    for (path, is_known) in [
        (format!("/console/charges?merchant_id={}&status=pending", merchant.id), true),
        ("/console/charges?statsu=pending".to_owned(), false),
        ("/console/charges?paymentmethod=pix".to_owned(), false),
        (format!("/console/charges/{txid}?records=1"), true),
        (format!("/console/charges/{txid}?x=1"), false),
        ("/console/queue?kind=refund".to_owned(), true),
        ("/console/queue?kinds=refund".to_owned(), false),
        ("/console/queue?Kind=refund".to_owned(), false),
        ("/console?merchant=1".to_owned(), false),
        ("/console/trial-balance?day=2026-01-01".to_owned(), false),
        ("/console/find?query=x".to_owned(), false),
        ("/console/house?x".to_owned(), false),
        ("/console/merchants?serach=x".to_owned(), false),
        ("/console/exports/file?ledgers=all&format=csv".to_owned(), false),
    ] {
        for (language, unknown) in [("en", "unknown parameter"), ("pt-BR", "parâmetro desconhecido")] {
            browser.language = language;
            let page = browser.get(&path).await;
            let said = (page.status, page.html.contains(unknown));
            assert_eq!(said, if is_known { (200, false) } else { (400, true) }, "{path}: {}", page.html);
        }
    }
    assert_eq!(world.ops_get("/ops/queue?kinds=refund").await.status, 400, "as the API does");
}
