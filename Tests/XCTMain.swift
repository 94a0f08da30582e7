import Foundation
import Testing

/// Starts the tests. Without this file SwiftPM looks for XCTest cases, of which there are none, in an index that the compiler
/// would have to write: a seventh of the build's work.
@main
struct TestProgram {
    static func main() async {
        // `swift test` calls once for each library.
        guard CommandLine.arguments.contains("swift-testing") else { exit(EXIT_SUCCESS) }
        await Testing.__swiftPMEntryPoint() as Never
    }
}
