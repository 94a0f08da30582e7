import SalternTesting
import Testing

@testable import Postgres

/// Groups of requests that write.
@Suite struct WriteBatcherTests {
    private let start = ContinuousClock.now

    /// A batcher with waiters for connections, in order of arrival. Each one is named by its number.
    private func make(_ connections: Int?..., bytes: Int = 10) -> WriteBatcher<Int> {
        var batcher = WriteBatcher<Int>(connectionCount: 3)
        for (index, connection) in connections.enumerated() {
            _ = batcher.add(
                index + 1, for: connection, bytes: bytes, number: index + 1, until: start + .seconds(index + 1))
        }
        return batcher
    }

    private func group(_ batcher: inout WriteBatcher<Int>, on connection: Int, usable: Set<Int> = [0, 1, 2]) -> [Int] {
        var group = WriteBatcher<Int>.Group()
        while let next = batcher.oldest(for: connection, isUsable: { usable.contains($0) }),
            batcher.move(next, to: &group)
        {}
        batcher.begin(group, on: connection)
        return group.members
    }

    @Test func `a group has the waiters for any connection, its own and unusable ones, in order of arrival`() {
        var batcher = make(1, nil, 0, 2, nil, 0)
        #expect(batcher.waiterCount == 6 && !batcher.isUnclaimed(0))
        #expect(group(&batcher, on: 0, usable: [0, 1]) == [2, 3, 4, 5, 6])
        #expect(batcher.isUnclaimed(0) && !batcher.isUnclaimed(1))
        #expect(batcher.hasGroup(0) && !batcher.hasGroup(1))
        batcher.end(on: 0)
        #expect(!batcher.hasGroup(0))
        #expect(group(&batcher, on: 1) == [1])
        #expect(!batcher.hasGroup(1), "a single request is no group")
    }

    @Test func `a group has sixteen members and 256 KiB at most, and a larger request is alone`() {
        var many = make()
        for number in 1...20 { _ = many.add(number, for: nil, bytes: 0, number: number, until: start) }
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
        let batcher = make()
        #expect((3..<6).map { batcher.connection(for: $0) { _ in true } } == [0, 1, 2])
        #expect((3..<6).map { batcher.connection(for: $0) { $0 == 2 } } == [2, 2, 2])
        #expect((3..<6).map { batcher.connection(for: $0) { _ in false } } == [0, 1, 2])
        #expect((0..<3).contains(batcher.connection(for: .min) { _ in false }))
    }

    @Test(arguments: PropertyTests.seeds)
    func `every waiter leaves once, in order, and never before an older one that the connection could serve`(
        seed: UInt64
    ) {
        var dice = SeededGenerator(seed: seed)
        var batcher = WriteBatcher<Int>(connectionCount: 3)
        typealias Waiting = (number: Int, connection: Int?, deadline: Int, ticket: WriteBatcher<Int>.Ticket)
        var waiting: [Waiting] = []
        var (now, left) = (0, 0)
        for number in 1...1_000 {
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<6:
                let connection = [nil, 0, 1, 2].randomElement(using: &dice) ?? nil
                let ticket = batcher.add(
                    number, for: connection, bytes: 1, number: number, until: start + .seconds(now + 40))
                waiting.append((number, connection, now + 40, ticket))
            case 6:
                guard let index = waiting.indices.randomElement(using: &dice) else { continue }
                let ticket = waiting[index].ticket
                let cancelled = [batcher.cancel(ticket), batcher.cancel(ticket)]
                #expect(cancelled == [waiting[index].number, nil])
                waiting.remove(at: index)
            case 7:
                now += Int.random(in: 0..<20, using: &dice)
                var expired: Set<Int> = []
                while let request = batcher.expire(now: start + .seconds(now)) { expired.insert(request) }
                #expect(expired == Set(waiting.filter { $0.deadline <= now }.map(\.number)))
                waiting.removeAll { $0.deadline <= now }
            default:
                let connection = Int.random(in: 0..<3, using: &dice)
                let usable = Set((0..<3).filter { _ in Bool.random(using: &dice) })
                let members = group(&batcher, on: connection, usable: usable)
                let served = waiting.filter {
                    $0.connection.map { $0 == connection || !usable.contains($0) } ?? true
                }
                #expect(members == served.prefix(16).map(\.number))
                left += members.count
                waiting.removeAll { members.contains($0.number) }
            }
            #expect(batcher.waiterCount == waiting.count)
            #expect(batcher.nextDeadline == waiting.map(\.deadline).min().map { start + .seconds($0) })
        }
        #expect(left > 50)
    }
}
