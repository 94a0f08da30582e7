import CommandLineKit
import Cryptography
import SalternServer

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
        let path = requiredText(
            "SALTERN_MASTER_KEY_FILE", "the file of the master key; saltern master-key create creates one")
        return path.isEmpty ? nil : MasterKeyFile(path: path)
    }

    mutating func masterKey(_ file: MasterKeyFile) -> MasterKey? {
        do throws(CommandFailure) {
            return try file.read()
        } catch {
            for message in error.messages { note("SALTERN_MASTER_KEY_FILE: \(message)") }
            return nil
        }
    }
}
