import Foundation

/// Records the account of a private folder, even after the process has ended. It is a file with the path of the
/// account's folder, locked by the process.
final class Claim: Sendable {
    private let descriptor: Int32

    private static let name = ".saltern-edit"

    /// Creates the file.
    /// - Returns: nil when the folder cannot be written.
    init?(on folder: String, for account: String) {
        descriptor = open(folder + "/" + Self.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        // Locked before it has content: another process ignores an empty one.
        let bytes = Array(account.utf8)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, write(descriptor, bytes, bytes.count) == bytes.count else {
            close(descriptor)
            unlink(folder + "/" + Self.name)
            return nil
        }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Returns true when the folder belongs to this user and this account, and no process uses it.
    static func isAbandoned(_ folder: String, of account: String) -> Bool {
        var status = stat()
        guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
            return false
        }
        let descriptor = open(folder + "/" + name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0, Array(account.utf8) == Array(bytes.prefix(count)) else { return false }
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }
}
