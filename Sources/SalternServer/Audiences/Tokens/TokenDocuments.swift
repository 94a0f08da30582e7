internal import HTTPCore

/// `GET /.well-known/oauth-authorization-server`: returns the address of the keys (RFC 8414).
///
/// Saltern has no OAuth endpoints and is no OpenID provider. RFC 8414 requires the list of response types, so the reply
/// contains an empty one.
struct ShowIssuer: OpenEndpoint {
    private let response: Response?

    init(_ parts: Dependencies) {
        response = TokenIssuing(parts).map { issuing in
            .json(fields: TokenDocument.fields) { writer in
                writer.object { writer in
                    writer.member("issuer", issuing.issuer.description)
                    writer.member("jwks_uri", issuing.issuer.description + "/.well-known/jwks.json")
                    writer.array("response_types_supported") { _ in }
                    writer.array("access_token_signing_alg_values_supported") { $0.string("ES256") }
                }
            }
        }
    }

    func respond(to request: Request) async throws -> Response {
        guard let response else { throw TokenProblem.notOffered }
        return response
    }
}

/// `GET /.well-known/jwks.json`: returns the public halves of all signing keys, including the next one (RFC 7517 §5).
struct ShowKeySet: OpenEndpoint {
    private let response: Response?

    init(_ parts: Dependencies) {
        response = TokenIssuing(parts).map { issuing in
            .json(fields: TokenDocument.fields, capacity: 1_024) { writer in
                writer.object { writer in
                    writer.array("keys") { writer in
                        for key in issuing.keys.keys { key.writePublicKey(to: &writer) }
                    }
                }
            }
        }
    }

    func respond(to request: Request) async throws -> Response {
        guard let response else { throw TokenProblem.notOffered }
        return response
    }
}

/// The public documents that services fetch to verify tokens.
enum TokenDocument {
    /// Lets services and proxies cache a document for five minutes.
    static let fields: HTTPFields = ["Cache-Control": "public, max-age=300, no-transform"]
}
