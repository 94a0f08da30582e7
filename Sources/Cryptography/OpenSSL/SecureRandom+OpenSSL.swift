internal import COpenSSL

extension SecureRandom {
    static func draw(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) {
        OpenSSLLibrary.setUp()
        require(RAND_bytes_ex(nil, bytes, count, 0))
    }

    /// Draws from OpenSSL's separate generator for private values. No published value comes from the same state.
    static func drawSecret(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) {
        OpenSSLLibrary.setUp()
        require(RAND_priv_bytes_ex(nil, bytes, count, 0))
    }

    private static func require(_ filled: Int32) {
        precondition(filled == 1, "\(OpenSSLError(draining: "no secure random bytes"))")
    }
}
