internal import Cryptography
internal import Postgres
internal import HTTPCore

/// What a service of the operator authenticates with: `sls_` and base64url of 32 random bytes. Only its hash is stored.
public struct ServiceCredential: Sendable {
    private let secret: SecureBytes

    static let prefix = "sls_"
    static let secretByteCount = 32

    /// Draws a credential.
    static func random() -> ServiceCredential {
        ServiceCredential(secret: SecureRandom.secureBytes(secretByteCount))
    }

    /// The stored form.
    var hash: ServiceHash { ServiceHash(SHA256.hash(secret)) }

    /// The text that the service gets, once.
    public var text: String { Self.prefix + Base64URL.encodeToString(secret) }
}

/// SHA-256 of a service credential's random part.
struct ServiceHash: StoredDigest {
    let digest: SHA256Digest
}

/// What a request shows of a service credential: the hash, never the secret.
struct PresentedServiceCredential: Sendable {
    let hash: ServiceHash

    /// Reads `Authorization: Bearer sls_…` (RFC 6750 §2.1).
    /// - Throws: ``ServiceUnauthenticated`` when the field is absent, comes twice or is anything else, such as the token of
    ///   a session.
    init(_ fields: RequestFields) throws(ServiceUnauthenticated) {
        let hash = BearerSecret.read(
            fields, prefix: ServiceCredential.prefix, byteCount: ServiceCredential.secretByteCount
        ) { secret in
            ServiceHash(SHA256.hash(secret))
        }
        guard let hash else { throw ServiceUnauthenticated() }
        self.hash = hash
    }
}

/// The request shows no credential of a service. Malformed, unknown and removed ones all answer the same.
struct ServiceUnauthenticated: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "service_unauthenticated",
            detail: "Send the credential of a service: Authorization: Bearer sls_….",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}
