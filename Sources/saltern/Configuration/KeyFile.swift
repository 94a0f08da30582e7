import CommandLineKit
import Cryptography
import Postgres
import SalternServer
import TransportSecurity

/// A file of secret keys that only its owner may read.
struct KeyFile: Sendable {
    let path: String

    /// The text of the file.
    func read() throws(CommandFailure) -> SecureBytes {
        do throws(CertificateError) {
            return try ProtectedFile.read(path, access: .owner)
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// Writes a new file. Overwrites nothing.
    func create(_ text: SecureBytes) throws(CommandFailure) {
        do throws(CertificateError) {
            let (folder, name) = try ProtectedFolder.ofFile(path)
            try folder.write(text, to: name, access: .owner, existing: .refuse)
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// Runs `body`, and names the file in its error.
    func naming<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(CommandFailure) -> Result {
        do throws(Failure) { return try body() } catch { throw CommandFailure("\(path): \(error)") }
    }

    /// Replaces the text by the result of `change`, under a lock against other changes.
    ///
    /// Without the lock, two changes at once would each replace the other's keys. A lost key opens nothing ever again.
    /// - Parameter change: Returns the new text, and the value to return.
    func change<Value>(
        _ change: (SecureBytes) throws(CommandFailure) -> (text: SecureBytes, value: Value)
    ) throws(CommandFailure) -> Value {
        let folder: ProtectedFolder
        let name: String
        let read: SecureBytes
        do throws(CertificateError) {
            (folder, name) = try ProtectedFolder.ofFile(path)
            // The folder is locked, because the change replaces the file.
            try folder.lock()
            read = try folder.read(name, access: .owner)
        } catch {
            throw CommandFailure("\(error)")
        }
        let (text, value) = try change(read)
        do throws(CertificateError) {
            try folder.write(text, to: name, access: .owner, existing: .replace)
        } catch {
            throw CommandFailure("\(error)")
        }
        return value
    }
}

/// The file with the master key. Only its owner may read it.
struct MasterKeyFile: Sendable {
    let path: String

    private var file: KeyFile { KeyFile(path: path) }

    /// The keys in the file.
    func read() throws(CommandFailure) -> MasterKey {
        let text = try file.read()
        return try file.naming { () throws(MasterKeyError) in try MasterKey(text: text) }
    }

    /// Creates the file with a new key. Rejects an existing file.
    func create() throws(CommandFailure) -> MasterKey {
        let key = MasterKey.random()
        try file.create(key.text)
        return key
    }

    /// Replaces the keys by the result of `change`, under a lock.
    ///
    /// Two simultaneous changes would each write their own result, and a lost key can never open anything again.
    func change(
        _ change: (MasterKey) throws(MasterKeyError) -> MasterKey
    ) throws(CommandFailure) -> MasterKey {
        try file.change { text throws(CommandFailure) in
            let key = try file.naming { () throws(MasterKeyError) in try change(MasterKey(text: text)) }
            return (key.text, key)
        }
    }
}

extension Settings {
    /// Reads the path of the master key: `SALTERN_MASTER_KEY_FILE`.
    mutating func masterKeyFile() -> MasterKeyFile? {
        let path = requiredText(.masterKeyFile, "the file of the master key; saltern master-key create creates one")
        return path.isEmpty ? nil : MasterKeyFile(path: path)
    }

    mutating func masterKey(_ file: MasterKeyFile) -> MasterKey? {
        do throws(CommandFailure) {
            return try file.read()
        } catch {
            for message in error.messages { note("\(Setting.masterKeyFile): \(message)") }
            return nil
        }
    }
}

/// The path of the file: `--file FILE`, else `SALTERN_MASTER_KEY_FILE`.
struct MasterKeyFileOption {
    private let given: String?

    static let help = "  --file FILE      the file of the master key (\(Setting.masterKeyFile))"

    init(_ arguments: inout Arguments) throws(UsageError) { given = try arguments.option("--file") }

    func file(_ console: Console) throws(CommandFailure) -> MasterKeyFile {
        if let given { return MasterKeyFile(path: given) }
        var settings = Settings(console.environment)
        let file = settings.masterKeyFile()
        try settings.finish()
        guard let file else { throw CommandFailure("no file is named") }
        return file
    }
}

extension Console {
    /// Prints the names of the keys, the active one first.
    func printKeys(_ key: MasterKey) {
        for (index, id) in key.ids.enumerated() { print(index == 0 ? "active  \(id)" : "older   \(id)") }
    }
}

/// Reads and changes the file of the keys of identity tokens. Only its owner may read it.
struct SigningKeyFile: Sendable {
    let path: String

    private var file: KeyFile { KeyFile(path: path) }

    /// The keys in the file.
    func read() throws(CommandFailure) -> SigningKeys {
        let text = try file.read()
        return try file.naming { () throws(SigningKeyError) in try SigningKeys(text: text) }
    }

    /// Creates the file with a first key. Overwrites nothing.
    func create(at now: Timestamp) throws(CommandFailure) -> SigningKeys {
        let keys = try file.naming { () throws(SigningKeyError) in try SigningKeys.first(at: now) }
        try file.create(keys.text)
        return keys
    }

    /// Replaces the keys by the result of `change`, under a lock against other changes.
    func change(
        _ change: (SigningKeys) throws(SigningKeyError) -> SigningKeys
    ) throws(CommandFailure) -> SigningKeys {
        try file.change { text throws(CommandFailure) in
            let keys = try file.naming { () throws(SigningKeyError) in try change(SigningKeys(text: text)) }
            return (keys.text, keys)
        }
    }
}
