internal import HTTPCore
internal import Postgres

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

/// Finds the account's live sessions, oldest first.
struct FindSessions: AccountRead {
    /// The caller's own token.
    let tokenHash: TokenHash
    let now: Timestamp
    let idleSince: Timestamp

    struct Row: Sendable {
        let id: SessionID
        let deviceName: String?
        let createdAt: Timestamp
        let lastUsedAt: Timestamp
        let expiresAt: Timestamp
        let isCurrent: Bool
    }

    static let sql: AccountSQL<Self> = """
        SELECT s.session_id, s.device_name, s.created_at, s.last_used_at, s.expires_at, s.token_hash = \(\.tokenHash)
        FROM saltern.sessions s
        WHERE s.account_id = \(.account) AND \(SessionLiveness.isLive("s", at: "\(\.now)", idleSince: "\(\.idleSince)"))
        ORDER BY s.created_at, s.session_id
        """

    static func decode(_ row: inout RowReader) throws(PostgresError) -> Row { try row.read(Row.init) }
}
