import CommandLineKit
import Glibc
import Synchronization
import Testing

/// A signal of their own, which nobody else in the process listens to.
///
/// It is sent once each time: a second that is still under way when nobody listens any more ends the process, as it should.
@Suite(.serialized, .timeLimit(.minutes(60))) struct InterruptionTests {
    private func send(_ signal: Int32, andAwait isHeard: () -> Bool) async throws {
        kill(getpid(), signal)
        while !isHeard() { try await Task.sleep(for: .milliseconds(1)) }
    }

    @Test func `a later one hears, also when an earlier one has gone`() async throws {
        do {
            let first = Interruption([SIGUSR2])
            try await send(SIGUSR2) { first.wish.isThere }
        }
        let second = Interruption([SIGUSR2])
        try await send(SIGUSR2) { second.wish.isThere }
    }

    @Test func `two at once both hear, and the earlier one goes on when the later one has gone`() async throws {
        let heard = Atomic(0)
        let first = Interruption([SIGUSR2]) { heard.store($0, ordering: .relaxed) }
        do {
            let second = Interruption([SIGUSR2])
            try await send(SIGUSR2) { second.wish.isThere && first.wish.isThere }
        }
        let before = heard.load(ordering: .relaxed)
        try await send(SIGUSR2) { heard.load(ordering: .relaxed) > before }
        #expect(first.wish.fulfilled("over").status == 128 + SIGUSR2)
    }

    @Test func `a child is ended by a signal, whatever the thread that started it blocks`() throws {
        let child = try ChildProcess(["/usr/bin/env", "sleep", "1000"], environment: [:], isApart: true)
        child.send(SIGTERM)
        #expect(child.wait() == 128 + SIGTERM)
        // Its number may be another one's now: nothing is sent.
        child.send(SIGTERM)
    }

    @Test func `a child's exit status is told`() throws {
        #expect(try ChildProcess(["/bin/sh", "-c", "exit 7"], environment: [:]).wait() == 7)
    }
}
