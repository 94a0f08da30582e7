-- Shared vaults: items of several accounts, the log of their members, and invitations.
-- compatible with: 8

-- The limits of vaults: how many an account owns and joins, and what each of its own holds.
ALTER TABLE saltern.plans
    ADD COLUMN max_vaults bigint NOT NULL DEFAULT 10,
    ADD COLUMN max_memberships bigint NOT NULL DEFAULT 100,
    ADD COLUMN max_vault_members bigint NOT NULL DEFAULT 32,
    ADD COLUMN vault_items bigint NOT NULL DEFAULT 10000,
    ADD COLUMN vault_bytes bigint NOT NULL DEFAULT 268435456;

UPDATE saltern.plans
SET max_vaults = 100, max_memberships = 500, max_vault_members = 100, vault_items = 100000, vault_bytes = 10737418240
WHERE plan = 'pro';

-- The revision of the latest change of the account's list of vaults. Null without one, so other accounts do not grow.
ALTER TABLE saltern.accounts ADD COLUMN vaults_revision bigint;
GRANT UPDATE (vaults_revision) ON saltern.accounts TO saltern_server;

-- The time at which the revision base was moved. Vaults then recover: members put entries back that the restored
-- database lacks.
ALTER TABLE saltern.installation ADD COLUMN base_moved_at timestamptz;
GRANT UPDATE (base_moved_at) ON saltern.installation TO saltern_server;

-- The counters have the names of those of accounts: statements about items are the same for both.
CREATE TABLE saltern.vaults (
    vault_id uuid PRIMARY KEY,
    -- The account whose plan limits the vault, and its plan.
    owner_account uuid NOT NULL,
    -- The member that owns the vault by the log.
    owner_member uuid NOT NULL,
    plan text COLLATE "C" NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    item_count bigint NOT NULL DEFAULT 0,
    item_bytes bigint NOT NULL DEFAULT 0,
    tombstone_count bigint NOT NULL DEFAULT 0,
    kept_count bigint NOT NULL DEFAULT 0,
    kept_bytes bigint NOT NULL DEFAULT 0,
    version_count bigint NOT NULL DEFAULT 0,
    version_bytes bigint NOT NULL DEFAULT 0,
    purged_revision bigint NOT NULL DEFAULT 0,
    writer bigint,
    -- The latest entry of the log.
    head_number bigint NOT NULL,
    head_hash bytea NOT NULL,
    -- The id of the present generation's key, with which items are sealed.
    key_id integer NOT NULL,
    -- The entry that began the present generation.
    generation_number bigint NOT NULL,
    rotation_due boolean NOT NULL DEFAULT false,
    -- The revision base at which the vault was founded or has recovered.
    recovered_base bigint NOT NULL DEFAULT 0,
    -- During a recovery, the number above which entries were put back. Null without any.
    settled_number bigint,
    created_at timestamptz NOT NULL,
    CONSTRAINT vaults_counters_check
        CHECK (least(item_count, item_bytes, tombstone_count, kept_count, kept_bytes, version_count, version_bytes) >= 0)
) WITH (
    fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.02);

CREATE TABLE saltern.vault_members (
    vault_id uuid NOT NULL,
    member_id uuid NOT NULL,
    -- The account. Null if it is gone, and while is_unclaimed.
    holder uuid,
    -- True for a member that was put back after a restore: its device claims it for its account.
    is_unclaimed boolean NOT NULL DEFAULT false,
    -- 1 reads, 2 also writes, 3 also manages. 0 for a member that has left or was removed.
    role smallint NOT NULL,
    -- The latest entry that gave the member its role or keys.
    since bigint NOT NULL,
    -- The latest head that the member has seen, with its signature.
    seen_number bigint NOT NULL DEFAULT 0,
    seen_hash bytea,
    seen_signature bytea,
    -- Sealed bytes that the member, a writer, has moved to the deleted contents since a time.
    discarded_bytes bigint NOT NULL DEFAULT 0,
    discarded_items bigint NOT NULL DEFAULT 0,
    discarded_since timestamptz,
    PRIMARY KEY (vault_id, member_id)
) WITH (fillfactor = 85);
-- An account is one member of a vault at a time: the row of the vault is locked when members change.
CREATE INDEX vault_members_by_holder ON saltern.vault_members (vault_id, holder) WHERE role > 0;

CREATE TABLE saltern.vault_entries (
    vault_id uuid NOT NULL,
    number bigint NOT NULL,
    hash bytea NOT NULL,
    entry bytea NOT NULL,
    -- From the entry: its author and kind.
    author uuid NOT NULL,
    kind smallint NOT NULL,
    -- The time by the server. Null for an entry that was put back after a restore.
    arrived_at timestamptz,
    PRIMARY KEY (vault_id, number)
);
ALTER TABLE saltern.vault_entries ALTER COLUMN entry SET STORAGE EXTERNAL;
CREATE INDEX vault_entries_by_arrival ON saltern.vault_entries (vault_id, arrived_at) INCLUDE (number, author, kind);

-- The key of each generation but the last, sealed with that of the next one.
CREATE TABLE saltern.vault_generations (
    vault_id uuid NOT NULL,
    number bigint NOT NULL,
    previous_key bytea NOT NULL,
    PRIMARY KEY (vault_id, number)
);

