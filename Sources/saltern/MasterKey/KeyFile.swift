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
