internal import HTTPCore

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
