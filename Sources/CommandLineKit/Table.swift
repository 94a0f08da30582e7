/// Rows for people: aligned columns under their titles.
///
/// Rows can be taken in portions, so that a long list is never in memory. Columns then grow with their cells.
package struct Table {
    /// A column's title and alignment.
    package struct Column {
        let title: String
        let isNumber: Bool

        package static func text(_ title: String) -> Column { Column(title: title, isNumber: false) }
        package static func number(_ title: String) -> Column { Column(title: title, isNumber: true) }
    }

    private let columns: [Column]
    private var widths: [Int]
    private var rows: [[String]]

    package init(_ columns: [Column]) {
        self.columns = columns
        widths = columns.map { _ in 0 }
        rows = []
        append(columns.map(\.title))
    }

    /// Appends a row. A missing value becomes a dash, and control and format characters are spelt.
    package mutating func append(_ cells: [String?]) {
        let shown = cells.map { $0.map(VisibleText.visible) ?? "-" }
        for (column, cell) in shown.enumerated() { widths[column] = max(widths[column], cell.count) }
        rows.append(shown)
    }

    /// Returns the rows since the last call, one line each.
    package mutating func takeText() -> String {
        defer { rows.removeAll() }
        return rows.map(line).joined()
    }

    private func line(_ row: [String]) -> String {
        var line = ""
        for (column, cell) in row.enumerated() {
            if column > 0 { line += "  " }
            let padding = String(repeating: " ", count: widths[column] - cell.count)
            if columns[column].isNumber {
                line += padding + cell
            } else {
                line += column == row.count - 1 ? cell : cell + padding
            }
        }
        return line + "\n"
    }
}
