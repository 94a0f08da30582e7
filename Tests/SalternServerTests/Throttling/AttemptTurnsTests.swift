import Cryptography
import SalternTesting
import Synchronization
import Testing

@testable import SalternServer

@Suite struct AttemptTurnsTests {
    private final class Count: Sendable {
        private let counts = Mutex((now: 0, highest: 0, total: 0))
        func begin() { counts.withLock { $0 = ($0.now + 1, max($0.highest, $0.now + 1), $0.total + 1) } }
        func end() { counts.withLock { $0.now -= 1 } }
        var highest: Int { counts.withLock { $0.highest } }
        var total: Int { counts.withLock { $0.total } }
    }

    private static func subject(_ name: String) throws -> AttemptSubject {
        AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 3]))).userid(try Userid(name))
    }

    @Test func `one subject is attempted by one at a time, others meanwhile`() async throws {
        let turns = AttemptTurns()
        let (ada, bob) = (try Self.subject("ada"), try Self.subject("bob"))
        let count = Count()
        try await turns.wait(for: bob) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 {
                    group.addTask {
                        try await turns.wait(for: ada) {
                            count.begin()
                            await Task.yield()
                            count.end()
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(count.highest == 1)
        #expect(count.total == 100)
        #expect(turns.subjectCount == 0)
    }

    @Test func `one too many is refused, and one that goes away leaves its place`() async throws {
        let turns = AttemptTurns()
        let ada = try Self.subject("ada")
        try await turns.wait(for: ada) {
            let waiting = (0..<AttemptTurns.waiterLimit).map { _ in Task { try await turns.wait(for: ada) {} } }
            while turns.waiterCount(ada) < AttemptTurns.waiterLimit { await Task.yield() }
            await #expect(throws: TooManyAttempts.self) { try await turns.wait(for: ada) {} }
            for task in waiting {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(turns.waiterCount(ada) == 0)
        }
        try await turns.wait(for: ada) {}
        #expect(turns.subjectCount == 0)
    }

    @Test func `an attempt that throws passes its turn on`() async throws {
        let turns = AttemptTurns()
        let ada = try Self.subject("ada")
        await #expect(throws: WrongCredentials.self) { try await turns.wait(for: ada) { throw WrongCredentials() } }
        try await turns.wait(for: ada) {}
    }

    @Test func `kinds and names do not meet`() throws {
        let subjects = AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 3])))
        let others = AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 4])))
        let ada = try Userid("ada")
        let device = KnownDevice.new(ada)
        let all = [
            subjects.userid(ada), subjects.recovery(ada), subjects.device(device), subjects.device(.new(ada)),
            others.userid(ada), subjects.userid(try Userid("adb")),
        ]
        #expect(Set(all).count == all.count)
        #expect(subjects.device(device) == subjects.device(KnownDevice(userid: ada, number: device.number)))
    }
}
