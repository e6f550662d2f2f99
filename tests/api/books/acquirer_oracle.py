"""Oracle from the other side: computes banks, income, fees and receivables from the files that the acquirer and the banks
sent and from the story of what was asked for, and prints a line for each difference from the books.

Argument: a folder with story.jsonl (what merchants and operators asked for), sandbox/ (the institutions' own files), books.jsonl
(rows of an export of the same moment) and receivables.json (that report). Standard library only. It shares no code with the
program, reads no entry to compute one, and knows the price list, the calendar of the acquirer and the chart of accounts.
"""

import collections
import csv
import datetime
import json
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
story = [json.loads(line) for line in (folder / "story.jsonl").read_text().splitlines()]
books = [json.loads(line) for line in (folder / "books.jsonl").read_text().splitlines()]
receivables = json.loads((folder / "receivables.json").read_text())["rows"]
batches = [line for path in sorted((folder / "sandbox/acquirer").glob("*.csv")) for line in csv.DictReader(path.open())]


def told(what):
    return [step for step in story if step["what"] == what]


def half_up(numerator, denominator):
    """A quotient of whole numbers, rounded half up."""
    return (2 * numerator + denominator) // (2 * denominator)


def share(whole, part, of):
    return half_up(whole * part, of)


def mdr_rate(installments):
    """The acquirer's fee, hundredths of a percent."""
    return 299 if installments == 1 else 349 if installments <= 6 else 399


def compare(what, ours, theirs):
    if ours != theirs:
        print(f"{what}: the oracle has {ours}, the books {theirs}")


captured = {step["txid"]: step for step in told("captured")}
paid = {step["txid"]: step for step in told("paid")}
for step in captured.values():
    step["mdr"] = half_up(step["amount"] * mdr_rate(step["installments"]), 10_000)
    seller = step["amount"] - sum(step["splits"].values())
    step["fees"] = {"Mdr": step["mdr"], "Antifraud": 198, "Margin": half_up(seller, 100)}
for step in paid.values():
    seller = step["amount"] - sum(step["splits"].values())
    step["fees"] = {"Pix": half_up(seller * 99, 10_000)}
charges = captured | paid


def booked(accounts):
    """The balance of accounts by their beginnings, over the ledgers of the platform: debits minus credits."""
    rows = (row for row in books if row["ledger"][0] == "P" and row["account"].startswith(accounts))
    return sum(row["debit"] - row["credit"] for row in rows)


def expected_of_the_acquirer():
    """What the acquirer still owes: each installment, refund and dispute that no batch has paid. By kind and due day; and the
    fee of the installments."""
    settled = collections.Counter()
    for line in batches:
        settled[line["charge"], line["kind"], line["id"]] += int(line["gross"])
    owed, fees = collections.Counter(), 0
    for txid, step in captured.items():
        day, count = datetime.date.fromisoformat(step["day"]), step["installments"]
        for number in range(1, count + 1):
            amount, fee = (share(whole, number, count) - share(whole, number - 1, count) for whole in (step["amount"], step["mdr"]))
            due = day + datetime.timedelta(days=1 if step["is_debit"] else 30 * number)
            if (txid, "installment", str(number)) in settled:
                owed[str(number), str(due)] += amount - settled[txid, "installment", str(number)]
            else:
                owed[str(number), str(due)] += amount - fee
                fees += fee
    for kind, steps in (("refund", told("refunded")), ("dispute", told("disputed"))):
        for step in steps:
            if step["txid"] in captured:
                due = datetime.date.fromisoformat(step["day"]) + datetime.timedelta(days=1)
                owed[kind, str(due)] -= step["amount"] + settled[step["txid"], kind, step["id"]]
    return {key: amount for key, amount in owed.items() if amount}, fees


def acquirer():
    owed, fees = expected_of_the_acquirer()
    compare("Assets:Acquirer:Receivable", sum(owed.values()), booked("Assets:Acquirer:Receivable"))
    compare("Expenses:Acquirer:Mdr", fees + sum(int(line["fee"]) for line in batches), booked("Expenses:Acquirer:Mdr"))
    reported = collections.Counter()
    for row in receivables:
        if row["holder"][0] == "P":
            reported[row["object"], row["due_date"]] += row["net"]
    reported = {key: amount for key, amount in reported.items() if amount}
    for key in sorted(set(owed) | set(reported)):
        compare(f"receivables of the acquirer {key}", owed.get(key, 0), reported.get(key, 0))


