internal import COpenSSL

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
