#!/usr/bin/env bash
# fastapi-idempotency 0.1.1, fastapi-idempotency-key 0.1.1 and fastidempotent 0.1.0 (PyPI): one sale of 80.53 after the other,
# in a server with the middleware as it comes. 201 made an order; 429 and 503 say that none was made and to try again.
# Guessed: who sends no key is not deduplicated; with a key, an answer to try again is not kept, and its repeat is carried out.
# Seen: no two agree. fastapi-idempotency answers a second equal sale without a key, which follows at once, with the first
# order: 201 twice, one order. It keeps 429 and no 503; fastidempotent keeps both, so that no repeat under this key makes
# the order, and demands a key; fastapi-idempotency-key keeps neither. A key twice is one order in all three.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check fastapi-idempotency==0.1.1 fastapi-idempotency-key==0.1.1 \
  fastidempotent==0.1.0 fastapi==0.165.0 httpx==0.28.1
cat > sell.py <<'PY'
import asyncio, fastapi_idempotency, fastapi_idempotency_key, fastidempotent
from fastapi import FastAPI, Response
from httpx import ASGITransport, AsyncClient

async def sell(middleware, options, headers, answers):
    app, asked, orders = FastAPI(), iter(answers), []
    app.add_middleware(middleware, **options)
    @app.post('/sales')
    async def sale():
        status = next(asked)
        if status == 201:
            orders.append(status)
        return Response('{}', status, media_type='application/json')
    async with AsyncClient(transport=ASGITransport(app=app), base_url='http://server') as client:
        seen = [(await client.post('/sales', json={'amount': 8053}, headers=headers)).status_code for _ in answers]
    return f"{seen} orders {len(orders)}"

key = {'Idempotency-Key': '8e03978e-40d5-43dd-bc93-6894a57f9324'}
for name, middleware, options in [
    ('fastapi-idempotency', fastapi_idempotency.IdempotencyMiddleware, dict),
    ('fastapi-idempotency-key', fastapi_idempotency_key.IdempotencyMiddleware, lambda: {'backend': fastapi_idempotency_key.MemoryBackend()}),
    ('fastidempotent', fastidempotent.IdempotencyMiddleware, lambda: {'backend': fastidempotent.MemoryBackend()}),
]:
    for title, headers, answers in [('no key', {}, [201, 201]), ('key', key, [201, 201]), ('key', key, [429, 201]), ('key', key, [503, 201])]:
        print(name, title, answers, 'seen', asyncio.run(sell(middleware, options(), headers, answers)))
PY
seen=$(v/bin/python sell.py)
echo "$seen"
[ "$seen" = "fastapi-idempotency no key [201, 201] seen [201, 201] orders 1
fastapi-idempotency key [201, 201] seen [201, 201] orders 1
fastapi-idempotency key [429, 201] seen [429, 429] orders 0
fastapi-idempotency key [503, 201] seen [503, 201] orders 1
fastapi-idempotency-key no key [201, 201] seen [201, 201] orders 2
fastapi-idempotency-key key [201, 201] seen [201, 201] orders 1
fastapi-idempotency-key key [429, 201] seen [429, 201] orders 1
fastapi-idempotency-key key [503, 201] seen [503, 201] orders 1
fastidempotent no key [201, 201] seen [400, 400] orders 0
fastidempotent key [201, 201] seen [201, 201] orders 1
fastidempotent key [429, 201] seen [429, 429] orders 0
fastidempotent key [503, 201] seen [503, 503] orders 0" ]
