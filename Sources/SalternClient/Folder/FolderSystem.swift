internal import CPlatform
internal import Foundation

/// The kernel's data of a file. Every change of a file also changes it, except for very recent files.
struct FileSignature: Hashable, Sendable {
    var inode: UInt64
    var byteCount: Int64
    var modified: Int64
    var changed: Int64
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
