//! Efí's own client (`sdk-node-apis-efi`) drives the player of its pay-outs, which so cannot be
//! wrong in the adapter's way. The adapter finds what that client ordered. The player's record is
//! the proof.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actors::rails::{Destination, PayoutAnswer, PayoutRail, SendPayout};
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::personal::PixDestination;
use ledger::time::Timestamp;
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_ID, CLIENT_SECRET, KEY, Player};
use testkit::efi_player::UNKNOWN_KEY;
use testkit::played_tls::{authority, certificate, certificate_of, server};

use crate::tool;

/// The host that the client knows.
const HOST: &str = "pix.api.efipay.com.br";

fn private(path: &Path, text: &str) -> PathBuf {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_owned()
}

fn id(number: u64) -> ObjectId {
    ObjectId::parse(&format!("0198f3a2-7c41-8d0e-8000-{number:012x}")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn efis_own_client_orders_transfers_that_the_adapter_finds() {
    let Some(mut command) = tool::node("sdk-node-apis-efi") else { return };
    let (ours, theirs, folder) = (authority(), authority(), tempfile::tempdir().unwrap());
    let player = Player::start_with("efi", Some(server(&certificate_of(&[HOST, "localhost"], &theirs), &ours))).await;
    let [chain, chain_key] = certificate("client", &ours);
    let file = |name: &str, text: &str| private(&folder.path().join(name), text);
    let (chain, chain_key) = (file("client.pem", &chain), file("client.key", &chain_key));
    let trusted = file("ca.pem", &theirs.as_ref().pem());
    let given = json!({
        "port": player.address.port(), "certificate": chain, "certificate_key": chain_key, "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET, "key": KEY, "unknown_key": UNKNOWN_KEY, "ids": [id(1).txid(), id(2).txid()],
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/efi.js");
    command.arg(script).arg(given.to_string()).env("NODE_EXTRA_CA_CERTS", &trusted);
    let run = move || tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    let said = tokio::task::spawn_blocking(run).await.unwrap();
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));

    // What the player has is what was ordered: two transfers, each carried out once.
    {
        let records = player.records();
        let known: Vec<_> = records.payouts.by_id.values().map(|of| (of.orders, of.carried_out)).collect();
        assert_eq!((known, records.payouts.sum()), (vec![(2, 1), (1, 1)], 2_100), "{said}");
        // An id that the caller forgot is sent as the placeholder's name.
        assert_eq!(records.violations, ["PUT /v3/gn/pix/:idEnvio: idEnvio"], "{said}");
    }
    let sent = &said["sent"]["answer"];
    assert_eq!((&sent["idEnvio"], &sent["status"]), (&json!(id(1).txid()), &json!("EM_PROCESSAMENTO")), "{said}");
    for (call, word) in [("again", "id_envio_duplicado"), ("unknown", "chave_favorecido_nao_encontrada")] {
        assert_eq!(said[call]["refusal"]["nome"], word, "{said}");
    }
    assert_eq!(said["found"]["answer"]["endToEndId"], sent["e2eId"], "{said}");
    let none = said["none"]["refusal"]["type"].as_str().unwrap_or_default();
    assert!(none.ends_with("/PixEnviadoNaoEncontrado"), "{said}");
    assert_eq!(said["list"]["answer"]["pix"].as_array().map(Vec::len), Some(2), "{said}");

    let settings = json!({
        "url": format!("https://localhost:{}", player.address.port()), "client_id": CLIENT_ID, "key": KEY,
        "client_secret_file": file("secret", CLIENT_SECRET), "certificate_file": chain, "key_file": chain_key,
        "ca_file": trusted,
    });
    let rail = rails::efi::open(&serde_json::from_value(settings).unwrap()).unwrap();
    let to = Destination::PixKey(PixDestination { key: "maria@example.com".to_owned(), ..PixDestination::default() });
    let transfer = SendPayout { id: id(1), amount: Centavos(1_050), to, ordered_at: Timestamp(0) };
    let found = rail.find(transfer.clone(), Timestamp(0)).await;
    assert_eq!(rail.send(transfer).await, found, "a repeat is asked for");
    assert!(
        matches!(&found, Ok(PayoutAnswer::Taken { transfer_id, .. }) if *transfer_id == sent["e2eId"]),
        "{found:?}"
    );
}
