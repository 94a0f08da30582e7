public import Cryptography
public import Foundation

/// The source of an attachment's content, read piece by piece, so that it is never in memory as a whole.
///
/// ```swift
/// let camera = try AttachmentSource(file: file)
/// note.photo = try await vault.attach(camera) { show($0.byteCount) }
/// ```
public struct AttachmentSource: Sendable {
    /// The length of the content, in bytes.
    public let byteCount: Int64
    let read: @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes

    /// Creates a source from a function.
    /// - Parameter read: Returns exactly `count` bytes from `offset` on, or throws.
    public init(byteCount: Int64, read: @escaping @Sendable (_ offset: Int64, _ count: Int) throws -> SecureBytes) {
        self.byteCount = byteCount
        self.read = read
    }

    /// Creates a source from content in memory.
    public init(_ content: SecureBytes) {
        self.init(byteCount: Int64(content.count)) { offset, count in
            content.withUnsafeBytes { bytes in
                SecureBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)...].prefix(count)))
            }
        }
    }

    /// Reads a part of the content, whole.
    func piece(_ offset: Int64, _ count: Int) throws(VaultError) -> SecureBytes {
        guard let content = try? read(offset, count), content.count == count else { throw .sourceFailed }
        return content
    }
}

/// The progress of an attachment that is sent or read.
public struct AttachmentProgress: Hashable, Sendable {
    /// The bytes that are complete, including those that were present before.
    public let byteCount: Int64
    /// The length of the content, in bytes.
    public let total: Int64
}

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

extension AttachmentSource {
    /// Creates a source from data in memory.
    ///
    /// ```swift
    /// let photo = try await vault.attach(AttachmentSource(jpeg))
    /// ```
    public init(_ data: Data) { self.init(SecureBytes(data)) }

    /// Creates a source from the UTF-8 of a text.
    ///
    /// ```swift
    /// let chapter = try await vault.attach(AttachmentSource(text))
    /// ```
    public init(_ text: String) { self.init(SecureBytes(text)) }
}
