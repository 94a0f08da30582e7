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
