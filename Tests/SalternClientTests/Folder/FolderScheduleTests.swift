import Testing

@testable import SalternClient

/// When the changes of a watched folder are examined.
@Suite struct FolderScheduleTests {
    private let start = ContinuousClock.now

    private func moment(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }
    private func path(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `an entry is due when it has been quiet for a second`() {
        var schedule = FolderSchedule()
        #expect(schedule.nextDue == nil)
        schedule.note(path("a"), at: moment(0))
        schedule.note(path("a"), at: moment(0.5))
        schedule.note(path("b"), at: moment(0.75))
        #expect(schedule.take(at: moment(1.25)).isEmpty)
        #expect(schedule.nextDue == moment(1.5))
        #expect(schedule.take(at: moment(1.5)) == [path("a")])
        #expect(schedule.take(at: moment(1.75)) == [path("b")])
        #expect(schedule.nextDue == nil)
    }

    @Test func `an entry that is never quiet is due after ten seconds`() {
        var schedule = FolderSchedule()
        for tenth in 0..<100 { schedule.note(path("a"), at: moment(Double(tenth) / 10)) }
        #expect(schedule.take(at: moment(9.9)).isEmpty)
        #expect(schedule.take(at: moment(10)) == [path("a")])
    }

    @Test func `a file that is always written is examined less and less often, and another one at once`() {
        var schedule = FolderSchedule()
        var examined: [Int] = []
        for second in 0..<3_600 {
            schedule.note(path("database"), at: moment(Double(second)))
            if schedule.take(at: moment(Double(second))) == [path("database")] { examined.append(second) }
        }
        // 361 times without that.
        #expect((10...24).contains(examined.count), "\(examined)")
        for (one, next) in zip(examined, examined.dropFirst()) { #expect(next - one <= 321) }
        schedule.note(path("letter"), at: moment(3_600))
        #expect(schedule.take(at: moment(3_601)).contains(path("letter")))
        // What was written last is not forgotten.
        #expect(schedule.take(at: moment(4_000)) == [path("database")])
        // Once it was quiet it is like any other.
        schedule.note(path("database"), at: moment(5_000))
        #expect(schedule.take(at: moment(5_001)) == [path("database")])
    }

    @Test func `a person who saves three times in a minute waits for none of them`() {
        var schedule = FolderSchedule()
        for second in [0.0, 20, 40] {
            schedule.note(path("a"), at: moment(second))
            #expect(schedule.take(at: moment(second + 1)) == [path("a")])
        }
    }

    @Test func `many entries at once are the whole folder`() {
        var schedule = FolderSchedule()
        for number in 0...FolderFocus.limit { schedule.note(path("\(number)"), at: moment(0)) }
        schedule.note(path("later"), at: moment(0.5))
        #expect(schedule.take(at: moment(1.5)) == [FolderSchedule.everything])
        #expect(schedule.nextDue == nil)
    }
}
