import Testing

@testable import SalternClient

/// The days for which the server keeps deleted content, over several plans.
@Suite struct KeptPeriodsTests {
    private func periods(_ notes: (age: Int64, days: Int)...) -> KeptPeriods {
        var periods = KeptPeriods(nil)
        for note in notes {
            periods.note(note.days, at: note.age)
            periods = KeptPeriods(periods.text)
        }
        return periods
    }

    @Test func `content keeps the days of its time after each reduction`() {
        let periods = periods((0, 90), (1_000, 90), (2_000, 60), (3_000, 30), (4_000, 30))
        // The sweep that finds a reduction also finds deletions from before it.
        let expected: [(age: Int64, days: Int64)] = [
            (0, 90), (1_999, 90), (2_000, 90), (2_001, 60), (3_000, 60), (3_001, 30), (9_000, 30),
        ]
        for (age, days) in expected { #expect(periods.days(since: age) == days, "\(age)") }
        #expect(periods.text == "0:90 2000:60 3000:30")
    }

    @Test func `more days hold for later deletions only`() {
        let periods = periods((0, 30), (1_000, 365))
        for (age, days) in [(0, 30), (999, 30), (1_000, 365), (1_001, 365)] as [(Int64, Int64)] {
            #expect(periods.days(since: age) == days, "\(age)")
        }
    }

    @Test func `stated days are bounded, and a device without a record uses the first known ones`() {
        #expect(periods((0, 1)).days(since: 5) == 30)
        #expect(periods((0, .max)).days(since: 5) == 3_650)
        #expect(periods((1_000, 90)).days(since: 5) == 90)
        #expect(KeptPeriods("x 1:2:3 :").days(since: 5) == 30)
    }

    @Test func `a record of many changes forgets none of the longer periods`() {
        var periods = KeptPeriods(nil)
        for change in 0..<200 { periods.note(change == 0 ? 3_000 : 31 + change % 2, at: Int64(change) * 100) }
        #expect(periods.text.split(separator: " ").count == 64)
        #expect(periods.days(since: 0) == 3_000)
        #expect(periods.days(since: 19_950) == 32)
    }
}
