import Foundation

/// A directory of a test's own, removed with everything in it at the end.
final class TemporaryDirectory {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(component: "saltern-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path(percentEncoded: false)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file with the permissions `mode` and returns its path.
    func write(_ contents: some Sequence<UInt8>, to name: String, mode: Int = 0o600) throws -> String {
        let file = "\(path)/\(name)"
        try Data(contents).write(to: URL(filePath: file))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    /// The permission bits of a file.
    static func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
    }
}
