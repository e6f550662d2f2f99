-- The split charge on PostgreSQL, written to be fast there: one call, one commit, the group's balances changed by one statement.
-- Merchant g (1 to 100) has the accounts 10 g (what its acquirer owes), 10 g + 1 (its own) and 10 g + 2 to 10 g + 4 (its recipients').
-- No two merchants share a row.

CREATE TABLE accounts (
    number    integer PRIMARY KEY,
    debits    bigint NOT NULL DEFAULT 0,
    credits   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 40);  -- room beside a row for its next versions

CREATE TABLE charges (
    id        uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    merchant  integer NOT NULL,
    amount    bigint NOT NULL,
    made_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE transfers (
    charge    uuid NOT NULL,
    number    smallint NOT NULL,
    debited   integer NOT NULL,
    credited  integer NOT NULL,
    amount    bigint NOT NULL CHECK (amount > 0),
    PRIMARY KEY (charge, number)
);

INSERT INTO accounts (number) SELECT 10 * merchant + place FROM generate_series(1, 100) merchant, generate_series(0, 4) place;

-- Charges `total` for a merchant, of which its recipients get 10, 20 and 5 percent.
CREATE FUNCTION settle(merchant integer, total bigint) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    base   integer := 10 * merchant;
    parts  bigint[] := ARRAY[total * 10 / 100, total * 20 / 100, total * 5 / 100];
    made   uuid;
BEGIN
    -- Whoever changes this merchant's balances waits here, so the statements below find all rows free: no deadlock.
    PERFORM 1 FROM accounts WHERE number = base + 1 FOR NO KEY UPDATE;
    INSERT INTO charges (merchant, amount) VALUES (base + 1, total) RETURNING id INTO made;
    INSERT INTO transfers VALUES
        (made, 1, base, base + 1, total), (made, 2, base + 1, base + 2, parts[1]),
        (made, 3, base + 1, base + 3, parts[2]), (made, 4, base + 1, base + 4, parts[3]);
    UPDATE accounts SET debits = debits + change.debit, credits = credits + change.credit
        FROM (VALUES (base, total, 0::bigint), (base + 1, parts[1] + parts[2] + parts[3], total), (base + 2, 0, parts[1]),
                     (base + 3, 0, parts[2]), (base + 4, 0, parts[3])) AS change (account, debit, credit)
        WHERE number = change.account;
    RETURN made;
END $$;
