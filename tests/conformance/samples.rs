//! Samples of the reference: every call that its pages show in the shell, in Python and in
//! TypeScript runs as it stands. Variables hold the ids of things that were made for the call, so
//! each call of the merchants' pages succeeds; those of the operators' pages are understood.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::callers::{self, client};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

/// Statuses of a call of operators that was understood. The id of what its path names is that of a
/// recipient, so many are not found.
const UNDERSTOOD: [&str; 7] = ["200", "201", "202", "403", "404", "409", "422"];

/// A call that the pages show, in each language.
struct Sample {
    shell: String,
    python: String,
    typescript: String,
}

impl Sample {
    fn is_of_merchants(&self) -> bool {
        self.shell.contains("\"$CENTAVO_URL/")
    }

    /// Method and path.
    fn called(&self) -> (&str, &str) {
        let method = self.shell.split("curl -X ").nth(1).and_then(|rest| rest.split(' ').next());
        (method.unwrap_or("GET"), self.shell.split("_URL").nth(1).and_then(|rest| rest.split('"').next()).unwrap())
    }
}

/// A merchant who makes what a sample names.
struct Merchant<'a> {
    server: &'a Server,
    key: String,
    /// An active recipient.
    recipient: String,
    examples: Value,
}

impl<'a> Merchant<'a> {
    async fn new(server: &'a Server) -> Self {
        let opened =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
        let merchant = operate(server, "/ops/merchants", opened).await["id"].as_str().unwrap().to_owned();
        let address = json!({"webhook_url": "http://127.0.0.1:9/"});
        let key = operate(server, &format!("/ops/merchants/{merchant}/api-keys"), address).await;
        let read = reqwest::get(format!("{}/openapi.json", server.public)).await.unwrap();
        let (key, examples) = (key["api_key"].as_str().unwrap().to_owned(), read.json().await.unwrap());
        let mut merchant = Self { server, key, recipient: String::new(), examples };
        merchant.recipient = merchant.active_recipient(merchant.example("/api/sub-recipients")).await;
        merchant.pix("9000.00", true).await;
        merchant
    }

