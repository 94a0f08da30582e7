import CommandLineKit
import Cryptography
import Foundation
import SalternClient

/// A file for a download, beside its target. Only its owner can read it, and it persists after the process.
final class PartialFile {
    let path: String
    private let target: String
    private let handle: FileHandle
    private var byteCount: Int64

    /// Opens the remaining file of an earlier download of the item, or creates one.
    /// - Throws: ``CommandFailure`` when there is none and it cannot be created.
    init(of item: ItemID, for target: String) throws(CommandFailure) {
        let name = ".saltern-\(item).part"
        path = URL(filePath: target).deletingLastPathComponent().appending(path: name).path
        self.target = target
        let descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_nlink == 1, status.st_uid == geteuid(), fchmod(descriptor, 0o600) == 0
        else {
            if descriptor >= 0 { close(descriptor) }
            throw PrivateFile.unusable(path)
        }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        byteCount = Int64(status.st_size)
    }

    var isEmpty: Bool { byteCount == 0 }

    /// The content of the file.
    var source: AttachmentSource {
        AttachmentSource(byteCount: byteCount) { [descriptor = handle.fileDescriptor] offset, count in
            try SecureBytes(count: count) { buffer throws in
                guard pread(descriptor, buffer.baseAddress, count, off_t(offset)) == count else {
                    throw CocoaError(.fileReadUnknown)
                }
            }
        }
    }

    /// Removes the bytes after the verified beginning.
    func truncate(to count: Int64) throws(CommandFailure) {
        guard ftruncate(handle.fileDescriptor, off_t(count)) == 0 else { throw PrivateFile.unusable(path) }
        byteCount = count
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) {
        do {
            try handle.write(contentsOf: Data(bytes))
        } catch {
            throw PrivateFile.failure(error, path)
        }
        byteCount += Int64(bytes.count)
    }

    /// Writes the file to the disk and gives it its name.
    func finish() throws(CommandFailure) {
        do { try handle.synchronize() } catch { throw PrivateFile.failure(error, path) }
        if link(path, target) == 0 {
            unlink(path)
        } else {
            if errno == EEXIST { throw PrivateFile.existing(target) }
            // A file system without hard links.
            try PrivateFile.refuseExisting(target)
            guard rename(path, target) == 0 else { throw PrivateFile.unusable(target) }
        }
        guard FileFolder.sync(of: target) else { throw PrivateFile.unusable(target) }
    }

    /// Removes the file when nothing has arrived.
    func removeIfEmpty() { if isEmpty { unlink(path) } }
}
