import CommandLineKit
import Foundation

/// A file that is passed to programs by its descriptor.
final class OpenFile: Sendable {
    /// The size of a file, and the time of its last change.
    struct Version: Equatable {
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    let descriptor: Int32

    /// Makes a file without a name. Unlike an unread pipe, it has no limited capacity.
    init(contents: String) throws(CommandFailure) {
        guard let file = tmpfile() else { throw CommandFailure("there is no room for temporary files") }
        descriptor = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3)
        fclose(file)
        let bytes = Array(contents.utf8)
        guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count else {
            throw CommandFailure("there is no room for temporary files")
        }
    }

    init(duplicating handle: FileHandle) throws(CommandFailure) {
        descriptor = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 3)
        guard descriptor >= 0 else { throw CommandFailure("there is no room for descriptors") }
    }

    init(takingOwnershipOf descriptor: Int32) { self.descriptor = descriptor }

    /// Opens an existing file for reading. Rejects pipes, which can be read only once.
    init(reading path: String) throws(CommandFailure) {
        // O_NONBLOCK: opening a pipe does not wait for a writer.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw CommandFailure("\(path): \(String(cString: strerror(errno)))") }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw CommandFailure("\(path) is not a regular file")
        }
    }

    deinit { close(descriptor) }

    /// Sets the position to the start, for the next program.
    func rewind() throws(CommandFailure) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else { throw Self.failure("a file cannot be read") }
    }

    func size() throws(CommandFailure) -> Int { try version().size }

    /// Returns a value that differs after another process has written to the file or truncated it.
    func version() throws(CommandFailure) -> Version {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure("a file cannot be read") }
        return Version(
            size: Int(status.st_size), seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
    }

    /// Returns some of its bytes, fewer at its end. The shared position does not change.
    func bytes(at start: Int, count: Int) throws(CommandFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let read = bytes.withUnsafeMutableBytes { buffer in
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
                return pread(descriptor, rest.baseAddress, rest.count, off_t(start + done))
            }
            if read < 0, errno == EINTR { continue }
            guard read >= 0 else { throw Self.failure("a file cannot be read") }
            guard read > 0 else { return Array(bytes[..<done]) }
            done += read
        }
        return bytes
    }

    /// Writes at the end.
    func append(_ bytes: ArraySlice<UInt8>) throws(CommandFailure) {
        guard lseek(descriptor, 0, SEEK_END) >= 0 else { throw Self.failure("a file cannot be written") }
        var rest = bytes
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw Self.failure("a file cannot be written") }
            rest = rest.dropFirst(written)
        }
    }

    func contents() throws -> String {
        try rewind()
        let bytes = try FileHandle(fileDescriptor: descriptor).readToEnd()
        return String(decoding: bytes ?? Data(), as: UTF8.self)
    }

    private static func failure(_ what: String) -> CommandFailure {
        CommandFailure("\(what): \(String(cString: strerror(errno)))")
    }
}
