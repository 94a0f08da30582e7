internal import CPlatform
internal import Foundation
internal import Synchronization

/// Renames without replacement, and exchanges names, on every file system. Some kernels and file systems (NFS, 9p,
/// FUSE, exFAT, older ones) do not support flags for that. There, the same is done in several steps, and none loses a
/// file.
struct RenameCall: Sendable {
    /// `renameat2`: 0, or -1 with the reason in errno.
    let call: @Sendable (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

    static let kernel = RenameCall { saltern_renameat2($0, $1, $2, $3, $4) }

    private static let noReplace: UInt32 = 1
    private static let exchange: UInt32 = 2

    /// True when the error means that the flags are not supported. A sandbox without the call returns EPERM.
    private static var isMissing: Bool { [ENOSYS, EINVAL, EOPNOTSUPP, EPERM].contains(errno) }

    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
        rename(bytes: Array(name.utf8), in: from, to: Array(newName.utf8), in: to)
    }

    func rename(bytes name: [UInt8], in from: Descriptor, to newName: [UInt8], in to: Descriptor) -> Bool {
        Self.withNames(name, newName) { name, newName in
            if call(from.number, name, to.number, newName, Self.noReplace) == 0 { return true }
            guard Self.isMissing else { return false }
            var status = stat()
            guard fstatat(from.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
            if status.isFolder { return renameFolder(name, from, newName, to) }
            // Adds a second name, and removes the first: the kernel rejects an existing name.
            if linkat(from.number, name, to.number, newName, 0) == 0 {
                return unlinkat(from.number, name, 0) == 0 || undoLink(newName, to)
            }
            guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else { return false }
            return renameOverPlaceholder(name, from, newName, to)
        }
    }

    private func undoLink(_ name: UnsafePointer<CChar>, _ folder: Descriptor) -> Bool {
        let error = errno
        unlinkat(folder.number, name, 0)
        errno = error
        return false
    }

    /// Renames on a file system without hard links. An empty file reserves the name, and is replaced if it is still
    /// empty.
    private func renameOverPlaceholder(
        _ name: UnsafePointer<CChar>, _ from: Descriptor, _ newName: UnsafePointer<CChar>, _ to: Descriptor
    ) -> Bool {
        let placeholder = openat(to.number, newName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard placeholder >= 0 else { return false }
        defer { close(placeholder) }
        var own = stat()
        var there = stat()
        guard fstat(placeholder, &own) == 0, fstatat(to.number, newName, &there, AT_SYMLINK_NOFOLLOW) == 0,
            own.st_ino == there.st_ino, there.st_size == 0
        else {
            errno = EEXIST
            return false
        }
        if renameat(from.number, name, to.number, newName) == 0 { return true }
        return undoLink(newName, to)
    }

    /// Renames a folder, which cannot have two names. The kernel does not replace a folder with content, nor a file.
    private func renameFolder(
        _ name: UnsafePointer<CChar>, _ from: Descriptor, _ newName: UnsafePointer<CChar>, _ to: Descriptor
    ) -> Bool {
        var status = stat()
        guard fstatat(to.number, newName, &status, AT_SYMLINK_NOFOLLOW) != 0 else {
            errno = EEXIST
            return false
        }
        return errno == ENOENT && renameat(from.number, name, to.number, newName) == 0
    }

    /// Exchanges two files. With several steps the other name is free for a moment; its file always has a name.
    /// - Parameter name: A name in the folder for files that are being moved.
    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
        let isDone = Self.withNames(Array(name.utf8), Array(other.utf8)) {
            call(one.number, $0, two.number, $1, Self.exchange) == 0
        }
        if isDone { return true }
        guard Self.isMissing else { return false }
        // If this process ends, the clean-up of the next one moves it to the trash.
        let aside = "\(FolderTree.swapPrefix)\(ItemID.random())"
        guard rename(other, in: two, to: aside, in: one) else { return false }
        guard rename(name, in: one, to: other, in: two) else {
            let error = errno
            _ = rename(aside, in: one, to: other, in: two)
            errno = error
            return false
        }
        return rename(aside, in: one, to: name, in: one)
    }

    private static func withNames(
        _ name: [UInt8], _ other: [UInt8], _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Bool
    ) -> Bool {
        (name.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { name in
            (other.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { other in
                guard let name = name.baseAddress, let other = other.baseAddress else { return false }
                return body(name, other)
            }
        }
    }
}

/// Stores the error of the last failed change.
final class FailureNote: Sendable {
    private let last = Mutex<Int32?>(nil)

    func note(_ number: Int32) { last.withLock { $0 = number } }

    func take() -> SystemFailure? { last.withLock { $0.take() }.map(SystemFailure.init) }
}
