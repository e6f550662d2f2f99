//! The pages of `docs/guide`: their blocks for the shell, Python, TypeScript and PHP run as they
//! stand. The Portuguese pages have the same blocks.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::server::{Launch, OPS_TOKEN, Server, centavo};

use crate::commands::{blocks_of, texts_of};
use crate::tool;

/// The blocks of one language in a page of `docs`, in their order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

const FIRST: &str = "guide/first-charge.md";
/// The files that its commands run.
const FIRST_FILES: &str = "docs/guide/first-charge";

/// Pages of the guide whose fenced blocks run here, each; in Portuguese they have the same blocks.
pub(crate) fn is_run(page: &str) -> bool {
    let mut others = PAGES.iter().map(|(name, ..)| *name).chain(["clients", "local-webhooks", "first-charge"]);
    others.any(|name| page == format!("docs/guide/{name}.md"))
        || IN_PORTUGUESE.iter().any(|(_, name)| page == format!("docs/pt-br/guia/{name}.md"))
}

/// The pages that follow the first one, and what their samples say: in the shell, and in each of
/// the other languages.
const PAGES: [(&str, &[&str], &str); 16] = [
    (
        "keys",
        &["\"pending\"\n[\"insufficient_scope\",\"payouts\"]\n[[\"charges\",\"read\"],false]\nwhsec_\ntrue\n"],
        "refused: validation_failed",
    ),
    ("webhooks", &["verified\n", "\"sequence\": 1,", "\"tries\": [\n    \"pending\""], "a changed body is refused"),
    ("errors", &["\"field\": \"valor\"", "\"field\": \"cpf\"", "\"code\": \"validation_failed\""], "to the payer: "),
    (
        "retries",
        &["one charge\n", "idempotent-replayed: true", "idempotency_key_reused"],
        "one charge after three tries",
    ),
    ("lists", &["\"total\": ", "\"txids\": ["], "all charges, each once"),
    ("rate-limits", &["\"default\";q=600;w=60", "\"default\";r="], "within the limit"),
    (
        "refunds",
        &[
            "\"refunded_amount\": 3000",
            "refund_exceeds_available\n\"approved\"\ncharge_not_refundable\n",
            "\n{\"available\":2000,",
            "\"approved\"\n{\"available\":0,",
            "      3 charge.refunded\n      3 refund.approved\n",
            "[-8000,-4062,-2938,-3000]",
        ],
        "refused: 409 refund_exceeds_available",
    ),
    (
        "orders",
        &[
            "duplicate_reference\n",
            "{\"metadata\":{\"channel\":\"app\"},\"fees\":[{\"kind\":\"pix\",\"amount\":79}],\"net\":7921}",
            "{\"splits\":[1250],\"net\":8115}",
            "[201,null,400,\"validation_failed\"]\n[201,null,400,\"validation_failed\"]\n",
        ],
        "2 charges of one batch",
    ),
    (
        "pix",
        &[
            "{\"status\":\"pending\",\"amount\":8000,\"code\":\"00020101021226",
            "{\"status\":\"CONCLUIDA\",\"net\":7921,\"id\":\"E\"}",
        ],
        "paid too late: charge_not_pending",
    ),
    (
        "recipients",
        &["{\"status\":\"draft\",\"document\":\"***.444.777-**\",\"already_exists\":false}", "[\"active\",1500]"],
        "active with an account in review: pending",
    ),
    ("withdrawals", &["withdrawal_pending\n[\"approved\",\"Ana Exemplo\"]"], "rejected by merchant"),
    (
        "anticipation",
        &["[3500,{\"target_days\":2,\"rate_percent\":2.38,", "[3500,83,3417]\n[1,3417]"],
        "3500 less 70 is 3430",
    ),
    ("cashouts", &["duplicate_transaction\n[\"processed\",1900,\"E\"]"], "sent 1900 to +5511987654321 processed"),
    ("plans", &["[\"active\",1,1]\n[[5990,\"CONCLUIDA\"]]"], "it was paused and is cancelled"),
    (
        "disputes",
        &["[\"chargeback\",4000,\"open\"]\n4000\n[4000,-4000,4000,-4000]"],
        "chargeback released of a charge that is CONCLUIDA",
    ),
    ("sandbox", &["\"status\": \"CONCLUIDA\"", "\n\"20", "\"available\": "], "found: CONCLUIDA"),
];

