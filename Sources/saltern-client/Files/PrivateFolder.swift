import CommandLineKit
import Foundation

#if canImport(CPlatform)
    import CPlatform
#endif

/// A folder in memory that only its owner can enter, for plaintext that a program needs as a file. Its content is
/// overwritten and removed.
struct PrivateFolder {
    let path: String
    private let claim: Claim

    /// Creates a folder.
    /// - Parameters:
    ///   - account: The folder of the account's store.
    ///   - shared: The folder for all users' files in memory.
    /// - Throws: ``CommandFailure`` when there is no file system in memory. On a disk, removed text stays readable.
    init(_ environment: [String: String], of account: URL, shared: String = sharedMemory) throws(CommandFailure) {
        for base in Self.bases(environment, shared) {
            var template = Array("\(base)/\(Self.prefix)XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { continue }
            let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard let claim = Claim(on: path, for: account.path) else {
                rmdir(path)
                continue
            }
            (self.path, self.claim) = (path, claim)
            return
        }
        throw CommandFailure(
            "there is no file system in memory (XDG_RUNTIME_DIR, /dev/shm) to edit on: use get and put instead",
            status: ExitStatus.store, code: "no_memory_file_system")
    }

    private static let prefix = "saltern-client-"

    static let sharedMemory = "/dev/shm"

    private static func bases(_ environment: [String: String], _ shared: String = sharedMemory) -> [String] {
        [environment["XDG_RUNTIME_DIR"], shared].compactMap(\.self).filter(isInMemory)
    }

    /// Returns folders of the account whose command was ended by force. They may contain the user's text, so they stay.
    static func abandoned(_ environment: [String: String], of account: URL) -> [String] {
        bases(environment).flatMap { base in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: base)) ?? []
            return names.sorted().filter { $0.hasPrefix(prefix) }.map { base + "/" + $0 }
        }.filter { Claim.isAbandoned($0, of: account.path) }
    }

    private static func isInMemory(_ path: String) -> Bool {
        #if canImport(CPlatform)
            var status = statfs()
            // TMPFS_MAGIC and RAMFS_MAGIC (linux/magic.h).
            return statfs(path, &status) == 0 && [0x0102_1994, 0x8584_58f6].contains(Int(status.f_type))
        #else
            return false
        #endif
    }

    /// Creates a file in the folder.
    func write(_ name: String, _ bytes: UnsafeRawBufferPointer) throws(CommandFailure) -> String {
        let file = path + "/" + name
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.unusable }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            guard count > 0 else { throw Self.unusable }
            rest = rest.dropFirst(count)
        }
        return file
    }

    private static let unusable = CommandFailure(
        "the file to edit cannot be written", status: ExitStatus.store, code: "file_unusable")

    /// Overwrites and removes everything, including files of an editor.
    func wipe() {
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        for name in names { Self.overwrite(path + "/" + name) }
        try? FileManager.default.removeItem(atPath: path)
    }

    private static func overwrite(_ file: String) {
        let descriptor = open(file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return }
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        var rest = Int(status.st_size)
        while rest > 0 {
            let count = Foundation.write(descriptor, zeros, min(rest, zeros.count))
            if count <= 0 { return }
            rest -= count
        }
    }
}

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
