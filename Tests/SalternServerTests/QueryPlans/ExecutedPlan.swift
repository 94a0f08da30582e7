import Foundation
import Postgres

/// What a statement has touched, as `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)` tells.
struct ExecutedPlan: CustomStringConvertible {
    /// Tables of a few rows, whatever accounts there are.
    static let smallTables: Set<String> = ["plans", "installation", "destinations"]

    /// Rows of all other tables that were looked at, also those that a filter has dropped.
    private(set) var rows = 0
    /// Pairs of rows that joins have compared and dropped.
    private(set) var comparisons = 0
    /// Pages.
    private(set) var buffers = 0
    /// Tables that were read from one end to the other.
    private(set) var sequentialScans: [String] = []
    /// Each look into a table: how, and how many rows.
    private(set) var scans: [String] = []

    init(json: String) throws {
        let document = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
        guard let plan = document?.first?["Plan"] as? [String: Any] else { throw NoPlan(text: json) }
        add(plan, isRoot: true)
    }

    struct NoPlan: Error {
        let text: String
    }

    var description: String {
        "\(rows) rows, \(buffers) pages, \(comparisons) comparisons: " + scans.joined(separator: "; ")
    }

    private mutating func add(_ node: [String: Any], isRoot: Bool = false) {
        func number(_ name: String) -> Double { (node[name] as? NSNumber)?.doubleValue ?? 0 }
        // A part of a WITH that writes goes on when the rest has ended: its pages are nobody else's.
        if isRoot || (node["Subplan Name"] as? String)?.hasPrefix("CTE") == true {
            buffers += Int(number("Shared Hit Blocks") + number("Shared Read Blocks"))
        }
        comparisons += Int((number("Rows Removed by Join Filter") * number("Actual Loops")).rounded())
        let type = node["Node Type"] as? String ?? ""
        if type.hasSuffix("Scan"), let table = node["Relation Name"] as? String, !Self.smallTables.contains(table) {
            let touched =
                (number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck"))
                * number("Actual Loops")
            rows += Int(touched.rounded())
            scans.append("\(type) \(node["Index Name"] as? String ?? table) \(Int(touched.rounded()))")
            if type == "Seq Scan", number("Actual Loops") > 0 { sequentialScans.append(table) }
        }
        for child in node["Plans"] as? [[String: Any]] ?? [] { add(child) }
    }
}

/// The `json` that `EXPLAIN` answers with.
struct JSONText: PostgresValue {
    let text: String

    static var postgresType: PostgresType { PostgresType(oid: 114) }

    func encode(to writer: inout ByteWriter) { text.encode(to: &writer) }

    static func decode(_ bytes: UnsafeRawBufferPointer?) -> JSONText? { String.decode(bytes).map(JSONText.init) }
}
