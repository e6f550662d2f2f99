//! The folder that is damaged, and what its server had acknowledged.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::books::Books;
use testkit::callers::{Callers, client, operate};
use testkit::server::{Launch, Server, must_verify};

/// Data folders to copy and damage, and what their server had acknowledged.
pub(crate) struct Base {
    place: PathBuf,
    /// The same books, after a good end and after a kill.
    folders: [PathBuf; 2],
    /// What they say; and what they said before the last block, and before the last two.
    pub(crate) books: [Books; 3],
    pub(crate) merchants: Vec<Callers>,
}

/// Merchants in the books, each with three recipients.
const MERCHANTS: usize = 3;
/// Callers of each merchant at once.
const CALLERS: usize = 8;
/// Two days more than card money waits.
const MATURED_SECONDS: u64 = 32 * 24 * 60 * 60;

impl Base {
    /// Lets a server live through charges, matured money, restarts and a kill.
    pub(crate) async fn make(place: &Path) -> Result<Self, String> {
        let (stopped, killed) = (place.join("stopped"), place.join("killed"));
        std::fs::create_dir(&stopped).map_err(|error| error.to_string())?;
        let launch = Launch::on(&stopped);
        let server = Server::start(&launch).await?;
        let mut merchants = Vec::new();
        for _ in 0..MERCHANTS {
            merchants.push(Callers::open(&server).await?);
        }
        charge(&server, &mut merchants, 200).await;
        reckon(&server, &mut merchants).await?;
        let month = json!({"advance_seconds": MATURED_SECONDS});
        operate(&client(), &server, "/ops/sandbox/clock", &month).await?;
        charge(&server, &mut merchants, 150).await;
        server.stop()?;
        let server = Server::start(&launch).await?;
        for callers in &mut merchants[1..] {
            callers.charge(&server, CALLERS, 100).await;
        }
        merchants[0].charge_until(&server, CALLERS, Duration::from_millis(300), || server.kill()).await;
        server.wait();
        let server = Server::start(&launch).await?;
        reckon(&server, &mut merchants).await?;
        server.stop()?;
        let server = Server::start(&launch).await?;
        charge(&server, &mut merchants, 100).await;
        let books = three_books(&server, &merchants).await?;
        server.kill();
        server.wait();
        copy(&stopped, &killed);
        Server::start(&launch).await?.stop()?;
        must_verify(&stopped)?;
        Ok(Self { place: place.to_path_buf(), folders: [stopped, killed], books, merchants })
    }

    /// One of the two folders.
    pub(crate) fn folder(&self, chance: &mut Chance) -> &Path {
        &self.folders[chance.below(2) as usize]
    }

    /// A copy to damage.
    pub(crate) fn copy(&self, folder: &Path, name: &str) -> PathBuf {
        let place = self.place.join(name);
        copy(folder, &place);
        place
    }

    /// What is in it, in one line.
    pub(crate) fn summary(&self) -> String {
        let charges: usize = self.merchants.iter().map(|callers| callers.charges().count()).sum();
        format!("{} Records, {charges} charges of {MERCHANTS} merchants", self.books[0].cut)
    }
}

async fn charge(server: &Server, merchants: &mut [Callers], requests: u64) {
    for callers in merchants {
        callers.charge(server, CALLERS, requests).await;
    }
}

async fn reckon(server: &Server, merchants: &mut [Callers]) -> Result<(), String> {
    for callers in merchants {
        callers.reckon(server).await?;
    }
    Ok(())
}

/// The books after, within and before two last blocks of one Record each: a PIX charge and its
/// payment.
async fn three_books(server: &Server, merchants: &[Callers]) -> Result<[Books; 3], String> {
    let callers = &merchants[0];
    let post = async |path: &str, body: Value| -> Result<Value, String> {
        let request = client().post(format!("{}{path}", server.public)).bearer_auth(&callers.api_key).json(&body);
        let response = request.send().await.map_err(|error| error.to_string())?;
        response.json().await.map_err(|error| error.to_string())
    };
    let before = Books::read(server, merchants).await?;
    let splits = json!([{"sub_recipient_id": callers.recipients[0], "amount": 700}]);
    let charge_body = json!({"valor": "12.34", "nome": "Pedro", "cpf": "12345678909", "splits": splits});
    let charge = post("/api/pix", charge_body).await?;
    let within = Books::read(server, merchants).await?;
    let txid = charge["txid"].as_str().ok_or_else(|| format!("no charge: {charge}"))?;
    post(&format!("/api/sandbox/pix/{txid}/pay"), json!({})).await?;
    let after = Books::read(server, merchants).await?;
    let cuts = [before.cut, within.cut, after.cut];
    match cuts == [before.cut, before.cut + 1, before.cut + 2] {
        true => Ok([after, within, before]),
        false => Err(format!("a PIX charge and its payment should be a Record each: {cuts:?}")),
    }
}

/// Copies a folder; what is only zeros takes no room in the copy.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--sparse=always"]).args([from, to]).status();
    assert!(copied.unwrap().success(), "{} cannot be copied", from.display());
}
