public import Foundation

/// https://developer.apple.com/documentation/cryptokit/messageauthenticationcode
public protocol MessageAuthenticationCode: ContiguousBytes, Hashable {}

/// https://developer.apple.com/documentation/cryptokit/hashedauthenticationcode
public struct HashedAuthenticationCode<H>: MessageAuthenticationCode where H: HashFunction {
    let bytes: [UInt8]

    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}

/// https://developer.apple.com/documentation/cryptokit/hmac, by RFC 2104.
public struct HMAC<H> where H: HashFunction {
    public typealias MAC = HashedAuthenticationCode<H>

    /// https://developer.apple.com/documentation/cryptokit/hmac/authenticationcode(for:using:)-737ab
    public static func authenticationCode<D>(for data: D, using key: SymmetricKey) -> HMAC<H>.MAC
    where D: DataProtocol {
        var block = key.withUnsafeBytes { [UInt8]($0) }
        if block.count > 64 { block = hash(block) }
        block += [UInt8](repeating: 0, count: 64 - block.count)
        let inner = hash(block.map { $0 ^ 0x36 } + data)
        return MAC(bytes: hash(block.map { $0 ^ 0x5c } + inner))
    }

    private static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var function = H()
        bytes.withUnsafeBytes { function.update(bufferPointer: $0) }
        return function.finalize().withUnsafeBytes { [UInt8]($0) }
    }
}

/// https://developer.apple.com/documentation/cryptokit/hkdf, by RFC 5869.
public struct HKDF<H> where H: HashFunction {
    /// https://developer.apple.com/documentation/cryptokit/hkdf/derivekey(inputkeymaterial:salt:info:outputbytecount:)
    public static func deriveKey<Salt, Info>(
        inputKeyMaterial: SymmetricKey, salt: Salt, info: Info, outputByteCount: Int
    ) -> SymmetricKey where Salt: DataProtocol, Info: DataProtocol {
        let material = inputKeyMaterial.withUnsafeBytes { [UInt8]($0) }
        let extracted = HMAC<H>.authenticationCode(for: material, using: SymmetricKey(data: [UInt8](salt)))
        return expand(pseudoRandomKey: extracted, info: info, outputByteCount: outputByteCount)
    }

    /// https://developer.apple.com/documentation/cryptokit/hkdf/expand(pseudorandomkey:info:outputbytecount:)
    public static func expand<PRK, Info>(
        pseudoRandomKey prk: PRK, info: Info, outputByteCount: Int
    ) -> SymmetricKey where PRK: ContiguousBytes, Info: DataProtocol {
        let key = SymmetricKey(data: prk)
        var output: [UInt8] = []
        var last: [UInt8] = []
        var number: UInt8 = 0
        while output.count < outputByteCount {
            number += 1
            last = HMAC<H>.authenticationCode(for: last + info + [number], using: key).bytes
            output += last
        }
        return SymmetricKey(data: Array(output[..<outputByteCount]))
    }
}
