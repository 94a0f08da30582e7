import Foundation
import Synchronization

@testable import SalternClient

/// A file system in memory, also one that takes "a" and "A" for one name. Each call is a step of ``Moments``.
///
/// No two changes of a file have one time, so that what was read of it is remembered at once.
final class MemoryFolders: FolderSystem {
    struct Node {
        /// Nil for a file.
        var entries: [[UInt8]: UInt64]?
        var content: [UInt8] = []
        var mode: mode_t = 0o600
        var modified: Int64 = 0
        var changed: Int64 = 0
        /// A folder that was removed: nothing can be made in it.
        var isGone = false
        var device: dev_t = 1
    }

    struct State {
        /// What has no name any more stays: somebody may have it open.
        var nodes: [UInt64: Node] = [0: Node(entries: [:])]
        var open: [Int32: UInt64] = [:]
        var lastDescriptor: Int32 = 0
        /// Far enough from the present that no file is young.
        var clock: Int64 = 1_000_000_000_000_000_000
        var isFull = false
        /// Nobody can tell what is at this name.
        var failing: String?
        /// The folder on which a disk is mounted.
        var hidden: UInt64?
        var canExchange = true
        /// Entries that were made, written, renamed or removed: what the kernel reports of a folder that is watched.
        var changed: Set<[UInt8]> = []

        mutating func add(_ node: Node) -> UInt64 {
            let number = UInt64(nodes.count)
            nodes[number] = node
            touch(number)
            return number
        }

        mutating func touch(_ number: UInt64) {
            clock += 1
            nodes[number]?.changed = clock
        }
    }

    let foldsCase: Bool
    private let moments: Moments
    let state = Mutex(State())

    init(foldsCase: Bool, _ moments: Moments) {
        self.foldsCase = foldsCase
        self.moments = moments
    }

    /// From now on there is no room for anything new.
    func fill() { state.withLock { $0.isFull = true } }

    /// The disk fails where something of this name is looked at; nil for nowhere.
    func fail(at name: String?) { state.withLock { $0.failing = name } }

    /// Another disk, with nothing on it, is mounted at a folder in the root.
    func mount(at name: String) {
        state.withLock { state in
            state.hidden = entry(name.utf8, 0, state)?.node
            let disk = state.add(Node(entries: [:], device: 2))
            state.nodes[0]?.entries?[Array(name.utf8)] = disk
        }
    }

    /// What was there before is there again.
    func unmount(at name: String) {
        state.withLock { state in
            let folder = state.hidden.take()
            state.nodes[0]?.entries?[Array(name.utf8)] = folder
        }
    }

    /// From now on no two names are exchanged, as on file systems that cannot.
    func forgetExchanging() { state.withLock { $0.canExchange = false } }

    /// Returns the entries that have changed since it was asked last.
    func takeChanged() -> Set<[UInt8]> {
        state.withLock { state in
            defer { state.changed = [] }
            return state.changed.filter { !($0 + [UInt8(ascii: "/")]).starts(with: "\(FolderPath.corner)/".utf8) }
        }
    }

    /// Notes a change of an entry of a folder.
    func note(_ name: [UInt8], in folder: UInt64, _ state: inout State) {
        var path = name
        var inner = folder
        while inner != 0 {
            let outer = state.nodes.first { $0.value.entries?.values.contains(inner) ?? false }
            guard let outer, let entry = outer.value.entries?.first(where: { $0.value == inner }) else { return }
            path = entry.key + [UInt8(ascii: "/")] + path
            inner = outer.key
        }
        state.changed.insert(path)
    }

    /// The process that had files open has ended.
    func closeAll() { state.withLock { $0.open = [:] } }

    private func key(_ name: [UInt8]) -> [UInt8] {
        foldsCase ? Array(String(decoding: name, as: UTF8.self).lowercased().utf8) : name
    }

    /// The entry as it is spelt, and what it is.
    func entry(
        _ name: some Sequence<UInt8>, _ folder: UInt64?, _ state: borrowing State
    ) -> (name: [UInt8], node: UInt64)? {
        guard let entries = folder.flatMap({ state.nodes[$0]?.entries }) else { return nil }
        let wanted = key(Array(name))
        if !foldsCase { return entries[wanted].map { (wanted, $0) } }
        return entries.first { key($0.key) == wanted }.map { ($0.key, $0.value) }
    }

    private func descriptor(_ node: UInt64, _ state: inout State) -> Descriptor? {
        state.lastDescriptor += 1
        state.open[state.lastDescriptor] = node
        return Descriptor(state.lastDescriptor) { [weak self] number in
            self?.state.withLock { _ = $0.open.removeValue(forKey: number) }
        }
    }

    // MARK: Looking

    func openRoot(_ path: String) -> Descriptor? {
        moments.look()
        return state.withLock { descriptor(0, &$0) }
    }

    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? {
        openEntry(name, folder) { $0.entries != nil }
    }

    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { openEntry(name, folder) { _ in true } }

    func openForAppending(_ name: String, in folder: Descriptor) -> Descriptor? {
        openEntry(name, folder) { $0.entries == nil }
    }

    private func openEntry(_ name: String, _ folder: Descriptor, _ isWanted: (Node) -> Bool) -> Descriptor? {
        moments.look()
        return state.withLock { state in
            guard let (_, node) = entry(name.utf8, state.open[folder.number], state),
                state.nodes[node].map(isWanted) == true
            else { return nil }
            return descriptor(node, &state)
        }
    }

    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? {
        moments.look()
        return state.withLock { state in
            if state.failing == name { return nil }
            let node = entry(name.utf8, state.open[folder.number], state)?.node
            return node.flatMap { status($0, state) }.map { .something($0) } ?? .nothing
        }
    }

