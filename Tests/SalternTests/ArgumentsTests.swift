import CommandLineKit
import Testing

@testable import saltern

@Suite struct ArgumentsTests {
    private static let names = OptionNames(flags: ["--json", "--yes"], valued: ["--id", "--actor", "--after"])

    private func read(_ words: String...) throws -> Arguments { try Arguments(words, Self.names) }

    @Test func `behind two hyphens every word is an operand`() throws {
        var arguments = try read("--yes", "--", "--id=1", "-rf", "--", "--help", "-")
        let isConfirmed = arguments.flag("--yes")
        let id = try arguments.option("--id")
        #expect(isConfirmed && id == nil)
        var words: [String] = []
        while let word = try arguments.optionalWord() { words.append(word) }
        #expect(words == ["--id=1", "-rf", "--", "--help", "-"])
        try arguments.finish()
    }

    @Test func `the word behind an option is its value, whatever it begins with`() throws {
        for value in ["--json", "--yes", "--id=1", "-rf", "--", "--help", "'"] {
            var arguments = try read("--after", value, "ada")
            let (isJSON, after) = (arguments.flag("--json"), try arguments.option("--after"))
            let word = try arguments.word("the userid")
            #expect(!isJSON && after == value && word == "ada")
            try arguments.finish()
        }
    }

    @Test func `what begins with a hyphen is an option, by its bytes`() throws {
        for word in ["-rf", "-j", "--jsonx", "--json=1", "-\u{338}x", "--id\u{338}=1"] {
            #expect(throws: UsageError.self) { try read(word) }
        }
        var arguments = try read("-", "--id=\u{338}=x")
        let id = try arguments.option("--id")
        let word = try arguments.word("the file")
        #expect(id == "\u{338}=x" && word == "-")
    }

    @Test func `an option is given once, has its value, and was asked for`() throws {
        var twice = try read("--id", "1", "--id", "2")
        let error = #expect(throws: UsageError.self) { try twice.option("--id") }
        #expect(error?.message == "--id may be given once")
        let missing = #expect(throws: UsageError.self) { try read("ada", "--actor") }
        #expect(missing?.message == "--actor needs a value")
        let left = try read("--actor", "x")
        let unknown = #expect(throws: UsageError.self) { try left.finish() }
        #expect(unknown?.message == "unknown argument --actor")
        var joined = try read("--id=1")
        let refused = #expect(throws: UsageError.self) { try joined.option("--id", isJoinable: false) }
        #expect(refused?.message == "--id and its value are two words")
    }

    @Test func `every option in a command's help is one of its options`() async throws {
        let tests = CommandLineTests()
        let overview = try await tests.run("--help").output
        var count = 0
        for line in overview.split(separator: "\n") where line.contains(#/^ {2}[a-z]/#) {
            let words = line.split(separator: "  ", omittingEmptySubsequences: true)[0].split(separator: " ")
                .map(String.init)
            let names = try #require(CommandLineTool.saltern.options(of: words), "\(words)")
            let help = try await tests.run(words + ["--help"]).output
            var described: Set<String> = []
            for match in help.matches(of: /(?m)^  (--[a-z-]+)/) {
                described.insert(String(match.1))
                count += 1
            }
            #expect(described.isSubset(of: names.flags.union(names.valued)), "\(words)")
            for name in names.flags.union(names.valued) { #expect(help.contains(name), "\(words) \(name)") }
        }
        #expect(count > 60)
    }
}
