import SalternTesting
import Testing

@testable import Postgres

/// Requests that wait for dedicated connections.
@Suite struct LeaseQueueTests {
    private let start = ContinuousClock.now

    private func make(_ areLong: Bool..., limit: Int = 1) -> LeaseQueue<Int> {
        var queue = LeaseQueue<Int>(longLimit: limit)
        for (index, isLong) in areLong.enumerated() {
            _ = queue.add(index + 1, isLong: isLong, until: start + .seconds(index + 1))
        }
        return queue
    }

    @Test func `leases are granted in order of arrival, whether short or long`() {
        var queue = make(false, true, false)
        let popped = (0..<4).map { _ in queue.pop(longLeases: 0) }
        #expect(popped.map(\.?.request) == [1, 2, 3, nil] && popped.map(\.?.isLong) == [false, true, false, nil])
    }

    @Test func `at the limit of long leases, waiting ones let short ones pass`() {
        var queue = make(true, true, false)
        #expect(queue.wantedConnections(longLeases: 1) == 1 && queue.wantedConnections(longLeases: 0) == 2)
        #expect(queue.wantedConnections(longLeases: 2) == 1)
        #expect(queue.pop(longLeases: 1)?.request == 3 && queue.pop(longLeases: 1) == nil)
        #expect(queue.count == 2 && queue.pop(longLeases: 0)?.request == 1)
    }

    @Test(arguments: PropertyTests.seeds)
    func `the queue serves as a list of all waiters does`(seed: UInt64) {
        var dice = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...3, using: &dice)
        var queue = LeaseQueue<Int>(longLimit: limit)
        var waiting: [(number: Int, isLong: Bool, deadline: Int, ticket: LeaseQueue<Int>.Ticket)] = []
        var (now, served) = (0, 0)
        for number in 1...500 {
            let longLeases = Int.random(in: 0...3, using: &dice)
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<5:
                let (isLong, deadline) = (dice.chance(0.5), now + 40)
                let ticket = queue.add(number, isLong: isLong, until: start + .seconds(deadline))
                waiting.append((number, isLong, deadline, ticket))
            case 5:
                guard let index = waiting.indices.randomElement(using: &dice) else { continue }
                let gone = waiting.remove(at: index)
                let cancelled = [queue.cancel(gone.ticket), queue.cancel(gone.ticket)]
                #expect(cancelled == [gone.number, nil])
            case 6:
                now += Int.random(in: 0..<20, using: &dice)
                var expired: Set<Int> = []
                while let request = queue.expire(now: start + .seconds(now)) { expired.insert(request) }
                #expect(expired == Set(waiting.filter { $0.deadline <= now }.map(\.number)))
                waiting.removeAll { $0.deadline <= now }
            default:
                let index = waiting.firstIndex { !$0.isLong || longLeases < limit }
                let next = queue.pop(longLeases: longLeases)
                #expect(next?.request == index.map { waiting[$0].number })
                #expect(next?.isLong == index.map { waiting[$0].isLong })
                if let index { waiting.remove(at: index) }
                served += index == nil ? 0 : 1
            }
            let long = waiting.count(where: \.isLong)
            #expect(
                queue.wantedConnections(longLeases: longLeases)
                    == waiting.count - long + min(long, max(limit - longLeases, 0)))
            #expect(queue.count == waiting.count)
            #expect(queue.nextDeadline == waiting.map(\.deadline).min().map { start + .seconds($0) })
        }
        #expect(served > 50)
    }
}
