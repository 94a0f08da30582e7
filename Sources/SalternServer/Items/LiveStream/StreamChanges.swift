internal import Cryptography
internal import HTTPCore
internal import Synchronization

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

/// The next event of one stream. The node's ``RevisionWatcher`` sets it on its loop, and the stream takes it on its
/// own.
///
/// It holds only the latest revision, and of each vault only the latest position: a slow client receives the present
/// ones, not each step.
final class LiveSubscription: Sendable {
    enum Event: Equatable {
        /// The account's revision.
        case revision(Int64)
        /// A vault's position. Nil if the account is no longer a member.
        case vault(VaultID, VaultPosition?)
        /// Sent after a period without events.
        case keepAlive
    }

    private struct State {
        var revision: Int64
        /// The last revision sent to the client.
        var told: Int64?
        /// The positions of vaults that the client has not received.
        var vaults: [VaultID: VaultPosition?] = [:]
        var isKeepAliveDue = false
        var hasEnded = false
        var waiting: UnsafeContinuation<Void, Never>?
    }

    let session: SessionKey
    private let state: Mutex<State>

    /// - Parameters:
    ///   - session: The stream's session.
    ///   - revision: The account's present revision.
    ///   - told: The last revision that the client has received.
    init(session: SessionKey, revision: Int64, told: Int64?) {
        self.session = session
        state = Mutex(State(revision: revision, told: told))
    }

    /// Returns the next event and waits for it. Nil if the session or the task has ended.
    func next() async -> Event? {
        await withTaskCancellationHandler {
            while true {
                if let event = take() { return event }
                let hasEnded = await waitForChange()
                if hasEnded { return nil }
            }
        } onCancel: {
            end()
        }
    }

    /// Sets the account's revision. A lower one comes from an earlier query and is ignored.
    func move(to revision: Int64) {
        wake { state in
            guard revision > state.revision else { return false }
            state.revision = revision
            return revision != state.told
        }
    }

    /// Sets a vault's position. Nil if the account is no longer a member.
    func move(_ vault: VaultID, to position: VaultPosition?) {
        wake { state in
            state.vaults.updateValue(position, forKey: vault)
            return true
        }
    }

    /// Sends a keep-alive event.
    func keepAlive() {
        wake { state in
            state.isKeepAliveDue = true
            return true
        }
    }

    func end() {
        wake { state in
            state.hasEnded = true
            return true
        }
    }

    private func take() -> Event? {
        state.withLock { state in
            if state.hasEnded { return nil }
            if state.revision != state.told {
                state.told = state.revision
                state.isKeepAliveDue = false
                return .revision(state.revision)
            }
            if let (vault, position) = state.vaults.popFirst() {
                state.isKeepAliveDue = false
                return .vault(vault, position)
            }
            guard state.isKeepAliveDue else { return nil }
            state.isKeepAliveDue = false
            return .keepAlive
        }
    }

    /// Waits for a change of the state. Returns true if the stream has ended.
    private func waitForChange() async -> Bool {
        await withUnsafeContinuation { continuation in
            let hasChange = state.withLock { state in
                let hasChange =
                    state.hasEnded || state.isKeepAliveDue || state.revision != state.told || !state.vaults.isEmpty
                if !hasChange { state.waiting = continuation }
                return hasChange
            }
            if hasChange { continuation.resume() }
        }
        return state.withLock { $0.hasEnded }
    }

    /// Changes the state, and resumes the stream if `change` returns true.
    private func wake(_ change: (inout State) -> Bool) {
        let continuation = state.withLock { state in change(&state) ? state.waiting.take() : nil }
        continuation?.resume()
    }
}
