public import Cryptography
internal import Glibc

/// Files that hold keys and certificates: read with their permissions checked, replaced as a whole or not at all.
public enum ProtectedFile {
    /// Far more than any chain of certificates; keeps a wrong path from filling the memory.
    private static let maximumByteCount = 1 << 20

    /// Who may read a file.
    public enum Access: Sendable {
        case owner
        case everyone

        var mode: mode_t {
            switch self {
            case .owner: 0o600
            case .everyone: 0o644
            }
        }
    }

    /// What happens when there is a file of that name.
    public enum ExistingFile: Sendable {
        case refuse
        case replace
    }

    /// The contents of a file; `.owner` refuses one that its group or others can read or write.
    public static func read(_ path: String, access: Access) throws(CertificateError) -> SecureBytes {
        // Without O_NONBLOCK a named pipe would stop the server here until somebody writes to it.
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        defer { close(descriptor) }
        // The permissions are those of the open file, so that nobody can swap it between check and use.
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .cannotRead(path: path, reason: "not a file") }
        if access == .owner, status.st_mode & 0o077 != 0 {
            throw .keyFileNotPrivate(path: path, mode: UInt32(status.st_mode & 0o777))
        }
        guard status.st_size <= maximumByteCount else { throw .fileTooLarge(path: path) }
        return try SecureBytes(count: Int(status.st_size)) { buffer throws(CertificateError) in
            var filled = 0
            while filled < buffer.count {
                let count = readRetrying(descriptor, UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
                guard count >= 0 else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
                guard count > 0 else { throw .cannotRead(path: path, reason: "the file changed while it was read") }
                filled += count
            }
        }
    }

    /// Writes a file so that, whenever the machine stops, either the old contents are there or all of the new. Whose file is
    /// replaced, his is the new one, when root does it: the server has to be able to read what an admin has changed.
    public static func write(
        _ contents: some ByteSource, to path: String, access: Access, existing: ExistingFile
    ) throws(CertificateError) {
        if existing == .replace { try requireReplaceable(path) }
        let temporary = "\(path).\(Hex.encode(SecureRandom.bytes(8))).tmp"
        do throws(CertificateError) {
            try writeNew(contents, to: temporary, access: access, ownedLike: existing == .replace ? path : nil)
            switch existing {
            case .replace:
                guard rename(temporary, path) == 0 else {
                    throw .cannotWrite(path: path, reason: SystemError.text(errno))
                }
            case .refuse:
                // link() fails when the name is taken, which rename() does not.
                guard link(temporary, path) == 0 else {
                    throw errno == EEXIST
                        ? .alreadyExists(path: path) : .cannotWrite(path: path, reason: SystemError.text(errno))
                }
                unlink(temporary)
            }
        } catch {
            unlink(temporary)
            throw error
        }
        try synchronizeDirectory(of: path)
    }

    /// Refuses a link: in its place there would be a file, and what it leads to would stay as it is. Root is not to follow one
    /// either, which may be of somebody with fewer rights.
    public static func requireReplaceable(_ path: String) throws(CertificateError) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK else { return }
        throw .cannotWrite(path: path, reason: "it is a link, and only files are replaced")
    }

    /// True when the path names anything at all, be it a link that leads nowhere.
    public static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// Makes a directory that only its owner can enter, unless it is there.
    public static func makeDirectory(_ path: String) throws(CertificateError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw .cannotWrite(path: path, reason: SystemError.text(errno))
        }
    }

    private static func writeNew(
        _ contents: some ByteSource, to path: String, access: Access, ownedLike other: String?
    ) throws(CertificateError) {
        // Private from the first moment: the mode is widened only when everything is written.
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, Access.owner.mode)
        guard descriptor >= 0 else { throw .cannotWrite(path: path, reason: SystemError.text(errno)) }
        defer { close(descriptor) }
        try contents.withContiguousBytes { bytes throws(CertificateError) in
            var written = 0
            while written < bytes.count {
                let count = writeRetrying(descriptor, UnsafeRawBufferPointer(rebasing: bytes[written...]))
                guard count > 0 else { throw .cannotWrite(path: path, reason: SystemError.text(errno)) }
                written += count
            }
        }
        var replaced = stat()
        if let other, geteuid() == 0, lstat(other, &replaced) == 0 {
            guard fchown(descriptor, replaced.st_uid, replaced.st_gid) == 0 else {
                throw .cannotWrite(path: path, reason: SystemError.text(errno))
            }
        }
        // The process's umask must not decide who can read a key.
        guard fchmod(descriptor, access.mode) == 0, fsync(descriptor) == 0 else {
            throw .cannotWrite(path: path, reason: SystemError.text(errno))
        }
    }

    private static func synchronizeDirectory(of path: String) throws(CertificateError) {
        let directory = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .cannotWrite(path: directory, reason: SystemError.text(errno)) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .cannotWrite(path: directory, reason: SystemError.text(errno)) }
    }
}
