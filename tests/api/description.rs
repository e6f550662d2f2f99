//! OpenAPI description, held against every answer that any of these tests receives. The description
//! has the operation, the status, the media type and the headers, and the body is what its schema
//! says, no field more.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::world::Answer;

/// What a server says that it serves, on both listeners.
pub(crate) struct Description {
    pub(crate) document: Value,
    /// The schemas that may be referred to, closed against fields that they don't name.
    closed: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// One operation of the description.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// In capitals.
    pub(crate) method: String,
    /// With the names of its parameters.
    pub(crate) path: String,
    pub(crate) described: Value,
}

/// What the listeners serve that is no operation of the interface.
const PAGES: [&str; 5] = ["/", "/openapi.json", "/reference.css", "/reference.js", "/reference"];

impl Description {
    /// The description of a sandbox or of a live server; each is asked for once.
    pub(crate) async fn of(client: &Client, listeners: [SocketAddr; 2], sandbox: bool) -> Arc<Self> {
        static OF_LIVE_AND_SANDBOX: [OnceCell<Arc<Description>>; 2] = [OnceCell::const_new(), OnceCell::const_new()];
        let read = async || {
            let [merchants, operators] = listeners.map(|listener| async move {
                let answer = client.get(format!("http://{listener}/openapi.json")).send().await.unwrap();
                answer.json::<Value>().await.unwrap()
            });
            let mut document = merchants.await;
            join(&mut document, &operators.await);
            Arc::new(Self::new(document))
        };
        Arc::clone(OF_LIVE_AND_SANDBOX[usize::from(sandbox)].get_or_init(read).await)
    }

    fn new(document: Value) -> Self {
        let mut closed = document["components"].clone();
        for (name, schema) in closed["schemas"].as_object_mut().unwrap() {
            if !name.starts_with("Problem") {
                close(schema);
            }
        }
        Self { document, closed, validators: Mutex::default() }
    }

    /// Every operation.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, item) in self.document["paths"].as_object().unwrap() {
            for (method, described) in item.as_object().unwrap() {
                if described.get("responses").is_some() {
                    let (method, path) = (method.to_uppercase(), path.clone());
                    operations.push(Operation { method, path, described: described.clone() });
                }
            }
        }
        operations
    }

    /// Fails when an answer is not what the description says of its operation.
    #[track_caller]
    pub(crate) fn check(&self, method: &str, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        if PAGES.contains(&path) || ["/reference/", "/problems/"].iter().any(|start| path.starts_with(start)) {
            return;
        }
        let Some(template) = self.template_of(path) else {
            assert_eq!(answer.status, 404, "{path} is not described, and is served");
            return self.check_body(&json!({"$ref": "#/components/schemas/Problem404"}), path, answer);
        };
        let Some(operation) = self.document["paths"][template].get(method.to_lowercase()) else {
            let read_as_get = method == "HEAD" && self.document["paths"][template].get("get").is_some();
            assert!(
                read_as_get || answer.status == 405,
                "{method} {template} is not described, and is answered: {}",
                answer.text
            );
            return;
        };
        let at = format!("{method} {template}: {} {}", answer.status, answer.text);
        let response = operation["responses"].get(answer.status.to_string());
        let response = response.unwrap_or_else(|| panic!("the status is not described: {at}"));
        for (name, reference) in response["headers"].as_object().unwrap() {
            let name_of = reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
            if self.document["components"]["headers"][name_of]["required"] == true {
                assert!(answer.headers.contains_key(name), "{name} is missing: {at}");
            }
        }
        if let Some(sequence) = answer.header("centavo-sequence") {
            assert!(!response["headers"]["Centavo-Sequence"].is_null(), "Centavo-Sequence is not described: {at}");
            let is_described = !response["headers"]["Centavo-Partition"].is_null();
            assert!(is_described || answer.header("centavo-partition").is_none(), "Centavo-Partition: {at}");
            assert!(sequence.parse::<u64>().is_ok_and(|sequence| sequence > 0), "Centavo-Sequence {sequence}: {at}");
        }
        let media_type = answer.header("content-type").unwrap_or_default().split(';').next().unwrap().to_owned();
        let media = response["content"].get(&media_type);
        let media = media.unwrap_or_else(|| panic!("{media_type} is not described: {at}"));
        if media_type.ends_with("json") {
            self.check_body(&media["schema"], &at, answer);
        }
    }

    #[track_caller]
    fn check_body(&self, schema: &Value, at: &str, answer: &Answer) {
        let wrong = self.wrong_in(schema, &answer.body);
        assert!(wrong.is_empty(), "{at}\nis not as described: {wrong:#?}");
    }

    /// The schema itself, or the schema that it refers to.
    pub(crate) fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        pointer.map_or(schema, |pointer| self.document.pointer(pointer).unwrap())
    }

    /// What of a value is not as a schema of the description says.
    pub(crate) fn wrong_in(&self, schema: &Value, value: &Value) -> Vec<String> {
        let validator = Arc::clone(self.validators.lock().unwrap().entry(schema.to_string()).or_insert_with(|| {
            let mut whole = schema.clone();
            whole["components"] = self.closed.clone();
            let options =
                jsonschema::options().with_draft(jsonschema::Draft::Draft202012).should_validate_formats(true);
            Arc::new(options.build(&whole).unwrap_or_else(|error| panic!("{schema}: {error}")))
        }));
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    /// The described path that a concrete path is of; one without parameters comes first.
    fn template_of(&self, path: &str) -> Option<&str> {
        let segments: Vec<&str> = path.split('/').collect();
        let is_of = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            wanted.len() == segments.len()
                && wanted
                    .iter()
                    .zip(&segments)
                    .all(|(wanted, found)| (wanted.starts_with('{') && !found.is_empty()) || wanted == found)
        };
        let templates = self.document["paths"].as_object().unwrap().keys().map(String::as_str);
        templates.filter(|template| is_of(template)).min_by_key(|template| template.matches('{').count())
    }
}

/// Joins the descriptions of both listeners. What both have under one name must be the same.
fn join(document: &mut Value, other: &Value) {
    for part in ["/paths", "/components/schemas", "/components/headers"] {
        let joined = document.pointer_mut(part).unwrap().as_object_mut().unwrap();
        for (name, member) in other.pointer(part).unwrap().as_object().unwrap() {
            let before = joined.insert(name.clone(), member.clone());
            assert!(before.is_none_or(|before| before == *member), "{name} is described in two ways");
        }
    }
}

/// Closes every object of a schema against fields that it doesn't name.
fn close(schema: &mut Value) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema["additionalProperties"] = json!(false);
    }
    for member in ["properties", "items", "oneOf", "anyOf"] {
        match schema.get_mut(member) {
            Some(Value::Object(inner)) if member == "properties" => inner.values_mut().for_each(close),
            Some(Value::Array(choices)) => choices.iter_mut().for_each(close),
            Some(inner) => close(inner),
            None => {}
        }
    }
}
