#!/usr/bin/env bash
# axios-retry 4.5.0 (axios 1.21.1), got 14.6.6, ky 1.14.3 and ofetch 1.5.1 (npm): an order of money is repeated twice. The
# server makes one order a key, and its first two answers are lost on the way (503).
# Guessed: a hook or interceptor that sets Idempotency-Key runs once a call, as the call in the program does, and the
# library repeats the request that it made.
# Seen: in all four the hook runs again before each repetition, so each carries a new key and three orders are made of one
# call. The same key given in the headers of the call is repeated: one order.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
npm install --silent --no-audit --no-fund axios@1.21.1 axios-retry@4.5.0 got@14.6.6 ky@1.14.3 ofetch@1.5.1
cat > order.mjs <<'JS'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { ofetch } from 'ofetch'
const name = 'Idempotency-Key', orders = {}, calls = {}
const server = createServer((request, response) => {
  const key = request.headers['idempotency-key'], path = request.url
  calls[path] = (calls[path] ?? 0) + 1
  ;(orders[path] ??= new Set()).add(key)
  request.resume().on('end', () => { response.statusCode = calls[path] < 3 ? 503 : 201; response.end('{}') })
})
await new Promise(ready => server.listen(0, '127.0.0.1', ready))
const at = path => `http://127.0.0.1:${server.address().port}/${path}`
const client = axios.create()
axiosRetry(client, { retries: 2, retryCondition: () => true })
const gotRetry = { limit: 2, methods: ['POST'], calculateDelay: ({ computedValue }) => computedValue && 1 }
const kyRetry = { limit: 2, methods: ['post'], delay: () => 1 }
const headers = () => ({ [name]: randomUUID() })
await client.post(at('axios-retry/call'), {}, { headers: headers() })
client.interceptors.request.use(config => { config.headers[name] = randomUUID(); return config })
await client.post(at('axios-retry/hook'), {})
await got.post(at('got/call'), { retry: gotRetry, headers: headers() })
await got.post(at('got/hook'), { retry: gotRetry, hooks: { beforeRequest: [({ headers }) => { headers['idempotency-key'] = randomUUID() }] } })
await ky.post(at('ky/call'), { retry: kyRetry, headers: headers() })
await ky.post(at('ky/hook'), { retry: kyRetry, hooks: { beforeRequest: [({ headers }) => { headers.set(name, randomUUID()) }] } })
await ofetch(at('ofetch/call'), { method: 'POST', retry: 2, headers: headers() })
await ofetch(at('ofetch/hook'), { method: 'POST', retry: 2, onRequest: ({ options }) => { options.headers.set(name, randomUUID()) } })
for (const path in orders) console.log(path.slice(1), 'requests', calls[path], 'orders', orders[path].size)
server.close()
server.closeAllConnections()
JS
seen=$(timeout 60 node order.mjs)
echo "$seen"
[ "$seen" = "axios-retry/call requests 3 orders 1
axios-retry/hook requests 3 orders 3
got/call requests 3 orders 1
got/hook requests 3 orders 3
ky/call requests 3 orders 1
ky/hook requests 3 orders 3
ofetch/call requests 3 orders 1
ofetch/hook requests 3 orders 3" ]
