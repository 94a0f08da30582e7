internal import Glibc

/// Numbers the statement types of a client in the order of their first use.
///
/// Connections index their state of a statement by this number, without a dictionary.
struct StatementCatalog {
    /// libpq's arguments for a statement type. Its strings live as long as the definition.
    final class Definition {
        /// Ranks statements by how well they describe a request.
        enum Meaning: Int {
            /// A statement of this module, which begins or ends something for others.
            case ofClient
            /// It precedes others (``Statement/isPreliminary``).
            case preliminary
            case own
        }

        let name: String
        /// Its rank in the description of a request.
        let meaning: Meaning
        /// Owned: freed in `deinit`.
        let sql: UnsafeMutablePointer<CChar>
        private let baseName: String
        /// Indexed by epoch. Owned: freed in `deinit`.
        private var preparedNames: [UnsafeMutablePointer<CChar>] = []

        init<S: Statement>(_ type: S.Type, name: String, preparedName: String) {
            self.name = name
            meaning = name.hasPrefix("Postgres.") ? .ofClient : type.isPreliminary ? .preliminary : .own
            baseName = preparedName
            sql = Self.copy(type.sql.text)
        }

        deinit {
            for name in preparedNames { name.deallocate() }
            sql.deallocate()
        }

        /// Returns the prepared statement's name in a session that has discarded its preparations `epoch` times.
        ///
        /// Names repeat after 256 epochs. The server has deallocated the earlier ones by then.
        func preparedName(epoch: Int) -> UnsafePointer<CChar> {
            let index = epoch % 256
            while preparedNames.count <= index {
                let suffix = preparedNames.isEmpty ? "" : "_\(preparedNames.count)"
                preparedNames.append(Self.copy(baseName + suffix))
            }
            return UnsafePointer(preparedNames[index])
        }

        private static func copy(_ string: String) -> UnsafeMutablePointer<CChar> {
            let utf8 = string.utf8CString
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: utf8.count)
            for (index, character) in utf8.enumerated() { (copy + index).initialize(to: character) }
            return copy
        }
    }

    private(set) var definitions: [Definition] = []
    /// Part of every name. Behind a pooler, sessions may hold statements of other processes with other numbers.
    private let tag = String(UInt32.random(in: 0...0xFF_FFFF), radix: 16)
    /// A hash table with open addressing by the type's metadata address; -1 is free. Less than half of it is in use.
    private var table: [(type: ObjectIdentifier?, number: Int)] = Array(repeating: (nil, -1), count: 256)

    /// Returns the number of `type`, and adds the type if it is new.
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
        // PostgreSQL truncates prepared names to 63 bytes: the leading number keeps long ones distinct.
        let preparedName = "\(number)_\(name.split(separator: ".").last ?? "")".prefix(50) + "_" + tag
        definitions.append(Definition(type, name: name, preparedName: String(preparedName)))
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

    /// Returns the name in errors, for example `SalternServer.FindItem`.
    ///
    /// For private types Swift adds an address in this process, which is removed here: it is internal and differs each
    /// time.
    static func name(of type: any Statement.Type) -> String {
        var name = String(reflecting: type)
        // Swift would compile a regular expression for each type again.
        while let start = name.firstRange(of: "(unknown context at $"),
            let end = name[start.upperBound...].firstRange(of: ").")
        {
            name.removeSubrange(start.lowerBound..<end.upperBound)
        }
        return name
    }
}
