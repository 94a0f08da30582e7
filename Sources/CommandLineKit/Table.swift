/// Rows as people read them: columns of one width, under their titles.
///
/// Rows can be taken out as they come, so that a long list is never in memory; columns then grow with what they meet.
package struct Table {
    /// A column's title, and where its cells stand.
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

    /// Appends a row. A missing value is shown as a dash, and characters that a terminal would obey as what they are.
    package mutating func append(_ cells: [String?]) {
        let shown = cells.map { $0.map(VisibleText.visible) ?? "-" }
        for (column, cell) in shown.enumerated() { widths[column] = max(widths[column], cell.count) }
        rows.append(shown)
    }

    /// The rows since the last call, a line each.
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
