//! Request bodies: read whole, and no larger than the route allows.
//!
//! All bodies in memory share 256 MiB. A body counts with the bytes that have arrived, not with its
//! declared length. One merchant and one address may each use a share; a part is reserved for small
//! bodies and a part for operators, so that no client starves the others. A body that arrives too
//! slowly is given up.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::LazyLock;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use bytes::BytesMut;
use http_body_util::BodyExt;
use ledger::id::GroupNumber;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};
use zeroize::{Zeroize as _, Zeroizing};

use super::caller::Caller;
use super::json::{LARGE_BYTES, Shape};
use super::pace::{Deadline, Pace};
use super::problem::{Code, Problem, Result};
use super::server::Peer;

/// The body of a request of at most 256 KiB.
pub type JsonBody = Body<JSON_BYTES_MAX>;

/// Most bytes of every body but a file.
pub const JSON_BYTES_MAX: usize = 256 * 1024;

/// Most bytes of a body of charges, so that 10,000 splits fit.
pub const CHARGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The bytes of a file of another institution, of at most 16 MiB. It is refused as a [`Body`] is.
#[derive(Debug)]
pub struct InstitutionFile {
    /// The format that is declared.
    pub format: FileFormat,
    /// The bytes of the file.
    pub bytes: SensitiveBytes,
    _share: Share,
    _turn: Option<SemaphorePermit<'static>>,
}

/// Bytes of a body, overwritten with zeros when they are dropped, where nobody else has them: a
/// body that came as one small part of what hyper read at once stays in hyper's buffer.
#[derive(Debug, Default)]
pub struct SensitiveBytes(Bytes);

impl SensitiveBytes {
    fn erased(bytes: Bytes) -> Option<BytesMut> {
        let mut own = bytes.try_into_mut().ok()?;
        own.zeroize();
        Some(own)
    }
}

impl Drop for SensitiveBytes {
    fn drop(&mut self) {
        drop(Self::erased(std::mem::take(&mut self.0)));
    }
}

impl Deref for SensitiveBytes {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.0
    }
}

impl AsRef<[u8]> for SensitiveBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Formats of the files of other institutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Comma-separated values, `text/csv`.
    Csv,
    /// A JSON document, `application/json`.
    Json,
    /// A bank statement in OFX or CNAB 240, `application/x-ofx`.
    Ofx,
}

/// Media types that name a format.
const NAMED_TYPES: [(&str, FileFormat); 8] = [
    ("text/csv", FileFormat::Csv),
    ("application/csv", FileFormat::Csv),
    ("application/json", FileFormat::Json),
    ("application/x-ndjson", FileFormat::Json),
    ("application/x-ofx", FileFormat::Ofx),
    ("application/ofx", FileFormat::Ofx),
    ("text/ofx", FileFormat::Ofx),
    ("application/vnd.intu.qfx", FileFormat::Ofx),
];

/// Media types that browsers and curl declare for files that they do not know, and spreadsheets'
/// for CSV.
const UNSPECIFIC_TYPES: [&str; 6] = [
    "application/octet-stream",
    "text/plain",
    "application/xml",
    "text/xml",
    "application/x-www-form-urlencoded",
    "application/vnd.ms-excel",
];

impl FileFormat {
    /// The format that is declared; where the declaration names none, the format of the first
    /// characters. `None` for a media type of something else.
    fn of(declared: Option<&str>, bytes: &[u8]) -> Option<Self> {
        let is = |name: &str| declared.is_some_and(|declared| declared.eq_ignore_ascii_case(name));
        let named = NAMED_TYPES.into_iter().find(|(name, _)| is(name)).map(|(_, format)| format);
        let is_unspecific = declared.is_none_or(str::is_empty) || UNSPECIFIC_TYPES.into_iter().any(is);
        named.or_else(|| is_unspecific.then(|| Self::of_content(bytes)))
    }

