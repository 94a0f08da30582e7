internal import CPlatform
internal import Cryptography
internal import Foundation
internal import Synchronization

/// The kernel's data of a file. Every change of a file also changes it, except for very recent files.
struct FileSignature: Hashable, Sendable {
    var inode: UInt64
    var byteCount: Int64
    var modified: Int64
    var changed: Int64

    /// The lowest precision of a disk's clock, in nanoseconds.
    private static let youth: Int64 = 2_000_000_000
    /// The longest time by which the clock of a network disk may be ahead, in nanoseconds.
    private static let clockDifference: Int64 = 3_600_000_000_000

    /// Returns true when a file could be written again without a visible change of the kernel's data. Any program can
    /// set the time of the last write, even to a future one. Every write also sets the other time to the present.
    ///
    /// A last change in the far future was made by a wrong clock, which any later change replaces. A server's clock may
    /// be ahead by less than that.
    func isYoung(at now: Int64) -> Bool {
        let lastChange = changed <= now + Self.clockDifference ? changed : .min
        return max(modified <= now ? modified : .min, lastChange) >= now - Self.youth
    }

    /// Returns the present time of the clock, in nanoseconds since 1970.
    static func now() -> Int64 {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return now.nanoseconds
    }
}

/// The entry at a name.
enum FolderEntry {
    case nothing
    case something(stat)
}

/// Access to a folder's files, by names below a descriptor. No function follows a link.
protocol FolderSystem: Sendable {
    func openRoot(_ path: String) -> Descriptor?
    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor?
    func openFile(_ name: String, in folder: Descriptor) -> Descriptor?
    /// Creates a new file.
    func createFile(_ name: String, in folder: Descriptor) -> Descriptor?
    /// Opens a file for reading and for writing at its end.
    func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor?
    /// Locks a file until it is closed.
    /// - Returns: False while another process has locked it.
    func lock(_ file: Descriptor) -> Bool
    /// Removes all bytes after the first `count`.
    func truncate(_ file: Descriptor, to count: Int64) -> Bool
    /// Creates a folder.
    /// - Returns: True when the name exists now.
    func makeFolder(_ name: String, in folder: Descriptor) -> Bool
    /// Removes an empty folder.
    func removeFolder(_ name: String, in folder: Descriptor) -> Bool
    func removeFile(_ name: String, in folder: Descriptor)
    /// Renames without replacing an existing entry.
    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool
    /// Renames a file whose name on the disk is not a text in NFC.
    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool
    /// Exchanges the names of two files.
    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool
    /// Returns the entry at a name; nil when it cannot be determined, for example on a failed or missing disk.
    func entry(_ name: String, in folder: Descriptor) -> FolderEntry?
    func status(_ descriptor: Descriptor) -> stat?
    func sync(_ descriptor: Descriptor) -> Bool
    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool
    /// Reads bytes at an offset.
    /// - Returns: The number of bytes; nil after an error.
    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int?
    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool
    /// Returns the names in a folder, as bytes; nil when it cannot be read completely.
    func names(in folder: Descriptor) -> [[UInt8]]?
    /// Removes and returns the error of the last failed change; nil when none has failed since.
    func takeFailure() -> SystemFailure?
}

/// The kernel's error of a change.
public struct SystemFailure: Hashable, Sendable {
    /// The number (errno), which depends on the platform.
    public let number: Int32

    /// The kernel's text, in English or the language of the process.
    public var reason: String { String(cString: strerror(number)) }
}

extension FolderSystem {
    func takeFailure() -> SystemFailure? { nil }

    /// A system that cannot reopen files starts each download again.
    func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor? { nil }

    func truncate(_ file: Descriptor, to count: Int64) -> Bool { false }

    /// Files of a system in memory are not shared.
    func lock(_ file: Descriptor) -> Bool { true }

    /// Returns the status of an entry; nil when there is none or it cannot be determined.
    func status(_ name: String, in folder: Descriptor) -> stat? {
        if case .something(let status) = entry(name, in: folder) { status } else { nil }
    }

    /// Returns the names in a folder as texts. The list is empty for a folder that cannot be read.
    func decodedNames(in folder: Descriptor) -> [String] {
        (names(in: folder) ?? []).map { String(decoding: $0, as: UTF8.self) }
    }

    func content(_ name: String, in folder: Descriptor) -> FileContent? {
        guard let file = openFile(name, in: folder), let status = status(file), status.isFile,
            let digest = digest(of: file)
        else { return nil }
        return FileContent(digest: digest, byteCount: Int64(status.st_size), isExecutable: status.isExecutable)
    }

