internal import HTTPCore

/// `GET /v1/sessions`: lists the caller's live sessions.
struct ListSessions: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let sessions = try await authorization.read(
            FindSessions(
                tokenHash: authorization.tokenHash, now: authorization.now, idleSince: authorization.idleSince))
        return .json(capacity: 64 + sessions.count * 256) { writer in
            writer.object { writer in
                writer.array("sessions") { writer in
                    for session in sessions { Self.write(session, to: &writer) }
                }
            }
        }
    }

    private static func write(_ session: FindSessions.Row, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("id", session.id)
            if let name = session.deviceName {
                writer.object("device") { writer in writer.member("name", name) }
            }
            writer.member("createdAt", session.createdAt)
            writer.member("lastUsedAt", session.lastUsedAt)
            writer.member("expiresAt", session.expiresAt)
            writer.member("current", session.isCurrent)
        }
    }
}
