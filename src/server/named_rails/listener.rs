//! Listener of callbacks: an institution says there that something has happened.
//!
//! A callback is only a bell. Its body is read to its end and dropped; nothing in it is believed.
//! It makes the engine read the institution's list at once, which it otherwise does every 10
//! seconds. The listener serves no route of merchants and none of operators.
//!
//! Notifications of an acquirer that cannot be asked are the exception: their bodies are signed,
//! and are answered once what they say is durable.
//!
//! The caller shows a client certificate, which TLS demands before a request is read, or names a
//! secret at the beginning of the path. Everything else is 404 with an empty body. Paths are not
//! logged, since they may hold the secret.

use std::sync::Arc;

use actors::metrics::add;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use ledger::rail_name::RailName;
use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use subtle::ConstantTimeEq;

use web::body::{self, WholeBody};
use web::credential::Secret;

/// Most bytes of a callback's body.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Bells of the named institutions.
#[derive(Clone, Debug, Default)]
pub struct Bells {
    names: Arc<[RailName]>,
    /// Those that send notifications.
    notifying: Arc<[RailName]>,
    rung: Family<[(&'static str, String); 1], Counter>,
}

impl Bells {
    /// One bell an institution. `notifying` are those that send notifications. A registry gets the
    /// count of what rings.
    pub fn of<'a>(
        names: impl Iterator<Item = &'a RailName>,
        notifying: impl Iterator<Item = &'a RailName>,
        registry: &mut Registry,
    ) -> Self {
        let (names, notifying) = (names.cloned().collect(), notifying.cloned().collect());
        let help = "Callbacks of an institution, each of which makes its list be read";
        let rung = add(registry.sub_registry_with_prefix("centavo"), "rail_bells", help, Family::default());
        let bells = Self { names, notifying, rung };
        bells
            .names
            .iter()
            .chain(&*bells.notifying)
            .for_each(|name| drop(bells.rung.get_or_create(&[("rail", name.to_string())])));
        bells
    }

    /// Routes of the listener. `secret` is the beginning of each path, where there is one; `ring`
    /// makes an institution's list be read; `notify` takes a notification, and gives the answer to
    /// it.
    pub fn routes<N: Future<Output = StatusCode> + Send>(
        &self,
        secret: Option<Arc<PathSecret>>,
        ring: impl Fn(&RailName) + Clone + Send + Sync + 'static,
        notify: impl Fn(RailName, WholeBody) -> N + Clone + Send + Sync + 'static,
    ) -> Router {
        let bells = self.clone();
        Router::new().fallback(move |request: Request| {
            let (bells, secret, ring, notify) = (bells.clone(), secret.clone(), ring.clone(), notify.clone());
            async move {
                let secret = secret.as_ref().map(|secret| secret.present());
                match notified_by(request.uri().path(), secret.as_ref(), &bells.notifying) {
                    Some(name) if request.method() == Method::POST => {
                        bells.count(name);
                        match WholeBody::of(request.into_body(), BODY_BYTES_MAX, None).await {
                            Ok(body) => notify(name.clone(), body).await,
                            Err(problem) => problem.status(),
                        }
                    }
                    _ => answered(request, &bells, secret.as_ref(), ring).await.err().unwrap_or(StatusCode::OK),
                }
            }
        })
    }

    fn count(&self, name: &RailName) {
        self.rung.get_or_create(&[("rail", name.to_string())]).inc();
    }
}

async fn answered(
    request: Request<Body>,
    bells: &Bells,
    secret: Option<&Secret>,
    ring: impl Fn(&RailName),
) -> Result<(), StatusCode> {
    let rung = rung_by(request.uri().path(), secret, &bells.names).filter(|_| request.method() == Method::POST);
    let rung = rung.ok_or(StatusCode::NOT_FOUND)?;
    let dropped = body::dropped(request.into_body(), BODY_BYTES_MAX).await;
    dropped.map_err(|problem| problem.status())?;
    for name in rung {
        bells.count(name);
        ring(name);
    }
    Ok(())
}

/// The institutions that a path rings: `/pix` all of them, `/NAME/pix` one, both behind the secret
/// where there is one. API Pix adds `/pix` to the address that is registered. None for all other
/// paths.
fn rung_by<'a>(path: &str, secret: Option<&Secret>, names: &'a [RailName]) -> Option<&'a [RailName]> {
    let before = behind_secret(path, secret)?.strip_suffix("pix")?;
    if before.is_empty() {
        return Some(names);
    }
    let named = before.strip_suffix('/')?;
    let place = names.iter().position(|name| name.as_str() == named)?;
    Some(&names[place..=place])
}

/// The institution of a path of notifications, `/NAME/notifications`, behind the secret where there
/// is one.
fn notified_by<'a>(path: &str, secret: Option<&Secret>, names: &'a [RailName]) -> Option<&'a RailName> {
    let named = behind_secret(path, secret)?.strip_suffix("/notifications")?;
    names.iter().find(|name| name.as_str() == named)
}

/// A path behind the secret, without the slashes at both ends.
fn behind_secret<'a>(path: &'a str, secret: Option<&Secret>) -> Option<&'a str> {
    let mut rest = path.strip_prefix('/')?;
    if let Some(secret) = secret {
        let (first, behind) = rest.split_once('/')?;
        if !bool::from(first.as_bytes().ct_eq(secret.reveal().as_bytes())) {
            return None;
        }
        rest = behind;
    }
    Some(rest.strip_suffix('/').unwrap_or(rest))
}

/// The secret at the beginning of each path, which can be exchanged while the listener serves.
#[derive(Debug)]
pub struct PathSecret(RwLock<Secret>);

