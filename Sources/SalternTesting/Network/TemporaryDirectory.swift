internal import Foundation

/// A directory of its own that goes with the value.
public final class TemporaryDirectory: Sendable {
    /// The directory.
    public let path: String

    public init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: "saltern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
