internal import Glibc

/// Every statement type that a client has seen, numbered in the order of their first use.
///
/// The number finds a connection's "is prepared" bit without a dictionary.
struct StatementCatalog {
    /// What libpq is given for a statement type. Its strings live as long as the definition.
    final class Definition {
        let name: String
        /// Owned: freed in `deinit`.
        let preparedName: UnsafeMutablePointer<CChar>
        let sql: UnsafeMutablePointer<CChar>

        init(name: String, preparedName: String, sql: String) {
            self.name = name
            self.preparedName = Self.copy(preparedName)
            self.sql = Self.copy(sql)
        }

        deinit {
            preparedName.deallocate()
            sql.deallocate()
        }

        private static func copy(_ string: String) -> UnsafeMutablePointer<CChar> {
            let utf8 = string.utf8CString
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: utf8.count)
            for (index, character) in utf8.enumerated() { (copy + index).initialize(to: character) }
            return copy
        }
    }

    private(set) var definitions: [Definition] = []
    /// Open addressing by the type's metadata address; -1 is free. Always less than half full.
    private var table: [(type: ObjectIdentifier?, number: Int)] = Array(repeating: (nil, -1), count: 256)

    /// The number of `type`, which is new or known.
    mutating func number<S: Statement>(of type: S.Type) -> Int {
        let identifier = ObjectIdentifier(type)
        var slot = Self.hash(identifier) & (table.count - 1)
        while let known = table[slot].type {
            if known == identifier { return table[slot].number }
            slot = (slot + 1) & (table.count - 1)
        }
        return add(type, identifier)
    }

    private mutating func add<S: Statement>(_ type: S.Type, _ identifier: ObjectIdentifier) -> Int {
        let name = Self.name(of: type)
        let number = definitions.count
        // PostgreSQL cuts prepared names at 63 bytes: the number in front keeps long ones apart.
        let preparedName = String("\(number)_\(name.split(separator: ".").last ?? "")".prefix(60))
        definitions.append(Definition(name: name, preparedName: preparedName, sql: S.sql))
        if definitions.count * 2 >= table.count { enlarge() }
        insert(identifier, number)
        return number
    }

    private mutating func insert(_ identifier: ObjectIdentifier, _ number: Int) {
        var slot = Self.hash(identifier) & (table.count - 1)
        while table[slot].type != nil { slot = (slot + 1) & (table.count - 1) }
        table[slot] = (identifier, number)
    }

    private mutating func enlarge() {
        let entries = table
        table = Array(repeating: (nil, -1), count: entries.count * 2)
        for entry in entries {
            if let type = entry.type { insert(type, entry.number) }
        }
    }

    private static func hash(_ identifier: ObjectIdentifier) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: identifier) >> 3 &* 0x9E37_79B9_7F4A_7C15 >> 24)
    }

    /// The name that errors show, for example `SalternServer.FindItem`.
    static func name(of type: any Statement.Type) -> String { String(reflecting: type) }
}
