internal import Foundation

/// A file descriptor that is closed on release.
final class Descriptor: Sendable {
    let number: Int32
    private let end: @Sendable (Int32) -> Void

    init?(_ number: Int32, end: @escaping @Sendable (Int32) -> Void = { close($0) }) {
        guard number >= 0 else { return nil }
        self.number = number
        self.end = end
    }

    deinit { end(number) }
}

/// Makes changes of names durable. Otherwise a power failure could undo them, although the file itself is on the disk.
package enum FileFolder {
    /// Writes the names in the folder of a file to the disk, after one was created, replaced or removed.
    /// - Returns: False when the folder is missing or the disk fails. A file system that does not support it for
    ///   folders, and a folder that may not be read, count as success.
    package static func sync(of path: String) -> Bool {
        let end = path.lastIndex(of: "/")
        let folder = open(end.map { String(path[...$0]) } ?? ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return errno == EACCES }
        defer { close(folder) }
        if fsync(folder) == 0 { return true }
        let error = errno
        return error != EIO && error != ENOSPC && error != EDQUOT
    }
}

extension timespec {
    /// The time in nanoseconds since 1970, limited to 292 years before and after.
    var nanoseconds: Int64 {
        let (product, isTooFar) = Int64(tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isFurther) = product.addingReportingOverflow(Int64(tv_nsec))
        return isTooFar || isFurther ? tv_sec < 0 ? .min : .max : sum
    }

    init(nanoseconds: Int64) {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        self =
            rest < 0
            ? timespec(tv_sec: Int(seconds) - 1, tv_nsec: Int(rest) + 1_000_000_000)
            : timespec(tv_sec: Int(seconds), tv_nsec: Int(rest))
    }
}

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
