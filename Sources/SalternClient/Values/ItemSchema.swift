internal import Cryptography
public import Foundation

/// The schema of an app's type in the items of a collection, over the versions of the app.
///
/// New optional members need no new number: older versions of the app keep unknown members. A number and a migration
/// are for changes that older versions cannot read, such as a new name or type of a member.
///
/// Example: "New version of a type" in docs/app.md.
public struct ItemSchema<Value: Codable>: Sendable {
    /// Converts an item's JSON from an earlier number to this one.
    public typealias Migration = @Sendable (_ json: Data, _ number: Int) throws -> Data

    /// The number, from 1. Each item contains it as the member `saltern-schema`; without that member it is 1.
    public let number: Int
    private let migrate: Migration?

    /// Creates a schema with a migration of JSON.
    /// - Parameter migrate: Receives an item's JSON with all of its members and its earlier number, and returns JSON of
    ///   this number. Members that it omits are removed.
    public init(_ number: Int = 1, migrate: Migration? = nil) {
        precondition(number >= 1, "schema numbers begin at 1")
        self.number = number
        self.migrate = migrate
    }

    static var member: String { "saltern-schema" }
    /// The member for a value that is not a JSON object, which has no room for the number.
    private static var valueMember: String { "saltern-value" }

    /// A body that was decoded.
    struct Reading {
        var value: Value
        /// Nil for a body that is not JSON in UTF-8.
        var side: UnknownMembers.Side?
        var number: Int
    }

    /// Decodes an item's body.
    /// - Throws: `DecodingError`, or the migration's error.
    func read(_ body: SecureBytes) throws -> Reading {
        let bytes = body.withUnsafeBytes { [UInt8]($0) }
        let tree = JSONTree(bytes)
        let value = tree?.members?[Self.member] == nil ? nil : tree?.members?[Self.valueMember]
        return try read(Data(value?.text ?? bytes), number: Self.number(of: tree))
    }

    fileprivate func read(_ json: Data, number: Int) throws -> Reading {
        var (data, number) = (json, number)
        if number < self.number, let migrate {
            data = try migrate(data, number)
            number = self.number
        }
        let value = try JSONDecoder().decode(Value.self, from: data)
        let side = JSONTree([UInt8](data)).map { tree in
            UnknownMembers.Side(tree: tree, known: (try? Self.encode(value)).flatMap { JSONTree($0) })
        }
        return Reading(value: value, side: side, number: number)
    }

    /// Returns the number in an item's JSON.
    static func number(of tree: JSONTree?) -> Int {
        guard case .literal(let digits)? = tree?.members?[member] else { return 1 }
        return max(Int(String(decoding: digits, as: UTF8.self)) ?? 1, 1)
    }

    /// Returns the body of a value, with the unknown members of the version that it replaces.
    /// - Parameter before: The body of that version; nil for a new item and for one that cannot be read.
    func body(of value: Value, over before: SecureBytes?) throws -> SecureBytes {
        let bytes = try Self.encode(value)
        guard let before, let known = try? read(before), let side = known.side, let tree = JSONTree(bytes) else {
            return SecureBytes(copying: numbered(bytes, number))
        }
        let carried = UnknownMembers.carry(into: tree, from: side)
        let last = max(known.number, number)
        // Equal values have equal bytes, so that writing a value again is no change.
        if carried == tree { return SecureBytes(copying: numbered(bytes, last)) }
        let result = numbered(carried, last)
        let old = before.withUnsafeBytes { [UInt8]($0) }
        return JSONTree(old) == result ? before : SecureBytes(copying: result.text)
    }

    /// Merges two versions by a function of the app.
    /// - Returns: nil to keep both.
    func merge(
        _ base: PlainItem?, _ mine: PlainItem, _ theirs: PlainItem, _ rule: (Value?, Value, Value) -> Value?
    ) -> PlainItem? {
        guard let own = try? read(mine.body), let other = try? read(theirs.body) else { return nil }
        let common = base.flatMap { try? read($0.body) }
        guard let merged = rule(common?.value, own.value, other.value), let bytes = try? Self.encode(merged) else {
            return nil
        }
        let title = base.map { mine.hasTitle($0.title) } ?? (mine.title == nil) ? theirs.title : mine.title
        let last = max(own.number, other.number, number)
        guard let tree = JSONTree(bytes),
            let carried = try? UnknownMembers().merge(tree, base: common?.side, mine: own.side, theirs: other.side)
        else { return nil }
        if carried == tree { return PlainItem(title: title, body: SecureBytes(copying: numbered(bytes, last))) }
        return PlainItem(title: title, body: SecureBytes(copying: numbered(carried, last).text))
    }

    private func numbered(_ bytes: [UInt8], _ number: Int) -> [UInt8] {
        guard number > 1, let tree = JSONTree(bytes) else { return bytes }
        return numbered(tree, number).text
    }

    private func numbered(_ tree: JSONTree, _ number: Int) -> JSONTree {
        if number == 1 { return tree }
        var members = tree.members ?? [MemberName(Self.valueMember): tree]
        members[Self.member] = .literal(Array(String(number).utf8))
        return .object(members)
    }

    fileprivate static func encode(_ value: Value) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}

