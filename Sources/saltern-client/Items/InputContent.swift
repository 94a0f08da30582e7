import CommandLineKit
import Cryptography
import Foundation
import SalternClient

/// The input of a command: a file, or standard input.
struct InputContent {
    let source: AttachmentSource
    /// True when the source is complete. Of content that is longer than any item, it contains only the beginning.
    let isWhole: Bool

    /// Opens a file. A regular file is read on demand, any other one now.
    static func file(_ path: String) throws -> InputContent {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            if descriptor >= 0 { close(descriptor) }
            throw CommandFailure("cannot read \(path)", status: ExitStatus.notFound, code: "file_not_found")
        }
        defer { close(descriptor) }
        if status.st_mode & S_IFMT == S_IFREG {
            return InputContent(source: try AttachmentSource(file: URL(filePath: path)), isWhole: true)
        }
        return try read(descriptor, path)
    }

    static func standardInput() throws -> InputContent { try read(STDIN_FILENO, "standard input") }

    /// Reads to the end, or up to the length of the longest item.
    private static func read(_ descriptor: Int32, _ name: String) throws -> InputContent {
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
        var pieces: [SecureBytes] = []
        var count = 0
        while count <= Vault.longestItemByteCount {
            guard var data = try? handle.read(upToCount: 256 << 10) ?? Data() else {
                throw SecretInput.unreadable("\(name) cannot be read")
            }
            if data.isEmpty { break }
            pieces.append(data.withUnsafeBytes { SecureBytes(copying: $0) })
            data.resetBytes(in: data.indices)
            count += data.count
        }
        return InputContent(
            source: AttachmentSource(SecureBytes(joining: pieces)), isWhole: count <= Vault.longestItemByteCount)
    }
}