    fn of_content(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
        match bytes.first() {
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') => Self::Ofx,
            _ if bytes.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case(b"OFX")) => Self::Ofx,
            // The bank, the batch and the kind of a record of CNAB 240.
            _ if bytes.get(..8).is_some_and(|begin| begin.iter().all(u8::is_ascii_digit)) => Self::Ofx,
            _ => Self::Csv,
        }
    }
}

/// Most bytes of a file of another institution.
pub const FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The media types that a file of another institution may have.
pub fn file_types() -> impl Iterator<Item = &'static str> {
    NAMED_TYPES.into_iter().map(|(name, _)| name).chain(UNSPECIFIC_TYPES)
}

const FILE_TYPES: &str = "Content-Type deve ser text/csv, application/json ou application/x-ofx";

impl<State: Sync> FromRequest<State> for InstitutionFile {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &State) -> Result<Self> {
        let declared = media_type(request.headers()).map(str::to_owned);
        let mut share = Share::of(&ROOM, Sender::of(&request));
        let coding = plain_coding(request.headers());
        let bytes = arrived(request.into_body(), FILE_BYTES_MAX, ARRIVAL, &mut share, None).await?;
        coding?;
        let format = FileFormat::of(declared.as_deref(), &bytes)
            .ok_or_else(|| Problem::new(Code::UnsupportedMediaType).message(FILE_TYPES))?;
        let turn = if bytes.len() > LARGE_BYTES { Some(turn().await?) } else { None };
        Ok(Self { format, bytes, _share: share, _turn: turn })
    }
}

/// The bytes of a body that is declared as JSON, or empty when no body came.
///
/// As an extractor it refuses, in this order: a body of more than `BYTES_MAX` bytes
/// ([`Code::PayloadTooLarge`], before reading it if its length is declared); a body without room
/// beside the others ([`Code::Overloaded`]); a body that does not arrive in time or breaks off; a
/// body with too many values; a body of another media type.
#[derive(Debug)]
pub struct Body<const BYTES_MAX: usize> {
    /// The bytes of the body.
    pub bytes: SensitiveBytes,
    _share: Share,
    _turn: Option<SemaphorePermit<'static>>,
}

/// The room of all bodies, from when they arrive until they are answered.
static ROOM: LazyLock<BodyAdmission> = LazyLock::new(|| BodyAdmission::new(BodyLimits::default()));

/// Large bodies that may be read and carried out at once; the others wait.
static LARGE_AT_ONCE: Semaphore = Semaphore::const_new(16);

/// How long a body may take to arrive, or a large one to have its turn.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);
/// How slowly it may arrive.
const ARRIVAL: Pace = Pace { idle_max: Duration::from_secs(10), bytes_per_second: 1_024 };

impl<const BYTES_MAX: usize> Body<BYTES_MAX> {
    /// A body that this program made, as if an operator had sent it.
    pub fn made(bytes: impl Into<Bytes>) -> Self {
        Body { bytes: SensitiveBytes(bytes.into()), _share: Share::of(&ROOM, Sender::Operator), _turn: None }
    }
}

impl<State: Sync, const BYTES_MAX: usize> FromRequest<State> for Body<BYTES_MAX> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &State) -> Result<Self> {
        let is_json = declares_json(request.headers());
        let coding = plain_coding(request.headers());
        let mut share = Share::of(&ROOM, Sender::of(&request));
        let body = request.into_body();
        let shape = coding.is_ok().then(Shape::default);
        let bytes = arrived(body, BYTES_MAX, ARRIVAL, &mut share, shape).await?;
        if !bytes.is_empty() {
            coding?;
            if !is_json {
                return Err(Problem::new(Code::UnsupportedMediaType));
            }
        }
        let turn = if bytes.len() > LARGE_BYTES { Some(turn().await?) } else { None };
        Ok(Body { bytes, _share: share, _turn: turn })
    }
}

/// The bytes of a body that another process will read, whole, so that they can be sent again.
#[derive(Debug)]
pub struct WholeBody {
    /// The bytes of the body.
    pub bytes: SensitiveBytes,
    _share: Share,
}

