import CommandLineKit
import Cryptography
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
        do throws(CertificateError) {
            let (folder, name) = try ProtectedFolder.ofFile(path)
            try folder.write(key.text, to: name, access: .owner, existing: .refuse)
        } catch {
            throw CommandFailure("\(error)")
        }
        return key
    }

    /// Replaces the keys by what `change` makes of them, while nobody else does the same.
    ///
    /// Two changes at once would each write what it has read, and a key that is lost opens nothing ever again.
    func change(
        _ change: (MasterKey) throws(MasterKeyError) -> MasterKey
    ) throws(CommandFailure) -> MasterKey {
        let folder: ProtectedFolder
        let name: String
        let read: SecureBytes
        do throws(CertificateError) {
            (folder, name) = try ProtectedFolder.ofFile(path)
            // The folder is locked, not the file: the file is another one after the change.
            try folder.lock()
            read = try folder.read(name, access: .owner)
        } catch {
            throw CommandFailure("\(error)")
        }
        let key: MasterKey
        do throws(MasterKeyError) {
            key = try change(MasterKey(text: read))
        } catch {
            throw CommandFailure("\(path): \(error)")
        }
        do throws(CertificateError) {
            try folder.write(key.text, to: name, access: .owner, existing: .replace)
        } catch {
            throw CommandFailure("\(error)")
        }
        return key
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
