internal import Cryptography
internal import HTTPCore
internal import Postgres

/// Behind which share a page of a listing begins: opaque to clients.
struct SharePage: PathParameterConvertible, Equatable {
    /// Every share of the page was created before, or at the same moment with a lower identifier.
    let createdAt: Timestamp
    let id: ShareID

    /// Where the first page begins.
    static let first = SharePage(createdAt: .distantFuture, id: .highest)

    /// Tells this kind of token, and its version, from any other.
    private static let tag: UInt8 = 0x02

    init(createdAt: Timestamp, id: ShareID) {
        self.createdAt = createdAt
        self.id = id
    }

    init?(pathParameter text: String) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count == 25, bytes[0] == Self.tag,
            let id = bytes.withUnsafeBytes({ ShareID(bytes: UnsafeRawBufferPointer(rebasing: $0[9...])) })
        else { return nil }
        let moment = bytes[1..<9].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        createdAt = Timestamp(microsecondsSince2000: Int64(bitPattern: moment))
        self.id = id
    }

    var text: String {
        let moment = withUnsafeBytes(of: createdAt.microsecondsSince2000.bigEndian) { [UInt8]($0) }
        return Base64URL.encodeToString([Self.tag] + moment + id.bytes)
    }
}