    /// Returns the digest of a file.
    /// - Parameter goesOn: Receives the length of each piece. With false, nil is returned.
    func digest(of file: Descriptor, while goesOn: (Int) -> Bool = { _ in true }) -> [UInt8]? {
        var hash = SHA256.Incremental()
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var offset: Int64 = 0
        while true {
            guard let count = buffer.withUnsafeMutableBytes({ read(file, at: offset, into: $0) }) else {
                return nil
            }
            hash.update(count == buffer.count ? buffer : Array(buffer.prefix(count)))
            offset += Int64(count)
            guard goesOn(count) else { return nil }
            if count < buffer.count { return hash.finalize().bytes }
        }
    }
}

/// The files of the kernel.
struct DiskFolders: FolderSystem {
    /// The system call `renameat2`, replaceable in tests of file systems without its flags.
    var renaming: RenameCall = .kernel
    private let failure = FailureNote()

    /// Records the error of a failed change.
    private func noting(_ isDone: Bool) -> Bool {
        if !isDone { failure.note(errno) }
        return isDone
    }

    func takeFailure() -> SystemFailure? { failure.take() }

    func openRoot(_ path: String) -> Descriptor? { Descriptor(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) }

    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? {
        Descriptor(openat(folder.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
    }

    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? {
        // Opening a pipe in place of a file would wait for a writer.
        Descriptor(openat(folder.number, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK))
    }

    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? {
        let file = Descriptor(openat(folder.number, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600))
        _ = noting(file != nil)
        return file
    }

    func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor? {
        Descriptor(openat(folder.number, name, O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK))
    }

    func lock(_ file: Descriptor) -> Bool {
        // A file system without locks, such as some network file systems, allows only one program in a folder.
        flock(file.number, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK
    }

    func truncate(_ file: Descriptor, to count: Int64) -> Bool { noting(ftruncate(file.number, off_t(count)) == 0) }

    func makeFolder(_ name: String, in folder: Descriptor) -> Bool {
        noting(mkdirat(folder.number, name, 0o700) == 0 || errno == EEXIST)
    }

    func removeFolder(_ name: String, in folder: Descriptor) -> Bool {
        unlinkat(folder.number, name, AT_REMOVEDIR) == 0
    }

    func removeFile(_ name: String, in folder: Descriptor) { unlinkat(folder.number, name, 0) }

    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
        noting(renaming.rename(name, in: from, to: newName, in: to))
    }

    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
        noting(renaming.exchange(name, in: one, with: other, in: two))
    }

    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? {
        var status = stat()
        if fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return .something(status) }
        return errno == ENOENT ? .nothing : nil
    }

    func status(_ descriptor: Descriptor) -> stat? {
        var status = stat()
        return fstat(descriptor.number, &status) == 0 ? status : nil
    }

    func sync(_ descriptor: Descriptor) -> Bool { noting(fsync(descriptor.number) == 0) }

    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(file.number, rest.baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return noting(false) }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return true
    }

    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        var done = 0
        while done < buffer.count {
            let count = pread(
                file.number, buffer.baseAddress?.advanced(by: done), buffer.count - done, Int(offset) + done)
            if count < 0 && errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { break }
            done += count
        }
        return done
    }

    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool {
        let hasMode = noting(fchmod(file.number, mode) == 0)
        guard let modified else { return hasMode }
        let times = [modified, modified]
        return noting(futimens(file.number, times) == 0) && hasMode
    }

    func names(in folder: Descriptor) -> [[UInt8]]? {
        let copy = openat(folder.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { return nil }
        guard let stream = fdopendir(copy) else {
            close(copy)
            return nil
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { return errno == 0 ? names : nil }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: UInt8.self, capacity: 256) { bytes in
                    Array(
                        UnsafeBufferPointer(
                            start: bytes, count: strlen(UnsafeRawPointer(bytes).assumingMemoryBound(to: CChar.self))))
                }
            }
            if name != [46] && name != [46, 46] { names.append(name) }
        }
    }

    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool {
        noting(renaming.rename(bytes: bytes, in: folder, to: Array(name.utf8), in: folder))
    }
}

extension stat {
    var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
    var isFile: Bool { st_mode & S_IFMT == S_IFREG }
    var isExecutable: Bool { st_mode & S_IXUSR != 0 }

    var signature: FileSignature {
        FileSignature(
            inode: UInt64(st_ino), byteCount: Int64(st_size), modified: st_mtim.nanoseconds,
            changed: st_ctim.nanoseconds)
    }
}

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
        let aside = "\(FolderParts.swapPrefix)\(ItemID.random())"
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
