internal import Foundation

/// The identity of a store's file, by which a copy of the file is recognised.
///
/// On one file system, a copy has another inode number than its original. On another file system, or after the original
/// was removed, it can have the same number by chance, but another creation time. The number of the file system
/// (`st_dev`) is not part of the identity. On btrfs, LVM and network file systems it can change at each start of the
/// machine.
struct StoreFileIdentity: Equatable {
    /// The inode number.
    let number: UInt64
    /// The time at which the file was created, as the file system stores it; nil where it stores none.
    let birth: String?

    /// Reads the identity of a file.
    /// - Returns: nil where there is no file.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(number: UInt64(status.st_ino), birth: Self.birth(ofFileAt: path))
    }

    init(number: UInt64, birth: String?) {
        self.number = number
        self.birth = birth
    }

    /// Returns true when this is the file of a store with that earlier identity. A creation time that only one of them
    /// has is not compared. An earlier version of the kit stored none, and a later kernel can report more.
    func isSame(as known: Self) -> Bool {
        guard number == known.number else { return false }
        guard let birth, let before = known.birth else { return true }
        return birth == before
    }
}

/// The state of a store's file, by which a write of another process is detected.
struct StoreFileState: Equatable {
    private let numbers: [Int]

    /// Reads the state: inode number, size and modification time. It equals no other one if it cannot be determined.
    ///
    /// With times in whole seconds, as on some file systems, two writes within a second have the same time.
    init(path: String) {
        var (file, log) = (stat(), stat())
        // A write-ahead log that was not merged into the file may have any content.
        let isMerged = lstat(path + "-wal", &log) != 0 || log.st_size == 0
        guard isMerged, lstat(path, &file) == 0, !file.modified.isRecentWholeSecond else {
            numbers = [.random(in: 0...(.max))]
            return
        }
        let modified = file.modified
        numbers = [Int(file.st_ino), Int(file.st_size), Int(modified.tv_sec), Int(modified.tv_nsec)]
    }
}

extension timespec {
    /// True for a whole second of the last few.
    fileprivate var isRecentWholeSecond: Bool { tv_nsec == 0 && abs(time(nil) - tv_sec) <= 3 }
}

extension stat {
    /// The time of the last write.
    var modified: timespec {
        #if canImport(Darwin)
            st_mtimespec
        #else
            st_mtim
        #endif
    }
}

extension Store {
    /// Returns the identity of the file at the last opening of the store; nil for a new store.
    func knownFile() throws -> StoreFileIdentity? {
        guard let number = try text(.fileNumber).flatMap({ UInt64($0) }) else { return nil }
        return StoreFileIdentity(number: number, birth: try text(.fileBirth))
    }

    func setKnownFile(_ file: StoreFileIdentity) throws {
        try set(.fileNumber, Array(String(file.number).utf8))
        try set(.fileBirth, file.birth.map { Array($0.utf8) })
    }
}

/// Distinguishes two copies of one store, after a backup was restored on a new device or its folder was copied. Names
/// that only one device may use are replaced in a copy.
extension Store {
    /// The maximum number of former names that are kept; more than the copies of a store in practice.
    private static let formerLimit = 16

    /// Gives the store a new identity when its file is not the previous one.
    func noteFile(at path: String) throws {
        guard let file = StoreFileIdentity(path: path) else { return }
        let known = try knownFile()
        if known == file { return }
        try transaction {
            if let known, !file.isSame(as: known) { try renewIdentity() }
            try setKnownFile(file)
        }
    }

    /// Makes the store independent of another one that it may be a copy of.
    ///
    /// - It gets another name in the markers of folders. A folder that it has not synced since is compared with the
    ///   lines of the former names.
    /// - Unsent edits count as sent, because the other device may send them. Later edits continue from them.
    /// - Uploads of attachments begin under new ids, and chunks that were sent before are not taken back. The other
    ///   device may continue them, and put an item that names them.
    func renewIdentity() throws {
        if let id = try fact(.storeID) {
            let former = try id + (fact(.formerStoreIDs) ?? [])
            try set(.formerStoreIDs, Array(former.prefix(Self.formerLimit * id.count)))
            try set(.storeID, nil)
            try database.execute("UPDATE folder_generations SET has_line = 2 WHERE has_line = 1")
        }
        for store in try views() {
            try store.forEachChange { change in if change.sent == nil { try store.markSent([change]) } }
            try store.database.execute("DELETE FROM draft_chunks")
        }
        try database.execute("DELETE FROM folder_uploads")
    }

    /// Returns the name of this store in the markers of folders.
    func storeID() throws -> ItemID {
        if let known = try fact(.storeID).flatMap({ ItemID(bytes: $0) }) { return known }
        let id = ItemID.random()
        try set(.storeID, id.bytes)
        return id
    }

    /// Returns the former names of the store in the markers of folders.
    func formerStoreIDs() throws -> [ItemID] {
        let bytes = try fact(.formerStoreIDs) ?? []
        return stride(from: 0, to: bytes.count, by: 16).compactMap { ItemID(bytes: bytes[$0...].prefix(16)) }
    }
}
