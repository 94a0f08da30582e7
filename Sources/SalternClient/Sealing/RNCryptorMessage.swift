public import Cryptography

/// RNCryptor's data format, version 3 (RNCryptor-Spec-v3), to read content that older apps have sealed.
public enum RNCryptorMessage {
    /// The reason for which a message was not opened.
    public enum Failure: Error, Hashable, Sendable {
        /// The message is not of this format, or was sealed in the other of its two modes.
        case malformed
        /// The key or password is wrong, or the bytes were changed.
        case notAuthentic
    }

    private static let saltCount = 8
    private static let codeCount = 32
    /// The specification's number of iterations, which is too low for new content.
    private static let iterations = 10_000

    /// Opens a message of the key mode.
    public static func open(
        _ message: [UInt8], encryptionKey: SecureBytes, authenticationKey: SecureBytes
    ) throws(Failure) -> SecureBytes {
        try open(try Envelope(message, options: 0, saltCount: 0), encryptionKey, authenticationKey)
    }

    /// Opens a message of the password mode.
    /// - Parameter password: As UTF-8.
    public static func open(_ message: [UInt8], password: some ByteSource) throws(Failure) -> SecureBytes {
        let envelope = try Envelope(message, options: 1, saltCount: saltCount)
        return try open(
            envelope, try key(password, envelope.encryptionSalt), try key(password, envelope.authenticationSalt))
    }

    private struct Envelope {
        let authenticated: ArraySlice<UInt8>
        let encryptionSalt: ArraySlice<UInt8>
        let authenticationSalt: ArraySlice<UInt8>
        let vector: [UInt8]
        let ciphertext: ArraySlice<UInt8>
        let code: ArraySlice<UInt8>

        init(_ message: [UInt8], options: UInt8, saltCount: Int) throws(Failure) {
            let start = 2 + 2 * saltCount + AESCBC.blockByteCount
            let end = message.count - codeCount
            guard end - start >= AESCBC.blockByteCount, (end - start) % AESCBC.blockByteCount == 0, message[0] == 3,
                message[1] == options
            else { throw .malformed }
            authenticated = message[..<end]
            encryptionSalt = message[2..<2 + saltCount]
            authenticationSalt = message[2 + saltCount..<2 + 2 * saltCount]
            vector = Array(message[2 + 2 * saltCount..<start])
            ciphertext = message[start..<end]
            code = message[end...]
        }
    }

    private static func open(
        _ envelope: Envelope, _ encryptionKey: SecureBytes, _ authenticationKey: SecureBytes
    ) throws(Failure) -> SecureBytes {
        let code = HMACSHA256.authenticationCode(for: envelope.authenticated, using: authenticationKey)
        guard constantTimeEquals(code, envelope.code) else { throw .notAuthentic }
        do throws(AESCBC.Failure) {
            return try AESCBC.decrypt(envelope.ciphertext, using: encryptionKey, vector: envelope.vector)
        } catch {
            throw .notAuthentic
        }
    }

    private static func key(_ password: some ByteSource, _ salt: some ByteSource) throws(Failure) -> SecureBytes {
        do throws(PBKDF2.Failure) {
            return try PBKDF2.deriveKeyWithSHA1(from: password, salt: salt, iterations: iterations)
        } catch {
            throw .malformed
        }
    }
}
