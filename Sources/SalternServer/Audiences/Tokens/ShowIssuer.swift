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
