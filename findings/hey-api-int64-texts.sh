#!/usr/bin/env bash
# @hey-api/openapi-ts 0.99.0 (npm), a TypeScript client made of an OpenAPI whose amount is an integer of int64, in centavos.
# Guessed: with its transformers the type is bigint, since the number goes out and comes in exactly.
# Seen: a request has the amount as a text ("8053"), which a server that follows the same document refuses. An answer goes
# through a binary float first: 9007199254740993 becomes 9007199254740992n. With the plugin and without `transformer: true`
# of the SDK, the type still says bigint and the value is a number, so `amount + 1n` compiles and throws.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund @hey-api/openapi-ts@0.99.0 typescript@5.9.3
amount='{"type":"object","required":["amount"],"properties":{"amount":{"type":"integer","format":"int64"}}}'
# shellcheck disable=SC2016 # `$ref` is a word of OpenAPI.
content='{"application/json":{"schema":{"$ref":"#/components/schemas/Charge"}}}'
cat > api.json << JSON
{"openapi":"3.1.0","info":{"title":"Charges","version":"1"},"servers":[{"url":"http://localhost"}],
 "paths":{"/charges":{"post":{"operationId":"createCharge","requestBody":{"required":true,"content":$content},
 "responses":{"200":{"description":"ok","content":$content}}}}},"components":{"schemas":{"Charge":$amount}}}
JSON
cat > use.ts <<'TS'
import { createCharge } from './client/sdk.gen'
let sent = ''
const answer = async (request: Request) => {
  sent = await request.text()
  return new Response('{"amount":9007199254740993}', { headers: { 'content-type': 'application/json' } })
}
createCharge({ body: { amount: 8053n }, fetch: answer as typeof fetch }).then(({ data }) => {
  let next
  try { next = String(data!.amount + 1n) } catch (error) { next = (error as Error).name }
  console.log(sent, typeof data!.amount, String(data!.amount), 'and one:', next)
})
TS
seen=$(for transformer in true false; do
  rm -rf client
  cat > openapi-ts.config.js << JS
module.exports = { input: 'api.json', output: 'client', plugins: ['@hey-api/client-fetch', '@hey-api/typescript',
  '@hey-api/transformers', { name: '@hey-api/sdk', transformer: $transformer }] }
JS
  npx openapi-ts > log 2>&1
  npx tsc --module commonjs --target es2022 --lib es2022,dom,dom.iterable --skipLibCheck --strict --outDir built use.ts
  node built/use.js
done)
echo "@hey-api/openapi-ts 0.99.0: $seen"
[ "$seen" = '{"amount":"8053"} bigint 9007199254740992 and one: 9007199254740993
{"amount":"8053"} number 9007199254740992 and one: TypeError' ]
