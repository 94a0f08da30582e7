internal import Foundation

/// A new file that only its owner can read.
struct NewFile {
    private let file: URL
    private let handle: FileHandle

    /// Creates the file.
    /// - Throws: ``StoreError/unusable`` when the file exists.
    init(_ file: URL) throws(VaultError) {
        let descriptor = open(file.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .store(.unusable) }
        self.file = file
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    func append(_ bytes: [UInt8]) throws(VaultError) {
        do { try handle.write(contentsOf: Data(bytes)) } catch { throw .store(.diskFull) }
    }

    /// Returns the number of bytes that were written.
    func byteCount() throws(VaultError) -> UInt64 {
        do { return try handle.offset() } catch { throw .store(.unusable) }
    }

    /// Removes all bytes after an offset.
    func truncate(to offset: UInt64) throws(VaultError) {
        do { try handle.truncate(atOffset: offset) } catch { throw .store(.unusable) }
    }

    /// Writes the file to the disk and closes it.
    func finish() throws(VaultError) {
        do {
            try handle.synchronize()
            try handle.close()
        } catch {
            throw .store(.diskFull)
        }
        guard FileFolder.sync(of: file.path) else { throw .store(.unusable) }
    }

    /// Removes an incomplete file.
    func remove() { unlink(file.path) }
}
