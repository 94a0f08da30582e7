public import Cryptography
internal import Glibc

/// Reads files with keys and certificates after a check of their permissions. ``ProtectedFolder`` writes them.
public enum ProtectedFile {
    /// The maximum size in bytes, far above any certificate chain. A wrong path cannot fill the memory.
    private static let maximumByteCount = 1 << 20

    /// The users that may read a file.
    public enum Access: Sendable {
        case owner
        /// The owner, and a group that may read the file: another program's key, as the source of a copy.
        case ownerAndGroup
        case everyone

        var mode: mode_t {
            switch self {
            case .owner: 0o600
            case .ownerAndGroup: 0o640
            case .everyone: 0o644
            }
        }
    }

    /// The handling of an existing file with the same name.
    public enum ExistingFile: Sendable {
        case refuse
        case replace
    }

    /// Reads a file. `.owner` rejects one that is not private (``isPrivate(_:)``).
    public static func read(_ path: String, access: Access) throws(CertificateError) -> SecureBytes {
        // Without O_NONBLOCK, a named pipe would block the server until another process writes to it.
        let descriptor = HeldDescriptor(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
        guard descriptor.isOpen else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        return try contents(of: descriptor.number, path: path, access: access)
    }

    /// Reads an open file.
    /// - Parameter path: Path for messages.
    static func contents(
        of descriptor: Int32, path: String, access: Access
    ) throws(CertificateError) -> SecureBytes {
        // These are the permissions of the open file, so it cannot be exchanged between check and use.
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .cannotRead(path: path, reason: "not a file") }
        let isAllowed =
            switch access {
            case .owner: isPrivate(status)
            case .ownerAndGroup: status.st_mode & 0o037 == 0
            case .everyone: true
            }
        guard isAllowed else { throw .keyFileNotPrivate(path: path, mode: UInt32(status.st_mode & 0o777)) }
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

    /// Returns whether only users that the owner has chosen can read the file, by libpq's rule for key files.
    ///
    /// Group and others have no rights. Exception: if root owns the file, its group may read it. This serves processes
    /// with a user that owns no files, as with a Secret of Kubernetes. Root's own commands read the same file.
    static func isPrivate(_ status: stat) -> Bool {
        status.st_mode & (status.st_uid == 0 ? 0o037 : 0o077) == 0
    }

    /// Returns whether the path exists, also as a broken link. Returns true when the system reports another error.
    public static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR)
    }
}
