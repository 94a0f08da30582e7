public import Cryptography
internal import HTTPCore
public import Postgres

/// The keys of an installation for identity tokens, in the order of their use.
///
/// All are published. The last key whose time has come signs. A new key is published a day before its first use, so
/// that every service has fetched it by then.
public struct SigningKeys: Sendable {
    public let keys: [SigningKey]

    /// The most keys. Regular pruning keeps a file below it.
    public static let maximumCount = 16
    /// The time from the publication of a key to its first use.
    public static let notice = Duration.seconds(86_400)
    /// The time from the last use of a key to its removal. It is longer than the lifetime of any token.
    public static let retention = Duration.seconds(86_400)

    /// - Parameter keys: At least one, in the order of their use.
    private init(ordered keys: [SigningKey]) { self.keys = keys }

    /// Generates the first key. It signs immediately, because no service has fetched an earlier one.
    public static func first(at now: Timestamp) throws(SigningKeyError) -> SigningKeys {
        SigningKeys(ordered: [try make(usableFrom: now)])
    }

    /// Returns the key that signs. Before the time of the first key, that key signs.
    public func active(at now: Timestamp) -> SigningKey { keys.last { $0.usableFrom <= now } ?? keys[0] }

    /// Adds a key, which is used from a day later.
    /// - Throws: ``SigningKeyError/nextKeyWaits(_:)``, or ``SigningKeyError/tooManyKeys``.
    public func rotated(at now: Timestamp) throws(SigningKeyError) -> SigningKeys {
        if let last = keys.last, last.usableFrom > now { throw .nextKeyWaits(last.id) }
        guard keys.count < Self.maximumCount else { throw .tooManyKeys }
        return SigningKeys(ordered: keys + [try Self.make(usableFrom: now + Self.notice)])
    }

    /// Removes keys that were replaced at least a day ago.
    public func pruned(at now: Timestamp) -> SigningKeys {
        let first = keys.lastIndex { $0.usableFrom <= now - Self.retention } ?? 0
        return SigningKeys(ordered: Array(keys[first...]))
    }

    private static func make(usableFrom: Timestamp) throws(SigningKeyError) -> SigningKey {
        // Files store whole seconds.
        do { return try .generate(usableFrom: Timestamp(unixSeconds: usableFrom.unixSeconds)) } catch {
            throw .notMade("\(error)")
        }
    }
}

/// Reads and writes the file of signing keys. Each line has the time of a key's first use, and base64 of its point and
/// number. Lines are in order of time. Empty lines and lines that begin with `#` are skipped. A line may end
/// with CR LF.
extension SigningKeys {
    private static let heading = "# Saltern's keys for identity tokens, with the first use of each.\n"
    /// The size of `2026-02-01T12:30:00Z` and a space.
    private static let timeByteCount = 20

    /// Reads the text of a file.
    public init(text: SecureBytes) throws(SigningKeyError) {
        var keys: [SigningKey] = []
        try text.withUnsafeBytes { bytes throws(SigningKeyError) in
            var number = 0
            var rest = bytes[...]
            while !rest.isEmpty {
                number += 1
                let line = rest.prefix { $0 != ASCII.lineFeed }
                rest = rest[line.endIndex...].dropFirst()
                let content = line.last == ASCII.carriageReturn ? line.dropLast() : line
                guard let first = content.first, first != UInt8(ascii: "#") else { continue }
                guard let key = Self.key(content), key.usableFrom > keys.last?.usableFrom ?? .distantPast else {
                    throw .invalidLine(number)
                }
                guard !keys.contains(where: { $0.id == key.id }) else { throw .repeatedKey(number) }
                keys.append(key)
            }
        }
        guard !keys.isEmpty else { throw .noKey }
        guard keys.count <= Self.maximumCount else { throw .tooManyKeys }
        self.init(ordered: keys)
    }

    private static func key(_ line: Slice<UnsafeRawBufferPointer>) -> SigningKey? {
        guard let time = UTCTimestamp(rfc3339: line.prefix(timeByteCount)),
            line.dropFirst(timeByteCount).first == ASCII.space,
            let number = try? Base64.decodeSecure(UnsafeRawBufferPointer(rebasing: line.dropFirst(timeByteCount + 1))),
            let key = try? P256.PrivateKey(number)
        else { return nil }
        return try? SigningKey(key, usableFrom: Timestamp(unixMicroseconds: time.microsecondsSinceEpoch))
    }

