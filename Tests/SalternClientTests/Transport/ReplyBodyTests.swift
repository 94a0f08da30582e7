import Testing

@testable import SalternClient

/// A reader that is cancelled ends, though the sender has more.
@Suite struct ReplyBodyTests {
    private func body(_ pieces: [String]) -> ReplyBody {
        let body = ReplyBody(onRoom: {}, onAbandoned: {})
        for piece in pieces { #expect(Array(piece.utf8).withUnsafeBytes { body.offer($0) }) }
        return body
    }

    @Test func `a cancelled reader takes no more pieces`() async {
        let body = body(["first", "second"])
        let reader = Task {
            var iterator = body.makeAsyncIterator()
            let first = try await iterator.next(isolation: nil)
            #expect(first == Array("first".utf8))
            withUnsafeCurrentTask { $0?.cancel() }
            return try await iterator.next(isolation: nil)
        }
        await #expect(throws: TransportError.cancelled) { try await reader.value }
    }

    @Test func `a cancelled reader takes no more events, also of those that came in one piece`() async {
        let events = ServerSentEvents(body(["data: 1\n\ndata: 2\n\ndata: 3\n\n"]))
        let reader = Task {
            var iterator = events.makeAsyncIterator()
            let first = try await iterator.next(isolation: nil)
            #expect(first?.data == "1")
            withUnsafeCurrentTask { $0?.cancel() }
            return try await iterator.next(isolation: nil)
        }
        await #expect(throws: TransportError.cancelled) { try await reader.value }
    }
}
