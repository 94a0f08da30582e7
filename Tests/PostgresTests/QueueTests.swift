import Testing

@testable import Postgres

@Suite struct QueueTests {
    @Test func `elements leave in the order they came, however the ring turns and grows`() {
        var queue = Queue<Int>()
        var expected: [Int] = []
        var left: [Int] = []
        for number in 0..<1_000 {
            queue.append(number)
            expected.append(number)
            if number % 3 == 0, let first = queue.popFirst() { left.append(first) }
        }
        #expect(queue.count == 1_000 - left.count)
        while let first = queue.popFirst() { left.append(first) }
        #expect(left == expected)
        #expect(queue.isEmpty && queue.first == nil)
    }

    @Test func `one element can be taken out of the middle`() {
        var queue = Queue<Int>()
        for number in 0..<5 { queue.append(number) }
        #expect(queue.remove { $0 % 2 == 1 } == 1)
        #expect(queue.remove { $0 > 10 } == nil)
        var rest: [Int] = []
        while let first = queue.popFirst() { rest.append(first) }
        #expect(rest == [0, 2, 3, 4])
    }
}
