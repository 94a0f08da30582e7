import SalternTesting
import Testing

@testable import Postgres

@Suite struct KeyTableTests {
    private typealias Table = KeyTable<Int>
    private let start = ContinuousClock.now

    private func key(_ number: UInt64) -> RequestKey { RequestKey(.account, UUID(high: 0, low: number)) }

    private func acquire(_ table: inout Table, _ key: RequestKey, _ waiter: Int, _ deadline: Int = 10) -> Table.Answer {
        table.acquire(key, waiter: waiter, now: start, deadline: start + .seconds(deadline))
    }

    private func ticket(_ answer: Table.Answer) throws -> Table.Ticket {
        guard case .wait(let ticket) = answer else { throw NoTicket() }
        return ticket
    }
    private struct NoTicket: Error {}

    private func isHeld(_ answer: Table.Answer) -> Bool { if case .held = answer { true } else { false } }
    private func isQueueFull(_ answer: Table.Answer) -> Bool { if case .queueFull = answer { true } else { false } }
    private func isRefused(_ answer: Table.Answer) -> Bool { if case .refused = answer { true } else { false } }

    @Test func `a key has one holder, and others wait in order`() {
        var table = Table()
        #expect(isHeld(acquire(&table, key(1), 0)))
        for waiter in 1...3 { #expect(!isHeld(acquire(&table, key(1), waiter))) }
        #expect(isHeld(acquire(&table, key(2), 9)), "another key is another matter")
        #expect((0..<4).map { _ in table.release(key(1), now: start).first?.waiter } == [1, 2, 3, nil])
        #expect(table.heldCount == 1 && table.waiterCount == 0)
        #expect(isHeld(acquire(&table, key(1), 4)))
    }

    @Test func `sixty-four wait for a key, and the next one is refused`() {
        var table = Table()
        for waiter in 0...64 { #expect(!isRefused(acquire(&table, key(1), waiter))) }
        #expect(isQueueFull(acquire(&table, key(1), 65)))
        #expect(isHeld(acquire(&table, key(2), 66)))
        #expect(table.release(key(1), now: start).first?.waiter == 1)
        #expect(!isRefused(acquire(&table, key(1), 67)))
    }

    @Test func `somebody who has gone is passed over, and cannot go twice`() throws {
        var table = Table()
        _ = acquire(&table, key(1), 0)
        let first = try ticket(acquire(&table, key(1), 1))
        let second = try ticket(acquire(&table, key(1), 2))
        #expect(table.cancel(first) == 1)
        #expect(table.cancel(first) == nil)
        #expect(table.release(key(1), now: start).first?.waiter == 2)
        #expect(table.cancel(second) == nil, "he holds it by now")
        #expect(table.release(key(1), now: start).first?.waiter == nil)
    }

    @Test func `somebody who waits too long is told so, whatever came in between`() throws {
        var table = Table()
        _ = acquire(&table, key(1), 0)
        _ = acquire(&table, key(2), 0)
        _ = acquire(&table, key(1), 1, 1)
        _ = acquire(&table, key(2), 2, 2)
        _ = acquire(&table, key(1), 3, 3)
        #expect(table.nextDeadline == start + .seconds(1))
        #expect(table.expire(now: start) == nil)
        #expect(table.release(key(1), now: start).first?.waiter == 1)
        #expect(table.expire(now: start + .seconds(2)) == 2)
        #expect(table.expire(now: start + .seconds(2)) == nil)
        #expect(table.expire(now: start + .seconds(3)) == 3)
        #expect(table.nextDeadline == nil && table.waiterCount == 0)
    }

    @Test func `a key that met a lock goes to leases, each time for twice as long, until it is forgotten`() {
        var table = Table()
        var now = start
        func route() -> Int {
            defer { _ = table.release(key(1), now: now) }
            guard case .held(let route) = table.acquire(key(1), waiter: nil, now: now, deadline: now) else { return -1 }
            if case .lease = route { return 1 } else { return 0 }
        }
        #expect(route() == 0)
        var durations: [Int] = []
        for _ in 0..<7 {
            table.mark(key(1), now: now)
            table.mark(key(1), now: now + .seconds(1))
            var seconds = 0
            while route() == 1 {
                now += .seconds(1)
                seconds += 1
            }
            durations.append(seconds)
        }
        #expect(durations == [10, 20, 40, 80, 160, 300, 300])
        now += .seconds(301)
        table.mark(key(1), now: now)
        now += .seconds(10)
        #expect(route() == 0, "after a long time it begins anew")
    }

    @Test func `who waits is counted, and for how long those waited who had their turn`() throws {
        var table = Table()
        _ = acquire(&table, key(1), 0)
        for waiter in 1...3 { _ = acquire(&table, key(1), waiter) }
        let gone = try ticket(acquire(&table, key(1), 4))
        #expect(table.keyWaits.waiting == 4 && table.keyWaits.waits == 0 && table.keyWaits.waited == .zero)
        _ = table.cancel(gone)
        _ = table.release(key(1), now: start + .seconds(2))
        _ = table.release(key(1), now: start + .seconds(5))
        #expect(table.keyWaits.waiting == 1 && table.keyWaits.waits == 2 && table.keyWaits.waited == .seconds(7))
    }

    @Test func `marks take bounded memory`() {
        var settings = Table.Settings()
        settings.marks = 10
        var table = Table(settings: settings)
        for number in 0..<100 { table.mark(key(UInt64(number)), now: start + .milliseconds(number)) }
        var marked = 0
        for number in 0..<100 {
            let answer = table.acquire(key(UInt64(number)), waiter: nil, now: start + .seconds(1), deadline: start)
            if case .held(.lease) = answer { marked += 1 }
        }
        #expect(marked == 10)
    }

    /// Holders, waiters, departures and time in random order, against the plainest table there could be.
    @Test(arguments: PropertyTests.seeds)
    func `in whatever order things happen, a key has one holder and nobody is forgotten`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = Table()
        var holders: [UInt64: Int] = [:]
        var queues: [UInt64: [(waiter: Int, ticket: Table.Ticket, deadline: Int)]] = [:]
        var second = 0
        for request in 0..<600 {
            let number = UInt64.random(in: 0..<4, using: &random)
            let now = start + .seconds(second)
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4:
                switch table.acquire(key(number), waiter: request, now: now, deadline: now + .seconds(5)) {
                case .held:
                    #expect(holders[number] == nil)
                    holders[number] = request
                case .wait(let ticket):
                    #expect(holders[number] != nil)
                    queues[number, default: []].append((request, ticket, second + 5))
                case .queueFull: #expect(queues[number]?.count == 64)
                case .refused: Issue.record("refused")
                }
            case 5...7:
                guard holders[number] != nil else { continue }
                var queue = queues[number] ?? []
                let next = queue.isEmpty ? nil : queue.removeFirst().waiter
                queues[number] = queue
                holders[number] = next
                #expect(table.release(key(number), now: now).first?.waiter == next)
            case 8:
                guard let index = queues[number]?.indices.randomElement(using: &random),
                    let gone = queues[number]?.remove(at: index)
                else { continue }
                #expect(table.cancel(gone.ticket) == gone.waiter)
            default:
                second += 1
                var expired: Set<Int> = []
                while let waiter = table.expire(now: start + .seconds(second)) { expired.insert(waiter) }
                for number in queues.keys {
                    let late = queues[number]?.filter { $0.deadline <= second }.map(\.waiter) ?? []
                    #expect(expired.isSuperset(of: late))
                    expired.subtract(late)
                    queues[number]?.removeAll { $0.deadline <= second }
                }
                #expect(expired.isEmpty)
            }
            #expect(table.heldCount == holders.count)
            #expect(table.waiterCount == queues.values.reduce(0) { $0 + $1.count })
        }
    }

