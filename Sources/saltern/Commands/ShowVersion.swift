import CommandLineKit
import Foundation

struct ShowVersion: Command {
    static let words = ["version"]
    static let summary = "print the version of this program"
    static let usage = [""]
    static let example = "saltern version"
    static let help = """
        The version is the one in CHANGELOG.md. `saltern --version` is the same.
        """

    /// The version of this release, or of the next one.
    static let version = String(decoding: PackageResources.VERSION, as: UTF8.self)
        .trimmingCharacters(in: .whitespacesAndNewlines)

    init(_ arguments: inout Arguments) {}

    func run(_ console: Console) async throws { console.print("saltern \(Self.version)") }
}
