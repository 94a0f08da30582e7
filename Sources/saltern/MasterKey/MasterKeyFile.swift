import CommandLineKit
import Cryptography
import SalternServer
import TransportSecurity

/// The file with the master key. Only its owner may read it.
struct MasterKeyFile: Sendable {
    let path: String

    func read() throws(CommandFailure) -> MasterKey {
        do {
            return try MasterKey(text: ProtectedFile.read(path, access: .owner))
        } catch let error as MasterKeyError {
            throw CommandFailure("\(path): \(error)")
        } catch {
            throw CommandFailure("\(error)")
        }
    }

    /// Creates the file with a new key. Rejects an existing file.
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

    /// Replaces the keys by the result of `change`, under a lock.
    ///
    /// Two simultaneous changes would each write their own result, and a lost key can never open anything again.
    func change(
        _ change: (MasterKey) throws(MasterKeyError) -> MasterKey
    ) throws(CommandFailure) -> MasterKey {
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
