import base64, hashlib, hmac, json, os, time, urllib.error, urllib.request

API, KEY = os.environ["CENTAVO_URL"], os.environ["CENTAVO_API_KEY"]


class Refused(Exception):
    """An answer of 400 or above. `problem` has `code`, `message` and perhaps `errors`."""

    def __init__(self, status, problem):
        super().__init__(f"{status} {problem.get('code')}: {problem.get('message')}")
        self.status, self.problem = status, problem


def call(method, path, body=None, key=None, tries=10):
    """One request. A read, and a request with an idempotency key, is repeated until its outcome is known."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if key:
        headers["Idempotency-Key"] = key
    data = None if body is None else json.dumps(body).encode()
    for wait in [min(2**n, 60) for n in range(tries - 1)] + [None]:
        request = urllib.request.Request(API + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as answer:
            problem, asked_for = json.load(answer), int(answer.headers.get("Retry-After", 0))
            unknown = answer.code == 503 or problem.get("code") == "idempotency_key_in_progress"
            again = answer.code == 429 or unknown and (key or method == "GET")
            if not again or not wait:
                raise Refused(answer.code, problem)
            wait = max(wait, asked_for)
        except OSError:
            if not wait or (method != "GET" and not key):
                raise
        time.sleep(wait)  # 1, 2, 4, … seconds, at most 60, or longer where the answer says so


def pages(path):
    """All items of a list, page by page."""
    path += "?limit=100"
    while path:
        answer = call("GET", path)
        yield from answer["items"]
        path = answer.get("next")


def verified(headers, body, secret):
    """The event of a webhook; raises ValueError when the signature is wrong or too old."""
    id, sent = headers["webhook-id"], headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    right = base64.b64encode(hmac.digest(key, f"{id}.{sent}.".encode() + body, "sha256")).decode()
    given = [part.removeprefix("v1,") for part in headers["webhook-signature"].split(" ")]
    if not any(hmac.compare_digest(right, one) for one in given) or abs(time.time() - int(sent)) > 300:
        raise ValueError("not a webhook of ours")
    return json.loads(body)
