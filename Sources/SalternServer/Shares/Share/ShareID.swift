internal import Cryptography
internal import Postgres

/// Identifies a share: 128 random bits, in links and paths as 22 characters of `Base62`.
///
/// The id is sufficient to fetch the sealed bytes, so `description` does not print it.
struct ShareID: Sendable, Hashable {
    private let bits: UInt128

    private init(bits: UInt128) {
        self.bits = bits
    }

    /// The highest id.
    static let highest = ShareID(bits: .max)

    static func random() -> ShareID {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { buffer in
            SecureRandom.fill(buffer)
            return ShareID(bits: buffer.loadUnaligned(as: UInt128.self))
        }
    }

    /// Reads 22 characters. Nil for other text.
    init?(text: String?) {
        guard let text, let bits = Base62.decode(text.utf8) else { return nil }
        self.bits = bits
    }

    var text: String { String(decoding: Base62.encode(bits), as: UTF8.self) }

    /// Reads 16 bytes, most significant first.
    init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 16 else { return nil }
        bits = UInt128(bigEndian: bytes.loadUnaligned(as: UInt128.self))
    }

    /// The 16 bytes, most significant first.
    var bytes: [UInt8] { withUnsafeBytes(of: bits.bigEndian) { [UInt8]($0) } }
}

extension ShareID: PostgresValue, PostgresArrayElement {
    static var postgresType: PostgresType { .bytea }
    static var postgresArrayType: PostgresType { .byteaArray }

    func encode(to writer: inout ByteWriter) { withUnsafeBytes(of: bits.bigEndian) { writer.write($0) } }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> ShareID? { bytes.flatMap { ShareID(bytes: $0) } }
}

extension ShareID: CustomStringConvertible, CustomReflectable {
    var description: String { "ShareID(redacted)" }
    var customMirror: Mirror { Mirror(self, children: [:]) }
}
