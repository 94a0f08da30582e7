internal import COpenSSL

/// A failed OpenSSL call, with all entries of OpenSSL's error queue.
///
/// Creating one drains the calling thread's queue, so an old entry never counts as the cause of a later failure.
public struct OpenSSLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// One line of OpenSSL's error stack.
    public struct Entry: Hashable, Sendable, CustomStringConvertible {
        /// The packed code, the argument of `openssl errstr`.
        public let code: UInt
        /// The library number within OpenSSL, `ERR_LIB_…`.
        public let library: Int32
        /// The reason number within that library.
        public let reason: Int32
        /// OpenSSL's own wording, with the extra data of the failing function, such as a path.
        public let description: String
    }

    /// The failed operation, in plain words.
    public let operation: String
    /// The stack, oldest entry (the root cause) first. Empty when OpenSSL gave no reason.
    public let stack: [Entry]

    /// Takes the whole error queue of the calling thread.
    /// - Parameter operation: The failed operation in plain words, such as `read the key`.
    public init(draining operation: String) {
        self.operation = operation
        self.stack = Self.drain()
    }

    /// Empties the calling thread's error queue.
    public static func clearQueue() {
        ERR_clear_error()
    }

    public var description: String {
        guard !stack.isEmpty else { return "\(operation): OpenSSL gave no reason" }
        return "\(operation): " + stack.map(\.description).joined(separator: "; ")
    }

    private static func drain() -> [Entry] {
        var entries: [Entry] = []
        while true {
            var data: UnsafePointer<CChar>?
            var flags: Int32 = 0
            let code = ERR_get_error_all(nil, nil, nil, &data, &flags)
            guard code != 0 else { return entries }
            var text = [CChar](repeating: 0, count: 256)
            ERR_error_string_n(code, &text, text.count)
            var description = String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            if flags & ERR_TXT_STRING != 0, let data, data.pointee != 0 {
                description += " (\(String(cString: data)))"
            }
            entries.append(
                Entry(
                    code: UInt(code), library: saltern_ERR_get_lib(code), reason: saltern_ERR_get_reason(code),
                    description: description))
        }
    }
}

/// A failure of the platform's library, thrown by ``AESGCM`` and the other algorithms.
public typealias LibraryError = OpenSSLError

/// OpenSSL's state of the process.
package enum OpenSSLLibrary {
    /// Initialises OpenSSL without the exit handler that frees its state.
    ///
    /// A program may return from `main` while a vault still syncs on another thread, which would then use freed memory.
    /// Only the first initialisation in a process counts, so every call of this module and of libcurl comes after it.
    /// Source: OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`.
    package static func setUp() { isSetUp }

    private static let isSetUp: Void = requireSuccess(
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil), "set up")
}
