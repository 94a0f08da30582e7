internal import Foundation

/// The ignore files of a folder on the disk, and the entries that they exclude.
///
/// Results are kept until ``reset()``.
final class FolderRules {
    /// The rules of one folder.
    enum State {
        case active(IgnoreScope)
        /// The folder is ignored, and so is its content.
        case ignored
        /// An ignore file cannot be applied. `depth` is the number of names in its folder's path.
        case broken(depth: Int)
    }

    /// The decision about a path.
    enum Fate {
        case kept
        case ignored
        /// Nothing is done until an ignore file is corrected.
        case broken
    }

    /// An open folder, with its names if they were read.
    typealias OpenFolder = (descriptor: Descriptor, names: [[UInt8]]?)

    private let system: any FolderSystem
    private let root: Descriptor
    private let device: dev_t
    /// The rules by the paths of folders. In bytes: texts that are equal in Swift can be two names on a disk.
    private var states: [[UInt8]: State] = [:]
    private var faultsByPath: [[UInt8]: IgnoreFault] = [:]
    /// True when there is a pattern.
    private(set) var hasPatterns = false
    /// The content of ignore files that a plan changes; nil for one that it removes.
    private var planned: [FolderPath: [UInt8]?] = [:]

    init(_ system: any FolderSystem, _ root: Descriptor, _ device: dev_t) {
        self.system = system
        self.root = root
        self.device = device
    }

    /// Ignore files that cannot be applied, by their paths.
    var faults: [(path: String, fault: IgnoreFault)] {
        faultsByPath.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { path, fault in
            (String(decoding: path, as: UTF8.self), fault)
        }
    }

    /// Removes all results, so that the disk is read again.
    func reset() {
        states = [:]
        faultsByPath = [:]
        hasPatterns = false
    }

    /// Sets the content of an ignore file in a plan; nil removes the file.
    func plan(_ path: FolderPath, _ content: [UInt8]?) {
        planned[path] = .some(content)
        reset()
    }

    /// Returns the rules of a folder, which need not exist.
    /// - Parameter names: The names of its path.
    func state(in names: ArraySlice<String>, _ open: OpenFolder? = nil) -> State {
        let path = names.joined(separator: "/")
        let key = Array(path.utf8)
        if let known = states[key] { return known }
        var state = State.active(IgnoreScope())
        if !names.isEmpty { state = self.state(in: names.dropLast()) }
        if case .active(let scope) = state {
            let isIgnored = scope.ignores(names.map { Array($0.utf8) }, isFolder: true)
            state =
                isIgnored ? .ignored : adding(names, path.isEmpty ? "" : path + "/", scope, open ?? self.open(names))
        }
        states[key] = state
        return state
    }

    /// Returns the decision about a file, which need not exist.
    func fate(of path: FolderPath) -> Fate {
        let folder = path.names.dropLast()
        switch state(in: folder) {
        case .ignored: return .ignored
        case .broken(let depth):
            // A malformed ignore file is still synced: another device may correct it.
            return depth == folder.count && IgnoreFile.isName(path.names[depth]) ? .kept : .broken
        case .active(let scope):
            return !scope.isEmpty && scope.ignores(path.names.map { Array($0.utf8) }, isFolder: false)
                ? .ignored : .kept
        }
    }

    /// Returns the decision about a folder, which need not exist.
    func fate(ofFolder path: FolderPath) -> Fate {
        switch state(in: path.names[...]) {
        case .ignored: .ignored
        // The folder of the malformed file is kept.
        case .broken(let depth): depth == path.names.count ? .kept : .broken
        case .active(let scope): scope.ignoresAll(in: path.names.map { Array($0.utf8) }) ? .ignored : .kept
        }
    }

    // MARK: Reading

    /// Returns the content of an ignore file; nil when there is none or it cannot be read.
    func content(of path: FolderPath) -> [UInt8]? {
        let names = path.names.dropLast()
        let prefix = names.map { $0 + "/" }.joined()
        return try? content(of: path.names[names.count], in: open(names)?.descriptor, prefix)
    }

    private func open(_ names: ArraySlice<String>) -> OpenFolder? {
        var folder = root
        for name in names {
            guard let inner = system.openFolder(name, in: folder), system.status(inner)?.st_dev == device else {
                return nil
            }
            folder = inner
        }
        return (folder, nil)
    }

