import Dispatch
import EventLoop
import HTTPCore
import SalternTesting
import Synchronization
import Testing

@testable import HTTPServer

/// What one connection may do before the others have their turn, in events instead of time.
@Suite struct TurnTests {
    @Test func `a share is for one turn`() {
        let now = ContinuousClock.now
        var share = IterationShare()
        share.begin(now)
        for _ in 0..<IterationShare.steps { share.noteStep() }
        for _ in 0..<IterationShare.reads { share.noteRead() }
        share.noteWritten(IterationShare.writtenBytes)
        share.begin(now)
        #expect(share.stepsLeft == 0)
        #expect(share.readsLeft == 0)
        #expect(share.writtenBytesLeft == 0)
        share.begin(now + .nanoseconds(1))
        #expect(share.stepsLeft == IterationShare.steps)
        #expect(share.readsLeft == IterationShare.reads)
        #expect(share.writtenBytesLeft == IterationShare.writtenBytes)
    }

    @Test func `a body in chunks of one byte takes more turns than its bytes would`() async throws {
        let count = 10_000
        let turns = try await Self.turns(
            toRead: "POST /guest HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                + String(repeating: "1\r\nx\r\n", count: count) + "0\r\n\r\n",
            answering: "\(count)")
        #expect(turns >= Self.shares(of: 1 + count / HTTP1Limits().chunksPerPiece))
    }

    @Test func `requests that wait behind each other take a turn for each share`() async throws {
        let refused = 100
        let turns = try await Self.turns(
            toRead: String(repeating: "GET /refuse HTTP/1.1\r\nHost: localhost\r\n\r\n", count: refused)
                + "POST /guest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx",
            answering: "1", after: refused)
        #expect(turns >= Self.shares(of: refused + 1))
    }

    private static func shares(of steps: Int) -> Int { (steps + IterationShare.steps - 1) / IterationShare.steps }

    /// How many turns of the loop end until a request of `/guest` has come, from when everything waits on the socket: that
    /// turn and those between.
    private static func turns(
        toRead text: String, answering answer: String, after refused: Int = 0
    ) async throws -> Int {
        let turns = Mutex(0)
        try await withServer { server in
            let client = try await server.connect()
            // Accepted, and idle.
            try await client.send("GET /refuse HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try await client.reply().status == 404)
            let counter = TurnCounter(server.loop)
            server.responder.guestArrived.withLock { $0 = { turns.withLock { $0 = counter.turns } } }
            let sent = DispatchSemaphore(value: 0)
            await withCheckedContinuation { halted in
                server.loop.schedule {
                    counter.start()
                    halted.resume()
                    sent.wait()
                }
            }
            try await client.send(text)
            sent.signal()
            for _ in 0..<refused { #expect(try await client.reply().status == 404) }
            #expect(try await client.reply().text == answer)
            counter.stop()
        }
        return turns.withLock { $0 }
    }
}

/// Counts the turns of a loop, from any thread.
private final class TurnCounter: IterationObserver, @unchecked Sendable {
    // Safe to share: only the loop touches it.
    var isIterationEndRequested = false
    private let loop: EventLoop
    private let count = Atomic(0)
    private let isDone = Atomic(false)

    init(_ loop: EventLoop) { self.loop = loop }

    var turns: Int { count.load(ordering: .relaxed) }

    func start() { loop.notifyAtIterationEnd(self) }

    func stop() { isDone.store(true, ordering: .relaxed) }

    func iterationEnded() {
        count.add(1, ordering: .relaxed)
        if !isDone.load(ordering: .relaxed) { start() }
    }
}
