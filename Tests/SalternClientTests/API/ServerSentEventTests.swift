import Testing

@testable import SalternClient

struct ServerSentEventTests {
    private static let text =
        "retry: 2718\n\nid: 7\nevent: change\ndata: {\"revision\":7}\n\n: keep-alive\n\ndata: a\r\ndata: b\r\n\r\n"

    @Test(arguments: [1, 2, 3, 7, 1_000]) func `events are read in whatever pieces they come`(_ size: Int) {
        var parser = ServerSentEventParser()
        var events: [ServerSentEvents.Event] = []
        let bytes = Array(Self.text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            events += parser.take(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        #expect(
            events == [
                .init(id: "7", name: "change", data: "{\"revision\":7}", retry: .milliseconds(2_718)),
                .init(id: "7", name: "message", data: "a\nb", retry: .milliseconds(2_718)),
            ])
    }

    @Test func `a line without end is given up`() {
        var parser = ServerSentEventParser()
        for _ in 0..<100 { _ = parser.take([UInt8](repeating: 0x61, count: 1_024)) }
        #expect(parser.isOverfull)
    }
}
