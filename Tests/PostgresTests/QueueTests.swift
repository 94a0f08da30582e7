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
}
