import CommandLineKit
import Glibc

/// Small text files that contain secrets.
enum TextFile {
    /// The reason why a file cannot be used, without any of its content.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        fileprivate static var system: Failure { Failure(description: String(cString: strerror(errno))) }
    }

    /// Returns the content without trailing line ends. Rejects a named pipe without waiting for it (`O_NONBLOCK`).
    static func contents(atPath path: String, limit: Int) throws(Failure) -> String {
        let descriptor = openedAlready(path) ?? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .system }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            throw Failure(description: isDirectory ? "it is a directory" : "it is not a regular file")
        }
        let bytes = try bytes(of: descriptor, limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else { throw Failure(description: "it is not UTF-8") }
        // C code would stop reading there.
        guard !bytes.contains(0) else { throw Failure(description: "it contains a NUL byte") }
        guard !text.hasPrefix("\u{FEFF}") else { throw Failure(description: "it begins with a byte order mark") }
        return String(text.reversed().drop { $0.isNewline }.reversed())
    }

    /// Duplicates the descriptor that `/dev/fd/N` names; nil for other paths.
    ///
    /// Opening that path would open the file again with the rights of this process, which may not suffice. The caller
    /// may have opened the file for that reason.
    private static func openedAlready(_ path: String) -> CInt? {
        guard path.hasPrefix("/dev/fd/"), let number = OperatorNumber.integer(path.dropFirst(8)),
            (0...1_023).contains(number)
        else { return nil }
        return fcntl(CInt(number), F_DUPFD_CLOEXEC, 3)
    }

    private static func bytes(of descriptor: CInt, limit: Int) throws(Failure) -> ArraySlice<UInt8> {
        var bytes = [UInt8](repeating: 0, count: limit + 1)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                // From the beginning, even if the descriptor was read before.
                pread(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count, off_t(count))
            }
            if more < 0, errno == EINTR { continue }
            guard more >= 0 else { throw .system }
            if more == 0 { return bytes[..<count] }
            count += more
        }
        throw Failure(description: "it is longer than \(limit) bytes")
    }
}