    /// Adds the rules of the ignore files in a folder.
    private func adding(
        _ names: ArraySlice<String>, _ prefix: String, _ scope: IgnoreScope, _ folder: OpenFolder?
    ) -> State {
        var files: [IgnoreFile] = []
        var isBroken = false
        for name in ignoreFiles(in: folder, prefix) {
            do throws(IgnoreFault) {
                guard let bytes = try content(of: name, in: folder?.descriptor, prefix) else { continue }
                files.append(try IgnoreFile(bytes))
                hasPatterns = true
            } catch {
                faultsByPath[Array((prefix + name).utf8)] = error
                isBroken = true
            }
        }
        return isBroken ? .broken(depth: names.count) : .active(scope.adding(files, depth: names.count))
    }

    /// Returns the names of the ignore file and of its conflict copies.
    private func ignoreFiles(in folder: OpenFolder?, _ prefix: String) -> [String] {
        var names: Set<String> = []
        for path in planned.keys {
            let name = path.names[path.names.count - 1]
            if path.text.utf8.elementsEqual((prefix + name).utf8) { names.insert(name) }
        }
        guard let folder, isThere(folder) else { return names.sorted() }
        names.insert(IgnoreFile.name)
        for bytes in folder.names ?? system.names(in: folder.descriptor) ?? [] {
            if let name = String(validating: bytes, as: UTF8.self), IgnoreFile.isName(name) { names.insert(name) }
        }
        return names.sorted()
    }

    private func isThere(_ folder: OpenFolder) -> Bool {
        if let names = folder.names { return names.contains(Array(IgnoreFile.name.utf8)) }
        if case .nothing? = system.entry(IgnoreFile.name, in: folder.descriptor) { return false }
        return true
    }

    /// Returns the content of an ignore file; nil when there is none.
    private func content(of name: String, in folder: Descriptor?, _ prefix: String) throws(IgnoreFault) -> [UInt8]? {
        if !planned.isEmpty, let path = try? FolderPath(prefix + name), let content = planned[path] { return content }
        guard let folder else { return nil }
        guard let entry = system.entry(name, in: folder) else { throw IgnoreFault(.unreadable) }
        guard case .something(let status) = entry else { return nil }
        guard status.isFile else { throw IgnoreFault(.noFile) }
        guard let file = system.openFile(name, in: folder) else { throw IgnoreFault(.unreadable) }
        var bytes = [UInt8](repeating: 0, count: IgnoreFile.byteLimit + 1)
        guard let count = bytes.withUnsafeMutableBytes({ system.read(file, at: 0, into: $0) }) else {
            throw IgnoreFault(.unreadable)
        }
        return Array(bytes.prefix(count))
    }
}

/// The patterns that apply in one folder: those of its ignore files and of the folders above it.
struct IgnoreScope: Sendable {
    private struct Level: Sendable {
        /// The number of names in the folder's path.
        let depth: Int
        /// The ignore file and its conflict copies.
        let files: [IgnoreFile]
    }

    private var levels: [Level] = []

    /// True when nothing is ignored.
    var isEmpty: Bool { levels.isEmpty }

    /// Adds the ignore files of an inner folder.
    func adding(_ files: [IgnoreFile], depth: Int) -> IgnoreScope {
        if files.isEmpty { return self }
        var scope = self
        scope.levels.append(Level(depth: depth, files: files))
        return scope
    }

    /// Returns true when an entry of the folder is ignored. The innermost folder with a matching pattern decides. An
    /// ignore file is never ignored.
    /// - Parameter path: The names from the root on, in NFC if they are UTF-8.
    func ignores(_ path: [[UInt8]], isFolder: Bool) -> Bool {
        guard !levels.isEmpty, let last = path.last else { return false }
        if !isFolder, IgnoreFile.isName(String(decoding: last, as: UTF8.self)) { return false }
        for level in levels.reversed() {
            let decisions = level.files.compactMap { $0.decide(path[level.depth...], isFolder: isFolder) }
            if decisions.contains(true) { return true }
            if !decisions.isEmpty { return false }
        }
        return false
    }

    /// Returns true when every possible entry of a folder is ignored, as with the patterns `build/*` and `build/**`.
    /// Then the folder is ignored, too, as long as it contains nothing that is kept.
    /// - Parameter path: The names from the root on, in NFC if they are UTF-8.
    func ignoresAll(in path: [[UInt8]]) -> Bool {
        guard !levels.isEmpty else { return false }
        return Self.anyNames.allSatisfy { name in
            [true, false].allSatisfy { ignores(path + [Array(name.utf8)], isFolder: $0) }
        }
    }

    /// Names that represent all others. No pattern matches only them, because U+FFFF is not a character.
    private static let anyNames = ["\u{ffff}", ".\u{ffff}"]
}
