import CommandLineKit
import Cryptography
import Postgres
import SalternServer

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
