//! Institutions that have names: the settings file has them ([`settings`]), they are opened here,
//! and they call back at a listener of their own ([`listener`]).

pub mod listener;
pub mod settings;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actors::engine::Engine;
use actors::rails::{CardRail, NamedRails, PayoutRail, PixRail, RailParties, Rails};
use axum::http::StatusCode;
use futures_util::future::join_all;
use ledger::rail_name::RailName;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rails::SettingsError;
use rails::adyen::{self, Adyen};
use rails::api_pix::{self, ApiPix};
use rails::efi::{self, Efi};
use rails::protocol::{self, Protocol};
use tokio::task::JoinSet;

use settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};

/// Why an institution can't be called.
#[derive(Debug, thiserror::Error)]
#[error("the configuration file {} is wrong at line {line}: rail.{name}.{source}", file.display())]
pub struct NamedRailFailure {
    /// The settings file.
    file: PathBuf,
    /// Line of its table.
    line: usize,
    /// Its name.
    name: RailName,
    /// The setting and its defect.
    source: SettingsError,
}

/// The adapters of the named institutions.
#[derive(Clone, Default)]
pub struct OpenedRails {
    by_name: Arc<BTreeMap<RailName, OpenedRail>>,
    expiry: Family<[(&'static str, String); 1], Gauge>,
}

struct OpenedRail {
    adapter: Adapter,
    /// The address at which it rings.
    callback_url: Option<String>,
    parties: RailParties,
}

/// An adapter, by its kind.
enum Adapter {
    Adyen(Arc<Adyen>),
    ApiPix(Arc<ApiPix>),
    Efi(Arc<Efi>),
    Http(Arc<Protocol>),
}

impl Adapter {
    fn open(settings: &AdapterSettings) -> Result<Self, SettingsError> {
        Ok(match settings {
            AdapterSettings::Adyen(settings) => Self::Adyen(Arc::new(adyen::open(settings)?)),
            AdapterSettings::ApiPix(settings) => Self::ApiPix(Arc::new(api_pix::open(settings)?)),
            AdapterSettings::Efi(settings) => Self::Efi(Arc::new(efi::open(settings)?)),
            AdapterSettings::Http(settings) => Self::Http(Arc::new(protocol::open(settings)?)),
        })
    }

    fn card(&self) -> Option<Arc<dyn CardRail>> {
        match self {
            Self::Adyen(adapter) => Some(Arc::clone(adapter) as Arc<dyn CardRail>),
            Self::ApiPix(_) | Self::Efi(_) => None,
            Self::Http(adapter) => adapter.is("card").then(|| Arc::clone(adapter) as Arc<dyn CardRail>),
        }
    }

    fn payout(&self) -> Option<Arc<dyn PayoutRail>> {
        match self {
            Self::Adyen(_) | Self::ApiPix(_) => None,
            Self::Efi(adapter) => Some(Arc::clone(adapter) as Arc<dyn PayoutRail>),
            Self::Http(adapter) => adapter.is("payout").then(|| Arc::clone(adapter) as Arc<dyn PayoutRail>),
        }
    }

    fn pix(&self) -> Option<Arc<dyn PixRail>> {
        match self {
            Self::ApiPix(adapter) => Some(Arc::clone(adapter) as Arc<dyn PixRail>),
            Self::Adyen(_) | Self::Efi(_) => None,
            Self::Http(adapter) => adapter.is("pix").then(|| Arc::clone(adapter) as Arc<dyn PixRail>),
        }
    }

    fn certificate_expires_at(&self) -> Option<i64> {
        match self {
            Self::Adyen(_) => None,
            Self::ApiPix(adapter) => adapter.certificate_expires_at(),
            Self::Efi(adapter) => adapter.certificate_expires_at(),
            Self::Http(adapter) => adapter.certificate_expires_at(),
        }
    }

    async fn reload(&self) -> Result<(), SettingsError> {
        match self {
            Self::Adyen(adapter) => adapter.reload(),
            Self::ApiPix(adapter) => adapter.reload().await,
            Self::Efi(adapter) => adapter.reload().await,
            Self::Http(adapter) => adapter.reload(),
        }
    }
}

impl OpenedRails {
    /// Reads the certificates and secrets of all institutions. Calls none.
    pub fn open(settings: Option<&NamedRailSettings>) -> Result<Self, NamedRailFailure> {
        let Some(NamedRailSettings { file, by_name, .. }) = settings else { return Ok(Self::default()) };
        let opened = by_name.iter().map(|(name, NamedRail { line, callback_url, parties, adapter })| {
            let failed = |source| NamedRailFailure { file: file.clone(), line: *line, name: name.clone(), source };
            let adapter = Adapter::open(adapter).map_err(failed)?;
            let (callback_url, parties) = (callback_url.clone(), parties.clone());
            Ok((name.clone(), OpenedRail { adapter, callback_url, parties }))
        });
        let opened = Self { by_name: Arc::new(opened.collect::<Result<_, _>>()?), expiry: Family::default() };
        opened.note_ends();
        Ok(opened)
    }

    /// The same for the engine. An acquirer whose batches are read is used while it is the current
    /// one: their numbers go on. One that settles by files is, as long as it has a table.
    pub fn rails(&self, current: CurrentRails) -> Rails {
        let CurrentRails { card, pix, payout } = current;
        let mut acquirers = self.of_kind(Adapter::card);
        let settles_by_files = |name: &RailName| matches!(self.by_name[name].adapter, Adapter::Adyen(_));
        acquirers.retain(|name, _| Some(name) == card.as_ref() || settles_by_files(name));
        Rails {
            card: NamedRails::named(acquirers, card),
            pix: NamedRails::named(self.of_kind(Adapter::pix), pix),
            payout: NamedRails::named(self.of_kind(Adapter::payout), payout),
            parties: self.by_name.iter().map(|(name, opened)| (name.clone(), opened.parties.clone())).collect(),
        }
    }

    /// The institutions that send notifications.
    pub fn notifying(&self) -> impl Iterator<Item = &RailName> {
        self.by_name.iter().filter(|(_, opened)| matches!(opened.adapter, Adapter::Adyen(_))).map(|(name, _)| name)
    }

    /// Books a notification, and gives the answer to it: 200 once what it says is durable, 401
    /// where it is not signed, 503 where it cannot be booked now. The sender sends it again then.
    pub async fn take_notification(&self, engine: &Engine, name: &RailName, body: &[u8]) -> StatusCode {
        let Some(Adapter::Adyen(adyen)) = self.by_name.get(name).map(|opened| &opened.adapter) else {
            return StatusCode::NOT_FOUND;
        };
        let notifications = match adyen.notifications(body, name) {
            Ok(notifications) => notifications,
            Err(error) => {
                tracing::warn!(rail = %name, %error, "a notification is not believed");
                return StatusCode::UNAUTHORIZED;
            }
        };
        for notification in notifications {
            let id = notification.id.clone();
            if let Err(error) = engine.book_card_notification(notification).await {
                tracing::warn!(rail = %name, id, %error, "a notification can't be booked now");
                return StatusCode::SERVICE_UNAVAILABLE;
            }
        }
        StatusCode::OK
    }

    fn of_kind<T>(&self, rail: impl Fn(&Adapter) -> Option<T>) -> BTreeMap<RailName, T> {
        let rails = self.by_name.iter().filter_map(|(name, opened)| Some((name.clone(), rail(&opened.adapter)?)));
        rails.collect()
    }

    /// Registers what is measured under the prefix `centavo_`.
    pub fn register(&self, registry: &mut Registry) {
        let help = "When the client certificate for an institution ends, since 1970";
        let expiry = self.expiry.clone();
        registry.sub_registry_with_prefix("centavo").register("rail_tls_expiry_timestamp_seconds", help, expiry);
    }

    /// The end of each client certificate, seconds since 1970.
    pub fn ends(&self) -> impl Iterator<Item = (&RailName, i64)> {
        let all = self.by_name.iter();
        all.filter_map(|(name, OpenedRail { adapter, .. })| Some((name, adapter.certificate_expires_at()?)))
    }

    /// Reads the certificates and secrets again. Where that fails, the present ones stay.
    pub async fn reload(&self) {
        for (rail, OpenedRail { adapter, .. }) in self.by_name.iter() {
            match adapter.reload().await {
                Ok(()) => tracing::info!(%rail, "the institution's certificate and secret were read again"),
                Err(error) => {
                    tracing::error!(%rail, %error, "the institution's certificate and secret stay as they were");
                }
            }
        }
        self.note_ends();
    }

    fn note_ends(&self) {
        for (name, end) in self.ends() {
            self.expiry.get_or_create(&[("rail", name.to_string())]).set(end);
        }
    }

    /// Reasons why a server may disappoint its operator with bridges, from their capabilities now.
    /// It takes a few seconds at most.
    pub async fn warnings(&self) -> Vec<(RailName, String)> {
        let of_each = self.by_name.iter().map(async |(name, opened)| match &opened.adapter {
            Adapter::Http(bridge) => bridge.warnings().await.into_iter().map(|text| (name.clone(), text)).collect(),
            Adapter::Adyen(_) | Adapter::ApiPix(_) | Adapter::Efi(_) => Vec::new(),
        });
        join_all(of_each).await.concat()
    }

    /// Names the addresses at which the institutions ring to them, and logs what is odd about
    /// bridges. An institution that does not take its address is asked again every 10 minutes.
    pub async fn register_callbacks(self) {
        let mut registering = JoinSet::new();
        for (rail, OpenedRail { adapter, callback_url, .. }) in self.by_name.iter() {
            if let (Adapter::ApiPix(api_pix), Some(url)) = (adapter, callback_url.clone()) {
                registering.spawn(register_callback(rail.clone(), Arc::clone(api_pix), url));
            }
        }
        for (rail, warning) in self.warnings().await {
            tracing::warn!(%rail, "{warning}");
        }
        while registering.join_next().await.is_some() {}
    }
}

/// How long after a failure an institution is asked again to take the address of callbacks.
const REGISTER_AGAIN: Duration = Duration::from_secs(600);

async fn register_callback(rail: RailName, api_pix: Arc<ApiPix>, url: String) {
    while let Err(error) = api_pix.register_callback(&url).await {
        tracing::warn!(%rail, %error, "the institution has not taken the address of callbacks; it is asked again");
        tokio::time::sleep(REGISTER_AGAIN).await;
    }
    tracing::info!(%rail, "the institution has taken the address of callbacks");
}
