import Testing

@testable import SalternClient

@Suite struct FieldBudgetTests {
    /// Which of these lines are taken.
    private func taken(_ lines: [Int]) -> [Bool] {
        var budget = FieldBudget()
        return lines.map { budget.take($0) }
    }

    @Test func `a reply's fields may be as long as the limit together, head and trailers, and not a byte longer`() {
        #expect(taken([262_144]) == [true])
        #expect(taken([262_145]) == [false])
        #expect(taken([2, 262_140, 2, 0]) == [true, true, true, true])
        #expect(taken([262_144, 1, 0]) == [true, false, false], "what was refused is not forgotten")
    }
}
