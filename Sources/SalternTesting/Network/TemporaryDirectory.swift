internal import Foundation

/// A new directory that is removed with the value.
public final class TemporaryDirectory: Sendable {
    /// The kind of file system that the directory is on.
    public enum Medium: Sendable {
        /// The system's temporary directory, which is memory on some systems and a disk on others.
        case any
        /// Memory where the system has a file system in it: a synced write waits for no disk.
        case memory
        /// `/var/tmp`, which survives a restart and so is on a disk (Filesystem Hierarchy Standard 3.0, section 5.15).
        case disk
    }

    /// The path of the directory.
    public let path: String

    /// The path of a file in the directory that does not exist.
    public var missing: String { path + "/missing" }

    public init(_ medium: Medium = .any) throws {
        let temporary = FileManager.default.temporaryDirectory
        let memory = "/dev/shm/"
        let base =
            switch medium {
            // A run of all tests has its temporary directory there already, and removes it however it ends.
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
