internal import HTTPCore
internal import Postgres

extension JSONWriter {
    /// Writes a moment in RFC 3339.
    mutating func member(_ name: String, _ moment: Timestamp) {
        member(name, UTCTimestamp(microsecondsSinceEpoch: moment.unixMicroseconds))
    }
}
