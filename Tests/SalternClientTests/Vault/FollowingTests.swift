import SalternTesting
import Synchronization
import Testing

@testable import SalternClient

/// The number of requests of a device that follows the server.
@Suite struct FollowingTests {
    private static let count = 6

    /// A device that follows, another one, and the number of times that the first has asked for changes so far.
    private func withPair(
        _ body: (_ laptop: Vault, _ phone: Vault, _ roundCount: @Sendable () -> Int) async throws -> Void
    ) async throws {
        try await LiveServer.with { server in
            let devices = try (Device("laptop", server), Device("phone", server))
            let laptop = try await Vault.signUp(devices.0.settings, userid: "ada", password: Password("password"))
            let phone = try await Vault.logIn(devices.1.settings, userid: "ada", password: Password("password"))
            let counter = RoundCounter()
            devices.0.link.setAnswer { request in
                counter.add(request)
                return nil
            }
            // What follows is there when a first change has come.
            let changes = laptop.changes()
            let following = Task { try await laptop.keepInSync() }
            defer { following.cancel() }
            let id = try await phone.collection("notes", of: Note.self).put(Note(text: "first"))
            try await phone.sync()
            for await ids in changes where ids.contains(id) { break }
            try await body(laptop, phone) { counter.count }
        }
    }

    @Test(.timeLimit(.minutes(60))) func `each change from elsewhere is one round`() async throws {
        try await withPair { laptop, phone, roundCount in
            let notes = phone.collection("notes", of: Note.self)
            let changes = laptop.changes()
            let before = roundCount()
            for number in 0..<Self.count {
                let id = try await notes.put(Note(text: "\(number)"))
                try await phone.sync()
                for await ids in changes where ids.contains(id) { break }
            }
            // The first event of the stream can be one of them.
            #expect((Self.count...Self.count + 1).contains(roundCount() - before))
        }
    }

    @Test(.timeLimit(.minutes(60))) func `each edit is one round, and the report of it none`() async throws {
        try await withPair { laptop, phone, roundCount in
            let notes = laptop.collection("notes", of: Note.self)
            let states = await laptop.states()
            let there = phone.changes()
            let following = Task { try await phone.keepInSync() }
            defer { following.cancel() }
            let before = roundCount()
            for number in 0..<Self.count {
                let id = try await notes.put(Note(text: "\(number)"))
                for await state in states {
                    if case .inStep = state, try await laptop.unsentCount() == 0 { break }
                }
                // The other one has had the report of it, so this one has it about now.
                for await ids in there where ids.contains(id) { break }
            }
            // Reports that begin rounds would double the count. A repeated request, or a stream that begins again, adds
            // to it.
            #expect((Self.count..<2 * Self.count).contains(roundCount() - before))
        }
    }
}

private final class RoundCounter: Sendable {
    private let number = Mutex(0)

    var count: Int { number.withLock { $0 } }

    func add(_ request: HTTPRequest) {
        if request.target == "/v1/changes" || request.target.hasPrefix("/v1/changes?") { number.withLock { $0 += 1 } }
    }
}
