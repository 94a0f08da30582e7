internal import Cryptography
internal import HTTPCore

/// `GET /v1/changes/stream`: sends a server-sent event whenever the account's revision or one of its vaults changes.
///
/// An event has the revision without the changes, which `GET /v1/changes` returns. The stream ends with the session.
struct StreamChanges: AccountEndpoint {
    private let watcher: RevisionWatcher

    init(_ watcher: RevisionWatcher) {
        self.watcher = watcher
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let told = try Self.lastEventID(request.head.fields)
        guard let present = try await authorization.read(FindRevision()).first else { throw Unauthenticated() }
        let session = SessionKey(accountID: authorization.accountID, tokenHash: authorization.tokenHash)
        let subscribed = try watcher.subscribe(session, at: present, told: told)
        return Response(
            status: .ok, fields: ["Content-Type": "text/event-stream"],
            body: .stream(
                ResponseStream(isOpenEnded: true) { writer in
                    try await writer.write(ServerSentEvent.retry)
                    while let event = await subscribed.subscription.next() {
                        try await writer.write(ServerSentEvent.bytes(of: event))
                    }
                }))
    }

    /// Reads `Last-Event-ID`, the last revision that the client received. An empty one means none (HTML Living Standard
    /// §9.2.4).
    private static func lastEventID(_ fields: RequestFields) throws(Problem) -> Int64? {
        guard let text = fields["last-event-id"], !text.isEmpty else { return nil }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let revision = Int64(text) else {
            throw Problem(
                .badRequest, "malformed_last_event_id",
                detail: "Last-Event-ID must be the id of an event of this stream.")
        }
        return revision
    }
}

/// The text of events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
enum ServerSentEvent {
    /// The client's delay before it reconnects. It is random, so that the clients of a stopping node do not reconnect
    /// to the others at once.
    static var retry: [UInt8] { Array("retry: \(Int.random(in: 1_000...5_000))\n\n".utf8) }

    static func bytes(of event: LiveSubscription.Event) -> [UInt8] {
        switch event {
        case .revision(let revision):
            Array("id: \(revision)\nevent: change\ndata: {\"revision\":\(revision)}\n\n".utf8)
        case .vault(let id, .some(let position)):
            Array(
                """
                event: vault
                data: {"id":"\(id)","revision":\(position.revision),"head":{"number":\(position.headNumber),\
                "hash":"\(Base64.encodeToString(position.headHash))"}}


                """.utf8)
        case .vault(let id, nil): Array("event: vault\ndata: {\"id\":\"\(id)\",\"ended\":true}\n\n".utf8)
        case .keepAlive: Array(": keep-alive\n\n".utf8)
        }
    }
}

/// The error of an account whose streams on this node have reached the limit.
struct TooManyStreams: ProblemConvertible {
    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_streams", detail: "The account has too many streams open. Close one.",
            limit: RevisionWatcher.streamsPerAccount, responseFields: ["Retry-After": "30"])
    }
}
