public import Foundation

/// A token that proves the account to a service of the operator, for some minutes.
///
/// It is a JSON Web Token for one audience. Anyone who has it can use it until it expires, so send it over TLS only,
/// and do not print it.
public struct IdentityToken: Decodable, Sendable {
    /// The compact form, for `Authorization: Bearer`.
    public let token: String
    /// The time of its expiry.
    public let expiresAt: Date
}

extension IdentityToken: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "IdentityToken(redacted)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension SalternAPI {
    /// `POST /v1/tokens`: a token with which the app authenticates to a service of the operator.
    public func createToken(for audience: String, _ token: Token) async throws(APIError) -> IdentityToken {
        struct Body: Encodable { let audience: String }
        return try await call(Self.request(.post, "/v1/tokens", token: token, Body(audience: audience)))
    }
}
