import Testing

@testable import SalternClient

@Suite struct FieldBudgetTests {
    @Test func `a reply's fields may be as long as the limit together, head and trailers, and not a byte longer`() {
        var budget = FieldBudget()
        #expect(budget.take(2))
        for _ in 0..<127 { #expect(budget.take(2_048)) }
        #expect(budget.take(2_046))
        #expect(budget.take(0))
        #expect(!budget.take(1))
        #expect(!budget.take(0), "what was refused is not forgotten")
        var other = FieldBudget()
        #expect(other.take(262_144))
    }
}
