"""Client of Centavo's merchants' API.

`centavo.rest` has a function for each operation and a class for each body, generated from the description of a server.
Here is what they lack: retries with the same Idempotency-Key, errors with types, lists page by page, and the signature
of webhooks. Only the synchronous functions are covered.
"""

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx

from centavo.rest import AuthenticatedClient

T = TypeVar("T")

TRIES = 10
"""Tries of a request whose outcome is unknown."""

PAUSE_MAX = 60
"""Longest pause between two tries, in seconds, unless the answer asks for a longer one."""

TOLERANCE = 300
"""Greatest difference between the clock and the time of a webhook, in seconds."""


class Refused(Exception):
    """An answer of 400 or above. `code` is a stable name, `message` is for people, `errors` names wrong fields."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", ""))
        self.message = str(problem.get("message", ""))
        self.errors: list[dict[str, str]] = list(problem.get("errors", []))
        super().__init__(f"{status} {self.code}: {self.message}")


class Declined(Refused):
    """A card that the acquirer refused: 402. `txid` is the refused charge."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.txid = str(problem.get("txid", ""))


class WrongSignature(Exception):
    """A webhook that was not signed with the secret, or too long ago."""


def connect(url: str, api_key: str, *, tries: int = TRIES) -> AuthenticatedClient:
    """A client for the functions of `centavo.rest`. It repeats what may be repeated, and raises `Refused`."""
    transport = _Repeating(httpx.HTTPTransport(), tries)
    return AuthenticatedClient(url, api_key, timeout=httpx.Timeout(30), httpx_args={"transport": transport})


class _Repeating(httpx.BaseTransport):
    """Repeats reads, and requests with a key, until their outcome is known. A POST without a key gets one."""

    def __init__(self, inner: httpx.BaseTransport, tries: int) -> None:
        self._inner, self._tries = inner, tries

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        if request.method == "POST":
            request.headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        is_repeatable = request.method == "GET" or "Idempotency-Key" in request.headers
        for pause in [min(2**n, PAUSE_MAX) for n in range(self._tries - 1)] + [None]:
            try:
                answer = self._inner.handle_request(request)
                answer.read()
            except httpx.TransportError:
                if pause is None or not is_repeatable:
                    raise
            else:
                if answer.status_code < 400:
                    return answer
                refused = _refused(answer)
                is_unknown = answer.status_code == 503 or refused.code == "idempotency_key_in_progress"
                is_repeated = answer.status_code == 429 or (is_unknown and is_repeatable)
                if pause is None or not is_repeated:
                    raise refused
                pause = max(pause, int(answer.headers.get("Retry-After", 0)))
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def close(self) -> None:
        self._inner.close()


def _refused(answer: httpx.Response) -> Refused:
    try:
        problem = answer.json()
    except ValueError:
        problem = {"message": answer.text}
    kind = Declined if answer.status_code == 402 else Refused
    return kind(answer.status_code, problem)


def expect(kind: type[T], answer: object) -> T:
    """The answer, when it is of this class: a function of `centavo.rest` has a choice of classes as its result."""
    if not isinstance(answer, kind):
        raise TypeError(f"{kind.__name__} was expected, and the answer is {answer!r}")
    return answer


def pages(list_of: Callable[..., Any], client: AuthenticatedClient, **filters: Any) -> Iterator[Any]:
    """All items of any list, page by page: `pages(list_charges.sync, client, status=…)`. New items move nothing."""
    while True:
        answer = list_of(client=client, limit=100, **filters)
        yield from answer.plans if hasattr(answer, "plans") else answer.items
        if not answer.next_:
            return
        cursors = parse_qs(urlsplit(answer.next_).query)
        filters |= {name: cursors[name][0] for name in ("after", "before") if name in cursors}


def verified(headers: Mapping[str, str], body: bytes, secret: str) -> dict[str, Any]:
    """The event of a webhook, from its headers and its bytes; `ChargeWebhook.from_dict` and the like give it a class.

    Raises `WrongSignature`. The same `webhook-id` may come twice: process it once.
    """
    sent = {name.lower(): value for name, value in headers.items()}
    try:
        id, at, signatures = (sent[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        key = base64.b64decode(secret.removeprefix("whsec_"))
        is_now = abs(time.time() - int(at)) <= TOLERANCE
    except (KeyError, ValueError, OverflowError) as wrong:
        raise WrongSignature("a header of the webhook is missing or malformed") from wrong
    signed = base64.b64encode(hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
    given = [one.removeprefix("v1,") for one in signatures.split(" ") if one.startswith("v1,")]
    if not is_now or not any(hmac.compare_digest(signed.encode(), one.encode()) for one in given):
        raise WrongSignature("it was not signed with this secret, or too long ago")
    event: dict[str, Any] = json.loads(body)
    return event
