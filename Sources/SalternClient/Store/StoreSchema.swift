/// The tables of the local store. The steps run in order, each once.
enum StoreSchema {
    static let steps = [
        """
        -- What belongs to the account as a whole. Secrets are sealed with the device's key.
        CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

        -- What the server was last seen to have: sealed as it came.
        CREATE TABLE items (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, collection TEXT NOT NULL, format TEXT NOT NULL,
            iterations INTEGER, title BLOB, body BLOB NOT NULL, edit INTEGER NOT NULL,
            -- Which listing of everything it was in; see Store.beginListing.
            listing INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID;
        CREATE INDEX items_by_collection ON items (collection, id);

        -- What a person has changed here and the server has not confirmed: at most one for each item. Sealed before it is
        -- sent, and here before it is sent, so that equal bytes that come back are known to be one's own.
        CREATE TABLE changes (
            id BLOB PRIMARY KEY, sequence INTEGER NOT NULL UNIQUE,
            -- The revision that was changed; null for an item that the server does not have.
            base INTEGER,
            -- Null for a deletion.
            collection TEXT, format TEXT, iterations INTEGER, title BLOB, body BLOB, edit INTEGER NOT NULL,
            -- What was changed, for a merge; null for an item that is new.
            base_title BLOB, base_body BLOB,
            -- SHA-256 of the body that was sent last and not confirmed, 32 zeros for a deletion; null when nothing was.
            sent BLOB
        );

        -- What a tombstone has removed, for a while.
        CREATE TABLE trash (
            id BLOB PRIMARY KEY, collection TEXT NOT NULL, format TEXT NOT NULL, iterations INTEGER, title BLOB,
            body BLOB NOT NULL, edit INTEGER NOT NULL, removed_at INTEGER NOT NULL
        ) WITHOUT ROWID;

        -- What a person has to hear of, until they have.
        CREATE TABLE notices (
            number INTEGER PRIMARY KEY, kind TEXT NOT NULL, item BLOB, other BLOB, noticed_at INTEGER NOT NULL
        );
        """,
        """
        -- Items of which the server was last seen to have a tombstone, for a while: at which revision, and which edit was the
        -- last that was known here (null: none). What comes after it has a greater number.
        CREATE TABLE graves (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, edit INTEGER, noted_at INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
        """
        -- Which chunks of attachments the server has. Their content is fetched when somebody wants it.
        CREATE TABLE chunks (
            id BLOB PRIMARY KEY, revision INTEGER NOT NULL, stored_at INTEGER NOT NULL,
            -- Since when nothing here names it.
            unnamed_since INTEGER,
            listing INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
        """
        -- Folders of files, by the marker in them, and where they were last.
        CREATE TABLE folders (id BLOB PRIMARY KEY, root TEXT NOT NULL UNIQUE) WITHOUT ROWID;

        -- What a file and its item were when they were last the same.
        CREATE TABLE folder_files (
            folder BLOB NOT NULL, id BLOB NOT NULL, path TEXT NOT NULL, digest BLOB NOT NULL,
            byte_count INTEGER NOT NULL, executable INTEGER NOT NULL,
            -- The version of the item that is this; null when none was seen since.
            revision INTEGER, sequence INTEGER,
            -- Whether it is only about to be the same: it counts when the file is there.
            pending INTEGER NOT NULL,
            PRIMARY KEY (folder, id), UNIQUE (folder, path)
        ) WITHOUT ROWID;

        -- What was read of a file, for as long as the kernel says that nobody has changed it.
        CREATE TABLE folder_hashes (
            folder BLOB NOT NULL, path TEXT NOT NULL, inode INTEGER NOT NULL, byte_count INTEGER NOT NULL,
            modified INTEGER NOT NULL, changed INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (folder, path)
        ) WITHOUT ROWID;
        """,
        """
        -- How far a folder was when it was last here. Kept when another one takes its place.
        CREATE TABLE folder_generations (folder BLOB PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
        """,
        """
        -- Chunks that were sent from here before any item named them: what is given up is taken back.
        CREATE TABLE draft_chunks (
            attachment BLOB NOT NULL, chunk BLOB NOT NULL,
            -- Whether somebody may go on with the attachment.
            resumable INTEGER NOT NULL,
            PRIMARY KEY (attachment, chunk)
        ) WITHOUT ROWID;

        -- Under which attachment a new file's content is sent, until its item is there.
        CREATE TABLE folder_uploads (
            folder BLOB NOT NULL, path TEXT NOT NULL, attachment BLOB NOT NULL, PRIMARY KEY (folder, path)
        ) WITHOUT ROWID;
        """,
        """
        -- Which chunks were created from here: at which revision (null: nobody knows yet), and the digests of what was sent.
        -- Of what was noted before nobody knows that; it is swept some day.
        DELETE FROM draft_chunks;
        ALTER TABLE draft_chunks ADD COLUMN revision INTEGER;
        ALTER TABLE draft_chunks ADD COLUMN sent BLOB NOT NULL DEFAULT x'';
        """,
        """
        -- Which items have the manifest of an attachment in some version, or had it: where to look; and whether one of
        -- them names chunks.
        CREATE TABLE manifests (
            attachment BLOB NOT NULL, item BLOB NOT NULL, has_chunks INTEGER NOT NULL, PRIMARY KEY (attachment, item)
        ) WITHOUT ROWID;

        -- Items with a version that nobody has opened to look for a manifest.
        CREATE TABLE unread_items (id BLOB PRIMARY KEY) WITHOUT ROWID;
        INSERT INTO unread_items (id)
            SELECT id FROM items UNION SELECT id FROM trash UNION SELECT id FROM changes;

        -- Deletions of files that wait for somebody to agree.
        ALTER TABLE folders ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- Versions of items that were replaced on this device, for a while.
        CREATE TABLE versions (
            number INTEGER PRIMARY KEY, item BLOB NOT NULL, collection TEXT NOT NULL, format TEXT NOT NULL,
            iterations INTEGER, title BLOB, body BLOB NOT NULL, edit INTEGER NOT NULL, replaced_at INTEGER NOT NULL,
            -- SHA-256 of everything that makes two contents equal.
            digest BLOB NOT NULL, UNIQUE (item, digest)
        );
        """,
        """
        -- Since which age of the store a row of another table waits for its removal; see Store.removeAged. The stamp tells a
        -- row from an earlier one with the same key.
        CREATE TABLE aging (
            kind TEXT NOT NULL, key BLOB NOT NULL, stamp INTEGER NOT NULL, since INTEGER NOT NULL,
            PRIMARY KEY (kind, key, stamp)
        ) WITHOUT ROWID;

        -- Files in the trash of a folder: the path and the digest that each had when it was put there, what the kernel
        -- reports of it (null: not checked since), and since which age of the store it is there.
        CREATE TABLE folder_trash (
            folder BLOB NOT NULL, name TEXT NOT NULL, path TEXT, digest BLOB NOT NULL,
            inode INTEGER, byte_count INTEGER, modified INTEGER, changed INTEGER, since INTEGER,
            PRIMARY KEY (folder, name)
        ) WITHOUT ROWID;

        -- Whether the generation is that of this store's own line in the marker.
        ALTER TABLE folder_generations ADD COLUMN has_line INTEGER NOT NULL DEFAULT 0;

        -- How many items there were when some were deleted a short while ago, for the guards against many deletions.
        CREATE TABLE recent_deletions (scope TEXT NOT NULL, at INTEGER NOT NULL, total INTEGER NOT NULL);

        -- Items that the server has a tombstone of, and that are kept here until a person has agreed.
        CREATE TABLE held_deletions (id BLOB PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;

        -- Deletions of files that wait for agreement, by direction.
        ALTER TABLE folders ADD COLUMN held_here INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE folders ADD COLUMN held_there INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- Sealed content of attachments' chunks: of those that wait to be sent, and copies of what the server has.
        CREATE TABLE chunk_contents (
            id BLOB NOT NULL UNIQUE,
            -- The attachment of a chunk that waits; null for a copy.
            waiting BLOB,
            -- Whether a call that cannot be repeated is still adding the attachment.
            draft INTEGER NOT NULL DEFAULT 0,
            byte_count INTEGER NOT NULL,
            -- Orders copies by their last use.
            used INTEGER NOT NULL,
            body BLOB NOT NULL
        );
        CREATE INDEX chunk_contents_by_use ON chunk_contents (waiting, used, byte_count);

        -- The revision of a version on the server that does not open here and did not replace the known one.
        ALTER TABLE items ADD COLUMN behind INTEGER;
        """,
        """
        -- Whether the file was ignored when it was examined last: then its absence does not count as a deletion.
        ALTER TABLE folder_files ADD COLUMN ignored INTEGER NOT NULL DEFAULT 0;
        """,
        """
        -- The revision that the version had on the server; null where it is not known.
        ALTER TABLE versions ADD COLUMN revision INTEGER;
        """,
        """
        -- The sequence of the first of the edits that were stored together; null for a single one.
        ALTER TABLE changes ADD COLUMN together INTEGER;
        """,
        """
        -- The collection that a folder is in sync with; null until its next round.
        ALTER TABLE folders ADD COLUMN collection TEXT;

        -- Folders that items stand for, as they were when both sides had them last.
        CREATE TABLE folder_folders (
            folder BLOB NOT NULL, id BLOB NOT NULL, path TEXT NOT NULL,
            -- The version of the item that is this.
            revision INTEGER, sequence INTEGER,
            ignored INTEGER NOT NULL, PRIMARY KEY (folder, id)
        ) WITHOUT ROWID;
        CREATE INDEX folder_folders_by_path ON folder_folders (folder, path);
        """,
        """
        -- Changes that the server has acknowledged, until a listing shows them: at most one for each item.
        CREATE TABLE confirmations (
            item BLOB PRIMARY KEY, revision INTEGER NOT NULL,
            -- The revision that the server had before; null when it had none.
            base INTEGER,
            -- SHA-256 of the content; null for a deletion.
            digest BLOB,
            -- The listing of everything that was the last one then.
            listing INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
    ]

    /// Migrates the store to the current schema.
    static func prepare(_ database: SQLiteDatabase) throws {
        let version = try database.rows("PRAGMA user_version") { $0.integer(0) ?? 0 }.first ?? 0
        guard version <= steps.count else { throw StoreError.tooNew }
        for (index, step) in steps.enumerated() where index >= version {
            try database.transaction {
                for statement in statements(of: step) { try database.execute(statement) }
                try database.execute("PRAGMA user_version = \(index + 1)")
            }
        }
    }

    static func statements(of step: String) -> [String] {
        step.split(separator: "\n").filter { !$0.drop(while: { $0 == " " }).hasPrefix("--") }.joined(separator: "\n")
            .split(separator: ";").map(String.init).filter { $0.contains { !$0.isWhitespace } }
    }
}
