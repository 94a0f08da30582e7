public import Cryptography
internal import Glibc

/// Files that hold keys and certificates: read with their permissions checked. ``ProtectedFolder`` writes them.
public enum ProtectedFile {
    /// Far more than any chain of certificates; keeps a wrong path from filling the memory.
    private static let maximumByteCount = 1 << 20

    /// Who may read a file.
    public enum Access: Sendable {
        case owner
        /// Its owner, and a group that may read it: a key that was made for another program, which is copied from there.
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

    /// What happens when there is a file of that name.
    public enum ExistingFile: Sendable {
        case refuse
        case replace
    }

    /// The contents of a file; `.owner` refuses one that is not private (``isPrivate(_:)``).
    public static func read(_ path: String, access: Access) throws(CertificateError) -> SecureBytes {
        // Without O_NONBLOCK a named pipe would stop the server here until somebody writes to it.
        let descriptor = HeldDescriptor(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC))
        guard descriptor.isOpen else { throw .cannotRead(path: path, reason: SystemError.text(errno)) }
        return try contents(of: descriptor.number, path: path, access: access)
    }

    /// What is in an open file.
    /// - Parameter path: For messages.
    static func contents(
        of descriptor: Int32, path: String, access: Access
    ) throws(CertificateError) -> SecureBytes {
        // The permissions are those of the open file, so that nobody can swap it between check and use.
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

    /// Returns whether nobody may read the file whom its owner has not chosen, by PostgreSQL's rule for key files.
    ///
    /// Group and others have no right to a file, with one exception: where root owns it and this process is not root's, its
    /// group may read it. That is how a key reaches a process whose user does not own files, as from a Secret of Kubernetes.
    /// - Parameter user: The user that the process works as.
    static func isPrivate(_ status: stat, user: uid_t = geteuid()) -> Bool {
        let isRoots = status.st_uid == 0 && user != 0
        return status.st_mode & (isRoots ? 0o037 : 0o077) == 0
    }

    /// True when the path names anything at all, be it a link that leads nowhere, and also when the system does not say.
    public static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR)
    }
}
