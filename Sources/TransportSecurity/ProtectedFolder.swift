public import Cryptography
internal import Glibc

/// A folder that stays open. Files are read and written in it, even if its path leads elsewhere meanwhile.
///
/// A user that may replace a folder of a path can redirect a program between two steps. Root is affected in all
/// folders.
public final class ProtectedFolder: Sendable {
    /// The path at opening, for messages.
    public let path: String
    private let folder: HeldDescriptor

    /// Opens a folder. For root, links on the way count only if root owns them, because others may lead anywhere.
    public init(_ path: String) throws(CertificateError) {
        self.path = path
        folder = try geteuid() == 0 ? Self.walk(path) : Self.open(path)
    }

    /// Opens the folder of a file. Also returns the file's name in it.
    public static func ofFile(_ path: String) throws(CertificateError) -> (folder: ProtectedFolder, name: String) {
        // Compares bytes, because a slash and a combining mark are one character.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (try ProtectedFolder("."), path) }
        let name = String(decoding: path.utf8[path.utf8.index(after: slash)...], as: UTF8.self)
        let folder = String(decoding: path.utf8[..<slash], as: UTF8.self)
        return (try ProtectedFolder(folder.isEmpty ? "/" : folder), name)
    }

    /// Locks the folder, after waiting for other holders of the lock.
    /// - Parameter patience: The limit in milliseconds. Any user that can read the folder can lock it permanently.
    public func lock(patience: Int = 10_000) throws(CertificateError) {
        let step = 50
        for waited in stride(from: 0, through: patience, by: step) {
            if flock(folder.number, LOCK_EX | LOCK_NB) == 0 { return }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            if waited < patience { usleep(UInt32(step) * 1_000) }
        }
        throw .cannotWrite(
            path: path,
            reason: errno == EWOULDBLOCK
                ? "another process has locked the folder (lsof names it)" : SystemError.text(errno))
    }

    /// Creates a folder that only its owner can enter, unless the name exists.
    /// - Parameter isOwnedLikeParent: Gives a folder created by root the owner of its parent.
    static func make(_ path: String, isOwnedLikeParent: Bool = false) throws(CertificateError) {
        let end = path.utf8.lastIndex { $0 != UInt8(ascii: "/") }
        guard let end else { return }
        let (parent, name) = try ofFile(String(path[...end]))
        guard mkdirat(parent.folder.number, name, 0o700) == 0 else {
            if errno == EEXIST { return }
            throw parent.cannotWrite(name)
        }
        guard isOwnedLikeParent, geteuid() == 0 else { return }
        let made = HeldDescriptor(openat(parent.folder.number, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))
        var around = stat()
        guard made.isOpen, fstat(parent.folder.number, &around) == 0,
            fchown(made.number, around.st_uid, around.st_gid) == 0
        else { throw parent.cannotWrite(name) }
    }

    /// Reads a file, and rejects a link. `.owner` rejects a file that is not private
    /// (``ProtectedFile/isPrivate(_:)``).
    public func read(_ name: String, access: ProtectedFile.Access) throws(CertificateError) -> SecureBytes {
        let descriptor = HeldDescriptor(
            openat(folder.number, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC))
        guard descriptor.isOpen else {
            throw .cannotRead(path: file(name), reason: Self.reading(errno))
        }
        return try ProtectedFile.contents(of: descriptor.number, path: file(name), access: access)
    }

    /// Writes a file atomically: after a crash, it has either all old or all new contents.
    ///
    /// If root replaces a file, its owner stays, because the server has to read files that an administrator changes. A
    /// new file gets the folder's owner.
    /// - Parameter other: The file whose owner the new one gets. Nil for the owner of the replaced file.
    public func write(
        _ contents: some ByteSource, to name: String, access: ProtectedFile.Access,
        existing: ProtectedFile.ExistingFile, ownedLike other: String? = nil
    ) throws(CertificateError) {
        if existing == .replace { try requireReplaceable(name) }
        let temporary = "\(name).\(Hex.encode(SecureRandom.bytes(8))).tmp"
        do throws(CertificateError) {
            try writeNew(contents, to: temporary, access: access, ownedLike: existing == .replace ? other ?? name : nil)
            switch existing {
            case .replace:
                guard renameat(folder.number, temporary, folder.number, name) == 0 else { throw cannotWrite(name) }
            case .refuse:
                // A hard link fails if the name exists. A rename does not.
                guard linkat(folder.number, temporary, folder.number, name, 0) == 0 else {
                    throw errno == EEXIST ? .alreadyExists(path: file(name)) : cannotWrite(name)
                }
                unlinkat(folder.number, temporary, 0)
            }
        } catch {
            unlinkat(folder.number, temporary, 0)
            throw error
        }
        guard fsync(folder.number) == 0 else { throw .cannotWrite(path: path, reason: SystemError.text(errno)) }
    }