extension ItemSchema where Value: Sendable {
    /// Creates a schema with a migration of values. Members that the earlier type does not contain are kept, at any
    /// depth.
    /// - Parameters:
    ///   - earlier: The schema of items with a lower number. It can have its own migration from an earlier one.
    ///   - convert: Returns the value of this type for one of the earlier type.
    public init<Earlier: Codable & Sendable>(
        _ number: Int, from earlier: ItemSchema<Earlier>, _ convert: @escaping @Sendable (Earlier) throws -> Value
    ) {
        precondition(number > earlier.number, "the number of a later schema is greater")
        self.number = number
        migrate = { json, number in
            let before = try earlier.read(json, number: number)
            let bytes = try Self.encode(convert(before.value))
            guard let side = before.side, let tree = JSONTree(bytes) else { return Data(bytes) }
            return Data(UnknownMembers.carry(into: tree, from: side).text)
        }
    }
}

/// Keeps members that an app's type does not contain when the app writes an item.
///
/// An older version of an app reads an item of a newer one, changes the members of its type and writes it. All further
/// members of the newer version are kept, at any depth.
struct UnknownMembers {
    /// A version of an item.
    struct Side {
        var tree: JSONTree
        /// The version after the app's type has decoded and encoded it. Members that are missing here are unknown to
        /// the type. Nil when the type is not available: then every member that the result lacks counts as unknown.
        var known: JSONTree?
    }

    /// Two versions have changed the same unknown member differently.
    struct Conflict: Error {}

    /// True to take a member that both sides have changed from the second one. Otherwise it is a conflict.
    var prefersTheirs = false

    /// Returns the app's new version, with the unknown members of the replaced one.
    static func carry(into result: JSONTree, from before: Side) -> JSONTree {
        // One side alone has no conflict.
        (try? UnknownMembers(prefersTheirs: true).merge(result, base: nil, mine: nil, theirs: before)) ?? result
    }

    /// Returns the app's merge of two versions with unknown members. Each of them is merged if only one side has
    /// changed it.
    func merge(_ result: JSONTree, base: Side?, mine: Side?, theirs: Side?) throws(Conflict) -> JSONTree {
        switch result {
        case .object(let members): try merge(members, base, mine, theirs)
        case .array(let elements): try merge(elements, base, mine, theirs)
        case .string, .literal: result
        }
    }

    private func merge(
        _ members: [MemberName: JSONTree], _ base: Side?, _ mine: Side?, _ theirs: Side?
    ) throws(Conflict) -> JSONTree {
        var merged = members
        let sides = [mine, theirs].compactMap(\.self)
        for name in Set(sides.flatMap { $0.tree.members?.keys.map(\.self) ?? [] }) {
            if let member = members[name] {
                merged[name] = try merge(
                    member, base: base?.member(name), mine: mine?.member(name), theirs: theirs?.member(name))
            } else if !sides.contains(where: { $0.known?.members?[name] != nil }) {
                merged[name] = try value(
                    base?.tree.members?[name], mine.map { $0.tree.members?[name] },
                    theirs.map { $0.tree.members?[name] })
            }
        }
        return .object(merged)
    }

    /// Merges one unknown member. A side that is missing as a whole does not count.
    private func value(_ base: JSONTree?, _ mine: JSONTree??, _ theirs: JSONTree??) throws(Conflict) -> JSONTree? {
        guard let mine else { return theirs ?? nil }
        guard let theirs else { return mine }
        if mine == base || mine == theirs { return theirs }
        if theirs == base { return mine }
        if prefersTheirs { return theirs ?? mine }
        throw Conflict()
    }

    private func merge(
        _ elements: [JSONTree], _ base: Side?, _ mine: Side?, _ theirs: Side?
    ) throws(Conflict) -> JSONTree {
        let matches = [base, mine, theirs].map { $0.map { Self.matches(of: elements, in: $0) } }
        var merged: [JSONTree] = []
        for (index, element) in elements.enumerated() {
            merged.append(
                try merge(
                    element, base: matches[0]?[index], mine: matches[1]?[index], theirs: matches[2]?[index]))
        }
        return .array(merged)
    }

    /// Finds the previous state of each element of a list. It is the equal element, as far as the type decodes it, or
    /// the one with the same `id`. In a list of the same length it can also be the one at the same position.
    private static func matches(of elements: [JSONTree], in side: Side) -> [Side?] {
        guard case .array(let before) = side.tree else { return elements.map { _ in nil } }
        var known: [JSONTree?] = before.map { _ in nil }
        if case .array(let trees)? = side.known, trees.count == before.count { known = trees }
        var isFree = before.map { _ in true }
        var matches: [Side?] = elements.map { _ in nil }
        func take(_ index: Int, _ candidate: Int?) {
            guard let candidate else { return }
            isFree[candidate] = false
            matches[index] = Side(tree: before[candidate], known: known[candidate])
        }
        for (index, element) in elements.enumerated() {
            let isEqual = { (candidate: Int) in isFree[candidate] && (known[candidate] ?? before[candidate]) == element
            }
            take(index, index < before.count && isEqual(index) ? index : before.indices.first(where: isEqual))
        }
        for (index, element) in elements.enumerated() where matches[index] == nil {
            guard let id = element.members?["id"] else { continue }
            take(index, before.indices.first { isFree[$0] && before[$0].members?["id"] == id })
        }
        if elements.count == before.count {
            for index in elements.indices where matches[index] == nil && isFree[index] { take(index, index) }
        }
        return matches
    }
}

extension UnknownMembers.Side {
    /// Returns the side of one member; nil when there is none.
    fileprivate func member(_ name: MemberName) -> Self? {
        tree.members?[name].map { Self(tree: $0, known: known?.members?[name]) }
    }
}
