internal import Cryptography
internal import HTTPCore

/// A client's position in the changes of an account. Clients treat its text as opaque.
struct SyncCursor: Sendable, Hashable {
    /// The client has received all changes up to this one.
    let revision: Int64
    /// The account's head (``AccountCounter/head(_:)``) when the client began without a cursor, or ``revision`` once
    /// that is higher. A cursor with a floor below the base was issued before a database rollback.
    ///
    /// Tombstones up to the floor concern items that the client never received, so their purge loses nothing. A first
    /// listing therefore never expires.
    let floor: Int64
    /// The collection of the listing. Nil for all. Changes of another collection would be missed.
    let collection: CollectionName?

    /// Identifies this kind of token and its version.
    private static let tag: UInt8 = 0x02
    private static let byteCount = 17

    init(revision: Int64, floor: Int64, collection: CollectionName? = nil) {
        self.revision = revision
        self.floor = max(revision, floor)
        self.collection = collection
    }

    /// Reads ``text``.
    ///
    /// - Throws: ``SyncProblem/malformedCursor`` for text that this server cannot have written.
    init(_ text: String) throws(SyncProblem) {
        guard let bytes = try? Base64URL.decode(text.utf8), bytes.count >= Self.byteCount, bytes[0] == Self.tag else {
            throw .malformedCursor
        }
        let name = String(decoding: bytes[Self.byteCount...], as: UTF8.self)
        let collection = CollectionName(name)
        guard name.isEmpty || collection != nil else { throw .malformedCursor }
        let (revision, floor) = bytes.withUnsafeBytes { bytes in
            (
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
                Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: Int64.self))
            )
        }
        guard revision >= 0, floor >= revision else { throw .malformedCursor }
        self.init(revision: revision, floor: floor, collection: collection)
    }

    /// The cursor's text for clients.
    var text: String {
        var bytes = [Self.tag]
        bytes.reserveCapacity(Self.byteCount)
        withUnsafeBytes(of: revision.bigEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: floor.bigEndian) { bytes.append(contentsOf: $0) }
        return Base64URL.encodeToString(bytes + Array((collection?.name ?? "").utf8))
    }
}

/// Reasons to reject a listing of changes.
enum SyncProblem: ProblemConvertible {
    /// The text is no cursor of this server, or belongs to another listing.
    case malformedCursor
    /// Tombstones that the client has not received were purged, or the database was restored after the cursor was
    /// issued.
    case cursorExpired

    var problem: Problem {
        switch self {
        case .malformedCursor:
            Problem(
                .badRequest, "malformed_cursor",
                detail: "Send `cursor` exactly as in a reply and with the same `collection`, or omit it.",
                field: "since")
        case .cursorExpired:
            Problem(
                .gone, "cursor_expired",
                detail:
                    "The cursor has expired. List everything again without a cursor, and delete nothing because of it.")
        }
    }
}