    /// Rejects a link. A file would replace the link, and its target would stay unchanged. Root must not follow a link
    /// of a user with fewer rights.
    public func requireReplaceable(_ name: String) throws(CertificateError) {
        guard let status = status(name), status.st_mode & S_IFMT == S_IFLNK else { return }
        throw .cannotWrite(path: file(name), reason: "it is a link, and only files are replaced")
    }

    /// Returns whether the name exists, also as a broken link.
    /// - Throws: ``CertificateError`` when the system reports another error.
    public func exists(_ name: String) throws(CertificateError) -> Bool {
        if status(name) != nil { return true }
        guard errno == ENOENT else { throw .cannotRead(path: file(name), reason: SystemError.text(errno)) }
        return false
    }

    /// Renames a file, and replaces `other`.
    func rename(_ name: String, to other: String) throws(CertificateError) {
        guard renameat(folder.number, name, folder.number, other) == 0 else { throw cannotWrite(other) }
        guard fsync(folder.number) == 0 else { throw .cannotWrite(path: path, reason: SystemError.text(errno)) }
    }

    /// Removes a file. A missing one is no error.
    func remove(_ name: String) throws(CertificateError) {
        guard unlinkat(folder.number, name, 0) == 0 || errno == ENOENT else { throw cannotWrite(name) }
    }

    private func file(_ name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

    private func cannotWrite(_ name: String) -> CertificateError {
        .cannotWrite(path: file(name), reason: SystemError.text(errno))
    }

    private func status(_ name: String) -> stat? {
        var status = stat()
        return fstatat(folder.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    private func writeNew(
        _ contents: some ByteSource, to name: String, access: ProtectedFile.Access, ownedLike other: String?
    ) throws(CertificateError) {
        // The file is private from the start. The mode is widened after all bytes are written.
        let descriptor = HeldDescriptor(
            openat(
                folder.number, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                ProtectedFile.Access.owner.mode))
        guard descriptor.isOpen else { throw cannotWrite(name) }
        try contents.withContiguousBytes { bytes throws(CertificateError) in
            var written = 0
            while written < bytes.count {
                let count = writeRetrying(descriptor.number, UnsafeRawBufferPointer(rebasing: bytes[written...]))
                guard count > 0 else { throw cannotWrite(name) }
                written += count
            }
        }
        var mode = access.mode
        if let other, geteuid() == 0, let replaced = status(other) ?? status(".") {
            guard fchown(descriptor.number, replaced.st_uid, replaced.st_gid) == 0 else { throw cannotWrite(name) }
            // A key of root that its group may read belongs to the server.
            if replaced.st_uid == 0, replaced.st_mode & S_IFMT == S_IFREG { mode |= replaced.st_mode & 0o040 }
        }
        // The process's umask must not affect the permissions of a key.
        guard fchmod(descriptor.number, mode) == 0, fsync(descriptor.number) == 0 else {
            throw cannotWrite(name)
        }
    }
}

// MARK: Path of a folder

extension ProtectedFolder {
    /// The maximum number of links on the way, which is that of the system.
    private static let linkLimit = 40

    private static func open(_ path: String) throws(CertificateError) -> HeldDescriptor {
        let folder = HeldDescriptor(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        guard folder.isOpen else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        return folder
    }

    /// Opens the components of a path one by one, and checks each link before it follows it.
    private static func walk(_ path: String) throws(CertificateError) -> HeldDescriptor {
        func names(_ path: String) -> [String] {
            path.utf8.split(separator: UInt8(ascii: "/")).reversed().map { String(decoding: $0, as: UTF8.self) }
        }
        var current = HeldDescriptor(Glibc.open(path.hasPrefix("/") ? "/" : ".", O_DIRECTORY | __O_PATH | O_CLOEXEC))
        var left = names(path)
        var links = 0
        while let name = left.popLast() {
            let next = HeldDescriptor(openat(current.number, name, O_NOFOLLOW | __O_PATH | O_CLOEXEC))
            var status = stat()
            guard next.isOpen, fstat(next.number, &status) == 0 else {
                throw .cannotRead(path: path, reason: SystemError.text(errno))
            }
            guard status.st_mode & S_IFMT == S_IFLNK else {
                current = next
                continue
            }
            links += 1
            guard links <= linkLimit else { throw .cannotRead(path: path, reason: SystemError.text(ELOOP)) }
            guard status.st_uid == 0 else {
                throw .cannotRead(
                    path: path,
                    reason: "\(name) is a link that root does not own: name its target instead")
            }
            let target = try target(of: next, on: path)
            if target.hasPrefix("/") { current = HeldDescriptor(Glibc.open("/", O_DIRECTORY | __O_PATH | O_CLOEXEC)) }
            left += names(target)
        }
        let folder = HeldDescriptor(openat(current.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        guard folder.isOpen else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        return folder
    }

    private static func target(of link: HeldDescriptor, on path: String) throws(CertificateError) -> String {
        var bytes = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlinkat(link.number, "", &bytes, bytes.count)
        guard count > 0, count < bytes.count else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        return String(decoding: bytes.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static func reading(_ number: Int32) -> String {
        number == ELOOP ? "it is a link, and links are not followed here" : SystemError.text(number)
    }
}
