import SalternTesting
import Testing

@testable import Postgres

/// Groups of requests that write.
@Suite struct WriteBatcherTests {
    private typealias Batcher = WriteBatcher<Int>
    private let start = ContinuousClock.now

    /// A batcher with members of these keys, named 1, 2 and so on. The key 3 has the connection 0, 4 has 1, 5 has 2.
    private func make(_ keys: Int?..., bytes: Int = 10) -> Batcher {
        var batcher = Batcher(connectionCount: 3)
        for (index, key) in keys.enumerated() {
            _ = batcher.addMember(
                index + 1, key: key, bytes: bytes, until: start + .seconds(index + 1), unusable: .init())
        }
        return batcher
    }

    private func group(_ batcher: inout Batcher, on connection: Int, unusable: [Int] = []) -> [Int] {
        batcher.beginGroup(on: connection, unusable: .init(unusable))
    }

    @Test func `a group has the waiters for any connection, its own and unusable ones, in order of arrival`() {
        var batcher = make(4, nil, 3, 5, nil, 3)
        #expect(batcher.waiterCount == 6 && !batcher.isUnclaimed(0))
        #expect(group(&batcher, on: 0, unusable: [2]) == [2, 3, 4, 5, 6])
        #expect(batcher.isUnclaimed(0) && !batcher.isUnclaimed(1))
        #expect(batcher.hasGroup(0) && !batcher.hasGroup(1))
        batcher.end(on: 0)
        #expect(!batcher.hasGroup(0))
        #expect(group(&batcher, on: 1) == [1])
        #expect(!batcher.hasGroup(1), "a single request is no group")
    }

    @Test func `a group has sixteen members and 256 KiB at most, and a larger request is alone`() {
        var many = make()
        for number in 1...20 { _ = many.addMember(number, key: nil, bytes: 0, until: start, unusable: .init()) }
        #expect(group(&many, on: 0).count == 16 && group(&many, on: 0).count == 4)
        var large = make(nil, nil, nil, bytes: 131_072)
        #expect(group(&large, on: 0) == [1, 2] && group(&large, on: 0) == [3])
        var larger = make(nil, nil, bytes: .max)
        #expect(group(&larger, on: 0) == [1] && group(&larger, on: 0) == [2])
        var cluster = make(nil, nil)
        cluster.isDistributed = true
        #expect(group(&cluster, on: 0) == [1] && group(&cluster, on: 0) == [2])
    }

    @Test func `requests of a key use one connection, or the next one while that is unusable`() {
        func connections(_ keys: [Int], unusable: [Int]) -> [Int?] {
            keys.map { key in
                var batcher = make()
                _ = batcher.addMember(1, key: key, bytes: 1, until: start, unusable: .init(unusable))
                return (0..<3).first { !batcher.isUnclaimed($0) }
            }
        }
        #expect(connections([3, 4, 5], unusable: []) == [0, 1, 2])
        #expect(connections([3, 4, 5], unusable: [0, 1]) == [2, 2, 2])
        #expect(connections([3, 4, 5], unusable: [0, 1, 2]) == [0, 1, 2])
        #expect(!connections([.min, .max, -1], unusable: [0, 1, 2]).contains(nil))
    }

    @Test func `a group and single requests take turns in order of arrival`() {
        var batcher = make(4)
        _ = batcher.addSingle(2, until: start)
        _ = batcher.addMember(3, key: 3, bytes: 1, until: start, unusable: .init())
        #expect(batcher.isGroupNext(on: 1, unusable: .init()))
        #expect(!batcher.isGroupNext(on: 0, unusable: .init()) && batcher.isGroupNext(on: 0, unusable: .init([1])))
        #expect(batcher.hasSingle && batcher.popSingle() == 2 && !batcher.hasSingle)
        #expect(batcher.isGroupNext(on: 0, unusable: .init()) && !batcher.isGroupNext(on: 2, unusable: .init()))
    }