    @Test func `senders of one key are served round robin, whatever number of requests each has`() {
        var table = Table()
        func send(_ sender: UInt64, _ waiter: Int) -> Table.Answer {
            acquire(&table, RequestKey(.vault, UUID(high: 0, low: 1), of: UUID(high: 0, low: sender)), waiter)
        }
        #expect(isHeld(send(1, 10)))
        for waiter in 11...15 { #expect(!isHeld(send(1, waiter))) }
        for waiter in 20...22 { #expect(!isHeld(send(2, waiter))) }
        #expect(!isHeld(send(3, 30)))
        func release() -> Int? { table.release(RequestKey(.vault, UUID(high: 0, low: 1)), now: start).first?.waiter }
        #expect((0..<3).map { _ in release() } == [20, 30, 11])
        // The second round is running: the next request of 3 belongs to it.
        #expect(!isHeld(send(3, 31)))
        #expect((0..<8).map { _ in release() } == [21, 31, 12, 22, 13, 14, 15, nil])
        #expect(table.heldCount == 0 && table.waiterCount == 0)
    }

    @Test(arguments: PropertyTests.seeds)
    func `at most two requests of each other sender precede the first waiting request of a sender`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = Table()
        let subject = UUID(high: 0, low: 1)
        var senders: [Int: Int] = [:]
        var places: [Int: Table.Ticket] = [:]
        var isHeld = false
        /// Other senders' requests since the arrival of a sender's first waiting request.
        var preceding: [Int: [Int: Int]] = [:]
        var waiting: [Int: [Int]] = [:]
        for request in 0..<600 {
            let isSending = Int.random(in: 0..<10, using: &random) < 6
            if isSending {
                // One sender sends more than all others together.
                let sender = Bool.random(using: &random) ? 0 : Int.random(in: 1..<5, using: &random)
                let key = RequestKey(.vault, subject, of: UUID(high: 0, low: UInt64(sender)))
                senders[request] = sender
                switch acquire(&table, key, request) {
                case .held: isHeld = true
                case .wait(let ticket):
                    places[request] = ticket
                    if waiting[sender, default: []].isEmpty { preceding[sender] = [:] }
                    waiting[sender, default: []].append(request)
                case .queueFull: #expect(table.waiterCount == 64)
                case .refused: Issue.record("refused")
                }
            } else if Bool.random(using: &random), let gone = places.keys.sorted().randomElement(using: &random),
                let ticket = places.removeValue(forKey: gone), let sender = senders[gone]
            {
                #expect(table.cancel(ticket) == gone)
                if waiting[sender]?.first == gone { preceding[sender] = nil }
                waiting[sender]?.removeAll { $0 == gone }
            } else if isHeld {
                let next = table.release(RequestKey(.vault, subject), now: start).first?.waiter
                isHeld = next != nil
                #expect((next == nil) == places.isEmpty)
                guard let next, let sender = senders[next] else { continue }
                places[next] = nil
                #expect(waiting[sender]?.first == next, "requests of one sender keep their order")
                waiting[sender]?.removeFirst()
                #expect(preceding[sender]?.values.max() ?? 0 <= 2)
                preceding[sender] = waiting[sender]?.isEmpty == false ? [:] : nil
                for other in preceding.keys where other != sender { preceding[other]?[sender, default: 0] += 1 }
            }
        }
    }

    @Test func `those of one party hold the key together, are done together, and parties take turns`() {
        var table = Table()
        let (one, other) = (ObjectIdentifier(Table.self), ObjectIdentifier(Int.self))
        _ = acquire(&table, key(1), 0)
        let parties: [ObjectIdentifier?] = [one, one, one, other, nil, nil, one] + Array(repeating: other, count: 20)
        for (index, batchOwner) in parties.enumerated() {
            _ = table.acquire(
                key(1), batchOwner: batchOwner, waiter: index + 1, now: start, deadline: start + .seconds(10))
        }
        func release() -> [Int] { table.release(key(1), now: start).map(\.waiter) }
        #expect(release() == [1, 2, 3, 7])
        for _ in 0..<3 { #expect(release() == []) }
        #expect(release() == [4] + Array(8...22), "sixteen at most")
        for _ in 0..<15 { #expect(release() == []) }
        #expect(release() == [5])
        #expect(release() == [6])
        #expect(release() == Array(23...27))
    }

    @Test func `a key that was locked is held by one at a time, each on a connection of his own`() {
        var table = Table()
        _ = acquire(&table, key(1), 0)
        for waiter in 1...2 {
            _ = table.acquire(
                key(1), batchOwner: ObjectIdentifier(Int.self), waiter: waiter, now: start,
                deadline: start + .seconds(10))
        }
        table.mark(key(1), now: start)
        let next = table.release(key(1), now: start)
        #expect(next.map(\.waiter) == [1] && next.first?.route == .lease)
    }
}