-- The key of the present generation for one member.
CREATE TABLE saltern.vault_boxes (
    vault_id uuid NOT NULL,
    member_id uuid NOT NULL,
    generation bigint NOT NULL,
    box bytea NOT NULL,
    PRIMARY KEY (vault_id, member_id, generation)
);
ALTER TABLE saltern.vault_boxes ALTER COLUMN box SET STORAGE EXTERNAL;

-- The lists of seals: the edits that count of a writer that entries cut off. Beyond the budget of a manager, its
-- earliest are removed.
CREATE TABLE saltern.vault_seals (
    vault_id uuid NOT NULL,
    number bigint NOT NULL,
    -- The writer, and the manager that has listed its edits.
    author uuid NOT NULL,
    sealer uuid NOT NULL,
    list bytea NOT NULL,
    PRIMARY KEY (vault_id, number)
);
ALTER TABLE saltern.vault_seals ALTER COLUMN list SET STORAGE EXTERNAL;

-- The vaults of an account.
CREATE TABLE saltern.memberships (
    account_id uuid NOT NULL,
    vault_id uuid NOT NULL,
    member_id uuid NOT NULL,
    owns boolean NOT NULL,
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, vault_id)
) WITH (fillfactor = 85);

-- Found by the id in a link. The vault's log decides who may use it.
CREATE TABLE saltern.vault_invitations (
    invitation_id uuid PRIMARY KEY,
    vault_id uuid NOT NULL,
    -- SHA-256 of the link's token.
    token_hash bytea NOT NULL,
    -- What the link shows before joining, and the key of the present generation after it; both sealed.
    preview bytea NOT NULL,
    key_box bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    openings bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 85);
ALTER TABLE saltern.vault_invitations ALTER COLUMN preview SET STORAGE EXTERNAL;
CREATE INDEX vault_invitations_by_expiry ON saltern.vault_invitations (expires_at);

-- As items, deleted_contents and replaced_contents.
CREATE TABLE saltern.vault_items (
    vault_id uuid NOT NULL,
    item_id uuid NOT NULL,
    revision bigint NOT NULL,
    deleted boolean NOT NULL DEFAULT false,
    collection text COLLATE "C" NOT NULL,
    format text COLLATE "C",
    iterations integer,
    title bytea,
    body bytea,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    kept_at timestamptz,
    PRIMARY KEY (vault_id, item_id),
    CONSTRAINT vault_items_check CHECK (deleted = (body IS NULL) AND deleted = (format IS NULL))
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000);
ALTER TABLE saltern.vault_items ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_items ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_items ALTER COLUMN vault_id SET (n_distinct = -0.01);
CREATE INDEX vault_items_by_revision ON saltern.vault_items (vault_id, revision) WHERE revision > 0;
CREATE INDEX vault_tombstones_by_revision ON saltern.vault_items (vault_id, revision) WHERE deleted AND revision > 0;
CREATE INDEX vault_tombstones_by_age ON saltern.vault_items (updated_at) WHERE deleted AND updated_at > '-infinity';

CREATE TABLE saltern.vault_deleted_contents (
    vault_id uuid NOT NULL,
    item_id uuid NOT NULL,
    collection text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    iterations integer,
    title bytea,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (vault_id, item_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000);
ALTER TABLE saltern.vault_deleted_contents ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_deleted_contents ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_deleted_contents ALTER COLUMN vault_id SET (n_distinct = -0.01);
CREATE INDEX vault_deleted_contents_by_age ON saltern.vault_deleted_contents (vault_id, expires_at, item_id)
    WHERE expires_at > '-infinity';
CREATE INDEX vault_deleted_contents_by_expiry ON saltern.vault_deleted_contents (expires_at)
    WHERE created_at > '-infinity';

CREATE TABLE saltern.vault_replaced_contents (
    vault_id uuid NOT NULL,
    item_id uuid NOT NULL,
    revision bigint NOT NULL,
    collection text COLLATE "C" NOT NULL,
    format text COLLATE "C" NOT NULL,
    iterations integer,
    title bytea,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    replaced_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (vault_id, item_id, revision)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000);
ALTER TABLE saltern.vault_replaced_contents ALTER COLUMN title SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_replaced_contents ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE saltern.vault_replaced_contents ALTER COLUMN vault_id SET (n_distinct = -0.01);
CREATE INDEX vault_replaced_contents_by_age
    ON saltern.vault_replaced_contents (vault_id, expires_at, item_id, revision) WHERE expires_at > '-infinity';
CREATE INDEX vault_replaced_contents_by_expiry ON saltern.vault_replaced_contents (expires_at)
    WHERE replaced_at > '-infinity';

GRANT SELECT, INSERT, UPDATE, DELETE
    ON saltern.vaults, saltern.vault_members, saltern.vault_entries, saltern.vault_boxes, saltern.vault_generations,
    saltern.vault_seals, saltern.memberships, saltern.vault_invitations, saltern.vault_items, saltern.vault_deleted_contents, saltern.vault_replaced_contents
    TO saltern_server;
