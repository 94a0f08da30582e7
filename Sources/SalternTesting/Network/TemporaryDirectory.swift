internal import Foundation

/// A directory of its own that goes with the value.
public final class TemporaryDirectory: Sendable {
    /// The directory.
    public let path: String

    /// - Parameter isVolatile: In memory where there is a file system for that: what is synced there waits for no disk.
    public init(isVolatile: Bool = false) throws {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let base =
            isVolatile && FileManager.default.isWritableFile(atPath: memory.path)
            ? memory : FileManager.default.temporaryDirectory
        let url = base.appending(path: "saltern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
