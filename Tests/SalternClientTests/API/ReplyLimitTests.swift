import SalternClient
import Testing

/// A server that answers more than any reply of that kind can have: nothing is made of it.
@Suite struct ReplyLimitTests {
    /// Answers whatever it is asked with so many bytes, as a transport would that knows no limits.
    private struct Liar: HTTPTransport {
        let status: Int
        let byteCount: Int

        func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
            HTTPReply(
                head: HTTPReplyHead(status: status, fields: []), body: [UInt8](repeating: 0x20, count: byteCount))
        }

        func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream { throw .unreachable }
    }

    /// Items, shares, all sessions, and what stands in a rotation's way; everything else is short.
    private static let longCalls: Set<String> = [
        "listItems", "getItem", "getVersion", "putItem", "putItemBody", "deleteItem", "restoreItem", "listChanges",
        "listSessions",
        "openShare", "commitRotation",
    ]
    private static let streams: Set<String> = ["exportAccount", "getItemBody", "streamChanges"]

    private func isRefused(_ call: (SalternAPI) async throws -> Void, _ status: Int, _ byteCount: Int) async -> Bool {
        do {
            try await call(SalternAPI(Liar(status: status, byteCount: byteCount)))
        } catch APIError.transport(.unacceptableReply) {
            return true
        } catch {}
        return false
    }

    @Test(arguments: [200, 400]) func `each kind of call has a bound, whatever the status is`(_ status: Int) async {
        for (id, call) in OperationsTests.calls where !Self.streams.contains(id) {
            let limit = Self.longCalls.contains(id) ? 24 << 20 : 1 << 20
            #expect(await !isRefused(call, status, limit), "\(id)")
            #expect(await isRefused(call, status, limit + 1), "\(id)")
        }
    }

    @Test func `a listing without titles and bodies is short`() async {
        let token = OperationsTests.token
        #expect(await isRefused({ _ = try await $0.listChanges(isMetaOnly: true, token) }, 200, (1 << 20) + 1))
        #expect(await isRefused({ _ = try await $0.listItems(isMetaOnly: true, token) }, 200, (1 << 20) + 1))
    }
}
