//! Ownership of objects: every route that names one, with every credential that is not its owner's.
//! The routes are those that the description lists, so a new one is held to this without being
//! named here.

use reqwest::Method;
use serde_json::json;

use crate::description::Operation;
use crate::makers::make;
use crate::world::*;

#[tokio::test]
async fn an_object_is_there_for_its_owner_only() {
    let world = World::sandbox().await;
    let owner = world.merchant().await;
    let other = world
        .open(json!({"name": "Loja Rosa", "document": cnpj(2), "split_enabled": true, "cashout_enabled": true}))
        .await;
    let naming: Vec<Operation> = world.description.operations().into_iter().filter(|at| at.kind().is_some()).collect();
    assert!(naming.len() >= 10, "the routes are taken from the description");
    for operation in naming.iter().filter(|operation| !operation.is_of_operators()) {
        let (method, id) = (operation.method.parse::<Method>().unwrap(), make(&owner, operation).await);
        let path = operation.path_of(&id);
        let body = operation.body_for(&owner, &id).await.map(|body| body.to_string()).unwrap_or_default();
        let send = async |credential: Headers<'_>| {
            let json_type = [("content-type", "application/json")];
            world.send(method.clone(), &path, &[credential, &json_type].concat(), body.clone()).await
        };
        let before = world.trace(&[&owner, &other]).await;
        send(&[]).await.refused(401, "unauthorized");
        send(&[("authorization", &bearer(OPS_TOKEN))]).await.refused(401, "unauthorized");
        send(&[("token", OPS_TOKEN)]).await.refused(401, "unauthorized");
        let of_other = send(&[("token", &other.key)]).await;
        assert_eq!(of_other.status, 404, "{method} {path} with another's key: {}", of_other.text);
        let code = text(&of_other.body["code"]);
        let refused = of_other.refused(404, &code);
        assert!(code.ends_with("not_found"), "{path}: {refused}");
        assert!(!refused["detail"].as_str().unwrap().contains("Prado"), "{path}: {refused}");
        assert_eq!(world.trace(&[&owner, &other]).await, before, "{path}");
        let of_owner = send(&[("token", &owner.key)]).await;
        assert!((200..300).contains(&of_owner.status), "{path} with its owner's key: {}", of_owner.text);
    }
}

#[tokio::test]
async fn no_merchant_reaches_what_is_the_operators() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let operations = world.description.operations();
    for operation in operations.iter().filter(|operation| operation.is_of_operators()) {
        let method: Method = operation.method.parse().unwrap();
        let id = if operation.kind().is_some() { make(&merchant, operation).await } else { String::new() };
        let path = operation.path_of(&id);
        for credential in
            [&[][..], &[("authorization", bearer(&merchant.key).as_str())], &[("token", merchant.key.as_str())]]
        {
            world.send(method.clone(), &path, credential, "").await.refused(401, "unauthorized");
        }
        if operation.kind().is_some() {
            let unknown = operation.path_of("01890000-0000-8000-8000-000000000000") + &operation.demanded_query();
            let body = operation.body_for(&merchant, &id).await.map(|body| body.to_string()).unwrap_or_default();
            let answer = world.ops_send(method, &unknown, &[], body).await;
            let is_charge = ["/ops/charges/", "/ops/sandbox/pix/"].iter().any(|start| path.starts_with(start));
            let code = if is_charge { "charge_not_found" } else { "not_found" };
            answer.refused(404, code);
        }
    }
}
