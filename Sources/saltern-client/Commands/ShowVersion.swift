import CommandLineKit
import Foundation

struct ShowVersion: Command {
    static let words = ["version"]
    static let summary = "print the version of this program"
    static let example = "saltern-client version"
    static let help = """
          --json                one object, for scripts

        `saltern-client --version` is the same.
        """

    private let asJSON: Bool

    init(_ arguments: inout Arguments) { asJSON = arguments.flag("--json") }

    func run(_ console: Console) async throws {
        let version = String(decoding: PackageResources.VERSION, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        try console.show(["version": version], asJSON: asJSON) { "saltern-client \(version)\n" }
    }
}
