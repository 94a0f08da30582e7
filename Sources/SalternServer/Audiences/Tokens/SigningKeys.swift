internal import Cryptography
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
    init(ordered keys: [SigningKey]) { self.keys = keys }

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
