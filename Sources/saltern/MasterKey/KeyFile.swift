import CommandLineKit
import Cryptography
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

    /// Replaces the text by the result of `change`, under a lock against other changes.
    ///
    /// Without the lock, two changes at once would each replace the other's keys. A lost key opens nothing ever again.
    func change(_ change: (SecureBytes) throws(CommandFailure) -> SecureBytes) throws(CommandFailure) {
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
        let text = try change(read)
        do throws(CertificateError) {
            try folder.write(text, to: name, access: .owner, existing: .replace)
        } catch {
            throw CommandFailure("\(error)")
        }
    }
}
