internal import Glibc

/// Every statement type that a client has seen, numbered in the order of their first use.
///
/// The number finds what a connection knows of a statement without a dictionary.
struct StatementCatalog {
    /// What libpq is given for a statement type. Its strings live as long as the definition.
    final class Definition {
        /// How much a statement says of what a request is about.
        enum Meaning: Int {
            /// One of this module, which begins or ends something for others.
            case ofClient
            /// It precedes others (``Statement/isPreliminary``).
            case preliminary
            case own
        }

        let name: String
        /// What it says of the request that it is sent for.
        let meaning: Meaning
        /// Owned: freed in `deinit`.
        let sql: UnsafeMutablePointer<CChar>
        private let baseName: String
        /// By epoch. Owned: freed in `deinit`.
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

        /// The name of the prepared statement in a session that has forgotten its preparations `epoch` times. Names
        /// come back after many epochs; the server has long since deallocated them.
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
    /// Part of every name: behind a pooler, sessions may hold the statements of other processes, numbered otherwise.
    private let tag = String(UInt32.random(in: 0...0xFF_FFFF), radix: 16)
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

    /// The name that errors show, for example `SalternServer.FindItem`. Of a private type Swift also tells where in this process
    /// its file is described, which is nobody's business and another place each time.
    static func name(of type: any Statement.Type) -> String {
        String(reflecting: type).replacing(/\(unknown context at \$[0-9a-f]+\)\./, with: "")
    }
}
