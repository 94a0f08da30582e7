internal import Cryptography
internal import HTTPCore
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

/// The properties of a share for its managers, without the sealed bytes.
struct ShareHeader: DecodableRow {
    let id: ShareID
    let createdAt: Timestamp
    let updatedAt: Timestamp
    let expiresAt: Timestamp?
    let maxViews: Int64?
    let views: Int64
    let format: String
    /// The number of sealed bytes.
    let byteCount: Int64

    /// The columns that ``init(row:)`` reads, of the table or alias `s`.
    static let columns: SQLFragment = """
        s.share_id, s.created_at, s.updated_at, s.expires_at, s.max_views, s.views, s.format, \
        octet_length(s.sealed)::bigint
        """

    /// Reads the columns of ``columns``.
    init(row: inout RowReader) throws(PostgresError) {
        id = try row.next()
        createdAt = try row.next()
        updatedAt = try row.next()
        expiresAt = try row.next()
        maxViews = try row.next()
        views = try row.next()
        format = try row.next()
        byteCount = try row.next()
    }

    /// Creates the header of a new share.
    init(id: ShareID, content: ShareContent, now: Timestamp) {
        self.id = id
        createdAt = now
        updatedAt = now
        expiresAt = content.expiresAt
        maxViews = content.maxViews
        views = 0
        format = content.format.rawValue
        byteCount = Int64(content.sealed.bytes.count)
    }

    func write(to writer: inout JSONWriter) {
        writer.member("id", id.text)
        writer.member("path", "/s/\(id.text)")
        writer.member("createdAt", createdAt)
        writer.member("updatedAt", updatedAt)
        if let expiresAt { writer.member("expiresAt", expiresAt) }
        if let maxViews { writer.member("maxViews", maxViews) }
        writer.member("views", views)
        writer.member("format", format)
        writer.member("bytes", byteCount)
    }
}

/// The content of a share that a client sends.
struct ShareContent: Sendable {
    let format: SealedFormat
    let salt: [UInt8]
    let iterations: Int32
    let sealed: SealedBytes
    let expiresAt: Timestamp?
    let maxViews: Int64?

    /// Reads the members of a share.
    ///
    /// - Parameters:
    ///   - members: The members of the request's body.
    ///   - now: The share's end must be later.
    ///   - pace: Yields to other work while sealed bytes are decoded.
    init(_ members: inout JSONMembers, now: Timestamp, pace: Pace) async throws {
        let format = try members.required("format") { json in
            guard let format = SealedFormat(rawValue: try json.string()), SharePolicy.formats.contains(format) else {
                throw SealedRefusal.unknownFormat
            }
            return format
        }
        self.format = format
        salt = try members.required("salt", Self.salt(json:))
        iterations = Int32(try members.integer("iterations", in: SharePolicy.iterations))
        sealed = try await members.required("sealed", pace: pace) {
            try await SealedBytes(base64: $0.text(), format: format, pace: pace)
        }
        expiresAt = try members.optional("expiresAt") { try Self.end($0, after: now) }
        maxViews = try members.optional("maxViews") { Int64(try $0.integer(in: SharePolicy.maxViews)) }
    }

    /// Reads the body of a request.
    init(_ request: Request, now: Timestamp) async throws {
        self = try await JSONBody.readLarge(request) {
            try await ShareContent(&$0, now: now, pace: request.pace)
        }
    }

    private static func salt(json: JSONValue) throws -> [UInt8] {
        guard let salt = Base64Text.decode(try json.text()) else { throw SealedRefusal.notBase64 }
        guard SharePolicy.saltLengths.contains(salt.count) else { throw ShareProblem.wrongSaltLength }
        return salt
    }

    private static func end(_ json: JSONValue, after now: Timestamp) throws -> Timestamp {
        guard let moment = UTCTimestamp(rfc3339: try json.text().utf8) else { throw ShareProblem.notATime }
        let end = Timestamp(unixMicroseconds: moment.microsecondsSinceEpoch)
        guard end > now else { throw ShareProblem.endHasPassed }
        return end
    }

    /// Checks the limits of shares without an account.
    func checkAnonymous(now: Timestamp) throws(ShareProblem) {
        guard sealed.bytes.count <= SharePolicy.anonymousByteLimit else { throw .anonymousTooLong }
        guard let expiresAt, expiresAt <= now + SharePolicy.anonymousLifetime else { throw .anonymousNeedsEnd }
    }
}

/// The service's limits on shares, independent of plans.
public struct SharePolicy: Sendable, Equatable {
    /// True if shares may be created without an account.
    public var acceptsAnonymous: Bool
    /// Maximum number of shares without an account. Concurrent creations can exceed it by the number of database
    /// connections.
    public var anonymousLimit: Int

    public init(acceptsAnonymous: Bool = false, anonymousLimit: Int = 1_000) {
        self.acceptsAnonymous = acceptsAnonymous
        self.anonymousLimit = anonymousLimit
    }

    /// The formats that the page can open.
    static let formats: [SealedFormat] = [.aes256GCM, .aes256GCMIV16]
    /// Length of a salt in bytes.
    static let saltLengths = 8...32
    static let iterations = 1_000...10_000_000
    static let maxViews = 1...1_000_000

    /// Maximum of sealed bytes of a share without an account.
    static let anonymousByteLimit = 65_536
    /// Maximum body of a request with such a share, in bytes: base64 with line breaks, and other members.
    static let anonymousRequestLimit = 98_304
    /// Maximum life of such a share.
    static let anonymousLifetime = Duration.seconds(7 * 86_400)

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        (0...100_000).contains(anonymousLimit)
            ? [] : ["The number of shares without an account must be from 0 to 100000."]
    }
}

/// Reasons to reject a share's creation, change or view. A missing share is `Problem.notFound` for any reason.
enum ShareProblem: ProblemConvertible {
    case wrongSaltLength
    /// The text is not a time of RFC 3339.
    case notATime
    /// The end is in the past.
    case endHasPassed
    /// A share without an account is too long.
    case anonymousTooLong
    /// The life of a share without an account is too long or unlimited.
    case anonymousNeedsEnd
    /// The limit of shares without an account is reached, or they are disabled.
    case anonymousClosed
    /// A browser or a proxy prefetches. 403, because monitoring would count 503 as a failure of the server.
    case prefetch

    var problem: Problem {
        switch self {
        case .wrongSaltLength:
            Problem(
                .unprocessableContent, "wrong_salt_length", detail: "The salt must have 8 to 32 bytes.")
        case .notATime:
            Problem(
                .unprocessableContent, "not_a_time",
                detail: "The time must be RFC 3339 with an offset or Z, for example 2026-02-01T12:30:00Z.")
        case .endHasPassed:
            Problem(.unprocessableContent, "time_has_passed", detail: "The time must be in the future.")
        case .anonymousTooLong:
            Problem(
                .unprocessableContent, "too_long",
                detail: "`sealed` of a share without an account has more bytes than `limit`.",
                field: "sealed", limit: SharePolicy.anonymousByteLimit)
        case .anonymousNeedsEnd:
            Problem(
                .unprocessableContent, "expiry_needed",
                detail: "`expiresAt` of a share without an account must be within 7 days.", field: "expiresAt")
        case .anonymousClosed:
            Problem(
                .forbidden, "anonymous_shares_closed",
                detail: "The limit of shares without an account is reached. Try again later, or log in.")
        case .prefetch:
            Problem(
                .forbidden, "prefetch_refused",
                detail: "A share cannot be prefetched, because that could use up a view.")
        }
    }
}
