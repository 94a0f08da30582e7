import HTTPCore
import Synchronization
import Testing

@Suite struct RecallableMemoryTests {
    private static let start = ContinuousClock.now

    /// Bodies of as many addresses, which note that they were recalled.
    private final class Bodies: Sendable {
        let charges: [MemoryCharge]
        private let recalled = Mutex<[Int]>([])

        init(_ count: Int, of budget: MemoryBudget) {
            charges = (0..<count).map { budget.open(for: .address(UInt64($0))) }
        }

        /// Who was told so since this was last asked.
        func takeRecalled() -> [Int] {
            recalled.withLock { recalled in
                defer { recalled = [] }
                return recalled
            }
        }

        func hold(_ count: Int, by number: Int, after seconds: Int) -> Bool {
            charges[number].hold(count, at: RecallableMemoryTests.start + .seconds(seconds)) { [weak self] in
                self?.recalled.withLock { $0.append(number) }
            }
        }
    }

    @Test func `the eldest lose what they hold when three quarters are taken, and as many as it takes`() {
        let budget = MemoryBudget(total: 800, reserve: 0, moment: .seconds(1))
        let bodies = Bodies(8, of: budget)
        for number in 0..<6 { #expect(bodies.hold(100, by: number, after: number)) }
        #expect(bodies.takeRecalled().isEmpty)
        #expect(bodies.hold(50, by: 6, after: 6))
        #expect(bodies.takeRecalled() == [0])
        #expect(bodies.charges[0].isRecalled && !bodies.charges[1].isRecalled)
        #expect(bodies.hold(60, by: 6, after: 6))
        #expect(bodies.takeRecalled().isEmpty, "what is on its way back counts")
        #expect(bodies.hold(100, by: 7, after: 7))
        #expect(bodies.takeRecalled() == [1])
        bodies.charges[0].resize(to: 0)
        #expect(!bodies.charges[0].isRecalled)
        #expect(budget.used == 660)
    }

    @Test func `nobody loses anything in the first moment, or when all of it has arrived`() {
        let budget = MemoryBudget(total: 800, reserve: 0, moment: .seconds(1))
        let bodies = Bodies(9, of: budget)
        for number in 0..<8 { #expect(bodies.hold(100, by: number, after: 0)) }
        #expect(bodies.takeRecalled().isEmpty)
        for charge in bodies.charges[..<3] { charge.noteArrival() }
        #expect(!bodies.hold(10, by: 8, after: 0))
        #expect(bodies.takeRecalled().isEmpty)
        #expect(!bodies.hold(10, by: 8, after: 1), "there is room for those who come next")
        #expect(bodies.takeRecalled().allSatisfy { $0 > 2 })
        #expect(bodies.charges.count(where: \.isRecalled) == 3)
        for charge in bodies.charges where charge.isRecalled { charge.resize(to: 0) }
        #expect(bodies.hold(100, by: 8, after: 1))
    }

    @Test func `who asks for more than the own part takes nothing from others`() {
        let budget = MemoryBudget(total: 800, reserve: 0, moment: .zero)
        let bodies = Bodies(7, of: budget)
        for number in 0..<6 { #expect(bodies.hold(100, by: number, after: 0)) }
        #expect(!bodies.hold(101, by: 6, after: 9))
        #expect(bodies.takeRecalled().isEmpty)
    }
}
