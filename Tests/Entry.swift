import Testing

/// The entry point of the tests' program that `scripts/test` builds. Without one, SwiftPM searches an index of all
/// sources for XCTest cases.
@main struct Entry {
    static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}
