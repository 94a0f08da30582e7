internal import Cryptography
internal import Foundation
internal import VaultLog

/// A value of one shared vault in the store.
enum VaultFact: String {
    /// The findings about the vault, as JSON.
    case findings
    /// The founding entry, until the server has confirmed it.
    case founding
    /// The entry by which this account joins, until the server has confirmed it.
    case joining
    /// The last statements of the server about the members, as JSON.
    case seats
}

/// The logs of shared vaults on this device. Nothing in them is secret but the names, which are sealed.
extension Store {
    // MARK: Entries

    /// Returns the ids of the vaults whose log this device has.
    func vaultIDs() throws -> [SharedVaultID] {
        try database.rows("SELECT vault FROM vault_entries WHERE number = 1 ORDER BY vault") { row in
            guard let id = row.blob(0).flatMap({ SharedVaultID(bytes: $0) }) else { throw StoreError.damaged }
            return id
        }
    }

    /// Returns the entries of a log, in order.
    func entries(of vault: SharedVaultID, from number: UInt64 = 1) throws -> [Entry] {
        try database.rows(
            "SELECT entry FROM vault_entries WHERE vault = ? AND number >= ? ORDER BY number", .blob(vault.bytes),
            .integer(Int64(number))
        ) { row in
            guard let entry = try? Entry(row.blob(0) ?? []) else { throw StoreError.damaged }
            return entry
        }
    }

    func entryCount(of vault: SharedVaultID) throws -> UInt64 {
        UInt64(
            try database.rows("SELECT max(number) FROM vault_entries WHERE vault = ?", .blob(vault.bytes)) {
                $0.integer(0) ?? 0
            }.first ?? 0)
    }

    /// A number that changes when another process has written to the store.
    func foreignVersion() throws -> Int64 {
        try database.rows("PRAGMA data_version") { $0.integer(0) ?? 0 }.first ?? 0
    }

    /// Stores an entry whose signature was verified.
    func put(_ entry: Entry, of vault: SharedVaultID) throws {
        try database.execute(
            "INSERT OR REPLACE INTO vault_entries (vault, number, entry) VALUES (?, ?, ?)", .blob(vault.bytes),
            .integer(Int64(entry.number.value)), .blob(entry.bytes))
    }

    // MARK: Keys and lists

    /// Returns, by generation, the key before it, sealed under its own.
    func previousKeys(of vault: SharedVaultID) throws -> [GenerationNumber: [UInt8]] {
        var keys: [GenerationNumber: [UInt8]] = [:]
        try database.forEach(
            "SELECT generation, key FROM vault_previous_keys WHERE vault = ?", [.blob(vault.bytes)]
        ) { row in
            guard let number = row.integer(0).flatMap({ GenerationNumber(UInt64($0)) }) else { return }
            keys[number] = row.blob(1) ?? []
        }
        return keys
    }

    /// Stores a sealed previous key that was opened and checked.
    func putPreviousKey(_ key: [UInt8], _ generation: GenerationNumber, of vault: SharedVaultID) throws {
        try database.execute(
            "INSERT OR REPLACE INTO vault_previous_keys (vault, generation, key) VALUES (?, ?, ?)",
            .blob(vault.bytes), .integer(Int64(generation.value)), .blob(key))
    }

    /// Returns the list of a seal entry.
    func sealList(_ number: UInt64, of vault: SharedVaultID) throws -> SealList? {
        try database.rows(
            "SELECT list FROM vault_seal_lists WHERE vault = ? AND number = ?", .blob(vault.bytes),
            .integer(Int64(number))
        ) { $0.blob(0) ?? [] }.first.flatMap { SealList($0) }
    }

    /// Returns all lists of a vault.
    func sealLists(of vault: SharedVaultID) throws -> [SealList] {
        try database.rows("SELECT list FROM vault_seal_lists WHERE vault = ?", .blob(vault.bytes)) { $0.blob(0) ?? [] }
            .compactMap { SealList($0) }
    }

