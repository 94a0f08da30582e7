internal import HTTPCore
internal import Postgres

/// One line of an export.
protocol ExportedRecord: Sendable {
    /// The line's member `type`.
    var type: String { get }

    /// Writes the other members.
    func write(to writer: inout JSONWriter)
}

/// A statement that reads one kind of record in key order, in pages. A page has at least one row if any is behind the
/// key, and is limited in bytes.
protocol ExportedPage: AccountRead where Row: ExportedRecord {
    /// The columns that order the records.
    associatedtype Key: Sendable

    /// The key that the page follows. Nil for the first page.
    var after: Key? { get }

    init(after: Key?)

    /// The key of a record.
    static func key(of row: Row) -> Key
}

/// Limits of a page of an export.
enum ExportLimits {
    static let rows: Int64 = 500
    /// Maximum of sealed bytes. A single record may have more.
    static let bytes = PageSize.windowByteLimit
}

/// Writes records as lines, and counts them.
struct ExportOutput {
    private let body: any ResponseBodyWriter
    private(set) var counts: [(type: String, count: Int64)] = []

    init(_ body: any ResponseBodyWriter) {
        self.body = body
    }

    /// Writes a line for each record.
    mutating func write(_ records: some Collection<some ExportedRecord>) async throws {
        var lines: [UInt8] = []
        for record in records {
            count(record.type)
            lines += Self.line(record)
        }
        try await body.write(lines)
    }

    /// Writes the last line, with the number of lines of each kind. It shows that the export is complete.
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
