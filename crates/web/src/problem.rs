//! Problem bodies, `application/problem+json` (RFC 9457): the answer to a request that is not
//! carried out.
//!
//! Every refusal of the interface stands in one table, [`Code::row`]: its stable code, its status,
//! its title and the message that callers show to people, in Portuguese as the interface has it.
//! The body has what the caller can act on, and no internal detail.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use store::Partition;
use strum::{IntoStaticStr, VariantArray};

/// The media type of a problem's body.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Declares the table of problems: behind each code its status, its title in English, the same
/// every time, and its message for people in Portuguese.
macro_rules! codes {
    ($($(#[$about:meta])* $code:ident = $status:literal, $title:literal, $message:literal;)+) => {
        /// Why a request was not carried out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
        #[strum(serialize_all = "snake_case")]
        pub enum Code { $($(#[$about])* $code,)+ }

        impl Code {
            /// The code's line in the table of problems (interface section 7).
            pub fn row(self) -> Row {
                let (status, title, message) = match self { $(Self::$code => ($status, $title, $message),)+ };
                let status = StatusCode::from_u16(status).expect("the table has statuses of HTTP");
                Row { code: self.into(), status, title, message }
            }
        }
    };
}

codes! {
    /// The body is not a JSON object.
    InvalidJson = 400, "Invalid JSON", "JSON inválido";
    /// An object of the body has a key twice.
    DuplicateKey = 400, "Duplicate key", "Chave JSON duplicada";
    /// The body is not UTF-8.
    InvalidUtf8 = 400, "Invalid UTF-8", "O corpo deve ser UTF-8";
    /// The body ended before its time.
    IncompleteBody = 400, "Incomplete body", "Corpo incompleto";
    /// Fields of the request have values that they can't have; `errors` names them.
    ValidationFailed = 400, "Validation failed", "Dados inválidos";
    /// The card's number, security code or expiry is wrong.
    InvalidCardData = 400, "Invalid card data", "Dados do cartão inválidos";
    /// A split names a recipient that the account does not have.
    RecipientNotFound = 400, "Recipient not found", "Recebedor não encontrado";
    /// A split names a recipient that may not receive yet, or no more.
    RecipientNotActive = 400, "Recipient not active", "Recebedor não está ativo";
    /// The splits sum to the charge's total or to more.
    SplitsReachTotal = 400, "Splits reach the total", "A soma dos splits deve ser menor que o total";
    /// The account lets no charge through whose fees exceed the seller's part.
    FeesExceedSellerPart = 400, "Fees exceed the seller's part", "As taxas excedem a parte do vendedor";
    /// The amount of a cashout is below the least that the fee allows.
    AmountBelowMinimum = 400, "Amount below the minimum", "Valor abaixo do mínimo";
    /// The amount of a cashout is above the available balance.
    InsufficientBalance = 400, "Insufficient balance", "Saldo insuficiente";
    /// The request has no credential, or one that opens nothing.
    Unauthorized = 401, "Unauthorized", "Credencial ausente ou inválida";
    /// The acquirer refused the card.
    CardDeclined = 402, "Card declined", "Transação recusada";
    /// The account is not enabled for cashout.
    CashoutNotEnabled = 403, "Cashout not enabled", "Conta sem acesso a cashout";
    /// The merchant is closing or closed: no new charges.
    MerchantClosing = 403, "Merchant is closing", "Conta em encerramento";
    /// Operators suspended the merchant.
    MerchantSuspended = 403, "Merchant suspended", "Conta suspensa";
    /// Operators hold the payouts of the merchant and its recipients.
    PayoutsHeld = 403, "Payouts are held", "Saídas de dinheiro retidas";
    /// Operators froze the recipient: nothing leaves to it.
    RecipientFrozen = 403, "Recipient is frozen", "Recebedor congelado";
    /// The operator's role is too small for this.
    RoleNotAllowed = 403, "Role not allowed", "Seu papel não permite esta operação";
    /// A form of the console that no page of this session sent.
    FormRefused = 403, "Form refused", "Formulário recusado";
    /// The API key has not the scope of the route.
    InsufficientScope = 403, "Insufficient scope", "A chave de API não tem permissão para esta operação";
    /// Operators manage the API keys of the merchant.
    OwnKeysNotAllowed = 403, "Own keys not allowed", "As chaves de API desta conta são geridas pela operação";
    /// The other API key may do more than the calling key.
    ScopesExceedKey = 403, "Scopes exceed those of the key", "A outra chave de API tem mais permissões que esta";
    /// The path, or the object that it names, does not exist for this caller.
    NotFound = 404, "Not found", "Recurso não encontrado";
    /// The charge does not exist for this caller.
    ChargeNotFound = 404, "Charge not found", "Pagamento não encontrado";
    /// The path exists, with other methods.
    MethodNotAllowed = 405, "Method not allowed", "Método não permitido";
    /// The body did not arrive in time.
    RequestTimeout = 408, "Request timeout", "O corpo não chegou a tempo";
    /// The cashout's `merchant_transaction_id` was used before.
    DuplicateTransaction = 409, "Duplicate transaction", "Transação duplicada";
    /// Another charge of the account has the reference, for the same request.
    DuplicateReference = 409, "Duplicate reference", "Já existe um item com esta referência";
    /// Another charge of the account has the reference, for another request.
    ReferenceTaken = 409, "Reference taken", "Outro item já tem esta referência, com outros dados";
    /// An operator has decided this before.
    AlreadyDecided = 409, "Already decided", "Já decidido";
    /// What waits for the decision is not as the decider saw it.
    ItemChanged = 409, "Changed meanwhile", "Mudou desde que foi visto";
    /// The operator who asked for an entry of the house ledger may not approve it.
    SecondOperatorNeeded = 409, "Second operator needed", "Outro operador precisa aprovar";
    /// No rail has left the outcome of this order unknown for an hour.
    OutcomeNotUnknown = 409, "Outcome not unknown", "O desfecho não está desconhecido há uma hora";
    /// More would be written off than is owed.
    ExceedsDebt = 409, "Exceeds debt", "A baixa é maior que a dívida";
    /// A write-off of this debt waits for its decision.
    WriteOffPending = 409, "Write-off pending", "Já há uma baixa pendente desta dívida";
    /// The withdrawal is not paid, or its money came back before.
    WithdrawalNotPaid = 409, "Withdrawal not paid", "O saque não está pago, ou já foi devolvido";
    /// The return of this withdrawal waits for its decision.
    ReturnPending = 409, "Return pending", "Já há uma devolução pendente deste saque";
    /// Another entry of the house has this reference.
    ReferenceRepeated = 409, "Reference repeated", "Já existe um lançamento com esta referência";
    /// The month is closed.
    PeriodClosed = 409, "Period closed", "O mês está fechado";
    /// The month is not over.
    PeriodNotOver = 409, "Period not over", "O mês ainda não terminou";
    /// The same file was compared with the books before.
    AlreadyReconciled = 409, "Already reconciled", "Arquivo já conciliado";
    /// A batch of the settlement file is booked.
    BatchAlreadyBooked = 409, "Batch already booked", "O lote já está lançado";
    /// The bank statement is of another account than earlier ones.
    OtherBankAccount = 409, "Other bank account", "Extrato de outra conta";
    /// The charge is not pending any more.
    ChargeNotPending = 409, "Charge not pending", "Cobrança não está pendente";
    /// A request with the same idempotency key is under way.
    IdempotencyKeyInProgress = 409, "Idempotency key in progress", "Requisição com esta Idempotency-Key em andamento";
    /// The recipient has a withdrawal that waits for its decision.
    WithdrawalPending = 409, "Withdrawal pending", "Já existe um saque pendente";
    /// The recipient's bank account was changed, and the new one is not approved.
    BankAccountInReview = 409, "Bank account in review", "Conta bancária em análise";
    /// A split is not a pending card split.
    SplitNotAnticipable = 409, "Split not anticipable", "Split não pode ser antecipado";
    /// A split falls due before the anticipated money would be sent.
    AnticipationAfterDue = 409, "Anticipation after the due day", "O split vence antes deste prazo";
    /// The fee differs from the request's.
    FeeChanged = 409, "Fee changed", "A taxa mudou";
    /// The refunds would sum to more than was charged.
    RefundExceedsAvailable = 409, "Refund exceeds what is available", "Valor maior que o disponível";
    /// The disputes would sum to more than was charged, or more is accepted than is disputed.
    DisputeExceedsAvailable = 409, "Dispute exceeds what is available", "Valor maior que o disponível";
    /// The account has used this tag for a plan before.
    #[strum(serialize = "duplicate_tag")]
    TagTaken = 409, "Duplicate tag", "Já existe um plano com esta tag";
    /// The plan takes no subscriptions any more.
    PlanDisabled = 409, "Plan disabled", "Plano desativado";
    /// The merchant may make no further API key itself.
    TooManyApiKeys = 409, "Too many API keys", "Limite de chaves de API atingido";
    /// The object's present state does not allow this.
    StateConflict = 409, "State conflict", "Operação não permitida no estado atual";
    /// The process that was asked by another one does not have the partition, and did nothing.
    Misdirected = 421, "Misdirected", "Requisição entregue ao processo errado";
    /// The body is larger than the path takes.
    PayloadTooLarge = 413, "Payload too large", "Corpo grande demais";
    /// The body is not declared as JSON.
    UnsupportedMediaType = 415, "Unsupported media type", "Content-Type deve ser application/json";
    /// The account is not configured for split.
    SplitNotEnabled = 422, "Split not enabled", "Conta não configurada para split";
    /// The idempotency key came before with another body.
    IdempotencyKeyReused = 422, "Idempotency key reused", "Idempotency-Key já usada com outro corpo";
    /// The charge is pending, refused, cancelled, wholly refunded, disputed or too old.
    ChargeNotRefundable = 422, "Charge not refundable", "Pagamento não elegível";
    /// The recipient has nothing to withdraw.
    NothingAvailable = 422, "Nothing available", "Nenhum valor disponível";
    /// Too many requests, or too many refused cards, within a minute.
    RateLimited = 429, "Rate limited", "Limite de requisições atingido";
    /// The headers are larger than the service takes.
    HeadersTooLarge = 431, "Headers too large", "Cabeçalhos grandes demais";
    /// The service failed; nothing of the request is stored.
    Internal = 500, "Internal error", "Erro interno";
    /// The payment institution surely did not take the transfer, or can't be reached.
    RailUnavailable = 502, "Payment institution unavailable", "Erro de comunicação com a instituição de pagamento";
    /// The payment institution refuses to register the charge, which is cancelled.
    RailRefused = 422, "Rail refused", "A instituição de pagamento recusou a cobrança";
    /// The service has more to do than it can hold.
    Overloaded = 503, "Overloaded", "Serviço sobrecarregado";
    /// The disk is short of space: nothing is written until there is more.
    StorageFull = 503, "Storage full", "Sem espaço para novas operações; consultas continuam disponíveis";
    /// The wall clock of the server has jumped: nothing is written until it is right or confirmed.
    ClockInDoubt = 503, "Clock in doubt", "Relógio do servidor em dúvida; consultas continuam disponíveis";
    /// The database does not answer, or another process is taking over: nothing was sent.
    StoreUnavailable = 503, "Store unavailable", "Banco de dados indisponível";
    /// No acquirer or payment institution is configured.
    RailNotConfigured = 503, "Rail not configured", "Nenhuma instituição de pagamento configurada";
    /// The request may or may not have been carried out.
    OutcomeUnknown = 503, "Outcome unknown", "Resultado desconhecido";
}

/// One line of the table of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The stable name, in snake case.
    pub code: &'static str,
    /// The status of the response.
    pub status: StatusCode,
    /// Kind of the problem, in English, the same every time.
    pub title: &'static str,
    /// Message for people, in Portuguese.
    pub message: &'static str,
}

impl Code {
    /// Every code, in order.
    pub const ALL: &[Code] = Code::VARIANTS;

    /// The code of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.row().code == name)
    }
}

/// Error in one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FieldError {
    /// The field's path, such as `customer.document` or `splits[2].amount`.
    pub field: String,
    /// Kind of the error, as a stable name in snake case.
    pub code: &'static str,
    /// The error, in Portuguese. It never repeats the value.
    pub message: Cow<'static, str>,
}

/// What is answered to a request, or the problem with it.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// A refusal on its way to the caller.
///
/// As a response it has its status and headers, and carries itself as an extension:
/// [`super::middleware`] writes the body, because only there the request's id and path are known.
#[derive(Debug, Clone)]
pub struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    code: Code,
    message: Cow<'static, str>,
    detail: Cow<'static, str>,
    said: Option<&'static str>,
    errors: Vec<FieldError>,
    retry_after_seconds: Option<u32>,
    accepts_identity: bool,
    members: Vec<(&'static str, Value)>,
}

/// A contradiction of the books, logged and answered 500: what one part of them has named, another
/// one does not have. The types rule it out where one reader makes both; what is left is read from
/// the disk in two places, so that damage or a mistake of the service can part them:
///
/// - A Record that an idempotency key led to does not say what the key's request did
///   (`Key::run_typed`, registrations).
/// - A command that always changes something changed nothing (`recorded`).
/// - An actor, the queue or a Record named a recipient whom the merchant's row does not have
///   (`known_recipient`).
/// - A split that a statement lists is not in its charge, or an actor counts it as paid and no
///   withdrawal paid it (`crates/web/src/views/statement.rs`).
///
/// The engine answers for what it reads itself: `known_…` of its façade, and `Outcome::typed`.
#[track_caller]
pub fn broken() -> Problem {
    let at = std::panic::Location::caller();
    tracing::error!(%at, "the books contradict themselves");
    Problem::new(Code::Internal)
}

/// The problem of what is not there, or is another's.
pub fn not_found() -> Problem {
    Problem::new(Code::NotFound)
}

/// A failure of the process itself, logged and answered 500: a value of ours that could not be
/// written or read again, or work that panicked. The books have no part in it.
#[track_caller]
pub fn failed(error: impl std::fmt::Display) -> Problem {
    let at = std::panic::Location::caller();
    tracing::error!(%at, %error, "the service could not do its own work");
    Problem::new(Code::Internal)
}

impl Problem {
    /// A problem that says no more than its line in the table.
    pub fn new(code: Code) -> Self {
        let row = code.row();
        Problem(Box::new(Parts {
            code,
            message: Cow::Borrowed(row.message),
            detail: Cow::Borrowed(row.title),
            said: None,
            errors: Vec::new(),
            retry_after_seconds: None,
            accepts_identity: false,
            members: Vec::new(),
        }))
    }

    /// Replaces the message for people.
    pub fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Says, in English and to the caller's developer, what is wrong this time.
    pub fn detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// Says it on a page, in the language of its visitor, in place of the detail.
    pub fn says(mut self, said: &'static str) -> Self {
        self.0.said = Some(said);
        self
    }

    /// What a page says, in the language of its visitor; `None` if it has only the detail.
    pub fn said(&self) -> Option<&'static str> {
        self.0.said
    }

    /// The error in one field.
    pub fn field(self, name: impl Into<String>, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        self.errors(vec![FieldError { field: name.into(), code, message: message.into() }])
    }

    /// Names the fields that are wrong.
    pub fn errors(mut self, errors: Vec<FieldError>) -> Self {
        self.0.errors = errors;
        self
    }

    /// Says when to try again, in seconds.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    /// Says that a body is taken only without a content coding (RFC 9110, 12.5.3).
    pub fn accepting_identity(mut self) -> Self {
        self.0.accepts_identity = true;
        self
    }

    /// Adds a member to the body, such as the `txid` of a declined charge.
    ///
    /// A member named `status` takes the place of the numeric one: the interface's body of a
    /// declined card has `RECUSADA` there (sections 2.2 and 7), and RFC 9457 calls its own `status`
    /// advisory.
    pub fn member(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.members.push((name, value.into()));
        self
    }

    /// Why the request was not carried out.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The value of a further member of the body; `None` if it is no text.
    pub fn member_text(&self, name: &str) -> Option<&str> {
        self.0.members.iter().find(|(member, _)| *member == name).and_then(|(_, value)| value.as_str())
    }

    /// What is wrong with this request, in English.
    pub fn explanation(&self) -> &str {
        &self.0.detail
    }

    /// What people are shown, in Portuguese.
    pub fn message_shown(&self) -> &str {
        &self.0.message
    }

    /// What is wrong with the request, field by field; empty for problems of another kind.
    pub fn wrong_fields(&self) -> &[FieldError] {
        &self.0.errors
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.0.code.row().status
    }

    /// The body, for the request with this path and this id.
    pub fn render(&self, instance: &str, request_id: &str) -> Vec<u8> {
        let rendered = RenderedProblem { parts: &self.0, instance, request_id };
        serde_json::to_vec(&rendered).expect("a problem has only string keys and plain values")
    }
}

/// Name of the member with the partition that a request needs.
const PARTITION: &str = "partition";

impl Problem {
    /// Another process has the partition that a request needs, and nothing was done. The door sends
    /// the request there.
    pub fn elsewhere(partition: Partition) -> Self {
        let mut problem = Self::new(Code::Misdirected).retry_after(1);
        problem.0.members.push((PARTITION, partition.0.into()));
        problem
    }

    /// The partition that a request needs and this process does not have.
    pub fn needed_partition(&self) -> Option<NeededPartition> {
        let (_, number) = self.0.members.iter().find(|(name, _)| *name == PARTITION)?;
        let number = number.as_u64().filter(|_| self.0.code == Code::Misdirected)?;
        u16::try_from(number).ok().map(|number| NeededPartition(Partition(number)))
    }
}

/// Extension of a response, also of a page: nothing was done, since another process has this
/// partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeededPartition(pub Partition);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.0.retry_after_seconds {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.0.accepts_identity {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if self.0.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        self.needed_partition().map(|needed| response.extensions_mut().insert(needed));
        response.extensions_mut().insert(self);
        response
    }
}

