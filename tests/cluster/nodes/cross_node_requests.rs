//! One request about merchants of several nodes: decisions on their items in one form, commands
//! that only a body gives a merchant, webhook endpoints that are behind.

use super::*;

/// A browser with a session, at one node.
struct Browser<'a> {
    node: &'a Server,
    client: reqwest::Client,
    cookie: String,
}

impl<'a> Browser<'a> {
    async fn signed_in(node: &'a Server) -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let mut browser = Self { node, client, cookie: String::new() };
        let form = format!("token={OPS_TOKEN}&next=%2Fconsole");
        let signed_in = browser.posted("/console/sign-in", form).await;
        let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
        browser.cookie = cookie.split(';').next().unwrap().to_owned();
        browser
    }

    /// The answer to a form. On a busy machine a sign of life may be late: a form that was not
    /// carried out is sent again, with its key.
    async fn posted(&self, path: &str, form: String) -> reqwest::Response {
        let (origin, begun) = (&self.node.operations, Instant::now());
        loop {
            let request = self.client.post(format!("{origin}{path}")).header("origin", origin);
            let request = request.header("cookie", &self.cookie).body(form.clone());
            let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
            if answer.status() != 503 || begun.elapsed() > PATIENCE {
                return answer;
            }
        }
    }

    /// A page that is there.
    async fn page(&self, path: &str) -> String {
        let request = self.client.get(format!("{}{path}", self.node.operations)).header("cookie", &self.cookie);
        let page = request.send().await.unwrap();
        assert_eq!(page.status(), 200, "{path}: {}", self.node.said());
        page.text().await.unwrap()
    }
}

/// The value of the first field of this name on a page.
fn field<'p>(page: &'p str, name: &str) -> &'p str {
    let begin = format!("name=\"{name}\" value=\"");
    page.split(&begin).nth(1).unwrap_or_else(|| panic!("no {name}: {page}")).split('"').next().unwrap()
}

/// How many things wait, as the menu of a page says.
fn counted(page: &str) -> Option<String> {
    let entry = page.split("href=\"/console/queue\"").nth(1).unwrap_or_else(|| panic!("no queue: {page}"));
    let count = entry.split("</a>").next().unwrap().split("<span>").nth(1)?;
    Some(count.split('<').next().unwrap().to_owned())
}

/// Registers a recipient, who waits for a decision.
async fn waiting_recipient(node: &Server, merchant: &Callers, document: &str) -> String {
    let body = json!({
        "register_information": {
            "type": "individual", "document_number": document, "name": "Rui", "birthdate": "01/02/1980",
            "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
            "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                "zip_code": "01000000"}
        },
        "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
    });
    let request = client().post(format!("{}/api/sub-recipients", node.public)).bearer_auth(&merchant.api_key);
    let made: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
    made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_request_reaches_the_merchants_of_several_nodes() {
    let Some(database) = shared() else { return };
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let nodes = Nodes::start(folder.path(), &address, 2).await;
    let merchants = merchants(&nodes).await;
    for (node, document) in nodes.running().into_iter().zip(["52998224725", "93541134780"]) {
        let browser = Browser::signed_in(node).await;
        // Decisions on items of both nodes, with their entries, in one form.
        let mut items = Vec::new();
        for merchant in &merchants {
            items.push(waiting_recipient(node, merchant, document).await);
        }
        // A page that another process than the house's makes does not count what waits there alone.
        let mut counts: Vec<Option<String>> = Vec::new();
        for merchant in &merchants {
            counts.push(counted(&browser.page(&format!("/console/merchants/{}", merchant.merchant)).await));
        }
        counts.sort();
        let all = get(node, "/ops/queue").await["total"].clone();
        assert_eq!(counts, [None, Some(all.to_string())]);
        let ids: String = items.iter().map(|id| format!("&id={id}")).collect();
        let confirmed = browser.page(&format!("/console/queue/many?decision=approve{ids}")).await;
        assert!(items.iter().all(|id| confirmed.contains(id)), "{confirmed}");
        assert!(!confirmed.contains("class=\"warning\""), "each has its preview: {confirmed}");
        let chosen: String = items.iter().map(|id| format!("&item=recipient%2F{id}")).collect();
        let (token, key) = (field(&confirmed, "form_token"), field(&confirmed, "key"));
        let form = format!("form_token={token}&key={key}&decision=approve{chosen}");
        for _is_again in [false, true] {
            let decided = browser.posted("/console/queue/many", form.clone()).await;
            let said = decided.text().await.unwrap();
            assert!(!said.contains("misdirected"), "{said}");
            for (merchant, item) in merchants.iter().zip(&items) {
                let url = format!("{}/api/sub-recipients/{item}", node.public);
                let found = client().get(url).bearer_auth(&merchant.api_key).send().await.unwrap();
                let found: Value = found.json().await.unwrap();
                assert_eq!(found["status"], "active", "{found} {said}");
            }
        }
        // Accounts that a form opens: each key has its own partition.
        for number in 0..6 {
            let page = browser.page("/console/merchants/new").await;
            let (token, key) = (field(&page, "form_token"), field(&page, "key"));
            let form = format!("form_token={token}&key={key}&name=Loja{number}&document=11222333000181");
            let opened = browser.posted("/console/merchants", form).await;
            assert_eq!(opened.status(), 303, "{}", opened.text().await.unwrap());
            let place = opened.headers()["location"].to_str().unwrap().to_owned();
            assert!(browser.page(&place).await.contains(&format!("Loja{number}")));
        }
        // Payers of charges of both nodes.
        for merchant in &merchants {
            let body = json!({"valor": "50.00", "nome": "Pedro", "cpf": "12345678909"});
            let request = client().post(format!("{}/api/pix", node.public)).bearer_auth(&merchant.api_key);
            let made: Value = request.json(&body).send().await.unwrap().json().await.unwrap();
            let txid = made["txid"].as_str().unwrap();
            let page = browser.page("/console/sandbox").await;
            let (token, key) = (field(&page, "form_token"), field(&page, "key"));
            let form = format!("form_token={token}&key={key}&txid={txid}");
            let paid = browser.posted("/console/sandbox/pix", form).await;
            assert_eq!(paid.status(), 303, "{}", paid.text().await.unwrap());
            let said = browser.page("/console/sandbox").await;
            assert!(said.contains(txid), "the session was asked to say it: {said}");
        }
    }
    // Endpoints of both nodes that nobody answers at.
    for merchant in &merchants {
        let body = json!({"webhook_url": "http://127.0.0.1:9/"});
        let path = format!("/ops/merchants/{}/api-keys", merchant.merchant);
        assert_eq!(post(nodes.node(0), OPS_TOKEN, &path, &body).await.0, 201);
    }
    let mut merchants = merchants;
    for merchant in &mut merchants {
        merchant.charge(nodes.node(0), 1, 10).await;
    }
    let begun = Instant::now();
    for node in nodes.running() {
        while get(node, "/ops/webhooks").await["total"] != 2 {
            assert!(begun.elapsed() < PATIENCE, "{}", get(node, "/ops/webhooks").await);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    nodes.stop().await;
}
