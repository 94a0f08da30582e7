-- A locked account has no sessions: requests that read look at the session alone. `account lock` has always ended them; of
-- accounts that were locked by hand they end here.
-- compatible with: 8

DELETE FROM saltern.sessions s USING saltern.accounts a
WHERE a.account_id = s.account_id AND a.locked_at IS NOT NULL;