impl WholeBody {
    /// Takes in a body of at most `bytes_max` bytes. It has its share of the room as that of its
    /// merchant, or of operators. It is refused as a [`Body`] is.
    pub async fn of(
        body: axum::body::Body,
        bytes_max: usize,
        sender: Option<(GroupNumber, Option<Peer>)>,
    ) -> Result<Self> {
        let sender = sender.map_or(Sender::Operator, |(group, peer)| Sender::Merchant(group, peer));
        let mut share = Share::of(&ROOM, sender);
        let bytes = arrived(body, bytes_max, ARRIVAL, &mut share, None).await?;
        Ok(Self { bytes, _share: share })
    }
}

/// The fields of a form of at most 64 KiB, in order, as browsers send them.
#[derive(Debug)]
pub struct FormBody(pub Vec<(String, String)>);

const FORM_BYTES_MAX: usize = 64 * 1024;
const FORM_TYPE: &str = "application/x-www-form-urlencoded";

impl FormBody {
    /// The first value of a field; empty when it did not come.
    pub fn value(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

impl<State: Sync> FromRequest<State> for FormBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &State) -> Result<Self> {
        let is_form = media_type(request.headers()).is_some_and(|found| found.eq_ignore_ascii_case(FORM_TYPE));
        let mut share = Share::of(&ROOM, Sender::of(&request));
        let coding = plain_coding(request.headers());
        let bytes = arrived(request.into_body(), FORM_BYTES_MAX, ARRIVAL, &mut share, None).await?;
        coding?;
        if !is_form {
            return Err(Problem::new(Code::UnsupportedMediaType).detail(format!("Content-Type must be {FORM_TYPE}.")));
        }
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }
}

/// A form with fields and one file, as browsers send it (`multipart/form-data`, RFC 7578), of at
/// most 16 MiB; a plain form is one without a file.
#[derive(Debug)]
pub struct FileForm {
    /// The fields, in order.
    pub fields: FormBody,
    /// The chosen file; empty where none was chosen.
    pub file: InstitutionFile,
}

const FILE_FORM_TYPE: &str = "multipart/form-data";

impl<State: Sync> FromRequest<State> for FileForm {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &State) -> Result<Self> {
        let wrong =
            || Problem::new(Code::UnsupportedMediaType).detail(format!("Content-Type must be {FILE_FORM_TYPE}."));
        let boundary = boundary(request.headers()).map(str::to_owned);
        let is_without = media_type(request.headers()).is_some_and(|found| found.eq_ignore_ascii_case(FORM_TYPE));
        let mut share = Share::of(&ROOM, Sender::of(&request));
        let coding = plain_coding(request.headers());
        let bytes = arrived(request.into_body(), FILE_BYTES_MAX + FORM_BYTES_MAX, ARRIVAL, &mut share, None).await?;
        coding?;
        let parts = match boundary {
            Some(boundary) => form_parts(&bytes, &boundary).ok_or_else(wrong)?,
            None if is_without => form_urlencoded::parse(&bytes).map(FormPart::field).collect(),
            None => return Err(wrong()),
        };
        let (files, fields): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.is_file);
        let (declared, bytes) = files.into_iter().next().map(|file| (file.declared, file.bytes)).unwrap_or_default();
        let bytes = SensitiveBytes(bytes);
        let format = FileFormat::of(declared.as_deref(), &bytes).unwrap_or_else(|| FileFormat::of_content(&bytes));
        let text = |part: FormPart| (part.name, String::from_utf8_lossy(&part.bytes).into_owned());
        let turn = if bytes.len() > LARGE_BYTES { Some(turn().await?) } else { None };
        let file = InstitutionFile { format, bytes, _share: share, _turn: turn };
        Ok(Self { fields: FormBody(fields.into_iter().map(text).collect()), file })
    }
}

/// The boundary between the parts of a form with a file.
fn boundary(headers: &HeaderMap) -> Option<&str> {
    let declared = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (kind, parameters) = declared.split_once(';')?;
    let boundary = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="))?;
    Some(boundary.trim_matches('"')).filter(|_| kind.trim().eq_ignore_ascii_case(FILE_FORM_TYPE))
}

