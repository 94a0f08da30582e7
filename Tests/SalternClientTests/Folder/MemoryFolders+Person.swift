import Synchronization

@testable import SalternClient

/// What a person does in the folder, without a step of ``Moments``.
extension MemoryFolders {
    private func walk(
        _ folder: UInt64, _ prefix: String, _ state: borrowing State, _ body: (String, [UInt8]) -> Void
    ) {
        for (name, number) in state.nodes[folder]?.entries ?? [:] {
            let path = prefix + String(decoding: name, as: UTF8.self)
            guard let node = state.nodes[number] else { continue }
            if node.entries != nil { walk(number, path + "/", state, body) } else { body(path, node.content) }
        }
    }

    /// All files by path, but for those whose names are two forms of one text.
    func contents() -> [String: String] {
        state.withLock { state in
            var files: [String: [String]] = [:]
            walk(0, "", state) { files[$0, default: []].append(String(decoding: $1, as: UTF8.self)) }
            return files.compactMapValues { $0.count == 1 ? $0[0] : nil }
        }
    }

    /// The folder of a path and the name in it.
    private func place(
        _ path: String, isMade: Bool, _ state: inout State
    ) -> (folder: UInt64, name: [UInt8])? {
        let names = path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
        var folder: UInt64 = 0
        for name in names.dropLast() {
            if let (_, node) = entry(name, folder, state) {
                guard state.nodes[node]?.entries != nil else { return nil }
                folder = node
            } else {
                guard isMade, let node = make(name, Node(entries: [:]), folder, &state) else { return nil }
                folder = node
            }
        }
        return names.last.map { (folder, $0) }
    }

    /// Whether something of this name is there, in whatever form of the text.
    func personHas(_ path: String) -> Bool {
        state.withLock { state in
            var isThere = false
            walk(0, "", state) { other, _ in if other == path { isThere = true } }
            guard !isThere, let (folder, name) = place(path, isMade: false, &state) else { return isThere }
            return entry(name, folder, state) != nil
        }
    }

    /// Writes a file, in its place when it is there.
    func personWrites(_ text: String, to path: String) -> Bool {
        state.withLock { state in
            guard let (folder, name) = place(path, isMade: true, &state) else { return false }
            let number = entry(name, folder, state)?.node ?? make(name, Node(), folder, &state)
            guard let number, state.nodes[number]?.entries == nil else { return false }
            state.nodes[number]?.content = Array(text.utf8)
            note(name, in: folder, &state)
            state.touch(number)
            state.nodes[number]?.modified = state.clock
            return true
        }
    }

    func personRemoves(_ path: String) -> Bool {
        state.withLock { state in
            guard let (folder, name) = place(path, isMade: false, &state),
                let (name, node) = entry(name, folder, state),
                state.nodes[node]?.entries == nil
            else { return false }
            note(name, in: folder, &state)
            state.nodes[folder]?.entries?[name] = nil
            return true
        }
    }

    /// Renames a file, also to another spelling of its name.
    func personRenames(_ path: String, _ other: String) -> Bool {
        state.withLock { state in
            guard let (from, name) = place(path, isMade: false, &state), let (name, node) = entry(name, from, state),
                let (to, newName) = place(other, isMade: true, &state)
            else { return false }
            if let there = entry(newName, to, state), there.node != node || from != to { return false }
            note(name, in: from, &state)
            state.nodes[from]?.entries?[name] = nil
            state.nodes[to]?.entries?[newName] = node
            note(newName, in: to, &state)
            state.touch(node)
            return true
        }
    }

    func personMakesFolder(_ path: String) -> Bool {
        state.withLock { state in
            guard let (folder, name) = place(path, isMade: true, &state), entry(name, folder, state) == nil else {
                return false
            }
            return make(name, Node(entries: [:]), folder, &state) != nil
        }
    }

    func personRemovesFolder(_ path: String) -> Bool {
        state.withLock { state in
            guard let (folder, name) = place(path, isMade: false, &state),
                let (name, node) = entry(name, folder, state), state.nodes[node]?.entries?.isEmpty == true
            else { return false }
            note(name, in: folder, &state)
            state.nodes[folder]?.entries?[name] = nil
            state.nodes[node]?.isGone = true
            return true
        }
    }

    /// The paths of all folders but the kit's own corner.
    func folders() -> Set<String> {
        state.withLock { state in
            var paths: Set<String> = []
            func add(_ folder: UInt64, _ prefix: String, _ state: borrowing State) {
                for (name, number) in state.nodes[folder]?.entries ?? [:] where state.nodes[number]?.entries != nil {
                    let path = prefix + String(decoding: name, as: UTF8.self)
                    if path == FolderPath.corner { continue }
                    paths.insert(path)
                    add(number, path + "/", state)
                }
            }
            add(0, "", state)
            return paths
        }
    }

    func personClearsEmptyFolders() { state.withLock { clear(0, &$0) } }

    private func clear(_ folder: UInt64, _ state: inout State) {
        for (name, node) in state.nodes[folder]?.entries ?? [:] where state.nodes[node]?.entries != nil {
            if folder == 0, name == Array(FolderPath.corner.utf8) { continue }
            clear(node, &state)
            guard state.nodes[node]?.entries?.isEmpty == true else { continue }
            note(name, in: folder, &state)
            state.nodes[folder]?.entries?[name] = nil
            state.nodes[node]?.isGone = true
        }
    }
}
