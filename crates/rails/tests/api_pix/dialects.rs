//! Each dialect: a login, a charge, a list, a removal, a return and a callback address, checked at
//! the player by rules of its own.

use actors::rails::{PixFate, PixRail, PixSpan, RepayAnswer};
use testkit::api_pix_player::{KEY, RULES};

use crate::{World, id, now, repay};

#[tokio::test]
async fn each_dialect_is_spoken_as_its_institution_wants() {
    for rules in RULES {
        let World { player, rail, folder } = World::new(rules.dialect).await;
        let world = World { player, rail, folder };
        let (paid, _) = (world.paid(1).await, world.opened(2).await);
        let span = PixSpan { from: now().plus_ms(-60_000), until: now().plus_ms(60_000), page: 0 };
        let list = world.rail.received(span).await.unwrap();
        assert_eq!((list.payments.len(), list.has_more), (1, false), "{rules:?}");
        assert_eq!(world.rail.cancel(id(2)).await, Ok(PixFate::Cancelled), "{rules:?}");
        assert_eq!(world.rail.cancel(id(3)).await, Ok(PixFate::Cancelled), "a charge that it never had: {rules:?}");
        let answer = world.rail.repay(repay(4, &paid)).await;
        assert!(matches!(answer, Ok(RepayAnswer::Repaid(_))), "{answer:?} {rules:?}");
        let address = "https://pay.example.com/bell";
        assert_eq!(world.rail.register_callback(address).await, Ok(()), "{rules:?}");
        let records = world.player.records();
        assert_eq!(records.webhooks.get(KEY).map(String::as_str), Some(address));
        assert_eq!((records.violations.as_slice(), records.logins), ([].as_slice(), 1), "{rules:?}");
    }
}

/// Instants with `Z`, percent-encoded: some clients send `+00:00`, which arrives as a blank.
#[tokio::test]
async fn a_query_has_instants_with_z_and_pages() {
    let world = World::new("inter").await;
    let span = PixSpan { from: ledger::time::Timestamp(0), until: now(), page: 7 };
    world.rail.received(span).await.unwrap();
    let query = world.player.requests("GET", "/pix").remove(0).raw_query;
    assert!(query.starts_with("inicio=1970-01-01T00%3A00%3A00.000Z&fim=20"), "{query}");
    assert!(query.ends_with("Z&paginacao.paginaAtual=7&paginacao.itensPorPagina=1000"), "{query}");
}

#[tokio::test]
async fn headers_query_and_paths_of_the_settings_count_more_than_the_dialect() {
    let world = World::new("bacen").await;
    let mut settings = world.player.settings(&world.folder.path().join("secret"));
    settings["url"] = format!("http://{}", world.player.address).into();
    settings["headers"] = serde_json::json!({ "x-skip-mtls-checking": "true" });
    settings["query"] = serde_json::json!({ "gw-dev-app-key": "a b" });
    settings["paths"] = serde_json::json!({ "cob": "/api/v2/cob", "pix": "/api/v2/pix" });
    let rail = crate::rail(settings);
    rail.open(crate::charge(1)).await.unwrap();
    let request = world.player.requests("PUT", "/api/v2/cob/").remove(0);
    assert_eq!(request.header("x-skip-mtls-checking"), Some("true"));
    assert_eq!(request.raw_query, "gw-dev-app-key=a+b");
    assert_eq!(world.player.records().violations, [""; 0]);
}
