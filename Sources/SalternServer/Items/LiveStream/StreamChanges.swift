internal import HTTPCore

/// `GET /v1/changes/stream`: server-sent events, one whenever the account's revision has moved.
///
/// An event says where the account is, not what has changed: that is `GET /v1/changes`. The stream ends with the
/// session.
struct StreamChanges: AccountEndpoint {
    private let watcher: RevisionWatcher

    init(_ watcher: RevisionWatcher) {
        self.watcher = watcher
    }

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let told = try Self.lastEventID(request.head.fields)
        guard let revision = try await authorization.read(FindRevision()).first else { throw Unauthenticated() }
        let session = SessionKey(accountID: authorization.accountID, tokenHash: authorization.tokenHash)
        let subscribed = try watcher.subscribe(session, revision: revision, told: told)
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

    /// `Last-Event-ID`: the revision that the client heard of last. An empty one is that of a client that has heard of none
    /// (HTML Living Standard §9.2.4).
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
    /// When a client shall come back after the stream has ended: at different times, so that a node which stops does
    /// not send all of its clients to the others at once.
    static var retry: [UInt8] { Array("retry: \(Int.random(in: 1_000...5_000))\n\n".utf8) }

    static func bytes(of event: LiveSubscription.Event) -> [UInt8] {
        switch event {
        case .revision(let revision):
            Array("id: \(revision)\nevent: change\ndata: {\"revision\":\(revision)}\n\n".utf8)
        case .keepAlive: Array(": keep-alive\n\n".utf8)
        }
    }
}

/// The account has as many streams on this node as one may have.
struct TooManyStreams: ProblemConvertible {
    var problem: Problem {
        Problem(
            .tooManyRequests, "too_many_streams", detail: "The account has too many streams open. Close one.",
            limit: RevisionWatcher.streamsPerAccount, responseFields: ["Retry-After": "30"])
    }
}
