//! A real browser: Chromium behind chromedriver, with axe-core put into its pages.
//!
//! Both programs come from Debian, and axe-core from npm. Where one of them is missing, a test says
//! how to get it and ends; with `CENTAVO_BROWSER=required` it fails.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::actions::{InputSource, KeyAction, KeyActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

/// One browser at a time: a machine may have two cores.
static TURN: Semaphore = Semaphore::const_new(1);

/// The key Enter, as drivers write it.
pub(crate) const ENTER: char = '\u{e007}';

/// The tabulator, as drivers write it.
const TAB: char = '\u{e004}';

/// The arrow key downwards.
pub(crate) const DOWN: &str = "\u{e015}";

const HOW_TO_GET: &str = "a browser is missing: `apt-get install chromium chromium-driver`, and \
     `npm install --prefix target/tools --no-save axe-core@4.14.1`";

/// A running browser.
pub(crate) struct Browser {
    client: Client,
    axe: String,
    driver: Child,
    _profile: TempDir,
    _turn: SemaphorePermit<'static>,
}

/// Colors and width of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) scheme: &'static str,
    pub(crate) width: u32,
}

/// The views in which each page is judged.
pub(crate) const VIEWS: [View; 4] = [
    View { scheme: "light", width: 1280 },
    View { scheme: "dark", width: 1280 },
    View { scheme: "dark", width: 390 },
    View { scheme: "light", width: 390 },
];

impl Browser {
    /// Starts a browser; `None` if there is none and none is required.
    pub(crate) async fn start() -> Option<Self> {
        let turn = TURN.acquire().await.unwrap();
        let modules = std::env::var_os("CENTAVO_NODE_MODULES").map(PathBuf::from);
        let modules = modules.unwrap_or_else(|| PathBuf::from("target/tools/node_modules"));
        let axe = std::fs::read_to_string(modules.join("axe-core/axe.min.js"));
        let driver =
            || Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Some((axe, mut driver)) = axe.and_then(|axe| Ok((axe, driver()?))).ok() else {
            let is_required = std::env::var("CENTAVO_BROWSER").is_ok_and(|value| value == "required");
            assert!(!is_required, "{HOW_TO_GET}");
            eprintln!("NOT RUN: {HOW_TO_GET}");
            return None;
        };
        let port = port_of(&mut driver);
        let profile = tempfile::tempdir().unwrap();
        let connector = ClientBuilder::new(HttpConnector::new()).capabilities(capabilities(&profile)).clone();
        let client = connector.connect(&format!("http://127.0.0.1:{port}")).await.expect("chromedriver answers");
        Some(Self { client, axe, driver, _profile: profile, _turn: turn })
    }

    /// Opens a page; waits while the page says that it is being read.
    pub(crate) async fn open(&self, address: &str) {
        self.look(address).await;
        self.follow().await;
    }

