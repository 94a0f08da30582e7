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

    private static func counter(_ name: String) throws -> AttemptCounter {
        let subjects = AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 3])))
        return AttemptCounter(subject: subjects.userid(try Userid(name)), place: .stranger)
    }

    @Test func `one subject is attempted by one at a time, others meanwhile`() async throws {
        let turns = CounterQueue()
        let (ada, bob) = (try Self.counter("ada"), try Self.counter("bob"))
        let count = Count()
        try await turns.wait(for: bob, from: 1) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    group.addTask {
                        try await turns.wait(for: ada, from: UInt64(number % 10)) {
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
        #expect(turns.counterCount == 0)
    }

    @Test func `one too many is refused, and one that goes away leaves its place`() async throws {
        let turns = CounterQueue(
            limits: CounterQueueState.Limits(counter: 8, addressAtCounter: 4, total: 100, address: 100))
        let ada = try Self.counter("ada")
        try await turns.wait(for: ada, from: 9) {
            let waiting = (0..<8).map { number in Task { try await turns.wait(for: ada, from: UInt64(number / 4)) {} } }
            while turns.waiterCount(ada) < 8 { await Task.yield() }
            await #expect(throws: TooManyAttempts.self) { try await turns.wait(for: ada, from: 3) {} }
            for task in waiting {
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(turns.waiterCount(ada) == 0)
        }
        try await turns.wait(for: ada, from: 1) {}
        #expect(turns.counterCount == 0)
    }

    @Test func `one address has a part of what may wait, for a counter and in all`() throws {
        let limits = CounterQueueState.Limits()
        #expect(limits.addressAtCounter * 4 <= limits.counter && limits.address * 8 <= limits.total)
        var table = CounterQueueState(limits: limits)
        let ada = try Self.counter("ada")
        func ask(_ counter: AttemptCounter, _ number: Int, _ network: UInt64) -> CounterQueueState.Answer {
            table.join(counter, number, from: network)
        }
        #expect(ask(ada, 0, 1) == .granted)
        for number in 1...limits.addressAtCounter { #expect(ask(ada, number, 1) == .waits) }
        #expect(ask(ada, 1_000, 1) == .refused)
        #expect(ask(ada, 1_001, 2) == .waits)
        // The rest of its part, at other counters: then none is left, and others still wait where they want.
        var number = 2_000
        while table.waiterCount < limits.address + 1 {
            number += 1
            let counter = try Self.counter("user \(number % 32)")
            _ = ask(counter, number, 1)
        }
        let other = try Self.counter("user 0")
        #expect(ask(other, 9_998, 1) == .refused)
        #expect(ask(other, 9_999, 2) == .waits)
    }

    @Test func `a table of turns forgets everybody, whatever they do in whatever order`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var table = CounterQueueState(
                limits: CounterQueueState.Limits(counter: 6, addressAtCounter: 3, total: 10, address: 5))
            let counters = try (0..<3).map { try Self.counter("user \($0)") }
            var holders: [Int: Int] = [:]
            var waiting: [(counter: Int, number: Int, network: UInt64)] = []
            for number in 0..<300 {
                let index = Int.random(in: 0..<3, using: &random)
                let network = UInt64.random(in: 0..<3, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0:
                    let answer = table.join(counters[index], number, from: network)
                    #expect((answer == .granted) == (holders[index] == nil))
                    if answer == .granted { holders[index] = number }
                    if answer == .waits { waiting.append((index, number, network)) }
                case 1 where !waiting.isEmpty:
                    let gone = waiting.remove(at: Int.random(in: waiting.indices, using: &random))
                    let hasLeft = table.leave(counters[gone.counter], gone.number)
                    let leavesAgain = table.leave(counters[gone.counter], gone.number)
                    #expect(hasLeft && !leavesAgain)
                default:
                    guard holders[index] != nil else { continue }
                    let next = waiting.first { $0.counter == index }
                    let passed = table.pass(counters[index])
                    // In the order in which they came.
                    #expect(passed == next?.number)
                    holders[index] = next?.number
                    waiting.removeAll { $0.number == next?.number }
                }
                #expect(table.waiterCount == waiting.count && waiting.count <= 10)
                for network in 0..<3 as Range<UInt64> { #expect(waiting.count { $0.network == network } <= 5) }
            }
            for index in holders.keys { while table.pass(counters[index]) != nil {} }
            #expect(table.counterCount == 0 && table.waiterCount == 0)
        }
    }

    @Test func `an attempt that throws passes its turn on`() async throws {
        let turns = CounterQueue()
        let ada = try Self.counter("ada")
        await #expect(throws: WrongCredentials.self) {
            try await turns.wait(for: ada, from: 1) { throw WrongCredentials() }
        }
        try await turns.wait(for: ada, from: 1) {}
    }

    @Test func `userids, slots and generations do not meet`() throws {
        let subjects = AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 3])))
        let others = AttemptSubjects(secret: DecoySecret(bytes: SecureBytes(copying: [1, 2, 4])))
        let ada = try Userid("ada")
        #expect(Set([subjects.userid(ada), others.userid(ada), subjects.userid(try Userid("adb"))]).count == 3)
        let (account, other) = (AccountID.random(), AccountID.random())
        var places: [AttemptPlace] = [.stranger]
        for (account, generation) in [(account, 1), (account, 2), (other, 1)] as [(AccountID, Int64)] {
            let devices = (0..<KnownDevice.slotCount).map {
                KnownDevice(accountID: account, slot: $0, generation: generation)
            }
            places += devices.map(subjects.slot)
            // Shared by all slots.
            #expect(Set(devices.map(subjects.generation)).count == 1)
            places.append(subjects.generation(of: devices[0]))
        }
        #expect(Set(places).count == places.count)
    }
}
