import { createHmac, timingSafeEqual } from "node:crypto";

const api = process.env.CENTAVO_URL!, apiKey = process.env.CENTAVO_API_KEY!;

/** An answer of 400 or above. */
export class Refused extends Error {
  constructor(readonly status: number, readonly problem: { code: string; message: string }) {
    super(`${status} ${problem.code}: ${problem.message}`);
  }
}

/** One request. A read, and a request with an idempotency key, is repeated until its outcome is known. */
export async function call(method: string, path: string, body?: unknown, key?: string, tries = 10): Promise<any> {
  const headers: Record<string, string> = { Authorization: `Bearer ${apiKey}`, "Content-Type": "application/json" };
  if (key) headers["Idempotency-Key"] = key;
  for (let left = tries - 1, pause = 1; ; left--, pause = Math.min(2 * pause, 60)) {
    let wait = pause; // 1, 2, 4, … seconds, at most 60, or longer where the answer says so
    try {
      const answer = await fetch(api + path, { method, headers, body: body && JSON.stringify(body) } as RequestInit);
      const text = await answer.json() as any;
      if (answer.ok) return text;
      wait = Math.max(pause, Number(answer.headers.get("Retry-After")));
      const unknown = answer.status === 503 || text.code === "idempotency_key_in_progress";
      const again = answer.status === 429 || (unknown && (key || method === "GET"));
      if (!again || !left) throw new Refused(answer.status, text);
    } catch (error) {
      if (error instanceof Refused || !left || (method !== "GET" && !key)) throw error;
    }
    await new Promise((done) => setTimeout(done, wait * 1000));
  }
}

/** All items of a list, page by page. */
export async function* pages(path: string): AsyncGenerator<any> {
  for (let next: string | undefined = `${path}?limit=100`; next; ) {
    const answer: any = await call("GET", next);
    yield* answer.items;
    next = answer.next;
  }
}

/** The event of a webhook; throws when the signature is wrong or too old. */
export function verified(headers: Record<string, any>, body: string, secret: string): any {
  const id = headers["webhook-id"], sent = headers["webhook-timestamp"];
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const right = createHmac("sha256", key).update(`${id}.${sent}.${body}`).digest();
  const given = String(headers["webhook-signature"]).split(" ").map((part) => Buffer.from(part.slice(3), "base64"));
  const isRight = given.some((one) => one.length === right.length && timingSafeEqual(one, right));
  if (!isRight || Math.abs(Date.now() / 1000 - Number(sent)) > 300) throw new Error("not a webhook of ours");
  return JSON.parse(body);
}