/// One part of a form with a file.
struct FormPart {
    name: String,
    is_file: bool,
    /// Its media type, where the browser says one.
    declared: Option<String>,
    bytes: Bytes,
}

impl FormPart {
    fn field((name, value): (Cow<'_, str>, Cow<'_, str>)) -> Self {
        let bytes = Bytes::from(value.into_owned());
        Self { name: name.into_owned(), is_file: false, declared: None, bytes }
    }

    /// Reads the heads of a part. Browsers write a quote in a file's name as `%22`.
    fn of(heads: &str, bytes: Bytes) -> Option<Self> {
        let head = |wanted: &str| {
            let mut heads = heads.split("\r\n").filter_map(|head| head.split_once(':'));
            heads.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.trim())
        };
        let disposition = head("content-disposition")?;
        let mut parameters = disposition.split(';').filter_map(|parameter| parameter.trim().split_once('='));
        let name = parameters.clone().find(|(name, _)| *name == "name")?.1.trim_matches('"').to_owned();
        let is_file = parameters.any(|(name, _)| name == "filename");
        Some(Self { name, is_file, declared: head("content-type").map(str::to_owned), bytes })
    }
}

/// The parts of a form with a file; `None` where it is not whole.
fn form_parts(body: &Bytes, boundary: &str) -> Option<Vec<FormPart>> {
    let find = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).position(|window| window == wanted);
    let delimiter = format!("\r\n--{boundary}");
    // The first one begins the body.
    let mut rest = body.starts_with(&delimiter.as_bytes()[2..]).then(|| body.slice(delimiter.len() - 2..))?;
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let heads_end = find(&rest, b"\r\n\r\n")?;
        let end = heads_end + find(&rest[heads_end..], delimiter.as_bytes())?;
        let heads = std::str::from_utf8(&rest[..heads_end]).ok()?;
        let begin = (heads_end + 4).min(end);
        parts.push(FormPart::of(heads, rest.slice(begin..end))?);
        rest = rest.slice(end + delimiter.len()..);
    }
    Some(parts)
}

/// Takes in a body. Its frames are copied into one buffer, however small they are, unless there is
/// only one. `shape` looks at JSON while it arrives.
async fn arrived(
    body: axum::body::Body,
    bytes_max: usize,
    pace: Pace,
    share: &mut Share,
    mut shape: Option<Shape>,
) -> Result<SensitiveBytes> {
    let mut arrival = Arrival::begin(body, bytes_max, pace)?;
    let mut taken = Zeroizing::new(Vec::new());
    while let Some(data) = arrival.part().await? {
        let length = arrival.length;
        if taken.is_empty() && arrival.body.is_end_stream() && length <= LARGE_BYTES {
            share.grow_to(length)?;
            return Ok(SensitiveBytes(data));
        }
        if length > taken.capacity() {
            let capacity = length.next_power_of_two().max(1_024);
            share.grow_to(capacity)?;
            // The former buffer is zeroed when it is dropped.
            let mut grown = Vec::with_capacity(capacity);
            grown.extend_from_slice(&taken);
            taken = Zeroizing::new(grown);
        }
        taken.extend_from_slice(&data);
        if let Some(shape) = &mut shape {
            shape.see(&data)?;
        }
    }
    Ok(SensitiveBytes(std::mem::take(&mut *taken).into()))
}

/// Reads a body of at most `bytes_max` bytes to its end, and keeps nothing of it. It is refused as
/// a [`Body`] is.
pub async fn dropped(body: axum::body::Body, bytes_max: usize) -> Result<()> {
    let mut arrival = Arrival::begin(body, bytes_max, ARRIVAL)?;
    while arrival.part().await?.is_some() {}
    Ok(())
}

/// A body while it arrives: no larger than it may be, and no slower.
struct Arrival {
    body: axum::body::Body,
    bytes_max: usize,
    /// Bytes that have arrived.
    length: usize,
    begun: Instant,
    deadline: Deadline,
}

