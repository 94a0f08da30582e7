internal import Cryptography
internal import HTTPCore
internal import Postgres

/// An event that waits to be delivered.
struct OutgoingEvent: Sendable {
    let number: Int64
    let id: EventID
    let kind: String
    let sessionID: SessionID?
    let revision: Int64?
    let occurredAt: Timestamp
    let waitingSince: Timestamp
}

extension OutgoingEvent: DecodableRow {
    /// The columns that ``init(row:)`` reads, of the table `outgoing_events` as `e`.
    static let columns: SQLFragment =
        "e.number, e.event_id, e.kind, e.session_id, e.revision, e.occurred_at, e.waiting_since"

    init(row: inout RowReader) throws(PostgresError) {
        number = try row.next()
        id = EventID(try row.next(UUID.self))
        kind = try row.next()
        sessionID = try row.next()
        revision = try row.next()
        occurredAt = try row.next()
        waitingSince = try row.next()
    }
}

/// The public identifier of an event: `msg_` and 32 hexadecimal digits.
public struct EventID: Sendable, Hashable, CustomStringConvertible {
    let uuid: UUID

    init(_ uuid: UUID) {
        self.uuid = uuid
    }

    public init?(_ text: some StringProtocol) {
        guard text.hasPrefix("msg_"), let bytes = Hex.decode(text.dropFirst(4)), let uuid = UUID(bytes: Array(bytes))
        else {
            return nil
        }
        self.uuid = uuid
    }

    public var description: String { "msg_" + Hex.encode(uuid.bytes) }
}

/// Writes events for receivers: kinds, times and names that only their audience has. Times are in whole seconds,
/// because audiences could match more precise ones.
struct EventWriter: Sendable {
    let audience: AudienceName
    let key: PairwiseKey

    /// Writes the members of an event.
    func write(_ event: OutgoingEvent, of account: AccountID, in lane: UUID, to writer: inout JSONWriter) {
        writer.member("type", event.kind)
        writer.name("timestamp")
        var time: [UInt8] = []
        UTCTimestamp(microsecondsSinceEpoch: event.occurredAt.unixSeconds * 1_000_000).append(
            to: &time, fractionDigits: 0)
        writer.string(plain: time)
        writer.object("data") { writer in
            writer.member("sub", PairwiseSubject(of: account, for: audience, key: key).text)
            if lane == EventLane.ordered { writer.member("number", event.number) }
            if let session = event.sessionID {
                writer.member("sid", PairwiseSubject(of: session, for: audience, key: key).text)
            }
            if let revision = event.revision { writer.member("revision", revision) }
        }
    }

    /// Returns the body of a webhook.
    func body(_ event: OutgoingEvent, of account: AccountID, in lane: UUID) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { write(event, of: account, in: lane, to: &$0) }
        return writer.finish()
    }
}