    /// A waiter of the model. Single requests have no key.
    private struct Waiter {
        var number: Int
        var isSingle = false
        var connection: Int?
        var bytes = 0
        var deadline: Int
        var ticket: Batcher.Ticket
    }

    /// The members of the next group by a list of all waiters.
    private func members(of waiting: [Waiter], on connection: Int, unusable: [Int]) -> [Waiter] {
        var (members, bytes): ([Waiter], Int) = ([], 0)
        for waiter in waiting where !waiter.isSingle {
            let isServed = waiter.connection.map { $0 == connection || unusable.contains($0) } ?? true
            guard isServed else { continue }
            bytes += waiter.bytes
            if members.count == 16 || !members.isEmpty && bytes > 262_144 { break }
            members.append(waiter)
        }
        return members
    }

    /// Adds a waiter to the batcher and returns the model's.
    private func add(
        _ number: Int, to batcher: inout Batcher, deadline: Int, unusable: [Int], _ dice: inout SeededGenerator
    ) -> Waiter {
        let until = start + .seconds(deadline)
        if dice.chance(0.2) {
            let ticket = batcher.addSingle(number, until: until)
            return Waiter(number: number, isSingle: true, deadline: deadline, ticket: ticket)
        }
        let key = [nil, 3, 4, 5].randomElement(using: &dice) ?? nil
        let bytes = Int.random(in: 1...60_000, using: &dice)
        let ticket = batcher.addMember(number, key: key, bytes: bytes, until: until, unusable: .init(unusable))
        let connection = key.map { key in (0..<3).map { (key + $0) % 3 }.first { !unusable.contains($0) } ?? key % 3 }
        return Waiter(number: number, connection: connection, bytes: bytes, deadline: deadline, ticket: ticket)
    }

    @Test(arguments: PropertyTests.seeds)
    func `every waiter leaves once, and groups are those of a list of all waiters`(seed: UInt64) {
        var dice = SeededGenerator(seed: seed)
        var batcher = Batcher(connectionCount: 3)
        var waiting: [Waiter] = []
        var (now, served) = (0, 0)
        for number in 1...1_000 {
            let unusable = (0..<3).filter { _ in dice.chance(0.2) }
            switch Int.random(in: 0..<16, using: &dice) {
            case 0..<12:
                waiting.append(add(number, to: &batcher, deadline: now + 60, unusable: unusable, &dice))
            case 12:
                guard let index = waiting.indices.randomElement(using: &dice) else { continue }
                let gone = waiting.remove(at: index)
                let cancelled = [batcher.cancel(gone.ticket), batcher.cancel(gone.ticket)]
                #expect(cancelled == [gone.number, nil])
            case 13:
                now += Int.random(in: 0..<20, using: &dice)
                var expired: Set<Int> = []
                while let request = batcher.expire(now: start + .seconds(now)) { expired.insert(request) }
                #expect(expired == Set(waiting.filter { $0.deadline <= now }.map(\.number)))
                waiting.removeAll { $0.deadline <= now }
            default:
                let connection = Int.random(in: 0..<3, using: &dice)
                let members = members(of: waiting, on: connection, unusable: unusable)
                let single = waiting.first(where: \.isSingle)?.number
                let isGroupNext = members.first.map { $0.number < single ?? .max } ?? false
                #expect(batcher.isGroupNext(on: connection, unusable: .init(unusable)) == isGroupNext)
                let granted =
                    isGroupNext
                    ? batcher.beginGroup(on: connection, unusable: .init(unusable))
                    : [batcher.popSingle()].compactMap(\.self)
                #expect(granted == (isGroupNext ? members.map(\.number) : [single].compactMap(\.self)))
                #expect(!isGroupNext || batcher.hasGroup(connection) == (members.count > 1))
                served += granted.count
                waiting.removeAll { granted.contains($0.number) }
            }
            #expect(batcher.waiterCount == waiting.count)
            #expect(batcher.nextDeadline == waiting.map(\.deadline).min().map { start + .seconds($0) })
        }
        #expect(served > 100)
    }
}
