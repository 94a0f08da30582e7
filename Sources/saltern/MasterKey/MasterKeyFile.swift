import CommandLineKit
import Glibc
import SalternServer
import TransportSecurity

/// The file that holds the master key. Only its owner may read it.
struct MasterKeyFile: Sendable {
    let path: String

    /// The keys in the file.
    func read() throws(CommandFailure) -> MasterKey {
        do {
            return try MasterKey(text: ProtectedFile.read(path, access: .owner))
        } catch let error as MasterKeyError {
            throw CommandFailure("\(path): \(error)")
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// Makes the file with a new key. Overwrites nothing.
    func create() throws(CommandFailure) -> MasterKey {
        let key = MasterKey.random()
        try write(key, existing: .refuse)
        return key
    }

    /// Replaces the keys by what `change` makes of them, while nobody else does the same.
    ///
    /// Two changes at once would each write what it has read, and a key that is lost opens nothing ever again.
    func change(
        _ change: (MasterKey) throws(MasterKeyError) -> MasterKey
    ) throws(CommandFailure) -> MasterKey {
        // The directory is locked, not the file: the file is another one after the change.
        let directory = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CommandFailure("cannot open the directory \(directory)") }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX) == 0 else { throw CommandFailure("cannot lock the directory \(directory)") }
        let key: MasterKey
        let read = try read()
        do throws(MasterKeyError) {
            key = try change(read)
        } catch {
            throw CommandFailure("\(path): \(error)")
        }
        try write(key, existing: .replace)
        return key
    }

    private func write(_ key: MasterKey, existing: ProtectedFile.ExistingFile) throws(CommandFailure) {
        do throws(CertificateError) {
            try ProtectedFile.write(key.text, to: path, access: .owner, existing: existing)
        } catch {
            throw CommandFailure("\(error)")
        }
    }
}

extension Settings {
    /// Where the master key is: `SALTERN_MASTER_KEY_FILE`.
    mutating func masterKeyFile() -> MasterKeyFile? {
        let path = requiredText(
            "SALTERN_MASTER_KEY_FILE", "where the master key is; saltern master-key create makes one")
        return path.isEmpty ? nil : MasterKeyFile(path: path)
    }

    /// The keys in that file.
    mutating func masterKey(_ file: MasterKeyFile) -> MasterKey? {
        do throws(CommandFailure) {
            return try file.read()
        } catch {
            for message in error.messages { note("SALTERN_MASTER_KEY_FILE: \(message)") }
            return nil
        }
    }
}