    func putSealList(_ list: SealList, _ number: UInt64, of vault: SharedVaultID) throws {
        try database.execute(
            "INSERT OR REPLACE INTO vault_seal_lists (vault, number, list) VALUES (?, ?, ?)", .blob(vault.bytes),
            .integer(Int64(number)), .blob(list.bytes))
    }

    /// Removes the lists of a vault except those with these numbers: later lists have replaced the others.
    func keepSealLists(_ numbers: [UInt64], of vault: SharedVaultID) throws {
        let stored = try database.rows("SELECT number FROM vault_seal_lists WHERE vault = ?", .blob(vault.bytes)) {
            $0.integer(0) ?? 0
        }
        for number in stored where !numbers.contains(UInt64(number)) {
            try database.execute(
                "DELETE FROM vault_seal_lists WHERE vault = ? AND number = ?", .blob(vault.bytes), .integer(number))
        }
    }

    // MARK: Facts

    func fact(_ name: VaultFact, of vault: SharedVaultID) throws -> [UInt8]? {
        try database.rows(
            "SELECT value FROM vault_facts WHERE vault = ? AND name = ?", .blob(vault.bytes), .text(name.rawValue)
        ) { $0.blob(0) ?? [] }.first
    }

    /// Returns the vaults with a fact.
    func vaultIDs(with name: VaultFact) throws -> [SharedVaultID] {
        try database.rows("SELECT vault FROM vault_facts WHERE name = ? ORDER BY vault", .text(name.rawValue)) { row in
            guard let id = row.blob(0).flatMap({ SharedVaultID(bytes: $0) }) else { throw StoreError.damaged }
            return id
        }
    }

    func set(_ name: VaultFact, of vault: SharedVaultID, _ value: [UInt8]?) throws {
        guard let value else {
            try database.execute(
                "DELETE FROM vault_facts WHERE vault = ? AND name = ?", .blob(vault.bytes), .text(name.rawValue))
            return
        }
        try database.execute(
            "INSERT OR REPLACE INTO vault_facts (vault, name, value) VALUES (?, ?, ?)", .blob(vault.bytes),
            .text(name.rawValue), .blob(value))
    }

    /// Returns the highest revision of this view that a listing has shown, also of chunks and of versions that do not
    /// count; nil for none.
    func highestRevision() throws -> Revision? {
        let highest =
            try database.rows(
                """
                SELECT max(revision) FROM (
                    SELECT revision FROM items UNION ALL SELECT behind FROM items UNION ALL SELECT revision FROM graves
                    UNION ALL SELECT revision FROM chunks UNION ALL SELECT revision FROM set_aside
                    UNION ALL SELECT revision FROM held_deletions)
                """
            ) { $0.integer(0) }.first ?? nil
        return highest.map { Revision($0) }
    }

    /// Calls `body` with the items of the server that this device has accepted, without local changes.
    func forEachAccepted(_ body: (StoredItem) throws -> Void) throws {
        var last: ItemID?
        while true {
            let ids = try itemIDs(after: last, limit: 500)
            guard let end = ids.last else { return }
            last = end
            for id in ids { if let item = try item(id), !item.isSealed { try body(item) } }
        }
    }

    /// Removes the log of a vault with its keys and lists.
    func forgetLog(_ vault: SharedVaultID) throws {
        for table in ["vault_entries", "vault_previous_keys", "vault_seal_lists"] {
            try database.execute("DELETE FROM \(table) WHERE vault = ?", .blob(vault.bytes))
        }
    }

    /// Removes everything of a vault, except its items.
    func forgetVault(_ vault: SharedVaultID) throws {
        for table in ["vault_entries", "vault_previous_keys", "vault_seal_lists", "vault_facts"] {
            try database.execute("DELETE FROM \(table) WHERE vault = ?", .blob(vault.bytes))
        }
    }
}
