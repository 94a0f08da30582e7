internal import Foundation

/// A new directory that is removed with the value.
public final class TemporaryDirectory: Sendable {
    /// The kind of file system that the directory is on.
    public enum Medium: Sendable {
        /// The system's temporary directory, which is in memory on some systems and on a disk on others.
        case any
        /// Memory if the system has a file system in it. A synced write then waits for no disk.
        case memory
        /// `/var/tmp`, which survives a restart and is therefore on a disk (Filesystem Hierarchy Standard 3.0, section
        /// 5.15).
        case disk
    }

    /// The path of the directory.
    public let path: String

    /// The path of a missing file in the directory.
    public var missing: String { path + "/missing" }

    public init(_ medium: Medium = .any) throws {
        let temporary = FileManager.default.temporaryDirectory
        let memory = "/dev/shm/"
        let base =
            switch medium {
            // A run of all tests already has its temporary directory there, and removes it in any case.
            case .memory where !temporary.path.hasPrefix(memory) && FileManager.default.isWritableFile(atPath: memory):
                URL(filePath: memory, directoryHint: .isDirectory)
            case .disk: URL(filePath: "/var/tmp", directoryHint: .isDirectory)
            case .any, .memory: temporary
            }
        let url = base.appending(path: "saltern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        path = url.path
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}
