import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

extension TestApplication {
    /// A client with the credential of a new service.
    func service(_ name: String, for audience: String) async throws -> TestClient {
        let (name, audience) = (try #require(ServiceName(name)), try #require(AudienceName(audience)))
        let signature = AuditSignature(actor: .user(0), now: clock.now)
        let credential = try await asOwner {
            try await ServiceAdministration(database: $0).create(name, for: audience, by: signature)
        }
        return client.with(token: credential.text)
    }

    /// Runs SQL that an administrator has no command for.
    func restrictSessions() async throws { try await administer("UPDATE saltern.sessions SET restricted = true") }
}

/// A token taken apart without any judgement.
struct OpenedToken {
    let header: JSONValue
    let claims: JSONValue
    let message: [UInt8]
    let signature: [UInt8]

    init(_ text: String?) throws {
        let parts = try #require(text).split(separator: ".", omittingEmptySubsequences: false)
        try #require(parts.count == 3)
        header = try JSONParser().parse(Base64URL.decode(Array(parts[0].utf8)))
        claims = try JSONParser().parse(Base64URL.decode(Array(parts[1].utf8)))
        message = Array((parts[0] + "." + parts[1]).utf8)
        signature = try Base64URL.decode(Array(parts[2].utf8))
    }

    /// The claim of a name.
    subscript(name: String) -> JSONValue? { try? claims.object()[name] }

    /// The text of a claim.
    func string(_ name: String) -> String? { try? self[name]?.string() }
}