impl Arrival {
    fn begin(body: axum::body::Body, bytes_max: usize, pace: Pace) -> Result<Self> {
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(too_large(bytes_max));
        }
        let begun = Instant::now();
        Ok(Self { body, bytes_max, length: 0, begun, deadline: Deadline::begin(pace, begun) })
    }

    /// The bytes that arrive next; none at the end.
    async fn part(&mut self) -> Result<Option<Bytes>> {
        let data = match timeout_at(self.deadline.at().min(self.begun + ARRIVAL_MAX), self.body.frame()).await {
            Err(_) => return Err(Problem::new(Code::RequestTimeout)),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Problem::new(Code::IncompleteBody)),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
        };
        self.deadline.moved(data.len(), Instant::now());
        self.length += data.len();
        if self.length > self.bytes_max { Err(too_large(self.bytes_max)) } else { Ok(Some(data)) }
    }
}

async fn turn() -> Result<SemaphorePermit<'static>> {
    let turn = timeout(ARRIVAL_MAX, LARGE_AT_ONCE.acquire()).await;
    turn.ok().and_then(Result::ok).ok_or_else(overloaded)
}

fn overloaded() -> Problem {
    Problem::new(Code::Overloaded).retry_after(1)
}

/// How the room is shared, bytes.
#[derive(Debug, Clone, Copy)]
struct BodyLimits {
    /// All bodies.
    all: usize,
    /// Part that is reserved for operators' bodies.
    for_operators: usize,
    /// Part of the rest that is reserved for bodies of at most [`LARGE_BYTES`].
    for_small: usize,
    /// The bodies of one merchant.
    of_merchant: usize,
    /// The merchants' bodies from one address.
    of_address: usize,
}

impl Default for BodyLimits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        BodyLimits {
            all: 256 * MIB,
            for_operators: 16 * MIB,
            for_small: 48 * MIB,
            of_merchant: 32 * MIB,
            of_address: 128 * MIB,
        }
    }
}

/// Whose body it is.
#[derive(Debug, Clone, Copy)]
enum Sender {
    Operator,
    Merchant(GroupNumber, Option<Peer>),
}

impl Sender {
    fn of(request: &Request) -> Self {
        match request.extensions().get() {
            Some(Caller { group, .. }) => Sender::Merchant(*group, request.extensions().get().copied()),
            None => Sender::Operator,
        }
    }
}

/// Room for bodies: how many bytes of each merchant and address may be in memory at once.
#[derive(Debug)]
struct BodyAdmission {
    limits: BodyLimits,
    taken: Mutex<RoomInUse>,
}

/// Room in use. The maps have only callers that hold some.
#[derive(Debug, Default)]
struct RoomInUse {
    all: usize,
    by_merchant: HashMap<GroupNumber, usize>,
    by_address: HashMap<Peer, usize>,
}

impl BodyAdmission {
    fn new(limits: BodyLimits) -> Self {
        BodyAdmission { limits, taken: Mutex::default() }
    }

    /// Takes more room for a body that will then have this number of bytes; false when there is not
    /// enough.
    fn take(&self, sender: Sender, more: usize, length: usize) -> bool {
        let (limits, mut taken) = (&self.limits, self.taken.lock());
        let all = taken.all + more;
        let Sender::Merchant(group, peer) = sender else {
            if all <= limits.all {
                taken.all = all;
            }
            return all <= limits.all;
        };
        let reserved = limits.for_operators + if length > LARGE_BYTES { limits.for_small } else { 0 };
        let of_merchant = taken.by_merchant.get(&group).copied().unwrap_or_default() + more;
        let of_address = peer.and_then(|peer| taken.by_address.get(&peer)).copied().unwrap_or_default() + more;
        if all + reserved > limits.all || of_merchant > limits.of_merchant || of_address > limits.of_address {
            return false;
        }
        taken.all = all;
        taken.by_merchant.insert(group, of_merchant);
        if let Some(peer) = peer {
            taken.by_address.insert(peer, of_address);
        }
        true
    }

