internal import HTTPCore
internal import Postgres
internal import Synchronization

/// A session. It serves as the type parameter of ``SessionID``.
enum Session {}

/// Identifies a session to its owner. It grants nothing.
typealias SessionID = Identifier<Session>

/// The life of sessions.
public struct SessionPolicy: Sendable, Equatable {
    /// A session without use for this time ends.
    public var idleTimeout: Duration
    /// A session ends this long after its start, even if it is used.
    public var lifetime: Duration
    /// The minimum interval between two records of a session's use.
    public var touchInterval: Duration

    public init(
        idleTimeout: Duration = .seconds(30 * 86_400), lifetime: Duration = .seconds(365 * 86_400),
        touchInterval: Duration = .seconds(60)
    ) {
        self.idleTimeout = idleTimeout
        self.lifetime = lifetime
        self.touchInterval = touchInterval
    }

    /// The errors in the policy, one sentence each.
    var findings: [String] {
        var findings: [String] = []
        if touchInterval < .zero {
            findings.append("The interval of recording a session's last use must not be negative.")
        }
        if idleTimeout <= touchInterval {
            findings.append("The sessions' idle timeout must be longer than the interval of recording their last use.")
        }
        if lifetime < idleTimeout {
            findings.append("The sessions' lifetime must not be shorter than their idle timeout.")
        }
        return findings
    }
}

/// Counts the sessions of each account that this node has opened since it last trimmed them to the plan's limit.
///
/// Counting costs PostgreSQL nearly half as much as opening, so only every eighth log-in does it. An account without an
/// entry counts as due: after a start, and if another account has evicted its entry.
///
/// An account therefore exceeds its plan by at most ``interval`` sessions for each node. Concurrent log-ins during a
/// count can add as many as the account has failure counters. Memory is fixed at ``places`` entries.
public final class SessionTally: Sendable {
    /// One in this many log-ins counts.
    static let interval = 8
    /// The number of entries; 400 KiB in all.
    static let places = 16_384

    /// The time at which a log-in must count.
    enum Duty {
        case never
        /// After it has opened its session. It succeeds even if counting fails.
        case after
        /// In the transaction that opens it, because earlier log-ins should have counted and did not.
        case within
    }

    private struct Place {
        let account: AccountID
        var opened: Int
    }

    private let interval: Int
    private let table: Mutex<[Place?]>

    /// - Parameter interval: 1 makes every log-in count.
    public init(interval: Int? = nil) {
        self.interval = interval ?? Self.interval
        table = Mutex(Array(repeating: nil, count: Self.places))
    }

    /// Adds a session that is about to be opened, and returns the duty to count.
    func begin(_ account: AccountID) -> Duty {
        let opened = change(account) { $0 + 1 }
        return opened < interval ? .never : opened == interval ? .after : .within
    }

    /// Removes a session that was not opened.
    func undo(_ account: AccountID) { change(account) { max($0 - 1, 0) } }

    /// Resets the count after the account was trimmed. `isBefore` is true if the session of this log-in is still to be
    /// opened.
    func counted(_ account: AccountID, before isBefore: Bool) { change(account) { _ in isBefore ? 1 : 0 } }

    @discardableResult
    private func change(_ account: AccountID, _ body: (Int) -> Int) -> Int {
        // Hashes are seeded in each process, so clients cannot choose accounts that share an entry.
        let index = account.hashValue & (Self.places - 1)
        return table.withLock { table in
            var opened = interval - 1
            if let place = table[index], place.account == account { opened = place.opened }
            opened = body(opened)
            table[index] = Place(account: account, opened: opened)
            return opened
        }
    }
}

/// The user's name of a session's device: 1 to 64 characters, none of them a control character.
struct DeviceName: Sendable, Hashable {
    let string: String

    /// Maximum length in bytes of UTF-8, because a Unicode character can be arbitrarily long.
    private static let byteLimit = 256

    init?(_ text: String) {
        guard (1...Self.byteLimit).contains(text.utf8.count), text.unicodeScalars.count <= 64,
            !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return nil }
        string = text
    }

    init(json: JSONValue) throws(Problem) {
        guard let name = DeviceName(try json.string()) else {
            throw Problem(
                .unprocessableContent, "invalid_device_name",
                detail: "A device name must have 1 to 64 characters and no control characters.", limit: 64)
        }
        self = name
    }

    /// Reads the optional `device: {name}`.
    static func device(from members: inout JSONMembers) throws -> DeviceName? {
        try members.optionalObject("device") { device in try device.required("name", DeviceName.init(json:)) }
    }
}
