internal import HTTPCore
internal import Postgres

/// One line of an export.
protocol ExportedRecord: Sendable {
    /// The line's member `type`.
    var type: String { get }

    /// Writes the other members.
    func write(to writer: inout JSONWriter)
}

/// A statement that reads one kind of records in the order of their keys, a page at a time: at least one row when there
/// is one behind the key, and never more than fit into memory.
protocol ExportedPage: AccountRead where Row: ExportedRecord {
    /// What the records are ordered by.
    associatedtype Key: Sendable

    /// The key that the page follows; nil for the first one.
    var after: Key? { get }

    init(after: Key?)

    /// The key of a record.
    static func key(of row: Row) -> Key
}

/// How much a page of an export may have.
enum ExportLimits {
    static let rows: Int64 = 500
    /// Sealed bytes; a single record may have more.
    static let bytes = PageSize.windowByteLimit
}

/// Writes records as lines, and counts them.
struct ExportOutput {
    private let body: any ResponseBodyWriter
    private(set) var counts: [(type: String, count: Int64)] = []

    init(_ body: any ResponseBodyWriter) {
        self.body = body
    }

    /// Writes a line for each record; they are of one kind or of two.
    mutating func write(_ records: some Collection<some ExportedRecord>) async throws {
        var lines: [UInt8] = []
        for record in records {
            count(record.type)
            lines += Self.line(record)
        }
        try await body.write(lines)
    }

    /// Writes the line that says that all others have come.
    func end() async throws {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("type", "end")
            writer.object("counts") { writer in
                for (type, count) in counts { writer.member(type, count) }
            }
        }
        try await body.write(writer.finish() + [0x0A])
    }

    private mutating func count(_ type: String) {
        if let index = counts.lastIndex(where: { $0.type == type }) {
            counts[index].count += 1
        } else {
            counts.append((type, 1))
        }
    }

    private static func line(_ record: some ExportedRecord) -> [UInt8] {
        var writer = JSONWriter(capacity: 512)
        writer.object { writer in
            writer.member("type", record.type)
            record.write(to: &writer)
        }
        return writer.finish() + [0x0A]
    }
}