    async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let request = client().request(method.parse().unwrap(), format!("{}{path}", self.server.public));
        let request = request.bearer_auth(&self.key);
        let request = if method == "GET" { request } else { request.json(&body) };
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap());
        answer.json().await.unwrap()
    }

    async fn id_of(&self, path: &str, body: Value) -> String {
        let made = self.call("POST", path, body).await;
        ["txid", "id", "card_token", "withdrawal_id"].iter().find_map(|id| made[*id].as_str()).unwrap().to_owned()
    }

    fn example(&self, path: &str) -> Value {
        self.examples["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"].clone()
    }

    async fn pix(&self, valor: &str, is_paid: bool) -> String {
        let txid = self.id_of("/api/pix", json!({"valor": valor, "nome": "Maria", "cpf": "12345678909"})).await;
        if is_paid {
            self.call("POST", &format!("/api/sandbox/pix/{txid}/pay"), json!({})).await;
        }
        txid
    }

    async fn plan(&self) -> String {
        let mut plan = self.example("/api/recurrency/plans");
        plan["tag"] = json!(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        plan["initialGraceCycles"] = json!(1);
        self.id_of("/api/recurrency/plans", plan).await
    }

    async fn active_recipient(&self, registration: Value) -> String {
        let id = self.id_of("/api/sub-recipients", registration).await;
        operate(self.server, &format!("/ops/sub-recipients/{id}/approve"), json!({})).await;
        id
    }

    /// One who has money of a PIX.
    async fn recipient_with_money(&self) -> String {
        let id = self.active_recipient(callers::recipient(&cpf(NEXT.fetch_add(1, Ordering::Relaxed)))).await;
        let splits = json!([{"sub_recipient_id": id, "amount": 1000}]);
        let pix = json!({"valor": "90.00", "nome": "Maria", "cpf": "12345678909", "splits": splits});
        let txid = self.id_of("/api/pix", pix).await;
        self.call("POST", &format!("/api/sandbox/pix/{txid}/pay"), json!({})).await;
        id
    }

    /// A new thing for a variable of a sample, in a state in which the call succeeds.
    async fn made_for(&self, variable: &str, (method, path): (&str, &str)) -> String {
        match variable {
            "RECIPIENT" if method == "POST" && path.ends_with("/withdraw") => self.recipient_with_money().await,
            "RECIPIENT" => self.recipient.clone(),
            "TXID" => {
                let txid = self.pix("80.00", path == "/api/refunds").await;
                if method == "DELETE" {
                    let document = json!({"key": path.rsplit('/').next()});
                    self.call("POST", &format!("/api/charges/{txid}/fiscal-documents"), document).await;
                }
                txid
            }
            "SPLIT" => {
                let mut charge = self.example("/api/card");
                charge["splits"][0]["sub_recipient_id"] = json!(self.recipient);
                format!("{}-0", self.id_of("/api/card", charge).await)
            }
            "PLAN" => self.plan().await,
            "CARD_TOKEN" => self.id_of("/api/cards", self.example("/api/cards")).await,
            _ => self.made_of_kind(path).await,
        }
    }

    /// What the `ID` of a path names.
    async fn made_of_kind(&self, path: &str) -> String {
        match path.split("/$ID").next().unwrap() {
            "/api/cashout" => {
                let cashout = json!({"amount": 1000, "pix_key": "ana@example.com", "pix_key_type": "email"});
                self.id_of("/api/cashout", cashout).await
            }
            "/api/refunds" => {
                let refund = json!({"payment_id": self.pix("80.00", true).await, "amount": 1000});
                self.id_of("/api/refunds", refund).await
            }
            "/api/recurrency/subscriptions" => {
                let mut wanted = self.example("/api/recurrency/subscriptions");
                wanted.as_object_mut().unwrap().remove("splits");
                wanted["plan_id"] = json!(self.plan().await);
                wanted["card_token"] = json!(self.id_of("/api/cards", self.example("/api/cards")).await);
                let id = self.id_of("/api/recurrency/subscriptions", wanted).await;
                if path.ends_with("/resume") {
                    self.call("POST", &path.replace("$ID", &id).replace("resume", "pause"), json!({})).await;
                }
                id
            }
            "/api/dashboard/withdraw" => {
                let recipient = self.recipient_with_money().await;
                self.id_of(&format!("/api/dashboard/sub-recipients/{recipient}/withdraw"), json!({})).await
            }
            "/api/keys" => self.id_of("/api/keys", json!({})).await,
            "/api/reports" => {
                let id = self.id_of("/api/reports", json!({"format": "csv"})).await;
                while self.call("GET", &format!("/api/reports/{id}"), json!({})).await["status"] != "done" {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                id
            }
            _ => self.call("GET", "/api/events", json!({})).await["items"][0]["id"].as_str().unwrap().to_owned(),
        }
    }

    /// The variables of a sample.
    async fn variables_of(&self, sample: &Sample) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        for name in ["RECIPIENT", "TXID", "SPLIT", "PLAN", "CARD_TOKEN", "ID"] {
            if sample.shell.contains(&format!("${name}")) {
                let is_made = sample.is_of_merchants();
                let made = if is_made { self.made_for(name, sample.called()).await } else { self.recipient.clone() };
                variables.push((name, made));
            }
        }
        variables
    }
}

static NEXT: AtomicU64 = AtomicU64::new(100);

async fn operate(server: &Server, path: &str, body: Value) -> Value {
    callers::operate(&client(), server, path, &body).await.unwrap()
}

/// A CPF with this number.
fn cpf(number: u64) -> String {
    let mut digits: Vec<u64> = format!("{number:09}").bytes().map(|digit| u64::from(digit - b'0')).collect();
    for first in [10, 11] {
        let sum: u64 = digits.iter().zip((2..=first).rev()).map(|(digit, weight)| digit * weight).sum();
        digits.push(sum * 10 % 11 % 10);
    }
    digits.iter().map(u64::to_string).collect()
}

