internal import Cryptography
internal import HTTPCore
public import Postgres

/// A program of the operator that inspects its audience's tokens.
public struct Service: Sendable, Equatable {
    public let name: ServiceName
    public let audience: AudienceName
    public let createdAt: Timestamp
}

/// The name of a service.
public typealias ServiceName = OperatorName<Service>

extension Service: DecodableRow {
    public init(row: inout RowReader) throws(PostgresError) {
        name = try row.next()
        audience = try row.next()
        createdAt = try row.next()
    }
}

/// Authenticates a service of the operator: `sls_` and base64url of 32 random bytes. Only its hash is stored.
public struct ServiceCredential: Sendable {
    private let secret: SecureBytes

    static let prefix = "sls_"
    static let secretByteCount = 32

    /// Generates a random credential.
    static func random() -> ServiceCredential {
        ServiceCredential(secret: SecureRandom.secureBytes(secretByteCount))
    }

    /// The stored form.
    var hash: ServiceHash { ServiceHash(SHA256.hash(secret)) }

    /// The text that the operator receives once.
    public var text: String { Self.prefix + Base64URL.encodeToString(secret) }
}

/// SHA-256 of a service credential's random part.
struct ServiceHash: StoredDigest {
    let digest: SHA256Digest
}

/// The hash of the service credential in a request.
struct PresentedServiceCredential: Sendable {
    let hash: ServiceHash

    /// Reads `Authorization: Bearer sls_…` (RFC 6750 §2.1).
    /// - Throws: ``ServiceUnauthenticated`` if the field is absent, repeated or anything else, such as a session token.
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

/// Rejects a request without a valid service credential. Malformed, unknown and removed credentials get the same reply.
struct ServiceUnauthenticated: ProblemConvertible {
    var problem: Problem {
        Problem(
            .unauthorized, "service_unauthenticated",
            detail: "Send the credential of a service: Authorization: Bearer sls_….",
            responseFields: ["WWW-Authenticate": "Bearer"])
    }
}

/// Authenticates the service that sends a request. Endpoints of services reach an audience only through it.
struct ServiceAuthentication: Sendable {
    let database: PostgresClient

    /// Returns the service of the request's credential.
    /// - Throws: ``ServiceUnauthenticated``, or a `PostgresError`.
    func service(of request: Request) async throws -> Service {
        let credential = try PresentedServiceCredential(request.head.fields)
        guard let service = try await database.execute(FindService(hash: credential.hash)).first else {
            throw ServiceUnauthenticated()
        }
        return service
    }
}

/// Finds the service of a credential.
struct FindService: Statement {
    typealias Row = Service

    let hash: ServiceHash

    static let isReadOnly = true
    static let sql: SQL<Self> =
        "SELECT s.service, s.audience, s.created_at FROM saltern.services s WHERE s.token_hash = \(\.hash)"
}
