internal import HTTPCore
internal import Postgres

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
