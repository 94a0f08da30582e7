-- Services of the operator that accept identity tokens, and the key of the names that they get.
-- compatible with: 8

-- Sealed by the master key. A server draws it once, and nothing replaces it: with another key every account would be a
-- stranger to every service. Null until a server of this release has started.
ALTER TABLE saltern.installation ADD COLUMN pairwise_key bytea;

-- Credentials with which services ask the server.
CREATE TABLE saltern.services (
    -- SHA-256 of the credential's random part.
    token_hash bytea PRIMARY KEY,
    service text COLLATE "C" NOT NULL,
    audience text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX services_by_name ON saltern.services (service);

-- Admins create and remove services as the schema's owner.
GRANT SELECT ON saltern.services TO saltern_server;
GRANT UPDATE (pairwise_key) ON saltern.installation TO saltern_server;
