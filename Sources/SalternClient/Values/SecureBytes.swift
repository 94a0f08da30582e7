// Gives apps the type by `import SalternClient`. Its module is not a product of the package.
@_exported public import struct Cryptography.SecureBytes
public import Foundation

extension SecureBytes {
    /// Copies data. The caller's copy stays in memory.
    ///
    /// ```swift
    /// let body = SecureBytes(try Data(contentsOf: file))
    /// ```
    public init(_ data: Data) { self = data.withUnsafeBytes { SecureBytes(copying: $0) } }

    /// Copies the UTF-8 of a text. The caller's copy stays in memory.
    ///
    /// ```swift
    /// let body = SecureBytes("Buy salt.")
    /// ```
    public init(_ text: String) { self.init(copying: text.utf8) }
}

extension Data {
    /// Copies the bytes. Unlike the original, the copy is not zeroed when it is released.
    ///
    /// ```swift
    /// try Data(item.body).write(to: file)
    /// ```
    public init(_ bytes: SecureBytes) { self = bytes.withUnsafeBytes { Data($0) } }
}

extension String {
    /// Copies the bytes as a text. Unlike the original, the copy is not zeroed when it is released.
    ///
    /// ```swift
    /// let note = String(try await vault.content(of: attachment)) ?? "no text"
    /// ```
    /// - Returns: nil for bytes that are not UTF-8.
    public init?(_ bytes: SecureBytes) {
        guard let text = bytes.withUnsafeBytes({ String(strictUTF8: $0) }) else { return nil }
        self = text
    }
}

extension PlainItem {
    /// Creates an item with the UTF-8 of a text as its body.
    ///
    /// ```swift
    /// try await vault.put(PlainItem(title: "shopping", text: "Buy salt."), .random(), in: "notes")
    /// ```
    public init(title: String? = nil, text: String) { self.init(title: title, body: SecureBytes(text)) }

    /// Creates an item with data as its body.
    ///
    /// ```swift
    /// let item = PlainItem(title: "photo", data: jpeg)
    /// ```
    public init(title: String? = nil, data: Data) { self.init(title: title, body: SecureBytes(data)) }

    /// A copy of the body as a text; nil for a body that is not UTF-8.
    ///
    /// ```swift
    /// print(try await vault.item(id)?.text ?? "")
    /// ```
    public var text: String? { String(body) }

    /// A copy of the body.
    ///
    /// ```swift
    /// let image = UIImage(data: item.data)
    /// ```
    public var data: Data { Data(body) }
}

extension SecureBytes {
    /// Joins pieces in their order.
    package init(joining pieces: [SecureBytes]) {
        self.init(count: pieces.reduce(0) { $0 + $1.count }) { buffer in
            var offset = 0
            for piece in pieces {
                piece.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: buffer[offset...].prefix($0.count)).copyMemory(from: $0)
                }
                offset += piece.count
            }
        }
    }
}

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
