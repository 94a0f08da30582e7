internal import Foundation

/// A file that is made here and that only its owner can read.
struct NewFile {
    private let file: URL
    private let handle: FileHandle

    /// - Throws: ``StoreError/unusable`` when there is such a file.
    init(_ file: URL) throws(VaultError) {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .store(.unusable) }
        self.file = file
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func append(_ bytes: [UInt8]) throws(VaultError) {
        do { try handle.write(contentsOf: Data(bytes)) } catch { throw .store(.diskFull) }
    }

    /// How many bytes were written.
    func byteCount() throws(VaultError) -> UInt64 {
        do { return try handle.offset() } catch { throw .store(.unusable) }
    }

    /// Removes what was written behind an offset.
    func truncate(to offset: UInt64) throws(VaultError) {
        do { try handle.truncate(atOffset: offset) } catch { throw .store(.unusable) }
    }

    /// What was written is on the disk.
    func finish() throws(VaultError) {
        do {
            try handle.synchronize()
            try handle.close()
        } catch {
            throw .store(.diskFull)
        }
    }

    /// Half of it is of no use to anybody.
    func remove() { unlink(file.path) }
}