/// A folder with the two clients of the first page, and what runs beside them.
pub(crate) struct Workplace {
    pub(crate) folder: tempfile::TempDir,
    server: Server,
    port: u16,
    has_node: bool,
    has_php: bool,
}

impl Workplace {
    /// `None` if a tool is missing.
    pub(crate) async fn new() -> Option<Self> {
        if ["bash", "curl", "jq", "python3"].iter().any(|name| tool::program(name).is_none()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let launch = Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8").with_rate_limits();
        let server = Server::start(&launch).await.unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let has_node = tool::node("typescript").is_some() && tool::node("@types/node/package.json").is_some();
        let has_php = tool::program_with("php", "-rexit((int) !extension_loaded('curl'));").is_some();
        let workplace = Self { folder, server, port, has_node, has_php };
        workplace.copy_first_files();
        for (name, ..) in PAGES {
            for (language, ending) in [("python", "py"), ("ts", "mts"), ("php", "php")] {
                let blocks = page_blocks(name, language);
                let is_needed = language != "php" || IN_PORTUGUESE.iter().any(|(of, _)| *of == name);
                assert!(!blocks.is_empty() || !is_needed, "{name} has no {language}");
                workplace.write(&format!("{name}.{ending}"), &blocks.join("\n"));
            }
        }
        Some(workplace)
    }

    /// The files that the first page runs, in their folder, and its two clients beside the samples
    /// of the other pages.
    fn copy_first_files(&self) {
        let to = self.folder.path().join(FIRST_FILES);
        std::fs::create_dir_all(&to).unwrap();
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(FIRST_FILES)).unwrap() {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            std::fs::copy(&path, to.join(&name)).unwrap();
            if path.file_stem().is_some_and(|stem| stem == "centavo" || stem == "centavo_guide") {
                std::fs::copy(&path, self.folder.path().join(&name)).unwrap();
            }
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// What a script of the shell says, in which all must go well.
    pub(crate) fn said(&self, script: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -euo pipefail\n{script}")]).current_dir(self.folder.path());
        command
            .env("CENTAVO_URL", &self.server.public)
            .env("CENTAVO_OPS_URL", &self.server.operations)
            .env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let port = self.port;
        command.env("WEBHOOK_URL", format!("http://127.0.0.1:{port}/")).env("WEBHOOK_PORT", port.to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", centavo().parent().unwrap().display()));
        if let Some(modules) = std::env::var_os("CENTAVO_NODE_MODULES") {
            command.env("NODE_PATH", std::path::absolute(modules).unwrap());
        }
        tool::run(command, Duration::from_secs(180)).unwrap_or_else(|said| panic!("{said}"))
    }

    /// Commands that compile these programs.
    fn compile(&self, names: &[&str]) -> String {
        let files: Vec<_> = names.iter().map(|name| format!("{name}.mts")).collect();
        format!(
            "ln -sfn \"$NODE_PATH\" node_modules\n\
             node node_modules/typescript/bin/tsc --strict --noEmitOnError --module nodenext --target es2022 \
             --types node {}",
            files.join(" ")
        )
    }
}

fn page_blocks(name: &str, language: &str) -> Vec<String> {
    blocks(&format!("guide/{name}.md"), language)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_first_charge_runs() {
    let Some(place) = Workplace::new().await else { return };
    let mut script = blocks(FIRST, "bash").join("\n");
    let mut heard = 1;
    if place.has_node {
        let commands = blocks_of(&format!("docs/{FIRST}")).0.into_iter().find(|block| block.starts_with("npm install"));
        // The packages are there already.
        let commands = commands.unwrap().lines().skip(1).collect::<Vec<_>>().join("\n");
        script += &format!("ln -sfn \"$NODE_PATH\" node_modules\n{commands}\n");
        heard += 1;
    }
    let said = place.said(&script);
    for (expected, times) in [("\"active\"", 1), ("\"sellerAmount\":5938", 1), ("refused: card_declined", heard)] {
        assert_eq!(said.matches(expected).count(), times, "{expected} in {said}");
    }
    for line in texts_of(&format!("docs/{FIRST}")).iter().flat_map(|text| text.lines()) {
        assert!(said.lines().any(|printed| is_as(printed, line)), "the page promises {line}: {said}");
    }
    assert_eq!(said.matches("webhook: ").count(), heard, "{said}");
}

/// Before the first run, the second tries of earlier webhooks have failed, as they have for a
/// reader who takes a minute. The second run is slow, and an earlier webhook is sent again
/// meanwhile.
const AT_A_PACE: &str = r#"
json "$CENTAVO_OPS_URL/ops/sandbox/clock" -H "Authorization: Bearer $CENTAVO_OPS_TOKEN" -d '{"advance_seconds": 60}' >/dev/null
EVENT=$(json "$CENTAVO_URL/api/events" -H "Authorization: Bearer $CENTAVO_API_KEY" | jq -r '.items[-1].id')
until [ "$(json "$CENTAVO_URL/api/events/$EVENT" -H "Authorization: Bearer $CENTAVO_API_KEY" | jq '.deliveries[0].failed_tries')" -ge 2 ]
do sleep 0.1; done
echo "== later"
python3 docs/guide/first-charge/first.py
{
  until : <>"/dev/tcp/127.0.0.1/$WEBHOOK_PORT"; do sleep 0.01; done
  json -X POST "$CENTAVO_URL/api/events/$EVENT/redeliver" -H "Authorization: Bearer $CENTAVO_API_KEY"
} >/dev/null 2>&1 &
echo "== slowly"
cd docs/guide/first-charge
python3 -c '
import time, centavo_guide
real = centavo_guide.call
centavo_guide.call = lambda *asked, **more: (time.sleep(0.5), real(*asked, **more))[1]
exec(open("first.py").read())'
wait
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_of_the_first_charge_says_what_the_page_shows_at_any_pace() {
    let Some(place) = Workplace::new().await else { return };
    let said = place.said(&format!("{}{AT_A_PACE}", blocks(FIRST, "bash")[..2].join("\n")));
    let shown = texts_of(&format!("docs/{FIRST}")).into_iter().find(|text| text.starts_with("refused: ")).unwrap();
    for (part, charges) in said.split("\n== ").skip(1).zip([" 3 charges", " 5 charges"]) {
        let shown = shown.replace(" 3 charges", charges);
        let lines: Vec<_> = part.lines().skip(1).collect();
        let is_shown = lines.iter().zip(shown.lines()).all(|(printed, line)| is_as(printed, line));
        assert!(is_shown && lines.len() == shown.lines().count(), "the page promises {shown}: {said}");
    }
    assert_eq!(said.matches("\n== ").count(), 2, "{said}");
}

/// In another folder than the server's, without a token.
const ELSEWHERE: &str = r#"
unset CENTAVO_OPS_TOKEN
mkdir elsewhere; cd elsewhere
if source ../docs/guide/first-charge/account.sh 2>told; then echo "it went on"; exit 1; fi
grep "^No token: $PWD/data/operator.token is not there. Go to the folder .* set CENTAVO_OPS_TOKEN" told
test "$(wc -l <told)" = 1
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_in_the_wrong_folder_says_what_is_missing() {
    let Some(place) = Workplace::new().await else { return };
    place.said(ELSEWHERE);
}

/// True where a line is as the page shows it: there, … stands for any text.
fn is_as(output: &str, shown: &str) -> bool {
    let (begin, end) = shown.split_once('…').unwrap_or((shown, ""));
    if shown.contains('…') { output.starts_with(begin) && output.ends_with(end) } else { output == shown }
}

/// The page shows the files that its commands run.
#[test]
fn the_page_of_the_first_charge_shows_its_files() {
    for (language, names) in [
        ("sh", vec!["account.sh"]),
        ("python", vec!["centavo_guide.py", "first.py"]),
        ("ts", vec!["centavo.mts", "first.mts"]),
        ("php", vec!["centavo.php"]),
    ] {
        let files = names.iter().map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(FIRST_FILES).join(name));
        let files: Vec<_> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert_eq!(blocks(FIRST, language), files, "{language}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_that_follow_run() {
    let Some(place) = Workplace::new().await else { return };
    let first = blocks(FIRST, "bash")[..3].join("\n");
    let opened = place
        .said(&format!("{first}\nprintf '%s\\n' \"$CENTAVO_API_KEY\" \"$WEBHOOK_SECRET\" \"$RECIPIENT\" >account"));
    assert!(opened.contains("\"active\""), "{opened}");
    let functions: String = blocks(FIRST, "sh")[0]
        .lines()
        .take_while(|line| !line.starts_with("MERCHANT="))
        .flat_map(|line| [line, "\n"])
        .collect();
    let account = format!(
        "{}\n{{ read -r CENTAVO_API_KEY; read -r WEBHOOK_SECRET; read -r RECIPIENT; }} <account\nexport CENTAVO_API_KEY WEBHOOK_SECRET RECIPIENT\n",
        functions
    );
    if place.has_node {
        place.said(&place.compile(&PAGES.map(|(name, ..)| name)));
    }
    for (name, in_shell, in_program) in PAGES {
        let samples = format!("{account}{}", page_blocks(name, "bash").join("\n"));
        let said = place.said(&samples);
        for expected in in_shell {
            assert!(said.contains(expected), "{name}: no {expected} in {said}");
        }
        // They run again in the same account, which has more by then.
        place.said(&samples);
        let mut programs = vec![format!("python3 {name}.py")];
        programs.extend(place.has_node.then(|| format!("node {name}.mjs")));
        let has_php = place.has_php && !page_blocks(name, "php").is_empty();
        programs.extend(has_php.then(|| format!("php {name}.php")));
        for program in programs.iter().flat_map(|program| [program, program]) {
            let said = place.said(&format!("{account}{program}"));
            assert!(said.contains(in_program), "{program}: {said}");
        }
    }
}

/// Pages of `docs/guide` that `docs/pt-br/guia` has in Portuguese.
const IN_PORTUGUESE: [(&str, &str); 9] = [
    ("keys", "chaves"),
    ("pix", "pix"),
    ("recipients", "recebedores"),
    ("withdrawals", "saques"),
    ("anticipation", "antecipacao"),
    ("cashouts", "cashouts"),
    ("plans", "planos"),
    ("disputes", "contestacoes"),
    ("orders", "pedidos"),
];

/// Whoever changes a sample changes it in both languages.
#[test]
fn the_portuguese_pages_have_the_same_samples() {
    for (english, portuguese) in IN_PORTUGUESE {
        for language in ["bash", "python", "ts", "php"] {
            let translated = blocks(&format!("pt-br/guia/{portuguese}.md"), language);
            assert_eq!(translated, page_blocks(english, language), "{portuguese}, {language}");
        }
    }
}

/// A server that is busy: it answers 503, 429 with `Retry-After: 9`, 503, and then an object. Its
/// `message` is the number of Idempotency-Keys that came.
pub(crate) fn busy_server() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut keys = BTreeSet::new();
        for (status, header) in
            [("503 Busy", ""), ("429 Too Many", "Retry-After: 9\r\n"), ("503 Busy", ""), ("200 OK", "")]
                .into_iter()
                .cycle()
        {
            let (mut caller, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                caller.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            keys.extend(head.lines().filter(|line| line.starts_with("idempotency-key:")).map(str::to_owned));
            let body = format!(r#"{{"code": "overloaded", "message": "{}"}}"#, keys.len());
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\n{header}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            caller.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

/// Calls once, with a clock that does not wait, and prints the pauses between the tries.
const PAUSES_IN_PYTHON: &str = r#"python3 -c '
import time; pauses = []; time.sleep = pauses.append
import centavo_guide; centavo_guide.call("GET", "/x"); print("pauses:", *pauses)'"#;
const PAUSES_IN_NODE: &str = r#"node --input-type=module -e '
const pauses = [], real = setTimeout, { call } = await import("./centavo.mjs");
// The other ones are of the fetch.
const isPause = (ms) => ms > 0 && ms < 10000 && ms % 1000 === 0;
globalThis.setTimeout = (done, ms) => (isPause(ms) ? done(pauses.push(ms / 1000)) : real(done, ms));
await call("GET", "/x"); console.log("pauses:", ...pauses)'"#;
const PAUSES_IN_PHP: &str = r#"php -r '
namespace Centavo;
function sleep($seconds) { $GLOBALS["pauses"][] = $seconds; }
require "centavo.php"; call("GET", "/x"); echo "pauses: ", implode(" ", $GLOBALS["pauses"]), PHP_EOL;'"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_wait_longer_each_time_and_as_long_as_an_answer_asks() {
    let Some(place) = Workplace::new().await else { return };
    let mut programs = vec![PAUSES_IN_PYTHON.to_owned()];
    if place.has_node {
        programs.push(format!("{}\n{PAUSES_IN_NODE}", place.compile(&["centavo"])));
    }
    programs.extend(place.has_php.then(|| PAUSES_IN_PHP.to_owned()));
    for program in programs {
        let said = place.said(&format!("export CENTAVO_URL={} CENTAVO_API_KEY=x\n{program}", busy_server()));
        assert!(said.contains("pauses: 1 9 4\n"), "{said}");
    }
}

/// The generators are those that the other tests of clients have; the page names their versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_clients_runs() {
    let needed = ["openapi-typescript", "@hey-api/openapi-ts"];
    let Some(python) = tool::python("openapi_python_client") else { return };
    if needed.iter().any(|package| tool::node(&format!("{package}/package.json")).is_none()) {
        return;
    }
    let Some(place) = Workplace::new().await else { return };
    let tools = std::path::Path::new(python.get_program()).parent().unwrap().display().to_string();
    let page = page_blocks("clients", "bash").join("\n");
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
    let said = place
        .said(&format!("ln -s {clients} clients\nln -sfn \"$NODE_PATH\" node_modules\nPATH={tools}:$PATH\n{page}"));
    assert!(!said.to_lowercase().contains("warn"), "{said}");
    for made in ["packed/centavo-0.1.0.tgz", "client/client.py", "client-ts/sdk.gen.ts", "centavo.d.ts"] {
        assert!(place.folder.path().join(made).is_file(), "{made} was not made: {said}");
    }
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let (page, tested) = (read("docs/guide/clients.md"), read("tests/conformance/requirements.txt") + &read(".ci/run"));
    for version in ["openapi-python-client==", "@hey-api/openapi-ts@", "openapi-typescript@"] {
        let named = page.split(version).nth(1).and_then(|rest| rest.split('`').next()).unwrap();
        assert!(tested.contains(&format!("{version}{named}")), "{version}{named} is not what is tested");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_local_webhooks_runs() {
    let Some(place) = Workplace::new().await else { return };
    let opened = &blocks(FIRST, "bash")[0];
    let page = page_blocks("local-webhooks", "bash").join("\n").replace("8099", &place.port.to_string());
    let said = place.said(&format!("{opened}\n{page}"));
    for event in ["charge.paid ", "recipient.approved ", "withdrawal.rejected "] {
        let lines = said.lines().filter(|line| line.starts_with(event) && line.contains("  200 in "));
        assert!(lines.count() > 0, "{event} was not forwarded: {said}");
    }
}
