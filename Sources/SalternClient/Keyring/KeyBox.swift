internal import Cryptography

/// Seals content to a P-256 key. This device does not have its private half:
///
///     head ‖ ephemeral public key (65) ‖ counter of the keyring (8) ‖ nonce (12) ‖ ciphertext ‖ tag (16)
///
/// The key is `HKDF(ECDH, salt: authentication key, info: label ‖ account id ‖ both public keys ‖ counter)`. Without
/// the authentication key no box can be made. No server has it.
enum KeyBox {
    private static let keyCount = P256.PublicKey.byteCount

    /// - Parameters:
    ///   - head: The beginning of the box, which it authenticates.
    ///   - counter: The counter of the keyring with which the box is sent.
    static func seal(
        _ content: SecureBytes, to publicKey: P256.PublicKey, _ authenticationKey: SecureBytes, label: String,
        account: AccountID, counter: UInt64, head: [UInt8]
    ) throws(SealedBox.Failure) -> [UInt8] {
        let ephemeral: P256.PrivateKey
        let secret: SecureBytes
        do throws(P256.Failure) {
            ephemeral = try .generate()
            secret = try ephemeral.sharedSecret(with: publicKey)
        } catch {
            throw .malformed
        }
        let head = head + ephemeral.publicKey.bytes + counter.bigEndianBytes
        let key = Self.key(secret, authenticationKey, label, account, ephemeral.publicKey, publicKey, counter)
        do throws(AESGCM.Failure) {
            return head + (try AESGCM.seal(content, using: key, authenticating: head))
        } catch {
            throw .tooLong
        }
    }

    /// - Parameter headCount: The number of bytes before the ephemeral key.
    static func open(
        _ sealed: [UInt8], headCount: Int, with privateKey: P256.PrivateKey, _ authenticationKey: SecureBytes,
        label: String, account: AccountID
    ) throws(Keyring.Failure) -> (content: SecureBytes, counter: UInt64) {
        let counterStart = headCount + keyCount
        let end = counterStart + 8
        guard sealed.count > end else { throw .malformed }
        let counter = sealed[counterStart..<end].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        do {
            let ephemeral = try P256.PublicKey(Array(sealed[headCount..<counterStart]))
            let key = Self.key(
                try privateKey.sharedSecret(with: ephemeral), authenticationKey, label, account, ephemeral,
                privateKey.publicKey, counter)
            return (try AESGCM.open(sealed[end...], using: key, authenticating: sealed[..<end]), counter)
        } catch {
            throw .notAuthentic
        }
    }

    /// Generates a key pair and an authentication key.
    /// - Returns: The public half, and the secrets that ``pair(_:)`` reads.
    static func newPair() throws(SealedBox.Failure) -> (P256.PublicKey, authentication: SecureBytes, SecureBytes) {
        guard let privateKey = try? P256.PrivateKey.generate() else { throw .malformed }
        let authenticationKey = SecureRandom.secureBytes(32)
        var writer = SecretWriter()
        writer.write(privateKey.bytes)
        writer.write(authenticationKey)
        return (privateKey.publicKey, authenticationKey, writer.bytes)
    }

    /// Reads public key (65) ‖ private key (32) ‖ authentication key (32).
    static func pair(_ bytes: SecureBytes) throws(Keyring.Failure) -> (P256.PrivateKey, SecureBytes) {
        var reader = SecretReader(bytes)
        guard let key = reader.secret(P256.PrivateKey.byteCount), let authentication = reader.secret(32),
            reader.isAtEnd
        else { throw .malformed }
        do { return (try P256.PrivateKey(key), authentication) } catch { throw .notAuthentic }
    }

    private static func key(
        _ secret: SecureBytes, _ authenticationKey: SecureBytes, _ label: String, _ account: AccountID,
        _ ephemeral: P256.PublicKey, _ recipient: P256.PublicKey, _ counter: UInt64
    ) -> SecureBytes {
        let info = Array(label.utf8) + account.bytes + ephemeral.bytes + recipient.bytes + counter.bigEndianBytes
        return HKDF.deriveKey(from: secret, salt: authenticationKey, info: info)
    }
}