    /// Opens a page as it is at once.
    pub(crate) async fn look(&self, address: &str) {
        self.client.goto(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    /// Where the browser is, without scheme and host.
    pub(crate) async fn place(&self) -> String {
        let at = self.client.current_url().await.unwrap();
        at.query().map_or_else(|| at.path().to_owned(), |query| format!("{}?{query}", at.path()))
    }

    /// Types a text into what a selector names. When it ends with Enter, another page follows.
    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        self.mark().await;
        self.client.find(Locator::Css(selector)).await.unwrap().send_keys(text).await.unwrap();
        if text.ends_with(ENTER) {
            self.follow().await;
        }
    }

    /// Marks the page that is shown.
    async fn mark(&self) {
        self.run("document.documentElement.id = 'left'").await;
    }

    /// Waits until the marked page is gone and another one is there, whole.
    async fn follow(&self) {
        let is_other = "return document.documentElement.id !== 'left' && document.readyState === 'complete'";
        for _ in 0..1_200 {
            if matches!(self.client.execute(is_other, Vec::new()).await, Ok(Value::Bool(true))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no page follows {}", self.place().await);
    }

    /// Presses keys as a keyboard does: they go where the focus is then, also when a live page
    /// replaces its parts.
    pub(crate) async fn press(&self, keys: &str) {
        let pressed = keys.chars().fold(KeyActions::new("keyboard".to_owned()), |actions, key| {
            let value = if key == '\t' { TAB } else { key };
            actions.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        });
        self.client.perform_actions(pressed).await.unwrap();
    }

    /// Moves the focus with the tabulator until it is on what a selector names.
    pub(crate) async fn tab_to(&self, selector: &str) {
        let is_there = format!("return document.activeElement.matches({})", json!(selector));
        for _ in 0..300 {
            if self.run(&is_there).await == json!(true) {
                return;
            }
            self.press("\t").await;
        }
        panic!("the tabulator does not reach {selector} in {}", self.place().await);
    }

    /// Presses Enter on what a selector names, which the tabulator reaches, and waits for the page
    /// that follows.
    pub(crate) async fn enter(&self, selector: &str) {
        self.tab_to(selector).await;
        self.mark().await;
        self.press(&ENTER.to_string()).await;
        self.follow().await;
    }

    /// Types a text into what a selector names, which the tabulator reaches. When it ends with
    /// Enter, another page follows.
    pub(crate) async fn write(&self, selector: &str, text: &str) {
        self.tab_to(selector).await;
        self.mark().await;
        self.press(text).await;
        if text.ends_with(ENTER) {
            self.follow().await;
        }
    }

    /// Clicks what a selector names, and waits for the page that follows.
    pub(crate) async fn click(&self, selector: &str) {
        self.mark().await;
        let found = self.client.find(Locator::Css(selector)).await;
        let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
        found.click().await.unwrap_or_else(|error| panic!("{selector}: {error}"));
        self.follow().await;
    }

    /// Clicks what a selector names, which downloads a file: its name and its bytes.
    pub(crate) async fn download(&self, selector: &str) -> (String, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let to = json!({"behavior": "allow", "downloadPath": folder.path()});
        self.devtools("Browser.setDownloadBehavior", to).await;
        self.client.find(Locator::Css(selector)).await.unwrap().click().await.unwrap();
        for _ in 0..1_200 {
            let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
            let names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
            // Chromium gives a file its name when it is whole.
            if let [name] = &names[..]
                && !name.ends_with(".crdownload")
                && !name.starts_with(".")
            {
                return (name.clone(), std::fs::read(folder.path().join(name)).unwrap());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{selector} downloads nothing in {}: {}", self.place().await, self.text().await);
    }

    /// Runs a script in the page and gives its result.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The text of the page.
    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// Fails when the page does not show a text.
    pub(crate) async fn has(&self, text: &str) {
        let shown = self.text().await;
        assert!(shown.contains(text), "{text:?} is missing in {}: {shown}", self.place().await);
    }

    /// Switches JavaScript off in the pages that are opened from here on, or on.
    pub(crate) async fn javascript(&self, is_on: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({"value": !is_on})).await;
    }

    /// Changes colors and width.
    pub(crate) async fn view(&self, View { scheme, width }: View) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.devtools("Emulation.setEmulatedMedia", json!({"features": [feature]})).await;
        let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    async fn devtools(&self, command: &'static str, params: Value) -> Value {
        let command = Raw { path: "goog/cdp/execute", body: json!({"cmd": command, "params": params}) };
        self.client.issue_cmd(command).await.unwrap()
    }

    /// What is wrong with the page as it is shown now, by axe (WCAG 2.0 to 2.2 A and AA, best
    /// practice) and by measure: sideways scroll, and pale text in pictures.
    pub(crate) async fn defects(&self) -> Vec<String> {
        if self.run("return !window.axe").await == json!(true) {
            self.client.execute(&self.axe, Vec::new()).await.unwrap();
        }
        let judged = self.client.execute_async(JUDGE, Vec::new()).await.unwrap();
        let found = judged.as_array().unwrap_or_else(|| panic!("axe: {judged}"));
        found.iter().map(|defect| defect.as_str().unwrap().to_owned()).collect()
    }

    /// What the console and the reports of broken policies have said since the last call.
    pub(crate) async fn said(&self) -> Vec<String> {
        let log = self.client.issue_cmd(Raw { path: "se/log", body: json!({"type": "browser"}) }).await.unwrap();
        let serious = log.as_array().unwrap().iter().filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        serious.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Keeps a picture of the page where `CENTAVO_SCREENSHOTS` names a folder.
    pub(crate) async fn keep_picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("CENTAVO_SCREENSHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        let page = "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]";
        let [width, height] = serde_json::from_value::<[u32; 2]>(self.run(page).await).unwrap();
        let clip = json!({"x": 0, "y": 0, "width": width, "height": height.min(PICTURE_MAX), "scale": 1});
        let whole = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let taken = self.devtools("Page.captureScreenshot", whole).await;
        let picture =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, taken["data"].as_str().unwrap());
        std::fs::write(folder.join(format!("{name}.png")), picture.unwrap()).unwrap();
    }

    /// Ends the browser.
    pub(crate) async fn close(self) {
        self.client.clone().close().await.unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ended = self.driver.kill();
        let _reaped = self.driver.wait();
    }
}

/// Height of a picture, at most, pixels: Chromium takes none of a page of more than 16,384.
const PICTURE_MAX: u32 = 16_000;

/// Runs axe and the measures; gives one line for each defect.
const JUDGE: &str = r#"
const done = arguments[arguments.length - 1];
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
axe.run(document, {runOnly: tags, rules: {"target-size": {enabled: true}}, resultTypes: ["violations"]}).then(found => {
  const defects = found.violations.flatMap(rule => rule.nodes.map(node =>
    `${rule.id}: ${node.target.join(" ")}: ${(node.any.concat(node.all, node.none)[0] || {}).message || rule.help}`));
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) defects.push(`sideways scroll: ${page.scrollWidth} in ${page.clientWidth}`);
  for (const row of innerWidth < 400 ? document.querySelectorAll("table.list tr") : []) {
    const shown = [...row.cells].filter(cell => cell.offsetParent && !cell.matches(".choose"));
    const [lines, box] = [new Set(shown.map(cell => cell.offsetTop)).size, row.closest(".scroll")];
    if (lines > 2) defects.push(`a row of a list in ${lines} lines: ${row.textContent}`);
    if (box.scrollWidth > box.clientWidth) defects.push(`a list is cut off: ${box.scrollWidth} in ${box.clientWidth}`);
  }
  const light = text => {
    const parts = text.match(/[\d.]+/g).map(Number).slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = from => {
    for (let at = from; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  for (const text of document.querySelectorAll("svg text")) {
    const [one, other] = [light(getComputedStyle(text).fill), light(ground(text))].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) defects.push(`picture: "${text.textContent}" has a contrast of ${ratio.toFixed(2)}`);
  }
  done(defects);
}, error => done([`axe: ${error}`]));
"#;

/// A command of chromedriver beyond the protocol.
#[derive(Debug)]
struct Raw {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Raw {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

/// Port that a driver chose, from its standard output.
fn port_of(driver: &mut Child) -> u16 {
    let output = BufReader::new(driver.stdout.take().unwrap());
    let mut lines = output.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("started successfully on port")).expect("chromedriver prints its port");
    // It must be able to go on writing.
    std::thread::spawn(move || lines.for_each(drop));
    line.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap()
}

fn capabilities(profile: &TempDir) -> Map<String, Value> {
    let folder = format!("--user-data-dir={}", profile.path().display());
    let arguments = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--no-proxy-server",
        // A name that is not this machine's, for the pages of who comes without https.
        "--host-resolver-rules=MAP ops.example 127.0.0.1",
        &folder,
    ];
    let wanted = json!({
        "goog:chromeOptions": {"args": arguments},
        "goog:loggingPrefs": {"browser": "ALL"},
        "timeouts": {"script": Duration::from_secs(120).as_millis() as u64},
    });
    wanted.as_object().unwrap().clone()
}
