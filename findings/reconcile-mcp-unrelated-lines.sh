#!/usr/bin/env bash
# reconcile-mcp 0.0.7 reads the entries of camt053 0.0.23 (PyPI, one family of packages): a payment of 80.53 was ordered
# on 3 November with the end-to-end id E1, to Maria; and three camt.053 statements.
# Guessed: the debit of 80.53 with E1 settles the order; a receipt of 70.00 from Jose and a fee of 10.53 do not, nor does
# the payment's return.
# Seen: the debit with E1 is left unmatched on both sides: end-to-end ids and names stand in the details of an entry, and
# are not read. Receipt and fee together are the order's settlement, since 70.00 and 10.53 are 80.53: score 1.0,
# confidence high, fully reconciled. Neither the side of an entry nor whether it is pending is read, so a pending return
# is "exact" where the bank has the id as reference of the entry.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
python3 -m venv v && v/bin/pip -q install --disable-pip-version-check reconcile-mcp==0.0.7 camt053==0.0.23
cat > match.py <<'PY'
from camt053 import services
from reconcile_mcp import adapters, engine
ORDER = {'end_to_end_id': 'E1', 'amount': '80.53', 'currency': 'BRL', 'requested_execution_date': '2026-11-03', 'creditor_name': 'Maria'}
# An entry of a statement: reference, amount, side, status, end-to-end id, role and name of the other side.
def entry(reference, amount, side, status, id, role, name):
    reference = reference and f'<NtryRef>{reference}</NtryRef>'
    return (f'<Ntry>{reference}<Amt Ccy="BRL">{amount}</Amt><CdtDbtInd>{side}</CdtDbtInd><Sts>{status}</Sts><BookgDt><Dt>2026-11-03</Dt></BookgDt>'
        f'<ValDt><Dt>2026-11-03</Dt></ValDt><BkTxCd><Prtry><Cd>PIX</Cd></Prtry></BkTxCd><NtryDtls><TxDtls><Refs><EndToEndId>{id}</EndToEndId>'
        f'</Refs><RltdPties><{role}><Nm>{name}</Nm></{role}></RltdPties></TxDtls></NtryDtls></Ntry>')
for name, entries in [
        ('payment', [entry('', '80.53', 'DBIT', 'BOOK', 'E1', 'Cdtr', 'Maria')]),
        ('receipt and fee', [entry('', '70.00', 'CRDT', 'BOOK', 'E7', 'Dbtr', 'Jose'), entry('', '10.53', 'DBIT', 'BOOK', 'E8', 'Cdtr', 'Banco')]),
        ('pending return', [entry('E1', '80.53', 'CRDT', 'PDNG', 'E1', 'Dbtr', 'Maria')])]:
    statement = ('<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"><BkToCstmrStmt><GrpHdr><MsgId>M</MsgId>'
        '<CreDtTm>2026-11-04T08:00:00</CreDtTm></GrpHdr><Stmt><Id>S</Id><CreDtTm>2026-11-04T08:00:00</CreDtTm><Acct><Id><Othr><Id>1</Id></Othr></Id>'
        f'<Ccy>BRL</Ccy></Acct>{"".join(entries)}</Stmt></BkToCstmrStmt></Document>')
    report = engine.reconcile(adapters.from_pain001([ORDER]), adapters.from_camt053(services.list_entries(statement)))
    print(f'{name}:', 'whole' if report['summary']['fully_reconciled'] else 'open', *(f"{match['type']} {match['score']} {match['confidence']}" for match in report['matches']))
PY
seen=$(v/bin/python match.py)
echo "reconcile-mcp 0.0.7: $seen"
[ "$seen" = "payment: open
receipt and fee: whole one_to_many 1.0 high
pending return: whole exact 0.95 high" ]