async fn samples(server: &Server) -> Vec<Sample> {
    let mut samples = Vec::new();
    for listener in [&server.public, &server.operations] {
        let read = async |path: &str| reqwest::get(format!("{listener}{path}")).await.unwrap().text().await.unwrap();
        let description: Value = serde_json::from_str(&read("/openapi.json").await).unwrap();
        let before = samples.len();
        for tag in description["tags"].as_array().unwrap() {
            let name = tag["name"].as_str().unwrap().to_lowercase().replace(' ', "-");
            let page = read(&format!("/reference/{name}")).await;
            let codes: Vec<_> = page.split("<pre tabindex=\"0\">").skip(1).collect();
            let codes: Vec<_> = codes.iter().map(|code| unescaped(code.split("</pre>").next().unwrap())).collect();
            let of = |begin: &'static str| codes.iter().filter(move |code| code.starts_with(begin)).cloned();
            let in_programs = of("import os").zip(of("const answer"));
            assert!([of("import os").count(), of("const answer").count()] == [of("curl").count(); 2], "{name}");
            samples.extend(of("curl").zip(in_programs).map(|(shell, (python, typescript))| Sample {
                shell,
                python,
                typescript,
            }));
        }
        let described = description["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let described = described.filter(|(_, operation)| operation["operationId"].is_string()).count();
        assert!(samples.len() - before >= described && described > 10, "{described} operations");
    }
    // What a sample of operators deletes, no other one names afterwards.
    samples.sort_by_key(|sample| sample.called().0 == "DELETE");
    samples
}

fn unescaped(html: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// Runs a program of all samples as a merchant of its own, and looks at the statuses that begin its
/// lines. `write` gives a sample with its variables.
async fn must_succeed(
    server: &Server,
    samples: &[Sample],
    write: impl Fn(&Sample, &[(&str, String)]) -> String,
    run: impl FnOnce(String) -> Command,
) {
    let merchant = Merchant::new(server).await;
    let mut program = String::new();
    for sample in samples {
        program.push_str(&write(sample, &merchant.variables_of(sample).await));
    }
    let mut command = run(program);
    command.env("CENTAVO_URL", &server.public).env("CENTAVO_OPS_URL", &server.operations);
    command.env("CENTAVO_OPS_TOKEN", OPS_TOKEN).env("CENTAVO_API_KEY", &merchant.key);
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(300))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    let answered: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("answered ")).collect();
    assert_eq!(answered.len(), samples.len(), "{said}");
    for (sample, line) in samples.iter().zip(answered) {
        let understood = if sample.is_of_merchants() { &UNDERSTOOD[..3] } else { &UNDERSTOOD };
        assert!(understood.iter().any(|status| line.starts_with(status)), "{}\n{line}", sample.shell);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_of_the_reference_runs() {
    let python = tool::python("requests");
    let (compiler, node) = (tool::node_program("typescript", "bin/tsc"), tool::program("node"));
    let (Some(_), Some(_)) = (tool::program("bash"), tool::program("curl")) else { return };
    let (Some(mut python), Some(mut compiler), Some(mut node)) = (python, compiler, node) else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let samples = samples(&server).await;

    let set = |variables: &[(&str, String)]| variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    let in_shell = |sample: &Sample, variables: &[(&str, String)]| {
        let set: String = set(variables);
        format!("export {set}\n{}\n", sample.shell)
    };
    must_succeed(&server, &samples, in_shell, |program| {
        let answered =
            r#"curl() { command curl --silent --output /dev/null --write-out 'answered %{http_code} %{url}\n' "$@"; }"#;
        let mut shell = Command::new("bash");
        shell.args(["-euc", &format!("{answered}\n{program}")]).current_dir(folder.path());
        shell
    })
    .await;

    let as_object = |variables: &[(&str, String)]| {
        let members = variables.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
        Value::Object(members.collect()).to_string()
    };
    let in_python = |sample: &Sample, variables: &[(&str, String)]| {
        format!("import os; os.environ.update({})\n{}\n", as_object(variables), sample.python)
    };
    must_succeed(&server, &samples, in_python, |program| {
        let answered = "import builtins\ndef print(status, text): builtins.print('answered', status, text[:200].replace('\\n', ' '))\n";
        python.args(["-c", &format!("{answered}{program}")]).current_dir(folder.path());
        python
    })
    .await;

    let modules = std::path::absolute(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default()).unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    let in_typescript = |sample: &Sample, variables: &[(&str, String)]| {
        format!("{{\nObject.assign(process.env, {});\n{}\n}}\n", as_object(variables), sample.typescript)
    };
    must_succeed(&server, &samples, in_typescript, |program| {
        let answered = "console.log = (status: number, text: string) => \
            process.stdout.write(`answered ${status} ${text.slice(0, 200).replaceAll('\\n', ' ')}\\n`);\nexport {};\n";
        std::fs::write(folder.path().join("samples.mts"), format!("{answered}{program}")).unwrap();
        compiler.args(["--strict", "--skipLibCheck", "--types", "node", "--module", "nodenext"]);
        compiler.args(["--target", "es2022", "samples.mts"]).current_dir(folder.path());
        tool::run(compiler, Duration::from_secs(300)).unwrap_or_else(|said| panic!("{said}"));
        node.arg("samples.mjs").current_dir(folder.path());
        node
    })
    .await;
    server.stop().unwrap();
}
