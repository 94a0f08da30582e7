/// The tables of the local store. The steps run in order, each once.
enum StoreSchema {
    static let steps = [
        """
        -- Values of the whole account. Secrets are sealed with the device key.
        CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

        -- The server's items as of the last contact, sealed as received.
        CREATE TABLE items (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, collection TEXT NOT NULL, format TEXT NOT NULL,
            iterations INTEGER, title BLOB, body BLOB NOT NULL, edit INTEGER NOT NULL,
            -- The last full listing that contained the item; see Store.beginListing.
            listing INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        CREATE INDEX items_by_collection ON items (collection, id);

        -- Local changes that the server has not confirmed, at most one for each item. They are sealed and stored before they
        -- are sent, so that equal bytes from the server are recognised as this device's own.
        CREATE TABLE changes (
            id BLOB PRIMARY KEY, sequence INTEGER NOT NULL UNIQUE,
            -- The changed revision; null for an item that the server does not have.
            base INTEGER,
            -- Null for a deletion.
            collection TEXT, format TEXT, iterations INTEGER, title BLOB, body BLOB, edit INTEGER NOT NULL,
            -- The content before the change, for a merge; null for a new item.
            base_title BLOB, base_body BLOB,
            -- SHA-256 of the last sent and unconfirmed body, 32 zeros for a deletion; null before the change is sent.
            sent BLOB
        );

        -- Content that a tombstone has removed, kept for 30 days.
        CREATE TABLE trash (
            id BLOB PRIMARY KEY, collection TEXT NOT NULL, format TEXT NOT NULL, iterations INTEGER, title BLOB,
            body BLOB NOT NULL, edit INTEGER NOT NULL, removed_at INTEGER NOT NULL
        ) WITHOUT ROWID;

        -- Notices that the user has not read.
        CREATE TABLE notices (
            number INTEGER PRIMARY KEY, kind TEXT NOT NULL, item BLOB, other BLOB, noticed_at INTEGER NOT NULL
        );
        """,
        """
        -- The server's tombstones as of the last contact, kept for 30 days: the tombstone's revision, and the last edit
        -- number that this device has seen (null: none). Later edits have greater numbers.
        CREATE TABLE graves (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, edit INTEGER, noted_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
        """
        -- The server's chunks of attachments. Their content is fetched on demand.
        CREATE TABLE chunks (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, stored_at INTEGER NOT NULL,
            -- The time since which no local item refers to the chunk.
            unnamed_since INTEGER,
            listing INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
        """
        -- Synced folders by the marker in them, with their last path.
        CREATE TABLE folders (id BLOB PRIMARY KEY, root TEXT NOT NULL UNIQUE) WITHOUT ROWID;

        -- Each file and its item as of their last equal state.
        CREATE TABLE folder_files (
            folder BLOB NOT NULL, id BLOB NOT NULL, path TEXT NOT NULL, digest BLOB NOT NULL,
            byte_count INTEGER NOT NULL, executable INTEGER NOT NULL,
            -- The item's version with this content; null when none was seen since.
            revision INTEGER, sequence INTEGER,
            -- True while the file is being written. The row is valid only if the file exists.
            pending INTEGER NOT NULL,
            PRIMARY KEY (folder, id), UNIQUE (folder, path)
        ) WITHOUT ROWID;

        -- Digests of files, valid while the kernel reports an unchanged file.
        CREATE TABLE folder_hashes (
            folder BLOB NOT NULL, path TEXT NOT NULL, inode INTEGER NOT NULL, byte_count INTEGER NOT NULL,
            modified INTEGER NOT NULL, changed INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (folder, path)
        ) WITHOUT ROWID;
        """,
        """
        -- The last generation of each folder. Kept when another folder replaces it.
        CREATE TABLE folder_generations (folder BLOB PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
        """,
        """
        -- Chunks that this device sent before an item referred to them. Abandoned ones are deleted on the server.
        CREATE TABLE draft_chunks (
            attachment BLOB NOT NULL, chunk BLOB NOT NULL,
            -- True if a later call may continue the attachment.
            resumable INTEGER NOT NULL,
            PRIMARY KEY (attachment, chunk)
        ) WITHOUT ROWID;

        -- The attachment for a new file's content, until its item exists.
        CREATE TABLE folder_uploads (
            folder BLOB NOT NULL, path TEXT NOT NULL, attachment BLOB NOT NULL, PRIMARY KEY (folder, path)
        ) WITHOUT ROWID;
        """,
        """
        -- The revision at which this device created the chunk (null: unknown yet), and digests of the sent content. Earlier
        -- rows lack both and are removed; a sweep deletes their chunks later.
        DELETE FROM draft_chunks;
        ALTER TABLE draft_chunks ADD COLUMN revision INTEGER;
        ALTER TABLE draft_chunks ADD COLUMN sent BLOB NOT NULL DEFAULT x'';
        """,
        """
        -- Items that have or had the manifest of an attachment in some version, and whether one of the manifests lists
        -- chunks.
        CREATE TABLE manifests (
            attachment BLOB NOT NULL, item BLOB NOT NULL, has_chunks INTEGER NOT NULL, PRIMARY KEY (attachment, item)
        ) WITHOUT ROWID;

        -- Items with a version that has not been searched for a manifest.
        CREATE TABLE unread_items (id BLOB PRIMARY KEY) WITHOUT ROWID;
        INSERT INTO unread_items (id)
            SELECT id FROM items UNION SELECT id FROM trash UNION SELECT id FROM changes;

        -- The number of file deletions that wait for confirmation.
        ALTER TABLE folders ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- Versions of items that were replaced on this device, kept for 30 days.
        CREATE TABLE versions (
            number INTEGER PRIMARY KEY, item BLOB NOT NULL, collection TEXT NOT NULL, format TEXT NOT NULL,
            iterations INTEGER, title BLOB, body BLOB NOT NULL, edit INTEGER NOT NULL, replaced_at INTEGER NOT NULL,
            -- SHA-256 of all members that two equal contents share.
            digest BLOB NOT NULL, UNIQUE (item, digest)
        );
        """,
        """
        -- The store's age since which a row of another table waits for its removal; see Store.removeAged. The stamp
        -- distinguishes a row from an earlier one with the same key.
        CREATE TABLE aging (
            kind TEXT NOT NULL, key BLOB NOT NULL, stamp INTEGER NOT NULL, since INTEGER NOT NULL,
            PRIMARY KEY (kind, key, stamp)
        ) WITHOUT ROWID;

        -- Files in the trash of a folder: path and digest at the time of removal, the kernel's metadata (null: not checked
        -- since), and the store's age at the removal.
        CREATE TABLE folder_trash (
            folder BLOB NOT NULL, name TEXT NOT NULL, path TEXT, digest BLOB NOT NULL,
            inode INTEGER, byte_count INTEGER, modified INTEGER, changed INTEGER, since INTEGER,
            PRIMARY KEY (folder, name)
        ) WITHOUT ROWID;

        -- True if the generation is that of this store's own line in the marker.
        ALTER TABLE folder_generations ADD COLUMN has_line INTEGER NOT NULL DEFAULT 0;

        -- The number of items before each recent deletion, for the limits of mass deletions.
        CREATE TABLE recent_deletions (scope TEXT NOT NULL, at INTEGER NOT NULL, total INTEGER NOT NULL);

        -- Items with a tombstone on the server that stay here until the user confirms the deletion.
        CREATE TABLE held_deletions (id BLOB PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;

        -- The numbers of file deletions that wait for confirmation, by direction.
        ALTER TABLE folders ADD COLUMN held_here INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE folders ADD COLUMN held_there INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- Sealed content of chunks that wait to be sent, and copies of the server's chunks.
        CREATE TABLE chunk_contents (
            id BLOB NOT NULL UNIQUE,
            -- The attachment of a waiting chunk; null for a copy.
            waiting BLOB,
            -- True while a call that cannot be repeated adds the attachment.
            draft INTEGER NOT NULL DEFAULT 0,
            byte_count INTEGER NOT NULL,
            -- Orders copies by their last use.
            used INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX chunk_contents_by_use ON chunk_contents (waiting, used, byte_count);

        -- The revision of a server version that cannot be decrypted here and did not replace the known one.
        ALTER TABLE items ADD COLUMN behind INTEGER;
        """,
        """
        -- True if the file was ignored at the last examination. Its absence is then no deletion.
        ALTER TABLE folder_files ADD COLUMN ignored INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- The version's revision on the server; null if unknown.
        ALTER TABLE versions ADD COLUMN revision INTEGER;
        """,
        """
        -- The sequence of the first of several edits stored together; null for a single edit.
        ALTER TABLE changes ADD COLUMN together INTEGER;
        """,
        """
        -- The folder's collection; null until its next round.
        ALTER TABLE folders ADD COLUMN collection TEXT;

        -- Folders with an item, as of the last equal state of both sides.
        CREATE TABLE folder_folders (
            folder BLOB NOT NULL, id BLOB NOT NULL, path TEXT NOT NULL,
            -- The item's version with this path.
            revision INTEGER, sequence INTEGER,
            ignored INTEGER NOT NULL, PRIMARY KEY (folder, id)
        ) WITHOUT ROWID;
        CREATE INDEX folder_folders_by_path ON folder_folders (folder, path);
        """,
        """
        -- Changes that the server has acknowledged, until a listing contains them, at most one for each item.
        CREATE TABLE confirmations (
            item BLOB PRIMARY KEY, revision INTEGER NOT NULL,
            -- The server's previous revision; null if it had none.
            base INTEGER,
            -- SHA-256 of the content; null for a deletion.
            digest BLOB,
            -- The last full listing at that time.
            listing INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
        """
        -- Shared vaults with items on this device. Their tables have the number as a suffix; see StoreTables.
        CREATE TABLE vaults (number INTEGER PRIMARY KEY AUTOINCREMENT, vault BLOB NOT NULL UNIQUE);

        -- The number of the vault's log at which the version was accepted; null for an account.
        ALTER TABLE items ADD COLUMN judged_at INTEGER;

        -- That number of a replaced version; null if it is unknown.
        ALTER TABLE versions ADD COLUMN judged_at INTEGER;

        -- True for a version of a shared vault that the lists of managers do not have. It has no tombstone.
        ALTER TABLE held_deletions ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;

        -- The shared vault of a folder's items; null for the account.
        ALTER TABLE folders ADD COLUMN vault BLOB;

        -- Items of a shared vault of which the server has a version that does not count yet.
        CREATE TABLE set_aside (
            id BLOB PRIMARY KEY,
            -- Null until a complete listing has the version.
            revision INTEGER,
            -- The author, if the version waits for the author's seal.
            author BLOB,
            -- SHA-256 of a version that this device could not judge, and the number of the log's head at that time.
            digest BLOB, held_at INTEGER
        ) WITHOUT ROWID;
        """,
        """
        -- The verified entries of the logs of shared vaults.
        CREATE TABLE vault_entries (
            vault BLOB NOT NULL, number INTEGER NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (vault, number)
        ) WITHOUT ROWID;

        -- Of a generation, the key before it, sealed under its own.
        CREATE TABLE vault_previous_keys (
            vault BLOB NOT NULL, generation INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY (vault, generation)
        ) WITHOUT ROWID;

        -- The lists of the log's seals, by the number of the entry.
        CREATE TABLE vault_seal_lists (
            vault BLOB NOT NULL, number INTEGER NOT NULL, list BLOB NOT NULL, PRIMARY KEY (vault, number)
        );

        -- Findings, unconfirmed entries and the server's statements, by vault.
        CREATE TABLE vault_facts (
            vault BLOB NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (vault, name)
        ) WITHOUT ROWID;
        """,
    ]

    /// Migrates the store to the current schema. Each step also changes the tables of shared vaults.
    static func prepare(_ database: StoreTables, _ steps: [String] = steps) throws {
        let version = try database.rows("PRAGMA user_version") { $0.integer(0) ?? 0 }.first ?? 0
        guard version <= steps.count else { throw StoreError.tooNew }
        for (index, step) in steps.enumerated() where index >= version {
            try database.transaction {
                let vaults = try vaults(database, version)
                for statement in statements(of: step) {
                    try database.execute(statement)
                    if !StoreTables.isOwned(statement) { continue }
                    for vault in vaults { try vault.execute(statement) }
                }
                try database.execute("PRAGMA user_version = \(index + 1)")
            }
        }
    }

    /// Creates the tables of a shared vault.
    static func create(_ tables: StoreTables) throws {
        for step in steps {
            for statement in statements(of: step) where StoreTables.isOwned(statement) { try tables.execute(statement) }
        }
    }

    /// The version from which on a store can have shared vaults.
    private static let vaultVersion = 17

    private static func vaults(_ database: StoreTables, _ version: Int64) throws -> [StoreTables] {
        guard version >= vaultVersion else { return [] }
        return try database.rows("SELECT number FROM vaults") { database.of($0.integer(0) ?? 0) }
    }

    static func statements(of step: String) -> [String] {
        step.split(separator: "\n").filter { !$0.drop(while: { $0 == " " }).hasPrefix("--") }.joined(separator: "\n")
            .split(separator: ";").map(String.init).filter { $0.contains { !$0.isWhitespace } }
    }
}

/// The facts in the store beside items.
enum StoreFact: String {
    case account, userid, server, saltPrefix, iterations
    /// The keyring on the server, its revision and its counter.
    case keyring, keyringRevision, keyringCounter
    /// A digest of that keyring's content: two keyrings with equal counters and different content are a rollback.
    case keyringDigest
    /// Digests of the keys of passkeys in that keyring, 32 bytes each.
    case passkeys
    /// The credential ids of ``Notice/Kind/passkeysStoppedUnlocking``.
    case stoppedPasskeys
    /// The notice about them before a change without a certain outcome; see ``Store/noteStopped(_:)``.
    case stoppedBefore
    /// The highest counter of a keyring that was ever sent. It is stored before the keyring is sent.
    case keyringSent
    /// Digests of data keys that a rotation has retired, 16 bytes each. Later keyrings do not seal with them.
    case retiredKeys
    /// Session token, device token and the keys of an open vault, sealed with the device's key. See ``DeviceSecrets``.
    case token, deviceToken, openKeys
    /// The same keys in the format of an earlier version, with the password key.
    case openKeyring
    /// The password of the ``UnconfirmedChange``, sealed with the device key.
    case unconfirmedPassword
    /// The device key that replaces the one in the key store, sealed with that one.
    case nextDeviceKey
    case cursor, revisionBase, listing, lastEventID
    /// Set during a complete listing after a database rollback.
    case comparing
    /// Set while deletions wait for approval.
    case held
    /// Set when another device's copy of a version has arrived, until it was compared with the changes that were sent.
    case copies
    /// The ids of the keyring's data keys, 4 bytes each. Sealed bytes contain them, too.
    case keyIDs
    /// Set while the store has content under a key that the keyring does not contain.
    case unread
    /// The ``ItemSealing/stamp`` with which the versions of a shared vault were last judged.
    case judgedBy
    /// The last item of a shared vault whose change was compared with a version that was set aside; see
    /// ``SetAsideVersions/settleSetAside(isProvisional:into:)``.
    case settledTo
    /// The rotation that this device has opened and whose end was not received.
    case rotation
    /// The ``UnconfirmedChange``.
    case unconfirmedChange
    /// The time at which this device last requested the account's deletion (seconds since 1970), while its outcome is
    /// uncertain. A valid session shows that it failed.
    case leaving
    /// The plan's limit of one item, from the last reply of the server.
    case itemBytes
    /// The age of the store at the last sweep of attachments' chunks.
    case sweptAt
    /// The days for which the server keeps deleted content, as sweeps have seen them (``KeptPeriods``).
    case keptDays
    /// The largest size of a batch, in bytes, while the connection is slow.
    case batchBytes
    /// The largest number of changes in a page, while the connection is slow.
    case pageChanges
    /// Set when the server had every named chunk, until a missing one is noticed.
    case chunksWhole
    /// Set when the server has lost chunks, until copies of them wait to be sent.
    case chunksLost
    /// The age of the store, and the moment at which it was last advanced (seconds since 1970); see
    /// ``Store/advanceAge(to:)``.
    case age, agedAt
    /// The age at which expired content was last removed.
    case agedTo
    /// The name of this store in the markers of folders, and its former names; see ``Store/renewIdentity()``.
    case storeID, formerStoreIDs
    /// The identity of the store's file when the store was last opened (``StoreFileIdentity``).
    case fileNumber, fileBirth
    /// Set from a sign-out until the device key is removed.
    case isSignedOut

    /// True for a fact that each owner of items has. Others are those of the account and of the whole store.
    var isOfOwner: Bool {
        switch self {
        case .cursor, .revisionBase, .listing, .lastEventID, .comparing, .held, .copies, .unread, .judgedBy,
            .batchBytes, .settledTo,
            .pageChanges, .itemBytes, .sweptAt, .keptDays, .agedTo, .chunksWhole, .chunksLost:
            true
        default: false
        }
    }
}
