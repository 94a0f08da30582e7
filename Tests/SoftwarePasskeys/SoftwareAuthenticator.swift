public import Foundation
public import SalternClient
internal import Cryptography
internal import Synchronization

/// An authenticator for tests: P-256 keys, attestation `none`, and PRF in the way of a security key's hmac-secret.
public final class SoftwareAuthenticator: PasskeyAuthenticator {
    private struct Credential: Codable {
        let id: [UInt8]
        let site: String
        let userHandle: [UInt8]
        /// Point and number.
        let key: [UInt8]
        /// The key of hmac-secret.
        let secret: [UInt8]
        var signCount: UInt32
    }

    /// The faults of an authenticator.
    public struct Faults: Sendable {
        /// It has no PRF.
        public var hasNoOutput = false
        /// It does not answer.
        public var error: PasskeyError?
        public init() {}
    }

    private let file: URL?
    private let origin: String?
    private let credentials: Mutex<[Credential]>
    private let answers = Mutex(0)
    private let faults = Mutex(Faults())

    /// - Parameters:
    ///   - file: Keeps the credentials.
    ///   - origin: Nil for `https://` and the site.
    public init(file: URL? = nil, origin: String? = nil) {
        self.file = file
        self.origin = origin
        let kept = file.flatMap { try? JSONDecoder().decode([Credential].self, from: Data(contentsOf: $0)) }
        credentials = Mutex(kept ?? [])
    }

    /// The number of answers to `get`.
    public var answerCount: Int { answers.withLock { $0 } }

    public func set(_ faults: Faults) { self.faults.withLock { $0 = faults } }

    public func create(_ options: PasskeyCreationOptions) async throws(PasskeyError) -> PasskeyRegistration {
        if let error = faults.withLock({ $0 }).error { throw error }
        let excluded = Set(options.excludeCredentials.map(\.id.bytes))
        if credentials.withLock({ $0.contains { excluded.contains($0.id) } }) { throw .exists }
        guard options.pubKeyCredParams.contains(where: { $0.alg == -7 }), let key = try? P256.PrivateKey.generate()
        else { throw .failed }
        let credential = Credential(
            id: SecureRandom.bytes(32), site: options.rp.id, userHandle: options.user.id.bytes,
            key: key.bytes.withUnsafeBytes { [UInt8]($0) }, secret: SecureRandom.bytes(32), signCount: 0)
        credentials.withLock { $0.append(credential) }
        keep()
        let point = key.publicKey.bytes
        // COSE_Key of ES256 (RFC 9053 §7.1.1).
        let cose: [UInt8] =
            [0xA5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32] + point[1...32] + [0x22, 0x58, 32] + point[33...64]
        let attested = [UInt8](repeating: 0, count: 16) + [0, 32] + credential.id + cose
        let data = data(credential, flags: 0x40, attested)
        var object: [UInt8] = [0xA3, 0x63] + Array("fmt".utf8) + [0x64] + Array("none".utf8)
        object += [0x67] + Array("attStmt".utf8) + [0xA0, 0x68] + Array("authData".utf8)
        object += [0x59, UInt8(data.count >> 8), UInt8(data.count & 0xFF)] + data
        return PasskeyRegistration(
            id: credential.id, clientDataJSON: clientData("webauthn.create", options.challenge, options.rp.id),
            attestationObject: object, publicKeyAlgorithm: -7)
    }

    public func get(
        _ options: PasskeyRequestOptions, prf input: [UInt8]?
    ) async throws(PasskeyError) -> PasskeyAnswer {
        let faults = faults.withLock { $0 }
        if let error = faults.error { throw error }
        let allowed = options.allowCredentials.map(\.id.bytes)
        let found = credentials.withLock { credentials -> Credential? in
            guard
                let index = credentials.lastIndex(where: {
                    $0.site == options.rpId && (allowed.isEmpty || allowed.contains($0.id))
                })
            else { return nil }
            credentials[index].signCount += 1
            return credentials[index]
        }
        guard let found, let key = try? ES256.SigningKey(P256.PrivateKey(SecureBytes(copying: found.key))) else {
            throw .noPasskey
        }
        keep()
        answers.withLock { $0 += 1 }
        let clientData = clientData("webauthn.get", options.challenge, options.rpId)
        let data = data(found, flags: 0, [])
        guard let signature = try? key.signature(of: data + SHA256.hash(clientData).bytes) else { throw .failed }
        let output = faults.hasNoOutput ? nil : input.map { Self.output(of: found, $0) }
        return PasskeyAnswer(
            PasskeyAssertion(
                id: found.id, clientDataJSON: clientData, authenticatorData: data, signature: Self.der(signature),
                userHandle: found.userHandle), output: output)
    }

    /// Forgets a credential, as a reset of a security key does.
    public func forgetAll() { credentials.withLock { $0 = [] } }

    private func keep() {
        guard let file else { return }
        let encoded = credentials.withLock { try? JSONEncoder().encode($0) }
        try? encoded?.write(to: file, options: .atomic)
    }

    private static func output(of credential: Credential, _ input: [UInt8]) -> SecretBytes {
        let salt = SHA256.hash(Array("WebAuthn PRF".utf8) + [0] + input).bytes
        let code = HMACSHA256.authenticationCode(for: salt, using: credential.secret)
        return SecretBytes(SecureBytes(copying: code.bytes))
    }

    /// With UP and UV.
    private func data(_ credential: Credential, flags: UInt8, _ rest: [UInt8]) -> [UInt8] {
        let count = withUnsafeBytes(of: credential.signCount.bigEndian) { [UInt8]($0) }
        return SHA256.hash(credential.site.utf8).bytes + [0x05 | flags] + count + rest
    }

    private func clientData(_ type: String, _ challenge: Base64URLBytes, _ site: String) -> [UInt8] {
        let challenge = Base64URL.encodeToString(challenge.bytes)
        let origin = origin ?? "https://\(site)"
        return Array(#"{"type":"\#(type)","challenge":"\#(challenge)","origin":"\#(origin)","crossOrigin":false}"#.utf8)
    }

    /// ECDSA-Sig-Value (RFC 3279 §2.2.3) of r and s.
    private static func der(_ signature: [UInt8]) -> [UInt8] {
        func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var bytes = Array(bytes.drop { $0 == 0 })
            if bytes.first.map({ $0 >= 0x80 }) ?? true { bytes.insert(0, at: 0) }
            return [2, UInt8(bytes.count)] + bytes
        }
        let numbers = integer(signature[..<32]) + integer(signature[32...])
        return [0x30, UInt8(numbers.count)] + numbers
    }
}