    func status(_ descriptor: Descriptor) -> stat? {
        state.withLock { state in state.open[descriptor.number].flatMap { status($0, state) } }
    }

    private func status(_ number: UInt64, _ state: borrowing State) -> stat? {
        guard let node = state.nodes[number] else { return nil }
        var status = stat()
        status.st_dev = node.device
        status.st_ino = ino_t(number)
        status.st_mode = node.entries == nil ? S_IFREG | node.mode : S_IFDIR | 0o700
        status.st_size = off_t(node.content.count)
        status.st_mtim = timespec(nanoseconds: node.modified)
        status.st_ctim = timespec(nanoseconds: node.changed)
        return status
    }

    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        moments.look()
        guard let node = state.withLock({ state in state.open[file.number].flatMap { state.nodes[$0] } }),
            node.entries == nil
        else { return nil }
        let rest = node.content.dropFirst(Int(offset)).prefix(buffer.count)
        buffer.copyBytes(from: rest)
        return rest.count
    }

    func names(in folder: Descriptor) -> [[UInt8]]? {
        moments.look()
        return state.withLock { state in
            state.open[folder.number].flatMap { state.nodes[$0]?.entries }.map { Array($0.keys) }
        }
    }

    // MARK: Writing

    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? {
        guard moments.write() else { return nil }
        return state.withLock { state in
            state.isFull
                ? nil
                : make(Array(name.utf8), Node(), state.open[folder.number], &state).flatMap { descriptor($0, &state) }
        }
    }

    func makeFolder(_ name: String, in folder: Descriptor) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            let folder = state.open[folder.number]
            if entry(name.utf8, folder, state) != nil { return true }
            return make(Array(name.utf8), Node(entries: [:]), folder, &state) != nil
        }
    }

    private func isFolder(_ number: UInt64, _ state: borrowing State) -> Bool {
        state.nodes[number].map { $0.entries != nil && !$0.isGone } ?? false
    }

    func make(_ name: [UInt8], _ node: Node, _ folder: UInt64?, _ state: inout State) -> UInt64? {
        guard let folder, isFolder(folder, state), entry(name, folder, state) == nil else { return nil }
        let number = state.add(node)
        state.nodes[folder]?.entries?[name] = number
        note(name, in: folder, &state)
        return number
    }

    func removeFolder(_ name: String, in folder: Descriptor) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            guard let folder = state.open[folder.number], let (name, node) = entry(name.utf8, folder, state),
                state.nodes[node]?.entries?.isEmpty == true
            else { return false }
            state.nodes[folder]?.entries?[name] = nil
            state.nodes[node]?.isGone = true
            return true
        }
    }

    func removeFile(_ name: String, in folder: Descriptor) {
        guard moments.write() else { return }
        state.withLock { state in
            guard let folder = state.open[folder.number], let (name, node) = entry(name.utf8, folder, state),
                state.nodes[node]?.entries == nil
            else { return }
            state.nodes[folder]?.entries?[name] = nil
        }
    }

    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            move(Array(name.utf8), state.open[from.number], Array(newName.utf8), state.open[to.number], &state)
        }
    }

    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            let folder = state.open[folder.number]
            return move(bytes, folder, Array(name.utf8), folder, &state)
        }
    }

    private func move(
        _ name: [UInt8], _ from: UInt64?, _ newName: [UInt8], _ to: UInt64?, _ state: inout State
    ) -> Bool {
        guard let from, let to, isFolder(to, state), let (name, node) = entry(name, from, state),
            entry(newName, to, state) == nil
        else { return false }
        note(name, in: from, &state)
        state.nodes[from]?.entries?[name] = nil
        state.nodes[to]?.entries?[newName] = node
        note(newName, in: to, &state)
        state.touch(node)
        return true
    }

    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            guard state.canExchange, let one = state.open[one.number], let two = state.open[two.number],
                let (name, node) = entry(name.utf8, one, state), let (other, otherNode) = entry(other.utf8, two, state)
            else { return false }
            state.nodes[one]?.entries?[name] = otherNode
            state.nodes[two]?.entries?[other] = node
            note(name, in: one, &state)
            note(other, in: two, &state)
            state.touch(node)
            state.touch(otherNode)
            return true
        }
    }

    func sync(_ descriptor: Descriptor) -> Bool { moments.write() }

    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool {
        let isWhole = moments.write()
        return state.withLock { state in
            guard let node = state.open[file.number] else { return false }
            state.nodes[node]?.content += bytes.prefix(isWhole ? bytes.count : bytes.count / 2)
            state.touch(node)
            return isWhole
        }
    }

    func truncate(_ file: Descriptor, to count: Int64) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            guard let node = state.open[file.number] else { return false }
            let kept = state.nodes[node]?.content.prefix(Int(count)) ?? []
            state.nodes[node]?.content = Array(kept)
            state.touch(node)
            return true
        }
    }

    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool {
        guard moments.write() else { return false }
        return state.withLock { state in
            guard let node = state.open[file.number] else { return false }
            state.nodes[node]?.mode = mode
            if let modified { state.nodes[node]?.modified = modified.nanoseconds }
            state.touch(node)
            return true
        }
    }
}
