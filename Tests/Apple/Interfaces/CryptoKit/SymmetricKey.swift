public import Foundation

/// https://developer.apple.com/documentation/cryptokit/symmetrickey
public struct SymmetricKey: ContiguousBytes, Sendable {
    private let bytes: [UInt8]

    public init<D>(data: D) where D: ContiguousBytes { bytes = data.withUnsafeBytes { [UInt8]($0) } }

    public func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
        try bytes.withUnsafeBytes(body)
    }
}