    fn give(&self, sender: Sender, bytes: usize) {
        let mut taken = self.taken.lock();
        taken.all -= bytes;
        if let Sender::Merchant(group, peer) = sender {
            subtract(&mut taken.by_merchant, group, bytes);
            if let Some(peer) = peer {
                subtract(&mut taken.by_address, peer, bytes);
            }
        }
    }
}

fn subtract<K: Eq + std::hash::Hash>(map: &mut HashMap<K, usize>, key: K, bytes: usize) {
    if let std::collections::hash_map::Entry::Occupied(mut held) = map.entry(key) {
        *held.get_mut() -= bytes;
        if *held.get() == 0 {
            held.remove();
        }
    }
}

/// Share of one body in the room.
#[derive(Debug)]
struct Share {
    room: &'static BodyAdmission,
    sender: Sender,
    bytes: usize,
}

impl Share {
    fn of(room: &'static BodyAdmission, sender: Sender) -> Self {
        Share { room, sender, bytes: 0 }
    }

    fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        if !self.room.take(self.sender, more, bytes) {
            return Err(overloaded());
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.give(self.sender, self.bytes);
        }
    }
}

fn too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::PayloadTooLarge).detail(format!("The body is larger than {bytes_max} bytes."))
}

/// Refuses a body that is compressed (RFC 9110, 8.4 and 15.5.16).
fn plain_coding(headers: &HeaderMap) -> Result<()> {
    let is_identity = |value: &HeaderValue| {
        let mut codings = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
    };
    if headers.get_all(CONTENT_ENCODING).iter().all(is_identity) {
        return Ok(());
    }
    let problem = Problem::new(Code::UnsupportedMediaType).message("Content-Encoding não é aceito");
    Err(problem.detail("The body must not be compressed: Content-Encoding must be identity.").accepting_identity())
}

/// The content type, parameters aside.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    content_type.split(';').next().map(str::trim)
}

/// The media types of JSON lines; none of them is registered.
const JSON_LINES: [&str; 4] =
    ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];

