-- The passkey that opened a session: the removal of the passkey ends the session.
-- compatible with: 8

-- SHA-256 of the credential id, and null for sessions without a passkey. The program checks its length, as for tokens.
ALTER TABLE saltern.sessions ADD COLUMN passkey_hash bytea;
