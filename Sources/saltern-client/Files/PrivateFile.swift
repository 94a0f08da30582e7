import CommandLineKit
import Cryptography
import Foundation
import SalternClient

/// Files that only their owner can read.
enum PrivateFile {
    /// Replaces a file. A crash leaves the old or the new one.
    static func replace(_ file: URL, with data: Data) throws {
        let temporary = file.path + ".new"
        unlink(temporary)
        try write(temporary, data)
        guard rename(temporary, file.path) == 0, FileFolder.sync(of: file.path) else {
            throw CocoaError(.fileWriteUnknown)
        }
    }

    /// Creates a file.
    /// - Throws: ``CommandFailure`` when it exists.
    static func create(_ path: String, with data: Data) throws { try begin(path).finish(with: data) }

    /// Creates an empty file, before content is fetched that can be fetched only once.
    /// - Throws: ``CommandFailure`` when it exists, or cannot be created.
    static func begin(_ path: String) throws -> Begun {
        do {
            return Begun(path: path, handle: try make(path))
        } catch let error as CocoaError where error.code == .fileWriteFileExists {
            throw existing(path)
        } catch {
            throw unusable(path)
        }
    }

    /// A file that is still empty.
    struct Begun {
        fileprivate let path: String
        fileprivate let handle: FileHandle

        func finish(with data: Data) throws(CommandFailure) {
            do {
                try PrivateFile.fill(handle, path, data)
            } catch {
                throw failure(error, path)
            }
            guard FileFolder.sync(of: path) else { throw unusable(path) }
        }

        /// Removes the file, because there is no content.
        func remove() { unlink(path) }
    }

    /// Rejects a path that exists.
    /// - Throws: ``CommandFailure`` when it exists.
    static func refuseExisting(_ path: String) throws(CommandFailure) {
        var status = stat()
        if lstat(path, &status) == 0 { throw existing(path) }
    }

    static func existing(_ path: String) -> CommandFailure {
        CommandFailure("\(path) exists already", status: ExitStatus.exists, code: "file_exists")
    }

    /// Returns the failure for a file that an error has left incomplete.
    static func failure(_ error: any Error, _ path: String) -> CommandFailure {
        guard (error as? CocoaError)?.code == .fileWriteOutOfSpace else { return unusable(path) }
        return CommandFailure("cannot write \(path): the disk is full", status: ExitStatus.store, code: "disk_full")
    }

    static func unusable(_ path: String) -> CommandFailure {
        CommandFailure("cannot write \(path)", status: ExitStatus.store, code: "file_unusable")
    }

    private static func write(_ path: String, _ data: Data) throws { try fill(make(path), path, data) }

    private static func make(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw CocoaError(errno == EEXIST ? .fileWriteFileExists : .fileWriteUnknown) }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func fill(_ handle: FileHandle, _ path: String, _ data: Data) throws {
        do {
            try handle.write(contentsOf: data)
            try handle.synchronize()
            try handle.close()
        } catch {
            unlink(path)
            throw error
        }
    }
}

/// A file for a download, beside its target. Only its owner can read it, and it persists after the process.
final class PartialFile {
    let path: String
    private let target: String
    private let handle: FileHandle
    private var byteCount: Int64

    /// Opens the remaining file of an earlier download of the item, or creates one. Its lock (flock(2)) ends with the
    /// process.
    /// - Throws: ``CommandFailure`` when there is none and it cannot be created, and while another process has it.
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
        // A process that has finished meanwhile has moved the file.
        var named = stat()
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, lstat(path, &named) == 0, named.st_ino == status.st_ino,
            fstat(descriptor, &status) == 0
        else {
            throw CommandFailure(
                "another command fetches the item into this folder: repeat yours after it", status: ExitStatus.busy,
                code: "file_in_use")
        }
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
