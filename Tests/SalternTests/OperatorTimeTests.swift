import CommandLineKit
import Testing

@Suite struct OperatorTimeTests {
    @Test(arguments: [
        ("0s", 0), ("90s", 90), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000),
        ("106751991167300d", 9_223_372_036_854_720_000),
    ])
    func `a whole number and its unit are a time`(text: String, seconds: Int64) {
        #expect(OperatorTime.duration(text) == .seconds(seconds))
    }

    @Test(arguments: [
        "", "s", "90", "1.5h", "-1s", "+1s", "01s", " 1s", "1s ", "1 s", "1S", "1w", "1ms", "٣s", "106751991167301d",
        "9223372036854775808s",
    ])
    func `anything else is none`(text: String) {
        #expect(OperatorTime.duration(text) == nil)
    }

    @Test(arguments: ["0s", "1s", "59s", "61s", "1m", "90m", "1h", "25h", "1d", "365d"])
    func `a time is written as it would be read, in its largest unit`(text: String) throws {
        #expect(OperatorTime.text(try #require(OperatorTime.duration(text))) == text)
    }

    @Test func `bounds belong to what is allowed, and are named when they are not kept`() throws {
        func taken(_ text: String) throws -> Duration? {
            var arguments = try Arguments(["--after", text], OptionNames(valued: ["--after"]))
            return try arguments.duration("--after", in: .seconds(60)...(.seconds(86_400)))
        }
        #expect(try taken("1m") == .seconds(60))
        #expect(try taken("24h") == .seconds(86_400))
        for text in ["59s", "86401s", "soon"] {
            let error = #expect(throws: UsageError.self) { try taken(text) }
            #expect(error?.message == "--after must be a time such as 12h or 30d, from 1m to 1d")
        }
        var none = try Arguments([], OptionNames(valued: ["--after"]))
        #expect(try none.duration("--after", in: .seconds(1)...(.seconds(2))) == nil)
    }
}
