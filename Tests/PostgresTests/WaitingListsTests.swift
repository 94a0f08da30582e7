import SalternTesting
import Testing

@testable import Postgres

@Suite struct WaitingListsTests {
    @Test func `elements leave in the order they came, and from the middle at once`() {
        var lists = WaitingLists<Int>()
        var list = WaitingLists<Int>.List()
        let places = (0..<5).map { lists.append($0, to: &list) }
        #expect(lists.remove(places[2], from: &list) == 2)
        #expect(lists.remove(places[2], from: &list) == nil, "it has gone")
        #expect(lists.remove(places[0], from: &list) == 0)
        #expect(lists.remove(places[4], from: &list) == 4)
        #expect(lists.first(of: list) == 1)
        #expect(lists.popFirst(of: &list) == 1 && lists.popFirst(of: &list) == 3)
        #expect(lists.popFirst(of: &list) == nil && list.isEmpty)
    }

    @Test func `the first of a kind leaves from the middle`() {
        var lists = WaitingLists<Int>()
        var list = WaitingLists<Int>.List()
        for value in [1, 2, 3, 4] { _ = lists.append(value, to: &list) }
        #expect(lists.popFirst(of: &list) { $0.isMultiple(of: 2) } == 2)
        #expect(lists.popFirst(of: &list) { $0 > 4 } == nil)
        #expect(lists.popFirst(of: &list) { $0.isMultiple(of: 2) } == 4)
        #expect(lists.popFirst(of: &list) == 1 && lists.popFirst(of: &list) == 3 && list.isEmpty)
    }

    @Test func `a place is used again, and an old one does not name who has it then`() {
        var lists = WaitingLists<Int>()
        var list = WaitingLists<Int>.List()
        let old = lists.append(1, to: &list)
        _ = lists.popFirst(of: &list)
        let new = lists.append(2, to: &list)
        #expect(lists.element(at: old) == nil)
        #expect(lists.remove(old, from: &list) == nil)
        #expect(lists.element(at: new) == 2)
    }

    @Test(arguments: PropertyTests.seeds)
    func `several lists in one storage behave as arrays do`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var lists = WaitingLists<Int>()
        var queues = Array(repeating: WaitingLists<Int>.List(), count: 3)
        var expected: [[(value: Int, place: WaitingLists<Int>.Place)]] = [[], [], []]
        for value in 0..<400 {
            let which = Int.random(in: 0..<3, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1: expected[which].append((value, lists.append(value, to: &queues[which])))
            case 2:
                let first = expected[which].isEmpty ? nil : expected[which].removeFirst().value
                #expect(lists.popFirst(of: &queues[which]) == first)
            default:
                guard let index = expected[which].indices.randomElement(using: &random) else { continue }
                let entry = expected[which].remove(at: index)
                #expect(lists.remove(entry.place, from: &queues[which]) == entry.value)
            }
            #expect(queues.map(\.count) == expected.map(\.count))
            #expect(lists.count == expected.joined().count)
        }
    }

    @Test func `what has left is let go of`() {
        final class Something {}
        var lists = WaitingLists<Something>()
        var list = WaitingLists<Something>.List()
        weak var popped: Something?
        weak var removed: Something?
        do {
            let first = Something()
            let second = Something()
            (popped, removed) = (first, second)
            _ = lists.append(first, to: &list)
            let place = lists.append(second, to: &list)
            _ = lists.remove(place, from: &list)
            _ = lists.popFirst(of: &list)
        }
        #expect(popped == nil && removed == nil)
    }
}