impl PathSecret {
    /// The secret of a file.
    pub fn new(secret: Secret) -> Self {
        Self(RwLock::new(secret))
    }

    /// Exchanges it, for requests from now on.
    pub fn exchange(&self, secret: Secret) {
        *self.0.write() = secret;
    }

    fn present(&self) -> Secret {
        self.0.read().clone()
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tower::ServiceExt;

    use super::*;

    fn names() -> Vec<RailName> {
        ["efi", "itau", "pix"].map(|name| RailName::parse(name).unwrap()).to_vec()
    }

    #[test]
    fn a_path_rings_all_institutions_or_one() {
        let secret = Secret::from("a-secret".to_owned());
        for (path, open, behind_secret) in [
            ("/pix", Some("efi itau pix"), None),
            ("/pix/", Some("efi itau pix"), None),
            ("/itau/pix", Some("itau"), None),
            ("/itau/pix/", Some("itau"), None),
            ("/pix/pix", Some("pix"), None),
            ("/a-secret/pix", None, Some("efi itau pix")),
            ("/a-secret/pix/", None, Some("efi itau pix")),
            ("/a-secret/itau/pix", None, Some("itau")),
            ("/a-secret/itau/pix/", None, Some("itau")),
            ("/a-secreT/pix", None, None),
            ("/a-secre/pix", None, None),
            ("/a-secret-/pix", None, None),
            ("/itau/a-secret/pix", None, None),
            ("/a-secret", None, None),
            ("/a-secret/", None, None),
            ("/bb/pix", None, None),
            ("/a-secret/bb/pix", None, None),
            ("//pix", None, None),
            ("/pix//", None, None),
            ("/a-secret//pix", None, None),
            ("/itaupix", None, None),
            ("/itau//pix", None, None),
            ("/PIX", None, None),
            ("/itau", None, None),
            ("/", None, None),
            ("*", None, None),
            ("", None, None),
        ] {
            let names = names();
            let rung = |secret| {
                let rung = rung_by(path, secret, &names);
                rung.map(|rung| rung.iter().map(RailName::as_str).collect::<Vec<_>>().join(" "))
            };
            assert_eq!((rung(None).as_deref(), rung(Some(&secret)).as_deref()), (open, behind_secret), "{path}");
        }
    }

    #[test]
    fn a_path_of_notifications_names_one_institution() {
        let secret = Secret::from("a-secret".to_owned());
        for (path, open, behind_secret) in [
            ("/efi/notifications", Some("efi"), None),
            ("/efi/notifications/", Some("efi"), None),
            ("/a-secret/efi/notifications", None, Some("efi")),
            ("/a-secreT/efi/notifications", None, None),
            ("/notifications", None, None),
            ("/bb/notifications", None, None),
            ("//efi/notifications", None, None),
            ("/efi/pix", None, None),
        ] {
            let names = names();
            let named = |secret| notified_by(path, secret, &names).map(RailName::as_str);
            assert_eq!((named(None), named(Some(&secret))), (open, behind_secret), "{path}");
        }
    }

    async fn called(method: &str, path: &str, body: impl Into<Body>) -> (u16, usize, Vec<String>) {
        let rung = Arc::new(Mutex::new(Vec::new()));
        let bells = Bells::of(names().iter(), [].iter(), &mut Registry::default());
        let seen = Arc::clone(&rung);
        let nobody = |_, _| async { StatusCode::NOT_FOUND };
        let router = bells.routes(None, move |name| seen.lock().push(name.to_string()), nobody);
        let request = Request::builder().method(method).uri(path).body(body.into()).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let bytes = axum::body::to_bytes(answer.into_body(), 1).await.unwrap().len();
        let counted =
            bells.names.iter().filter(|name| bells.rung.get_or_create(&[("rail", name.to_string())]).get() == 1);
        let counted: Vec<_> = counted.map(ToString::to_string).collect();
        assert_eq!(*rung.lock(), counted);
        (status, bytes, counted)
    }

    #[tokio::test]
    async fn any_body_rings_within_the_limit_and_each_answer_is_empty() {
        let itau = || vec!["itau".to_owned()];
        let part = || Ok::<_, std::io::Error>(vec![b'x'; BODY_BYTES_MAX]);
        let two = Body::from_stream(futures_util::stream::iter([part(), part()]));
        let broken = Body::from_stream(futures_util::stream::iter([part(), Err(std::io::Error::other("cut"))]));
        for (method, body, status, rung) in [
            ("POST", Body::from(r#"{"pix":[{"endToEndId":"E1","valor":"1.00"}]}"#), 200, itau()),
            ("POST", Body::empty(), 200, itau()),
            ("POST", Body::from(vec![0xff; BODY_BYTES_MAX]), 200, itau()),
            ("POST", Body::from(vec![0xff; BODY_BYTES_MAX + 1]), 413, Vec::new()),
            ("POST", two, 413, Vec::new()),
            ("POST", broken, 400, Vec::new()),
            ("GET", Body::empty(), 404, Vec::new()),
            ("PUT", Body::empty(), 404, Vec::new()),
        ] {
            assert_eq!(called(method, "/itau/pix", body).await, (status, 0, rung), "{method}");
        }
        assert_eq!(called("POST", "/api/pix?ring=/itau/pix", "").await, (404, 0, Vec::new()));
        assert_eq!(called("POST", "/pix?ignorar=/pix", "").await.2.len(), 3, "a query does not count");
    }

    #[test]
    fn the_secret_is_exchanged_and_not_debugged() {
        let secret = PathSecret::new(Secret::from("first".to_owned()));
        secret.exchange(Secret::from("second".to_owned()));
        assert_eq!(secret.present().reveal(), "second");
        assert!(!format!("{secret:?}").contains("second"));
    }
}