def statements(account):
    """Balance of a bank account at the end of its last statement, and the sum of all lines, centavos."""
    lines, balance = 0, 0
    for path in sorted((folder / "sandbox" / account).glob("*.ofx")):
        text = path.read_text()
        lines += sum(int(amount.replace(".", "")) for amount in re.findall(r"<TRNAMT>(-?\d+\.\d\d)", text))
        balance = int(re.search(r"<BALAMT>(-?\d+\.\d\d)", text).group(1).replace(".", ""))
    return balance, lines


def banks():
    total = 0
    for account, name in (("bank-settlement", "Assets:Bank:Settlement"), ("bank-pix", "Assets:Bank:Pix")):
        balance, lines = statements(account)
        compare(f"{name}, its statements", balance, lines)
        compare(name, balance, booked(name))
        total += balance
    ours = sum(int(line["net"]) for line in batches) + sum(step["amount"] for step in paid.values())
    ours -= sum(step["amount"] for what in ("refunded", "disputed") for step in told(what) if step["txid"] in paid)
    ours -= sum(step["amount"] - 100 for step in told("cashout")) + sum(step["amount"] for step in told("withdrawn"))
    compare("banks, by what came and went", ours, total)
    compare("Liabilities:Payers:Refunds", 0, booked("Liabilities:Payers:Refunds"))


def returned_fees():
    """Commission that refunds gave back, by the charge's part: each is rounded on the sum of the refunds that gave back."""
    through, back = collections.Counter(), []
    for step in told("refunded"):
        if not step["returns_commission"]:
            continue
        txid, charge = step["txid"], charges[step["txid"]]
        before, after = through[txid], through[txid] + step["amount"]
        for part, fee in charge["fees"].items():
            back.append((part, step["merchant"], share(fee, after, charge["amount"]) - share(fee, before, charge["amount"])))
        through[txid] = after
    return back


def anticipation_fee(step):
    return half_up(step["amount"] * {2: 238, 7: 200, 15: 150}[step["days"]], 10_000)


def income():
    charged = collections.Counter()
    for step in charges.values():
        charged.update(step["fees"])
    for part, _, fee in returned_fees():
        charged[part] -= fee
    for part in ("Mdr", "Antifraud", "Margin", "Pix"):
        compare(f"Income:Commission:{part}", charged[part], -booked(f"Income:Commission:{part}"))
    compare("Income:Fees:Cashout", 100 * len(told("cashout")), -booked("Income:Fees:Cashout"))
    fees = sum(anticipation_fee(step) for step in told("anticipated"))
    compare("Income:Fees:Anticipation", fees, -booked("Income:Fees:Anticipation"))


def claims():
    """What merchants and recipients have with the platform, whichever account holds it, less what they owe."""
    held = collections.Counter()
    for step in charges.values():
        held["M-" + step["merchant"]] += step["amount"] - sum(step["splits"].values()) - sum(step["fees"].values())
        for recipient, amount in step["splits"].items():
            held["R-" + recipient] += amount
    for step in told("refunded"):
        held["M-" + step["merchant"]] -= step["amount"]
        for recipient, amount in step["take_backs"].items():
            held["M-" + step["merchant"]] += amount
            held["R-" + recipient] -= amount
    for _, merchant, fee in returned_fees():
        held["M-" + merchant] += fee
    for step in told("disputed") + told("cashout"):
        held["M-" + step["merchant"]] -= step["amount"]
    for step in told("withdrawn"):
        held["R-" + step["recipient"]] -= step["amount"]
    for step in told("anticipated"):
        held["R-" + step["recipient"]] -= anticipation_fee(step)
    found = collections.Counter()
    of = ("Assets:Platform:", "Assets:Receivable:", "Liabilities:Clawback:", "Liabilities:Platform:Deficit")
    for row in books:
        if row["ledger"][0] in "MR" and row["account"].startswith(of):
            found[row["ledger"]] += row["debit"] - row["credit"]
    for ledger in sorted(set(held) | set(found)):
        compare(f"claims of {ledger}", held[ledger], found[ledger])


for check in (acquirer, banks, income, claims):
    check()
