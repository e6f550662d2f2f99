// A marketplace's first hour, with the types that openapi-typescript made of both descriptions, and `fetch`.
import type { paths, webhooks } from "./centavo";
import { Receiver, check, merchant, order, payer, registration, run } from "./hour";
import type { paths as operatorPaths } from "./operations";

const { CENTAVO_URL: API, CENTAVO_OPS_URL: OPS, CENTAVO_OPS_TOKEN: OPS_TOKEN } = process.env as Record<string, string>;

type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Body<Operation> = Operation extends { requestBody?: infer Given } ? Json<NonNullable<Given>> : never;
type Answers<Operation> = Operation extends { responses: infer All } ? All : never;
type Refusal<T> = T extends { content: { "application/problem+json": infer Problem } } ? Problem : never;
type Declined<Operation> = Refusal<Answers<Operation>[keyof Answers<Operation> & 402]>;
type Answer<Operation, Status extends number> = Json<Answers<Operation>[keyof Answers<Operation> & Status]>;
/** Paths that have a method. */
type Having<Paths, Method extends string> = {
  [Path in keyof Paths]: Paths[Path] extends { [name in Method]: { responses: unknown } } ? Path : never;
}[keyof Paths] & string;

/** Calls of one listener, typed by its description. `{id}` and `{txid}` in a path are replaced by `of`. */
function caller<Paths>(base: string, token: () => string) {
  async function call<Method extends "get" | "post", Path extends Having<Paths, Method>>(
    method: Method,
    path: Path,
    given: { of?: string; query?: string; key?: string; body?: Body<Paths[Path][Method & keyof Paths[Path]]> } = {},
  ) {
    type Operation = Paths[Path][Method & keyof Paths[Path]];
    const headers: Record<string, string> = { Authorization: `Bearer ${token()}`, "Content-Type": "application/json" };
    if (given.key) headers["Idempotency-Key"] = given.key;
    const address = base + path.replace(/\{\w+\}/, given.of ?? "") + (given.query ?? "");
    const sent = given.body ? JSON.stringify(given.body) : null;
    const answer = await fetch(address, { method: method.toUpperCase(), headers, body: sent });
    const replayed = answer.headers.get("Idempotent-Replayed") === "true";
    const body: unknown = await answer.json();
    if (answer.ok) return { ok: true as const, replayed, data: body as Answer<Operation, 200 | 201> };
    return { ok: false as const, status: answer.status, problem: body as Declined<Operation> };
  }
  return call;
}

type Told = webhooks["event"]["post"]["requestBody"]["content"]["application/json"];

run(async () => {
  let key = "";
  const operate = caller<operatorPaths>(OPS!, () => OPS_TOKEN!), call = caller<paths>(API!, () => key);
  const receiver = new Receiver<Told>();
  const opened = await operate("post", "/ops/merchants", { body: merchant });
  check(opened.ok, opened);
  const asked = { webhook_url: await receiver.url() };
  const made = await operate("post", "/ops/merchants/{id}/api-keys", { of: opened.data.id, body: asked });
  check(made.ok && made.data.api_key && made.data.webhook_secret, made);
  [key, receiver.secret] = [made.data.api_key, made.data.webhook_secret];

  const recipient = await call("post", "/api/sub-recipients", { body: registration });
  check(recipient.ok, recipient);
  const id = recipient.data.id;
  const approved = await operate("post", "/ops/sub-recipients/{id}/approve", { of: id });
  check(approved.ok && approved.data.status === "active", approved);
  check((await receiver.hears("recipient.approved")).recipient.id === id, "the webhook is about the recipient");

  const first = await call("post", "/api/card", { body: order(id), key: "order-1" });
  const again = await call("post", "/api/card", { body: order(id), key: "order-1" });
  check(first.ok && again.ok, [first, again]);
  const txid = first.data.txid;
  check(again.replayed && again.data.txid === txid, "a retry with its key makes no second charge, and says so");
  const declined = await call("post", "/api/card", { body: order(id, "4000000000000002") });
  check(!declined.ok && declined.status === 402 && declined.problem.code === "card_declined", "a typed refusal");
  check((await receiver.hears("charge.paid")).charge.txid === txid, "the webhook is about the charge");

  const pix = await call("post", "/api/pix", { body: payer });
  check(pix.ok && "txid" in pix.data, pix);
  const paid = await call("post", "/api/sandbox/pix/{txid}/pay", { of: pix.data.txid });
  check(paid.ok && paid.data.status === "CONCLUIDA", paid);

  const refund = await call("post", "/api/refunds", { body: { payment_id: txid, amount: 1_000 } });
  check(refund.ok && refund.data.status === "pending", refund);
  check((await operate("post", "/ops/refunds/{id}/approve", { of: refund.data.id })).ok, "the refund is approved");
  check((await receiver.hears("refund.approved")).refund.charge_id === txid, "the webhook is about the refund");

  const found = new Set<string | undefined>();
  for (let page = 1, last = 1; page <= last; page++) {
    const listed = await call("get", "/api/charges", { query: `?page=${page}&per_page=1` });
    check(listed.ok, listed);
    last = listed.data.pages;
    for (const charge of listed.data.items) found.add(charge.txid);
  }
  check(found.size === 3, `${found.size} charges in all pages`);
  receiver.close();
});
