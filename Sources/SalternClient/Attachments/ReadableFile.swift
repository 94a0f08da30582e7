internal import Cryptography
public import Foundation

/// A file that is open for reading.
final class ReadableFile: Sendable {
    private let descriptor: Int32
    /// The length of the file when it was opened; nil for other inputs, such as a pipe.
    let byteCount: Int64?

    /// - Throws: `CocoaError` when the file cannot be opened.
    init(_ file: URL) throws {
        descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CocoaError(.fileReadNoSuchFile) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT != S_IFDIR else {
            close(descriptor)
            throw CocoaError(.fileReadUnknown)
        }
        byteCount = status.st_mode & S_IFMT == S_IFREG ? Int64(status.st_size) : nil
    }

    deinit { close(descriptor) }

    /// Reads bytes at an offset.
    /// - Throws: `CocoaError` when there are fewer.
    func read(at offset: Int64, _ count: Int) throws -> SecureBytes {
        try SecureBytes(count: count) { buffer throws in
            var done = 0
            while done < count {
                let result = pread(
                    descriptor, buffer.baseAddress?.advanced(by: done), count - done, off_t(offset) + off_t(done))
                if result < 0, errno == EINTR { continue }
                guard result > 0 else { throw CocoaError(.fileReadUnknown) }
                done += result
            }
        }
    }

    /// Reads to the end of a pipe.
    func readToEnd() throws -> SecureBytes {
        var data = try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readToEnd() ?? Data()
        defer { data.resetBytes(in: data.indices) }
        return data.withUnsafeBytes { SecureBytes(copying: $0) }
    }
}

extension AttachmentSource {
    /// Creates a source from a file, which is read piece by piece. Another input, such as a pipe, is read into memory.
    /// - Throws: `CocoaError` when the file cannot be opened.
    public init(file: URL) throws {
        let file = try ReadableFile(file)
        if let byteCount = file.byteCount {
            self.init(byteCount: byteCount) { offset, count in try file.read(at: offset, count) }
        } else {
            self.init(try file.readToEnd())
        }
    }
}
