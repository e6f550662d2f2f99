/**
 * Client of Centavo's merchants' API, without a package at run time. The types of each call are generated from the
 * description of a server (`schema.ts`). Here is what they lack: retries with the same Idempotency-Key, errors with
 * types, lists page by page, and the signature of webhooks.
 */
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";

import type { components, paths } from "./schema.js";

/** The bodies of the description, by name. */
export type Schemas = components["schemas"];
/** Body of a refusal. */
export type Problem = Schemas[Extract<keyof Schemas, `Problem${number}`>];
/** An event of a webhook. */
export type WebhookEvent = Schemas["WebhookBody"];

type Method = "get" | "post" | "patch" | "delete";
type PathOf<M extends Method> = { [P in keyof paths]: paths[P] extends Record<M, object> ? P : never }[keyof paths];
type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;
type Content<R> = R extends { content: infer C } ? C[keyof C] : undefined;
/** The body of the answer that an operation gives when it succeeds. */
type Success<O> = O extends { responses: infer R } ? Content<R[Extract<keyof R, 200 | 201 | 202>]> : never;
type Parameters<O> = O extends { parameters: infer P } ? Pick<P, Extract<keyof P, "path" | "query">> : never;
type Body<O> = O extends { requestBody: { content: { "application/json": infer B } } }
  ? { body: B }
  : O extends { requestBody?: { content: { "application/json": infer B } } } ? { body?: B } : object;
/** What a call takes; `key` is its Idempotency-Key. */
type Options<O> = Parameters<O> & Body<O> & { key?: string };
/** They may be left out where none is required. */
type Rest<O> = object extends Options<O> ? [options?: Options<O>] : [options: Options<O>];
type Listed<S> = S extends { items: (infer I)[] } ? I : S extends { plans: (infer I)[] } ? I : never;
type Item<P extends PathOf<"get">> = Listed<Success<Operation<P, "get">>>;
type Filters<P extends PathOf<"get">> = Operation<P, "get"> extends { parameters: { query?: infer Q } } ? Q : never;
type ListPath = {
  [P in PathOf<"get">]: [Item<P>] extends [never] ? never : "limit" extends keyof NonNullable<Filters<P>> ? P : never;
}[PathOf<"get">];

/** An answer of 400 or above. */
export class Refused extends Error {
  constructor(readonly status: number, readonly problem: Problem) {
    super(`${status} ${problem.code}: ${problem.message}`);
  }

  /** A stable name of what is wrong. */
  get code(): Problem["code"] {
    return this.problem.code;
  }
}

/** A card that the acquirer refused: 402. */
export class Declined extends Refused {
  /** Id of the refused charge. */
  get txid(): string {
    return (this.problem as Schemas["Problem402"]).txid;
  }
}

/** A webhook that was not signed with the secret, or too long ago. */
export class WrongSignature extends Error {}

/** Tries of a request whose outcome is unknown. */
const TRIES = 10;
/** Longest pause between two tries, in seconds, unless the answer asks for a longer one. */
const PAUSE_MAX = 60;
/** Greatest difference between the clock and the time of a webhook, in seconds. */
const TOLERANCE = 300;

/** Calls the merchants' listener at an address with an API key. */
export class Centavo {
  constructor(private readonly url: string, private readonly apiKey: string, private readonly tries = TRIES) {}

  /**
   * One request. A read, and a request with a key, is repeated until its outcome is known; a POST without a key gets
   * one. Rejects with `Refused`.
   */
  async call<M extends Method, P extends PathOf<M>>(
    method: M, path: P, ...[options]: Rest<Operation<P, M>>
  ): Promise<Success<Operation<P, M>>> {
    type Given = { path?: Record<string, string>; query?: Record<string, unknown>; body?: unknown; key?: string };
    const given: Given = options ?? {};
    const key = given.key ?? (method === "post" ? randomUUID() : undefined);
    const headers: Record<string, string> = { Authorization: `Bearer ${this.apiKey}` };
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const request: RequestInit = { method: method.toUpperCase(), headers };
    if (given.body !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(given.body);
    }
    const isRepeatable = method === "get" || key !== undefined;
    const address = this.address(path, given.path ?? {}, given.query ?? {});
    return await this.repeated(address, request, isRepeatable) as Success<Operation<P, M>>;
  }

  /** All items of any list, page by page; `names` are those of its path. What is made meanwhile moves nothing. */
  async *pages<P extends ListPath>(
    path: P, query?: Filters<P>, names: Record<string, string> = {},
  ): AsyncGenerator<Item<P>> {
    const request = { method: "GET", headers: { Authorization: `Bearer ${this.apiKey}` } };
    let address: string | undefined = this.address(path, names, { ...(query as object), limit: 100 });
    while (address) {
      const answer = await this.repeated(address, request, true) as { items?: Item<P>[]; plans?: Item<P>[]; next?: string };
      yield* answer.items ?? answer.plans ?? [];
      address = answer.next && new URL(answer.next, this.url).href;
    }
  }

  private address(path: string, names: Record<string, string>, query: Record<string, unknown>): string {
    const address = new URL(this.url + path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? "")));
    for (const [name, value] of Object.entries(query)) {
      if (typeof value === "object" && value !== null) {
        for (const [key, one] of Object.entries(value)) address.searchParams.set(`${name}[${key}]`, String(one));
      } else if (value !== undefined) {
        address.searchParams.set(name, String(value));
      }
    }
    return address.href;
  }

  private async repeated(address: string, request: RequestInit, isRepeatable: boolean): Promise<unknown> {
    for (let left = this.tries - 1, pause = 1; ; left--, pause = Math.min(2 * pause, PAUSE_MAX)) {
      let wait = pause;
      try {
        const answer = await fetch(address, { ...request, signal: AbortSignal.timeout(30_000) });
        const text = await answer.text();
        if (answer.ok) return answer.headers.get("Content-Type")?.includes("json") ? JSON.parse(text) : text;
        const refused = refusal(answer.status, text);
        const isUnknown = answer.status === 503 || refused.code === "idempotency_key_in_progress";
        if (!left || !(answer.status === 429 || (isUnknown && isRepeatable))) throw refused;
        wait = Math.max(pause, Number(answer.headers.get("Retry-After")));
      } catch (error) {
        if (error instanceof Refused || !left || !isRepeatable) throw error;
      }
      await new Promise((done) => setTimeout(done, wait * 1000));
    }
  }
}

function refusal(status: number, text: string): Refused {
  let problem: Problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { code: "", message: text } as unknown as Problem;
  }
  return status === 402 ? new Declined(status, problem) : new Refused(status, problem);
}

/**
 * The event of a webhook, from its headers and its bytes. Throws `WrongSignature`. The same `webhook-id` may come
 * twice: process it once.
 */
export function verified(
  headers: Record<string, string | string[] | undefined>, body: string | Uint8Array, secret: string,
): WebhookEvent {
  const [id, at, signatures] = ["id", "timestamp", "signature"].map((name) => String(headers[`webhook-${name}`]));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signed = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest();
  const given = String(signatures).split(" ").filter((one) => one.startsWith("v1,"));
  const isRight = given.map((one) => Buffer.from(one.slice(3), "base64"))
    .some((one) => one.length === signed.length && timingSafeEqual(one, signed));
  if (!isRight || !(Math.abs(Date.now() / 1000 - Number(at)) <= TOLERANCE)) {
    throw new WrongSignature("it was not signed with this secret, or too long ago");
  }
  return JSON.parse(Buffer.from(body).toString()) as WebhookEvent;
}
