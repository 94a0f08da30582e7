internal import COpenSSL
internal import Cryptography

/// Owns a `BIO *` in memory, through which PEM is read and written.
struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer

    /// An empty one to write to. It wipes what was written when it is freed.
    init() {
        guard let bio = BIO_new(BIO_s_secmem()) else {
            preconditionFailure("\(OpenSSLError(draining: "allocate a buffer"))")
        }
        pointer = bio
    }

    deinit { BIO_free(pointer) }

    /// Calls `body` with a reader of `source`, which is not copied.
    static func withReader<Result, Failure: Error>(
        of source: some ByteSource, _ body: (OpaquePointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try source.withContiguousBytes { bytes throws(Failure) in
            // A null address is an error to OpenSSL, also when there is nothing to read.
            let empty: StaticString = ""
            let base = bytes.baseAddress ?? UnsafeRawPointer(empty.utf8Start)
            guard let bio = BIO_new_mem_buf(base, Int32(clamping: bytes.count)) else {
                preconditionFailure("\(OpenSSLError(draining: "allocate a buffer"))")
            }
            defer { BIO_free(bio) }
            return try body(bio)
        }
    }

    /// Calls `body` with what was written so far.
    borrowing func withWrittenBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var data: UnsafeMutablePointer<CChar>?
        let count = saltern_BIO_get_mem_data(pointer, &data)
        return body(UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count))
    }
}