/// Whether a body is declared as JSON lines; the declaration becomes `application/json` then.
pub fn declared_as_lines(headers: &mut HeaderMap) -> bool {
    let is_lines =
        media_type(headers).is_some_and(|found| JSON_LINES.into_iter().any(|name| found.eq_ignore_ascii_case(name)));
    if is_lines {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    is_lines
}

/// Whether the content type is `application/json` or `application/…+json`, parameters aside.
fn declares_json(headers: &HeaderMap) -> bool {
    let Some((kind, subtype)) = media_type(headers).and_then(|found| found.split_once('/')) else {
        return false;
    };
    let suffix = subtype.rsplit_once('+').map_or(subtype, |(_, suffix)| suffix);
    kind.eq_ignore_ascii_case("application") && suffix.eq_ignore_ascii_case("json")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in a body of at most 8 bytes.
    async fn taken(content_type: Option<&str>, body: &'static str) -> Result<Bytes, Code> {
        let mut request = axum::http::Request::builder().uri("/");
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(axum::body::Body::from(body)).unwrap();
        Body::<8>::from_request(request, &()).await.map(|body| body.bytes.clone()).map_err(|problem| problem.code())
    }

    #[tokio::test]
    async fn bodies_are_json_and_fit() {
        let cases = [
            (Some("application/json"), "{}", Ok("{}")),
            (Some("Application/JSON; charset=utf-8"), "{}", Ok("{}")),
            (Some("application/problem+json"), "{}", Ok("{}")),
            (Some("application/json"), "{\"a\":12}", Ok("{\"a\":12}")),
            (Some("application/json"), "{\"a\":123}", Err(Code::PayloadTooLarge)),
            (Some("text/plain"), "{\"a\":123}", Err(Code::PayloadTooLarge)),
            (Some("text/plain"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("text/json"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("application/jsonl"), "{}", Err(Code::UnsupportedMediaType)),
            (Some("application"), "{}", Err(Code::UnsupportedMediaType)),
            (None, "{}", Err(Code::UnsupportedMediaType)),
            (Some("text/plain"), "", Ok("")),
            (None, "", Ok("")),
        ];
        for (content_type, body, expected) in cases {
            let expected = expected.map(Bytes::from);
            assert_eq!(taken(content_type, body).await, expected, "{content_type:?} {body}");
        }
    }

    #[test]
    fn a_form_with_a_file_has_its_parts() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"account\"\r\n\r\npix\r\n--x\r\n\
            content-disposition: form-data; name=\"file\"; filename=\"a;b.ofx\"\r\nContent-Type: application/x-ofx\r\n\r\n\
            OFX\r\n--y\r\n\r\n\r\n--x--\r\n";
        let read = |body: &str| {
            let parts = form_parts(&Bytes::copy_from_slice(body.as_bytes()), "x")?;
            let part = |part: FormPart| {
                (part.name, part.is_file, part.declared, String::from_utf8_lossy(&part.bytes).into_owned())
            };
            Some(parts.into_iter().map(part).collect::<Vec<_>>())
        };
        let field = ("account".to_owned(), false, None, "pix".to_owned());
        let file = ("file".to_owned(), true, Some("application/x-ofx".to_owned()), "OFX\r\n--y\r\n\r\n".to_owned());
        assert_eq!(read(body), Some(vec![field, file]));
        for end in ["\r\n--x--\r\n".len(), 20, 60, 120] {
            assert_eq!(read(&body[..body.len() - end]), None, "{end} bytes fewer");
        }
        let headers =
            |declared: &'static str| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(declared))]);
        for (declared, expected) in [
            ("multipart/form-data; boundary=----W", Some("----W")),
            ("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("text/plain; boundary=x", None),
        ] {
            assert_eq!(boundary(&headers(declared)), expected, "{declared}");
        }
    }

    #[test]
    fn bytes_are_overwritten_where_nobody_else_has_them() {
        let card = br#"{"number":"4111111111111111"}"#;
        let erased = SensitiveBytes::erased(Bytes::from(card.to_vec())).unwrap();
        assert_eq!(erased.as_ref(), [0; 29]);
        let shared = Bytes::from(card.to_vec());
        let other = shared.clone();
        drop(SensitiveBytes(shared));
        assert_eq!(other, card.as_slice(), "another reader keeps what it has");
    }

    const KIB: usize = 1024;
    const SMALL: BodyLimits = BodyLimits {
        all: 1_000 * KIB,
        for_operators: 100 * KIB,
        for_small: 200 * KIB,
        of_merchant: 400 * KIB,
        of_address: 500 * KIB,
    };

    fn room() -> &'static BodyAdmission {
        Box::leak(Box::new(BodyAdmission::new(SMALL)))
    }

    fn merchant(group: u32, address: u8) -> Sender {
        let address: std::net::IpAddr = [203, 0, 113, address].into();
        Sender::Merchant(GroupNumber(group), Some(address.into()))
    }

    #[test]
    fn the_room_is_shared() {
        let room = room();
        let large = LARGE_BYTES + 1;
        // The caller, the KiB that it takes, the size of its body, and whether there is room.
        let cases = [
            (merchant(1, 1), 400, large, true),
            (merchant(1, 1), 1, 1, false),
            (merchant(1, 2), 1, 1, false),
            (merchant(2, 1), 100, large, true),
            (merchant(3, 1), 1, 1, false),
            (merchant(2, 2), 200, large, true),
            (merchant(4, 3), 1, large, false),
            (merchant(4, 3), 200, LARGE_BYTES, true),
            (merchant(5, 4), 1, 1, false),
            (Sender::Operator, 100, large, true),
            (Sender::Operator, 1, 1, false),
        ];
        for (row, (sender, kib, length, fits)) in cases.into_iter().enumerate() {
            assert_eq!(room.take(sender, kib * KIB, length), fits, "row {row}");
        }
        for (sender, kib, ..) in cases.into_iter().filter(|(.., fits)| *fits) {
            room.give(sender, kib * KIB);
        }
        let taken = room.taken.lock();
        assert_eq!((taken.all, taken.by_merchant.len(), taken.by_address.len()), (0, 0, 0));
    }

    /// A body whose frames are sent by hand.
    fn by_hand() -> (tokio::sync::mpsc::Sender<Bytes>, axum::body::Body) {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        (sender, axum::body::Body::new(ByHand(receiver)))
    }

    struct ByHand(tokio::sync::mpsc::Receiver<Bytes>);

    impl HttpBody for ByHand {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
            self.0.poll_recv(context).map(|data| data.map(|data| Ok(hyper::body::Frame::data(data))))
        }
    }

    #[tokio::test]
    async fn room_is_taken_for_what_has_arrived() {
        let room = room();
        let (sender, body) = by_hand();
        let taking = tokio::spawn(async move {
            let mut share = Share::of(room, merchant(1, 1));
            let bytes = arrived(body, 4 << 20, ARRIVAL, &mut share, None).await;
            (bytes.map_err(|problem| problem.code()), share.bytes)
        });
        for _ in 0..5_000 {
            sender.send(Bytes::from_static(b" ")).await.unwrap();
            assert!(room.taken.lock().all <= 8 * KIB, "what waits for more bytes holds twice what came at most");
        }
        drop(sender);
        let (bytes, held) = taking.await.unwrap();
        assert_eq!((bytes.map(|bytes| bytes.len()), held), (Ok(5_000), 8 * KIB));
        assert_eq!(room.taken.lock().all, 0);
    }

    #[tokio::test]
    async fn one_merchant_leaves_room_for_the_others() {
        let room = room();
        let large = || axum::body::Body::from(vec![b' '; 300 * KIB]);
        let code = async |sender, body, share: &mut Option<Share>| {
            let taking = share.insert(Share::of(room, sender));
            arrived(body, 4 << 20, ARRIVAL, taking, None).await.map(|_| ()).map_err(|problem| problem.code())
        };
        let [mut first, mut second, mut third, mut fourth] = [const { None }; 4];
        // The buffer of 300 KiB has 512, more than one merchant may have.
        assert_eq!(code(merchant(1, 1), large(), &mut first).await, Err(Code::Overloaded));
        let fits = || axum::body::Body::from(vec![b' '; 250 * KIB]);
        assert_eq!(code(merchant(1, 1), fits(), &mut second).await, Ok(()));
        assert_eq!(code(merchant(1, 2), fits(), &mut first).await, Err(Code::Overloaded));
        assert_eq!(code(merchant(2, 2), fits(), &mut third).await, Ok(()));
        assert_eq!(code(Sender::Operator, fits(), &mut fourth).await, Ok(()));
    }

    #[tokio::test]
    async fn a_body_that_arrives_too_slowly_is_given_up() {
        let pace = Pace { idle_max: Duration::from_millis(50), ..ARRIVAL };
        let (sender, body) = by_hand();
        sender.send(Bytes::from_static(b"{")).await.unwrap();
        let mut share = Share::of(room(), merchant(1, 1));
        let given_up = arrived(body, 8, pace, &mut share, None).await.unwrap_err();
        assert_eq!(given_up.code(), Code::RequestTimeout);
        assert!(sender.is_closed());
    }

    #[tokio::test]
    async fn a_body_of_too_many_values_is_refused_while_it_arrives() {
        let (sender, body) = by_hand();
        let taking = tokio::spawn(async move {
            let mut share = Share::of(room(), merchant(1, 1));
            arrived(body, 4 << 20, ARRIVAL, &mut share, Some(Shape::default())).await.map_err(|problem| problem.code())
        });
        let part = Bytes::from("1,".repeat(10_000));
        let mut sent = 0;
        while sender.send(part.clone()).await.is_ok() {
            sent += part.len();
        }
        assert_eq!(taking.await.unwrap().map(|_| ()), Err(Code::InvalidJson));
        assert!(sent < 400_000, "{sent} of 4 MiB were taken");
    }
}
