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
