"""Oracle of the reports: computes them from the rows of an export, and prints a line for each difference.

Argument: a folder with export.jsonl and a JSON file for each report, all of the same cut. Standard library only. It knows
the chart of accounts and the columns of the export, and nothing of the program that made the reports.
"""

import collections
import datetime
import json
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
rows = [json.loads(line) for line in (folder / "export.jsonl").read_text().splitlines()]
reports = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def net(row):
    return row["debit"] - row["credit"]


def compare(report, what, ours, theirs):
    """Two maps that must agree where either is not zero."""
    for key in sorted(set(ours) | set(theirs), key=str):
        if ours.get(key, 0) != theirs.get(key, 0):
            print(f"{report}: {what} {key}: the oracle has {ours.get(key, 0)}, the report {theirs.get(key, 0)}")


def sums(items):
    found = collections.Counter()
    for key, amount in items:
        found[key] += amount
    return found


def trial_balance():
    made = reports["trial-balance"]["rows"]
    for column, amount in (("debits", "debit"), ("credits", "credit")):
        ours = sums(((row["ledger"], row["account"]), row[amount]) for row in rows)
        compare("trial-balance", column, ours, {(row["ledger"], row["account"]): row[column] for row in made})
    closing = sums(((row["ledger"], row["account"]), net(row)) for row in rows)
    compare("trial-balance", "closing", closing, {(row["ledger"], row["account"]): row["closing"] for row in made})


def general_ledger():
    names = ("date", "sequence", "partition", "ledger", "account", "debit", "credit")
    ours = [tuple(row[name] for name in names) for row in rows]
    theirs = [tuple(row[name] for name in names) for row in reports["general-ledger"]["rows"] if row["sequence"] is not None]
    compare("general-ledger", "rows", collections.Counter(ours), collections.Counter(theirs))


def daily_close():
    """Bank accounts by day, over all ledgers of the platform."""
    banks = ("Assets:Bank:Settlement", "Assets:Bank:Pix", "Assets:Bank:Own")
    moved = [row for row in rows if row["account"] in banks]
    made = reports["daily-close"]["rows"]
    for column, amount in (("in", "debit"), ("out", "credit")):
        ours = sums(((row["date"], row["account"]), row[amount]) for row in moved)
        compare("daily-close", column, ours, {(row["date"], row["account"]): row[column] for row in made})
    for bank in banks:
        day, balance = None, 0
        for row in (row for row in made if row["account"] == bank):
            today = datetime.date.fromisoformat(row["date"])
            if day is not None and today != day + datetime.timedelta(days=1):
                print(f"daily-close: {bank} leaves out days before {today}")
            if row["opening"] != balance:
                print(f"daily-close: {bank} opens {today} with {row['opening']}, not {balance}")
            day, balance = today, row["closing"]
        ours = sum(net(row) for row in moved if row["account"] == bank)
        compare("daily-close", "closing", {bank: ours}, {bank: balance})
    entries = collections.defaultdict(list)
    for row in rows:
        entries[row["sequence"], row["entry"]].append(row)
    suspicious = [entry for entry in entries.values() if any(row["account"] == "Liabilities:Suspense" for row in entry)]
    ours = sums((row["account"], net(row)) for entry in suspicious for row in entry if row["account"] in banks)
    compare("daily-close", "unexplained", ours, sums((row["account"], row["unexplained"]) for row in made))


def receivables():
    pending = [row for row in rows if row["account"] == "Assets:Platform:Pending"]
    acquirer = [row for row in rows if row["account"] == "Assets:Acquirer:Receivable"]
    made = reports["receivables"]["rows"]
    ours = sums((row["ledger"], net(row)) for row in pending + acquirer)
    compare("receivables", "net of", ours, sums((row["holder"], row["net"]) for row in made))
    # By due date, for the holders whose rows all name one.
    vague = {row["ledger"] for row in pending if row["due_date"] is None}
    ours = sums(((row["ledger"], row["due_date"]), net(row)) for row in pending if row["ledger"] not in vague)
    holders = {row["ledger"] for row in pending} - vague
    theirs = sums(((row["holder"], row["due_date"]), row["net"]) for row in made if row["holder"] in holders)
    compare("receivables", "net of", ours, theirs)
    for row in made:
        if row["gross"] - row["mdr"] - row["fees"] - row["anticipated"] != row["net"]:
            print(f"receivables: {row} does not add up")
    calendar = reports["settlement-calendar"]["rows"]
    for column, holder in (("acquirer", "P"), ("merchants", "M"), ("recipients", "R")):
        ours = sum(amount for ledger, amount in sums((row["ledger"], net(row)) for row in pending + acquirer).items()
                   if ledger[0] == holder)
        compare("settlement-calendar", column, {0: ours}, {0: sum(row[column] for row in calendar)})


def fees():
    """Income of the platform by month, merchant and account: what is credited was charged, what is debited returned."""
    components = {"Income:Commission:Mdr": "mdr", "Income:Commission:Antifraud": "antifraud",
                  "Income:Commission:Margin": "margin", "Income:Commission:Pix": "pix",
                  "Income:Fees:Cashout": "cashout", "Income:Fees:Anticipation": "anticipation"}
    income = [row for row in rows if row["account"] in components]
    made = reports["fees"]["rows"]
    for column, amount in (("charged", "credit"), ("returned", "debit")):
        ours = sums(((row["date"][:7], "M" + row["ledger"][1:], components[row["account"]]), row[amount]) for row in income)
        theirs = sums(((row["month"], row["merchant"], row["component"]), row[column]) for row in made)
        compare("fees", column, ours, theirs)


def anticipation_income():
    made = reports["anticipation-income"]["rows"]
    ours = sums((row["date"], row["debit"]) for row in rows if row["account"] == "Expenses:Fees:Anticipation")
    compare("anticipation-income", "discount", ours, sums((row["anticipated_on"], row["discount"]) for row in made))
    first, last = min(row["date"] for row in rows), max(row["date"] for row in rows)
    for row in made:
        begin, end = datetime.date.fromisoformat(row["anticipated_on"]), datetime.date.fromisoformat(row["due_date"])
        passed = max(0, min((datetime.date.fromisoformat(last) - begin).days, (end - begin).days))
        earned = row["discount"] if begin == end else row["discount"] * passed // (end - begin).days
        if row["deferred"] != row["discount"] - earned and last >= first:
            print(f"anticipation-income: {row} should have earned {earned}")


def monthly_totals():
    made = reports["monthly-totals"]["rows"]
    sales = {"Income:Sales:Card": "gross", "Income:Sales:InitialFee": "gross", "Income:Sales:Pix": "gross",
             "Income:Contra:Splits": "splits", "Income:Contra:Refunds": "refunded", "Income:Contra:Chargebacks": "disputed"}
    for column in ("gross", "splits", "refunded", "disputed"):
        sign = -1 if column == "gross" else 1
        ours = sums(((row["date"][:7], row["ledger"]), sign * net(row)) for row in rows
                    if row["ledger"][0] == "M" and sales.get(row["account"]) == column)
        compare("monthly-totals", column, ours, sums(((row["month"], row["merchant"]), row[column]) for row in made))


for check in (trial_balance, general_ledger, daily_close, receivables, fees, anticipation_income, monthly_totals):
    check()
