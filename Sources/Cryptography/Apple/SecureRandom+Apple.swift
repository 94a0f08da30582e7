internal import Security

extension SecureRandom {
    static func draw(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) {
        let status = SecRandomCopyBytes(kSecRandomDefault, count, bytes)
        precondition(status == errSecSuccess, "no secure random bytes: \(status)")
    }

    /// Draws from the same generator: the platform has one.
    static func drawSecret(_ bytes: UnsafeMutablePointer<UInt8>, _ count: Int) { draw(bytes, count) }
}