    /// The text that ``init(text:)`` reads.
    public var text: SecureBytes {
        let keyByteCount = Base64.encodedCount(P256.PrivateKey.byteCount)
        let lineByteCount = Self.timeByteCount + 1 + keyByteCount + 1
        let heading = Array(Self.heading.utf8)
        return SecureBytes(count: heading.count + keys.count * lineByteCount) { buffer in
            buffer.copyBytes(from: heading)
            for (index, key) in keys.enumerated() {
                let line = UnsafeMutableRawBufferPointer(rebasing: buffer[(heading.count + index * lineByteCount)...])
                var time: [UInt8] = []
                UTCTimestamp(microsecondsSinceEpoch: key.usableFrom.unixMicroseconds)
                    .append(to: &time, fractionDigits: 0)
                line.copyBytes(from: time + [ASCII.space])
                Base64.encode(
                    key.stored.bytes, into: UnsafeMutableRawBufferPointer(rebasing: line[(Self.timeByteCount + 1)...]))
                line[lineByteCount - 1] = ASCII.lineFeed
            }
        }
    }
}

/// The reason why signing keys cannot be read or changed.
public enum SigningKeyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text has no key.
    case noKey
    /// A line, counted from 1, is no time and key, or is out of order.
    case invalidLine(Int)
    /// A line, counted from 1, has the key of an earlier line.
    case repeatedKey(Int)
    case tooManyKeys
    /// An earlier added key is not in use yet.
    case nextKeyWaits(String)
    /// The platform's library failed.
    case notMade(String)

    public var description: String {
        switch self {
        case .noKey: "there is no key in it"
        case .invalidLine(let line):
            "line \(line) is no time and key, or its time is not later than that of the line above"
        case .repeatedKey(let line): "line \(line) has the key of an earlier line"
        case .tooManyKeys: "it has \(SigningKeys.maximumCount) keys already: see saltern signing-key prune"
        case .nextKeyWaits(let id): "the key \(id) is not in use yet: rotate again when it is"
        case .notMade(let reason): "no key could be made: \(reason)"
        }
    }
}

/// Signs identity tokens from a given time on.
public struct SigningKey: Sendable {
    /// The time of its first use.
    public let usableFrom: Timestamp
    /// The key's name in tokens: its thumbprint (RFC 7638).
    public let id: String
    let key: ES256.SigningKey
    /// The private key in the form of the file.
    let stored: P256.PrivateKey
    /// The first part of each token that the key signs. All tokens of a key have the same header, and the server
    /// accepts only tokens that begin with it. So it never reads an algorithm, type or key from a token.
    let header: String

    init(_ stored: P256.PrivateKey, usableFrom: Timestamp) throws(P256.Failure) {
        self.usableFrom = usableFrom
        self.stored = stored
        key = try ES256.SigningKey(stored)
        let coordinates = Coordinates(stored.publicKey)
        // The members in the order of their names, without white space (RFC 7638 §3).
        let members = #"{"crv":"P-256","kty":"EC","x":"\#(coordinates.x)","y":"\#(coordinates.y)"}"#
        id = Base64URL.encodeToString(SHA256.hash(members.utf8).bytes)
        header = Base64URL.encodeToString(#"{"alg":"ES256","typ":"at+jwt","kid":"\#(id)"}"#.utf8)
    }

    /// Generates a random key.
    static func generate(usableFrom: Timestamp) throws(P256.Failure) -> SigningKey {
        try SigningKey(.generate(), usableFrom: usableFrom)
    }

    /// The point in base64url.
    private struct Coordinates {
        let x: String
        let y: String

        init(_ key: P256.PublicKey) {
            x = Base64URL.encodeToString(Array(key.bytes[1..<33]))
            y = Base64URL.encodeToString(Array(key.bytes[33..<65]))
        }
    }

    /// Writes the public key (RFC 7517 §4, RFC 7518 §6.2.1).
    func writePublicKey(to writer: inout JSONWriter) {
        let coordinates = Coordinates(key.publicKey)
        writer.object { writer in
            writer.member("kty", "EC")
            writer.member("crv", "P-256")
            writer.member("x", coordinates.x)
            writer.member("y", coordinates.y)
            writer.member("use", "sig")
            writer.member("alg", "ES256")
            writer.member("kid", id)
        }
    }
}
