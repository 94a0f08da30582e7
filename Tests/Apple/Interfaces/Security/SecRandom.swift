internal import COpenSSL

/// https://developer.apple.com/documentation/security/secrandomref
public final class SecRandom: Sendable {}
public typealias SecRandomRef = SecRandom

/// https://developer.apple.com/documentation/security/ksecrandomdefault
public let kSecRandomDefault: SecRandomRef? = nil

/// https://developer.apple.com/documentation/security/secrandomcopybytes(_:_:_:)
public func SecRandomCopyBytes(_ rnd: SecRandomRef?, _ count: Int, _ bytes: UnsafeMutableRawPointer) -> Int32 {
    RAND_bytes(bytes.assumingMemoryBound(to: UInt8.self), Int32(count)) == 1 ? errSecSuccess : errSecParam
}
