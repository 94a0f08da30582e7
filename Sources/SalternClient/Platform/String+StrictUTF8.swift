internal import Foundation

extension String {
    /// Decodes UTF-8.
    ///
    /// `String(validating:as:)` does the same and needs iOS 18 or macOS 15. A repair of invalid bytes changes them, so
    /// equal bytes were valid.
    /// - Returns: nil for bytes that are not UTF-8.
    init?(strictUTF8 bytes: some Collection<UInt8>) {
        var text = String(decoding: bytes, as: UTF8.self)
        let isSame = text.withUTF8 { text in
            bytes.withContiguousStorageIfAvailable { bytes in
                guard bytes.count == text.count, let left = bytes.baseAddress, let right = text.baseAddress else {
                    return bytes.isEmpty && text.isEmpty
                }
                return memcmp(left, right, bytes.count) == 0
            } ?? text.elementsEqual(bytes)
        }
        guard isSame else { return nil }
        self = text
    }
}