struct RenderedProblem<'a> {
    parts: &'a Parts,
    instance: &'a str,
    request_id: &'a str,
}

impl Serialize for RenderedProblem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.parts.code.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("/problems/{}", row.code))?;
        map.serialize_entry("title", row.title)?;
        match self.parts.members.iter().find(|(name, _)| *name == "status") {
            Some((name, value)) => map.serialize_entry(name, value)?,
            None => map.serialize_entry("status", &row.status.as_u16())?,
        }
        map.serialize_entry("detail", &self.parts.detail)?;
        map.serialize_entry("instance", self.instance)?;
        map.serialize_entry("code", row.code)?;
        map.serialize_entry("message", &self.parts.message)?;
        map.serialize_entry("success", &false)?;
        map.serialize_entry("request_id", self.request_id)?;
        map.serialize_entry("errors", &self.parts.errors)?;
        for (name, value) in self.parts.members.iter().filter(|(name, _)| *name != "status") {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(problem: &Problem) -> Value {
        serde_json::from_slice(&problem.render("/api/card", "request-1")).unwrap()
    }

    #[test]
    fn the_body_has_every_member_of_the_contract() {
        let error = FieldError { field: "amount".to_owned(), code: "not_an_integer", message: "a".into() };
        let problem = Problem::new(Code::ValidationFailed).message("a").detail("b").errors(vec![error]);
        let expected = json!({
            "type": "/problems/validation_failed",
            "title": "Validation failed",
            "status": 400,
            "detail": "b",
            "instance": "/api/card",
            "code": "validation_failed",
            "message": "a",
            "success": false,
            "request_id": "request-1",
            "errors": [{"field": "amount", "code": "not_an_integer", "message": "a"}],
        });
        assert_eq!(body(&problem), expected);
    }

    #[test]
    fn a_declined_card_says_so_in_the_interface_words() {
        let problem = Problem::new(Code::CardDeclined)
            .member("txid", "0af1")
            .member("status", "RECUSADA")
            .member("cardStatus", "not_authorized");
        let rendered = String::from_utf8(problem.render("/api/card", "request-1")).unwrap();
        assert_eq!(rendered.matches("\"status\"").count(), 1);
        let body = body(&problem);
        let found = [&body["status"], &body["txid"], &body["cardStatus"], &body["message"]];
        assert_eq!(found, ["RECUSADA", "0af1", "not_authorized", "Transação recusada"]);
        assert_eq!(problem.status(), StatusCode::PAYMENT_REQUIRED);
    }

    #[test]
    fn the_interface_messages_have_their_statuses() {
        let cases = [
            (Code::InvalidCardData, 400, "Dados do cartão inválidos"),
            (Code::CardDeclined, 402, "Transação recusada"),
            (Code::RateLimited, 429, "Limite de requisições atingido"),
            (Code::CashoutNotEnabled, 403, "Conta sem acesso a cashout"),
            (Code::DuplicateTransaction, 409, "Transação duplicada"),
            (Code::RailUnavailable, 502, "Erro de comunicação com a instituição de pagamento"),
            (Code::RecipientNotFound, 400, "Recebedor não encontrado"),
            (Code::SplitNotEnabled, 422, "Conta não configurada para split"),
            (Code::ChargeNotFound, 404, "Pagamento não encontrado"),
            (Code::RefundExceedsAvailable, 409, "Valor maior que o disponível"),
            (Code::ChargeNotRefundable, 422, "Pagamento não elegível"),
        ];
        for (code, status, message) in cases {
            assert_eq!((code.row().status.as_u16(), code.row().message), (status, message), "{code:?}");
        }
    }

    #[test]
    fn the_response_has_the_headers_of_its_code() {
        let unauthorized = Problem::new(Code::Unauthorized).into_response();
        assert_eq!(unauthorized.headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(unauthorized.headers()[CONTENT_TYPE], MEDIA_TYPE);
        let overloaded = Problem::new(Code::Overloaded).retry_after(2).into_response();
        assert_eq!(overloaded.headers()[RETRY_AFTER], "2");
        assert_eq!(overloaded.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(!overloaded.headers().contains_key(WWW_AUTHENTICATE));
    }
}
