export CENTAVO_URL=${CENTAVO_URL:-http://127.0.0.1:8080}
export CENTAVO_OPS_URL=${CENTAVO_OPS_URL:-http://127.0.0.1:8081}
if [ -z "${CENTAVO_OPS_TOKEN:-}" ] && [ ! -r data/operator.token ]; then
  echo "No token: $PWD/data/operator.token is not there. Go to the folder in which the server was started," \
    "or set CENTAVO_OPS_TOKEN to a token of its operators." >&2
  return 1
fi
export CENTAVO_OPS_TOKEN=${CENTAVO_OPS_TOKEN:-$(cat data/operator.token)}
json() {
  local said
  if said=$(curl --silent --show-error --fail-with-body -H 'Content-Type: application/json' "$@")
  then echo "$said"; else echo "$said" >&2; return 1; fi
}
MERCHANT=$(json "$CENTAVO_OPS_URL/ops/merchants" -H "Authorization: Bearer $CENTAVO_OPS_TOKEN" \
  -d '{"name": "Loja Exemplo", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true}' | jq -r .id)
[ -n "$MERCHANT" ] || return
KEY=$(json "$CENTAVO_OPS_URL/ops/merchants/$MERCHANT/api-keys" -H "Authorization: Bearer $CENTAVO_OPS_TOKEN" \
  -d "{\"webhook_url\": \"${WEBHOOK_URL:-http://127.0.0.1:8090/}\"}") || return
CENTAVO_API_KEY=$(jq -r .api_key <<<"$KEY") WEBHOOK_SECRET=$(jq -r .webhook_secret <<<"$KEY")
RECIPIENT=$(json "$CENTAVO_URL/api/sub-recipients" -H "Authorization: Bearer $CENTAVO_API_KEY" -d '{
  "register_information": {
    "type": "individual", "document_number": "52998224725", "name": "Ana Exemplo", "birthdate": "15/03/1990",
    "mother_name": "Mãe Exemplo", "phone_numbers": [{"ddd": "11", "number": "987654321"}],
    "address": {"street": "Rua Augusta", "number": "100", "neighborhood": "Consolação", "city": "São Paulo",
      "state": "SP", "zip_code": "01305000"}},
  "bank_account": {"bank_code": "001", "agencia": "1234", "conta": "56789", "conta_dv": "2"}}' | jq -r .id)
json -X POST "$CENTAVO_OPS_URL/ops/sub-recipients/$RECIPIENT/approve" -H "Authorization: Bearer $CENTAVO_OPS_TOKEN" | jq .status
export CENTAVO_API_KEY WEBHOOK_SECRET RECIPIENT
